"""Hostile uploads over real HTTP into a real worker: each ends in words a person understands, within bounds."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from django.test import Client

from apps.collections.models import Document
from jobs.models import Job
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.concurrency.bad_files import MB, READER_MB, Bad, bad_files
from tests.concurrency.conftest import MAX_UPLOAD_MB, Site
from tests.concurrency.documents import make_collection
from tests.concurrency.ledger import (
    assert_nothing_runs,
    assert_ready_and_reconciled,
    assert_statistics_exact,
    wait_ended,
)
from tests.concurrency.rest import Rest, make_key
from tests.processes import below

# What tells a person nothing: our classes, our paths, our crashes.
TECHNICAL = re.compile(r"Traceback|Exception|Error\b|\bNone\b|0x[0-9a-f]{6}|/tmp|site-packages|_")


@dataclass
class Peaks:
    """Highest resident memory seen, in MB."""

    web: float = 0
    worker_process: float = 0
    reader: float = 0


@contextmanager
def _memory_watched(site: Site) -> Iterator[Peaks]:
    peaks, stop = Peaks(), threading.Event()

    def watch() -> None:
        assert site.stack.web is not None
        assert site.stack.worker is not None
        web = psutil.Process(site.stack.web.pid)
        while not stop.wait(0.1):
            peaks.web = max(peaks.web, web.memory_info().rss / MB)
            for pid in below(site.stack.worker.pid):
                try:
                    process = psutil.Process(pid)
                    size = process.memory_info().rss / MB
                    is_reader = "apps.collections.ingestion.child" in process.cmdline()
                except psutil.NoSuchProcess:
                    continue
                if is_reader:
                    peaks.reader = max(peaks.reader, size)
                else:
                    peaks.worker_process = max(peaks.worker_process, size)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def rest(site: Site, cast: Cast) -> Rest:
    return Rest(site.stack.port, make_key(cast))


def test_every_bad_file_ends_ready_or_says_why_within_bounded_time_and_memory(
    site: Site, cast: Cast, rest: Rest, record_property: Any
) -> None:
    collection = make_collection(cast, chunk_size=4000)
    uploaded: dict[int, Bad] = {}
    site.holds.quicken(is_quick=True)
    began = time.monotonic()
    with _memory_watched(site) as peaks:
        for bad in bad_files():
            answer = rest.upload(collection.pk, bad.name, bad.make())
            assert answer.status == 201, (bad.name, answer)
            assert answer.json["name"] == bad.name
            uploaded[answer.json["id"]] = bad
        documents = wait_ended(cast.tenant, list(uploaded))
    site.holds.quicken(is_quick=False)
    wrong: list[str] = []
    for document in documents:
        bad = uploaded[document.pk]
        end = document.error_code or document.status
        job = document.job
        assert job is not None
        assert job.started_at is not None
        assert job.finished_at is not None
        seconds = (job.finished_at - job.started_at).total_seconds()
        print(  # noqa: T201
            f"{bad.name:16} {seconds:5.1f} s {end:17} {document.error_message or document.timings}"
        )
        if end not in bad.ends:
            wrong.append(f"{bad.name}: {end}, expected one of {bad.ends}")
        if document.status == "ready":
            assert_ready_and_reconciled(cast.tenant, document.pk)
        else:
            assert document.finished_at is not None
            said = document.error_message
            assert len(said) > 25, (bad.name, said)
            assert said.endswith("."), (bad.name, said)
            assert not TECHNICAL.search(said), (bad.name, said)
    assert wrong == []
    assert_nothing_runs(cast.tenant)
    assert_statistics_exact(cast.tenant, collection)
    print(f"{time.monotonic() - began:.0f} s, peaks in MB: {peaks}")  # noqa: T201
    record_property("peaks_mb", str(peaks))
    assert peaks.web < 500
    assert peaks.worker_process < 700
    assert 0 < peaks.reader < READER_MB + 150  # what it grows between two looks at it


def test_upload_is_refused_when_it_is_larger_than_the_limit(site: Site, cast: Cast, rest: Rest) -> None:
    collection = make_collection(cast)
    answer = rest.upload(collection.pk, "large.txt", b"x" * ((MAX_UPLOAD_MB + 2) * MB))
    assert (answer.status, answer.json["code"]) == (413, "too_large")
    assert f"{MAX_UPLOAD_MB} MB" in answer.json["message"]
    assert rest.get(f"/api/v1/collections/{collection.pk}/documents").json["results"] == []


NAMES = {
    "../../../etc/passwd.txt": "passwd.txt",
    "..\\..\\windows\\boot.txt": "boot.txt",
    "/absolute/path.txt": "path.txt",
    "C:\\Users\\me\\tariff.txt": "tariff.txt",
    "\u202etxt.exe\u202c.txt": "txt.exe.txt",
    "العربية 文件 émoji 🦆.txt": "العربية 文件 émoji 🦆.txt",
    "x" * 400 + ".txt": "x" * 251 + ".txt",
    "<script>alert(1)</script>&amp;.txt": None,
    'quote" onmouseover="x.txt': None,
    "{{ 7|add:1 }}%s%n.txt": "{{ 7|add:1 }}%s%n.txt",
    "line\x0bbreak\x7f.txt": "linebreak.txt",
    ".txt": ".txt",
}


def test_name_is_kept_and_shown_safely_when_it_is_hostile(site: Site, cast: Cast, rest: Rest) -> None:
    collection = make_collection(cast)
    shown: dict[int, str] = {}
    for number, (name, expected) in enumerate(NAMES.items()):
        answer = rest.upload(collection.pk, name, f"Notice number {number} of the office.".encode())
        assert answer.status == 201, (name, answer)
        kept = answer.json["name"]
        assert expected is None or kept == expected, name
        assert 0 < len(kept) <= 255
        assert "/" not in kept
        assert "\\" not in kept
        assert kept.isprintable()
        shown[answer.json["id"]] = kept
    wait_ended(cast.tenant, list(shown))
    browser = Client()
    browser.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    base = f"/t/{cast.tenant.slug}/collections/{collection.pk}/"
    for url in (base, *(f"{base}documents/{pk}/" for pk in shown)):
        page = browser.get(url)
        assert page.status_code == 200, url
        assert "<script>alert" not in page.content.decode()
        assert '" onmouseover="' not in page.content.decode()
    for pk, name in shown.items():
        download = browser.get(f"{base}documents/{pk}/download/")
        assert download.status_code == 200
        header = download.headers["Content-Disposition"]
        assert header.startswith("attachment"), name
        assert header.isprintable()
        assert download.headers["X-Content-Type-Options"] == "nosniff"
        download.close()
    for name in ("", "..", "/", "\u202e"):
        answer = rest.upload(collection.pk, name, b"nameless")
        assert answer.status == 400, (name, answer)
        assert answer.json["code"] in ("file_missing", "name_invalid")


def test_one_document_is_ingested_once_when_the_same_file_comes_ten_times_at_once(
    site: Site, cast: Cast, rest: Rest
) -> None:
    collection = make_collection(cast)
    data = ("The rate of heading 8471.30.0100 is free of duty. " * 200).encode()
    barrier = threading.Barrier(10)

    def send(_: int) -> tuple[int, int, bool]:
        barrier.wait()
        answer = rest.upload(collection.pk, "copy.txt", data)
        return answer.status, answer.json["id"], answer.json["created"]

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(send, range(10)))

    assert sorted(status for status, _, _ in answers) == [200] * 9 + [201]
    assert [created for _, _, created in answers].count(True) == 1
    assert len({pk for _, pk, _ in answers}) == 1
    pk = answers[0][1]
    wait_ended(cast.tenant, [pk])
    assert_ready_and_reconciled(cast.tenant, pk)
    assert_statistics_exact(cast.tenant, collection)
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.filter(collection=collection).count() == 1
        assert Job.objects.filter(payload__document=pk).count() == 1
        assert AuditEvent.objects.filter(action="document.upload").count() == 1
    assert site.stack.get("/healthz") == 200
