"""Two web servers and two workers that share no disk: four data directories, one Postgres, one bucket.

Prints a table and writes results/share_nothing.json: of mixed uploads, archives, exports, imports, attachments and page views
through either web server, how many were right; what was lost or left over after processes were killed on the way; what came of
documents while the bucket was away; and where planted words were left after their documents were deleted.

    python benchmarks/share_nothing.py --operations 500 --kills 40 --away 60
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _stack
from benchmarks._common import write_result

NEEDLES = 50
END_S = 600.0
ROW = {
    "id": "r1",
    "question": "What is the rate?",
    "answer": "Two percent.",
    "type": "factual",
    "language": "en",
    "sources": [],
    "steps": [],
}


class Door:
    """A bucket's server behind a door that can be shut."""

    def __init__(self, port: int) -> None:
        self._to, self._is_open = port, threading.Event()
        self._is_open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._through: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Refuse every connection, and end those that are open."""
        self._is_open.clear()
        for side in list(self._through):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        """Let connections through again."""
        self._is_open.set()

    def _accept(self) -> None:
        while True:
            outside, _ = self._listener.accept()
            if not self._is_open.is_set():
                outside.close()
                continue
            inside = socket.create_connection(("127.0.0.1", self._to))
            self._through |= {outside, inside}
            for one, other in ((outside, inside), (inside, outside)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self._through -= {one, other}


class Machines:
    """Two web servers and two workers, each with a data directory of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        from apps.collections.embedders.minilm import prepare_model
        from tests.servers import Stack

        self.homes, self.stacks = [], []
        for number in range(4):
            home = folder / f"machine-{number}"
            home.mkdir(mode=0o700)
            if number:
                shutil.copytree(self.homes[0], home, dirs_exist_ok=True)  # the embedder's model is built once
            else:
                prepare_model(home)
            logs = folder / f"logs-{number}"
            logs.mkdir()
            self.homes.append(home)
            self.stacks.append(
                Stack(
                    logs,
                    DATABASE_URL=os.environ["DATABASE_URL"],
                    DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
                    GROUNDWORK_DATA_DIR=str(home),
                    GROUNDWORK_FILES_URL=url,
                    GROUNDWORK_JOB_LEASE_S="5",
                )
            )
        self.webs, self.workers = self.stacks[:2], self.stacks[2:]
        for number in range(4):
            self.begin(number)
        for web in self.webs:
            web._await_web()

    def begin(self, number: int) -> None:
        """Start a machine's process."""
        stack = self.stacks[number]
        if number < 2:
            stack._begin_web()
        else:
            stack._begin_worker()

    def kill(self, number: int) -> None:
        """Kill a machine's processes at once, and start it again."""
        stack = self.stacks[number]
        process = stack.web if number < 2 else stack.worker
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.begin(number)

    def stop(self) -> None:
        """End all."""
        for stack in self.stacks:
            stack.stop()


class Client:
    """A person's key and session, at either web server."""

    def __init__(self, machines: Machines, workspace: Any) -> None:
        self.machines, self.own = machines, workspace

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        *,
        web: int = 0,
    ) -> tuple[int, bytes]:
        """Send a request; status 0 where nobody answers."""
        from django.conf import settings

        url = f"http://127.0.0.1:{self.machines.webs[web % 2].port}{path}"
        headers = {"Content-Type": kind} if body is not None else {}
        if path.startswith("/api/"):
            headers["Authorization"] = f"Bearer {self.own.key}"
        else:
            headers["Cookie"] = f"{settings.SESSION_COOKIE_NAME}={self.own.session}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""

    def post(self, path: str, value: Any, *, web: int = 0) -> tuple[int, Any]:
        """Send JSON."""
        status, text = self.ask("POST", path, json.dumps(value).encode(), web=web)
        return status, json.loads(text) if text.startswith((b"{", b"[")) else text

    def get(self, path: str, *, web: int = 0) -> Any:
        """Return JSON, None for anything but a success."""
        status, text = self.ask("GET", path, web=web)
        return json.loads(text) if status == 200 else None

    def send(self, path: str, name: str, data: bytes, *, web: int = 0, **fields: str) -> tuple[int, Any]:
        """Send a file."""
        mark = "----mark"
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + data + b"\r\n")
        body = b"".join(parts) + f"--{mark}--\r\n".encode()
        status, text = self.ask("POST", path, body, f"multipart/form-data; boundary={mark}", web=web)
        return status, json.loads(text) if text.startswith(b"{") else text

    def wait(self, path: str, ended: set[str], *, web: int = 0) -> Any:
        """Return what is at a path once its status is one of these."""
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            found = self.get(path, web=web)
            if found is not None and found["status"] in ended:
                return found
            time.sleep(0.2)
        return {"status": "never ended"}


