"""What is done to machines that share no disk, and what is left afterwards: for share_nothing.py."""

from __future__ import annotations

import contextlib
import hashlib
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks._share_machines import END_S, ENDED, Client, Door, Machines
from benchmarks._share_work import text_of

NEEDLES = 50


def rows_of(query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return rows of the database, of every workspace."""
    from django.db import connection

    from tenancy.scope import platform_scope

    with platform_scope(), connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


NAMED = """
SELECT file FROM collections_document UNION SELECT file FROM collections_import
UNION SELECT file FROM collections_repositorypack UNION SELECT index FROM collections_repositorypack
UNION SELECT file FROM datasets_datasetexport UNION SELECT file FROM datasets_datasetimport
UNION SELECT errors_file FROM datasets_datasetimport
"""


def settled() -> None:
    """Let the day pass after which nobody is placing what is still pending, and wait for the workers to finish it."""
    from django.db import connection

    from tenancy.scope import platform_scope

    until = time.monotonic() + END_S
    while rows_of("SELECT 1 FROM blobs_pendingblob WHERE removed_at IS NULL LIMIT 1"):
        assert time.monotonic() < until, "pending keys are never settled"
        with platform_scope(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE blobs_pendingblob SET due_at = now() - interval '10 seconds' WHERE removed_at IS NULL"
            )
        time.sleep(1)


def counted(bucket: Any) -> dict[str, int]:
    """Compare the keys of the bucket with those that rows name."""
    named = {key for (key,) in rows_of(NAMED) if key}
    keys = bucket.keys()
    return {"lost": len(named - keys), "orphans": len(keys - named)}


def killed(machines: Machines, client: Client, bucket: Any, kills: int) -> dict[str, Any]:
    """Upload all the time while processes are killed at random moments; what was taken must be there in the end."""
    taken: list[int] = []
    is_over = threading.Event()

    def upload(worker: int) -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            salt = f"kill{worker}"
            status, found = client.send(
                f"/api/v1/collections/{client.own.collection}/documents",
                f"{salt}-{number}.md",
                text_of(number, salt) * 20,
                web=number,
            )
            if status in (201, 202):
                taken.append(found.get("document", found)["id"])
            time.sleep(0.05)

    chance = random.Random(7)
    with ThreadPoolExecutor(3) as pool:
        uploading = [pool.submit(upload, worker) for worker in range(3)]
        for number in range(kills):
            time.sleep(chance.uniform(0.3, 2.0))
            machines.kill(number % 4)
        time.sleep(2)
        is_over.set()
        for one in uploading:
            one.result()
    ends = Counter(client.wait(f"/api/v1/documents/{pk}", ENDED)["status"] for pk in taken)
    settled()
    return {"kills": kills, "taken": len(taken), "ends": dict(ends), **counted(bucket)}


def away(door: Door, client: Client, seconds: float) -> dict[str, Any]:
    """Shut the bucket's door while documents wait to be read, and see what becomes of them and of uploads."""
    taken = []
    for number in range(30):
        status, found = client.send(
            f"/api/v1/collections/{client.own.collection}/documents",
            f"away-{number}.md",
            text_of(number, "away"),
        )
        assert status in (201, 202), status
        taken.append(found.get("document", found)["id"])
        if number == 10:
            door.shut()
            break
    refused: Counter[int] = Counter()
    until = time.monotonic() + seconds
    number = 100
    while time.monotonic() < until:
        number += 1
        status, _ = client.send(
            f"/api/v1/collections/{client.own.collection}/documents",
            f"away-{number}.md",
            text_of(number, "away"),
        )
        refused[status] += 1
        time.sleep(1)
    door.open()
    ends = Counter(client.wait(f"/api/v1/documents/{pk}", ENDED)["status"] for pk in taken)
    return {
        "seconds": seconds,
        "documents": dict(ends),
        "uploads_meanwhile": {str(k): v for k, v in refused.items()},
    }


def found_in(machines: Machines, bucket: Any, needles: list[str]) -> list[str]:
    """Return the planted words that are in a data directory or in the bucket."""
    left = set()
    content = bucket.content()
    for needle in needles:
        if needle.encode() in content:
            left.add(f"{needle} in the bucket")
    for home in machines.homes:
        for path in home.rglob("*"):
            if path.is_file():
                with contextlib.suppress(FileNotFoundError):
                    data = path.read_bytes()
                    left |= {f"{needle} in {path}" for needle in needles if needle.encode() in data}
    return sorted(left)


def deleted(machines: Machines, client: Client, bucket: Any) -> dict[str, Any]:
    """Plant words, let every machine have copies of them, delete the documents, and look for them byte by byte."""
    needles = [f"Quagga{hashlib.sha256(str(n).encode()).hexdigest()[:12]}" for n in range(NEEDLES)]
    documents = []
    path = f"/api/v1/collections/{client.own.collection}/documents"
    for number, needle in enumerate(needles):
        status, found = client.send(
            path, f"{needle}.md", f"# {needle}\n\nThe boat {needle} floats.".encode(), web=number
        )
        assert status in (201, 202), status
        documents.append(found.get("document", found)["id"])
    for pk in documents:
        assert client.wait(f"/api/v1/documents/{pk}", ENDED)["status"] == "ready"
        base = f"/t/{client.own.slug}/collections/{client.own.collection}/documents/{pk}/"
        for web in (0, 1):
            assert client.ask("GET", f"{base}download/", web=web)[0] == 200
    before = len(found_in(machines, bucket, needles))
    for number, pk in enumerate(documents):
        status, _ = client.ask("DELETE", f"/api/v1/documents/{pk}", web=number)
        assert status == 204, status
    began = time.monotonic()
    while (left := found_in(machines, bucket, needles)) and time.monotonic() - began < 60:
        time.sleep(1)
    for one in left[:10]:
        print(one)
    return {
        "planted": NEEDLES,
        "places_before": before,
        "left": len(left),
        "seconds": round(time.monotonic() - began, 1),
    }