ENDED = {"ready", "failed", "cancelled", "completed", "blocked"}


def text_of(number: int, salt: str) -> bytes:
    """Return a document that is no other's."""
    return f"# Lamp {salt} {number}\n\nLamp {salt}-{number} costs {number} cents and is dutiable at two percent.\n".encode()


def pdf_of(number: int, salt: str) -> bytes:
    """Return a PDF of a page that is no other's."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.drawString(72, 700, f"Lamp {salt}-{number} costs {number} cents and is dutiable at two percent.")
    canvas.save()
    return out.getvalue()


class Work:
    """The operations, each of which tells what was wrong, or nothing."""

    def __init__(self, client: Client, salt: str) -> None:
        self.client, self.salt = client, salt
        self.collection = client.own.collection
        _, found = client.post("/api/v1/datasets", {"name": f"Rows {salt}"})
        self.dataset = found["id"]
        path = f"/api/v1/datasets/{self.dataset}"
        status, brought = client.send(f"{path}/imports", "rows.jsonl", json.dumps(ROW).encode(), form="jsonl")
        assert status == 202, brought
        assert client.wait(f"/api/v1/dataset-imports/{brought['id']}", ENDED)["status"] == "completed"
        status, version = client.post(f"{path}/versions", {})
        assert status == 201, version
        self.version = version["number"]

    def uploaded(self, number: int) -> str:
        """Upload by one web server, download and look at it by the other."""
        is_pdf = number % 2 == 0
        data = pdf_of(number, self.salt) if is_pdf else text_of(number, self.salt)
        name = f"{self.salt}-{number}.{'pdf' if is_pdf else 'md'}"
        status, found = self.client.send(
            f"/api/v1/collections/{self.collection}/documents", name, data, web=number
        )
        if status not in (201, 202):
            return f"upload {status}"
        document = found.get("document", found)["id"]
        ended = self.client.wait(f"/api/v1/documents/{document}", ENDED, web=number + 1)
        if ended["status"] != "ready":
            return f"document {ended['status']} {ended.get('error_code')}"
        base = f"/t/{self.client.own.slug}/collections/{self.collection}/documents/{document}/"
        status, sent = self.client.ask("GET", f"{base}download/", web=number + 1)
        if (status, sent) != (200, data):
            return f"download {status}"
        if is_pdf:
            status, image = self.client.ask("GET", f"{base}pages/1/image/", web=number)
            if status != 200 or image[:4] != b"RIFF":
                return f"page {status}"
        return ""

    def archived(self, number: int) -> str:
        """Import an archive of two files."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for part in "ab":
                archive.writestr(f"{self.salt}-{number}-{part}.md", text_of(number, f"{self.salt}{part}"))
        status, found = self.client.send(
            f"/api/v1/collections/{self.collection}/imports",
            "a.zip",
            out.getvalue(),
            web=number,
            source="archive",
        )
        if status != 202:
            return f"import {status}"
        ended = self.client.wait(f"/api/v1/imports/{found['id']}", ENDED, web=number + 1)
        return "" if ended["status"] == "completed" else f"import {ended['status']} {ended.get('error_code')}"

    def exported(self, number: int) -> str:
        """Export a dataset and fetch the file by the other web server."""
        path = f"/api/v1/datasets/{self.dataset}/exports"
        status, found = self.client.post(path, {"version": self.version, "form": "jsonl"}, web=number)
        if status != 202:
            return f"export {status} {found}"
        ended = self.client.wait(f"/api/v1/dataset-exports/{found['id']}", ENDED, web=number + 1)
        if ended["status"] != "completed":
            return f"export {ended['status']} {ended.get('error_code')}"
        status, sent = self.client.ask("GET", f"/api/v1/dataset-exports/{found['id']}/file", web=number + 1)
        return "" if status == 200 and b"What is the rate?" in sent else f"file {status}"

    def brought(self, number: int) -> str:
        """Import rows into a dataset."""
        row = ROW | {"id": f"r{self.salt}{number}", "question": f"What does lamp {self.salt}-{number} cost?"}
        path = f"/api/v1/datasets/{self.dataset}/imports"
        status, found = self.client.send(
            path, "rows.jsonl", json.dumps(row).encode(), web=number, form="jsonl"
        )
        if status != 202:
            return f"rows {status}"
        ended = self.client.wait(f"/api/v1/dataset-imports/{found['id']}", ENDED, web=number + 1)
        is_right = ended["status"] == "completed" and ended["created"] == 1
        return "" if is_right else f"rows {ended['status']} {ended.get('error_code')}"

    def attached(self, number: int) -> str:
        """Attach a file to a new conversation, and see it read by the other web server."""
        status, conversation = self.client.post("/api/v1/conversations", {}, web=number)
        if status != 201:
            return f"conversation {status}"
        path = f"/api/v1/conversations/{conversation['id']}/attachments"
        status, found = self.client.send(
            path, f"{number}.md", text_of(number, f"{self.salt}x"), web=number + 1
        )
        if status not in (201, 202):
            return f"attachment {status}"
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            state = self.client.get(f"{path}/{found['id']}", web=number)
            if state is not None and state["state"] in ("ready", "failed"):
                return "" if state["state"] == "ready" else f"attachment {state['problem']}"
            time.sleep(0.2)
        return "attachment never read"

    def all(self) -> list[Callable[[int], str]]:
        """Return the operations in the mix in which they come."""
        return [
            self.uploaded,
            self.uploaded,
            self.archived,
            self.uploaded,
            self.exported,
            self.brought,
            self.attached,
        ]


def mixed(work: Work, operations: int) -> dict[str, Any]:
    """Do them, eight at once, and count the right ones."""
    kinds = work.all()

    def one(number: int) -> tuple[str, str]:
        kind = kinds[number % len(kinds)]
        return kind.__name__, kind(number)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(operations)))
    wrong = [f"{kind}: {problem}" for kind, problem in found if problem]
    for problem in wrong[:20]:
        print(problem)
    return {
        "operations": operations,
        "right": operations - len(wrong),
        "kinds": dict(Counter(kind for kind, _ in found)),
    }


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


@contextlib.contextmanager
def served() -> Iterator[tuple[Door, Any]]:
    """Run the bucket's server behind its door."""
    from tests.bucket import Bucket, serving

    with serving() as endpoint:
        door = Door(int(endpoint.rpartition(":")[2]))
        yield door, Bucket(f"http://127.0.0.1:{door.port}")


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--away", type=float, default=60.0)
    chosen = parser.parse_args()
    with (
        _stack.database(),
        served() as (door, bucket),
        tempfile.TemporaryDirectory(prefix="groundwork-nothing-") as folder,
    ):
        from apps.collections.index.embedding import space_default
        from apps.collections.models import Collection
        from tenancy.scope import platform_scope
        from tests.many_tenants import workspaces_make

        workspace = workspaces_make(1)[0]
        with platform_scope():
            collection = Collection.objects.select_related("tenant").get(pk=workspace.collection)
            collection.space = space_default(tenant=collection.tenant)
            collection.save()
        machines = Machines(Path(folder), bucket.url)
        client = Client(machines, workspace)
        result: dict[str, Any] = {}
        try:
            work = Work(client, "mix")
            for name, part in (
                ("mixed", lambda: mixed(work, chosen.operations)),
                ("deleted", lambda: deleted(machines, client, bucket)),
                ("away", lambda: away(door, client, chosen.away)),
                ("killed", lambda: killed(machines, client, bucket, chosen.kills)),
            ):
                result[name] = part()
                print(f"{name}: {json.dumps(result[name])}", flush=True)
        except BaseException:
            for log in sorted(Path(folder).glob("logs-*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            machines.stop()
    write_result("share_nothing", result)


if __name__ == "__main__":
    main()
