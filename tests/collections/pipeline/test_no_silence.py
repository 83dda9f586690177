"""Every write fails once or for good, the embedder fails in every way: the document ends, says why, and can be retried."""

from __future__ import annotations

import errno
import http.server
import json
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from django.db import OperationalError
from django.test import Client

from apps.collections.documents import services
from apps.collections.embedders.openai import OpenAiEmbedder
from apps.collections.index import terms
from apps.collections.ingestion import sandbox
from apps.collections.models import Collection, Document
from apps.collections.pipeline import publish as pipeline_live
from apps.collections.pipeline import run as pipeline
from basics.errors import disk_full
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import DIMS, LAMPS, WordEmbedder, attempt, job_of, make_due, upload
from tests.collections.pipeline.silence import (
    assert_gone_when_deleted,
    assert_nothing_is_wrong,
    assert_says_why,
)

pytestmark = pytest.mark.django_db
WORDS = "lamps duty invoice INV-100234 8539.50.00"


@pytest.fixture(autouse=True)
def scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def table_full(*_: Any, **__: Any) -> Any:
    """Fail as a statement does whose table cannot grow."""
    try:
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")
    except psycopg.Error as error:
        raise OperationalError(str(error)) from error


def cut_off(*_: Any, **__: Any) -> Any:
    try:
        raise psycopg.errors.AdminShutdown("terminating connection")
    except psycopg.Error as error:
        raise OperationalError(str(error)) from error


POINTS: list[tuple[str, Any, str, Callable[..., Any]]] = [
    ("fetch", pipeline, "file_digest", no_space),
    ("parse", tempfile, "TemporaryDirectory", no_space),
    ("parse", tempfile, "TemporaryFile", no_space),
    ("parse", pipeline, "pages_write", table_full),
    ("chunk", pipeline, "chunks_write", table_full),
    ("summarise", pipeline, "summaries_write", table_full),
    ("embed", pipeline, "vectors_insert", table_full),
    ("index", terms, "document_index", table_full),
    ("index", pipeline_live, "code_graph_write", table_full),
    ("index", pipeline, "version_go_live", cut_off),
]
IDS = [f"{stage}-{name}" for stage, _, name, _ in POINTS]


def attempts(document: Document, count: int = 3) -> None:
    """Run attempts as long as the job waits, at most some."""
    for _ in range(count):
        attempt(document)
        if not document.is_active:
            return
        make_due(document)


@pytest.mark.parametrize(("stage", "place", "name", "failure"), POINTS, ids=IDS)
def test_document_says_why_and_can_be_retried_when_there_is_no_space(
    cast: Cast,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    place: Any,
    name: str,
    failure: Callable[..., Any],
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    with monkeypatch.context() as full:
        full.setattr(place, name, failure)
        attempts(document)
    assert (document.status, document.stage) == ("failed", stage)
    expected = "internal_error" if failure is cut_off else "disk_full"
    assert document.error_code == expected
    assert_says_why(document)
    assert job_of(document).attempts == 3
    assert_nothing_is_wrong(cast)

    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    attempt(document)
    assert (document.status, document.error_code) == ("ready", "")
    assert_nothing_is_wrong(cast)
    assert_gone_when_deleted(cast, document, WORDS)


@pytest.mark.parametrize(("stage", "place", "name", "failure"), POINTS, ids=IDS)
def test_document_is_ready_when_a_write_fails_once(
    cast: Cast,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    place: Any,
    name: str,
    failure: Callable[..., Any],
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    real, failed = getattr(place, name), threading.Event()

    def once(*args: Any, **kwargs: Any) -> Any:
        if not failed.is_set():
            failed.set()
            failure()
        return real(*args, **kwargs)

    monkeypatch.setattr(place, name, once)
    attempts(document)
    assert failed.is_set()
    assert (document.status, job_of(document).attempts) == ("ready", 2)
    assert_nothing_is_wrong(cast)
    assert_gone_when_deleted(cast, document, WORDS)


@pytest.mark.parametrize("stage", list(pipeline._STAGES), ids=str)
def test_document_is_cancelled_and_retried_in_every_stage(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch, stage: Any
) -> None:
    """Whoever cancels while a stage runs finds it stopped there, and a retry goes on from it."""
    document = upload(cast, collection, "lamps.md", LAMPS * 3)
    real = pipeline._STAGES[stage]

    def cancels(ctx: Any, row: Document) -> Document:
        services.document_cancel(tenant=cast.tenant, actor=cast.actor("member"), document=row)
        ctx.cancelled.set()  # what the heartbeat does within a second
        return real(ctx, row)

    with monkeypatch.context() as once:
        once.setattr(pipeline, "_STAGES", {**pipeline._STAGES, stage: cancels})
        attempt(document)
    assert document.status == "cancelled"
    order = list(pipeline._STAGES)
    done = set(document.timings)
    assert {str(s) for s in order[: order.index(stage)]} <= done
    assert_nothing_is_wrong(cast)
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    attempt(document)
    assert document.status == "ready"
    assert set(document.timings) == {str(s) for s in order}
    assert_nothing_is_wrong(cast)


def test_reader_that_finds_no_space_is_not_blamed_on_the_file(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    with monkeypatch.context() as full:
        full.setattr(sandbox, "_CHILD_MODULE", "tests.collections.ingestion.full_disk_child")
        attempts(document)
    assert (document.stage, document.error_code) == ("parse", "disk_full")
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert attempt(document).status == "ready"


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file of this process grow past 1 MB: the kernel refuses, as a full disk or a quota does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("megabytes", [2, 5])  # kept in memory by the request, and in a file
def test_upload_is_refused_in_words_and_leaves_nothing_when_the_disk_is_full(
    cast: Cast,
    collection: Collection,
    member_client: Client,
    storage: Path,
    small_files: None,
    megabytes: int,
) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    answer = member_client.post(
        f"/t/{cast.tenant.slug}/collections/{collection.pk}/upload/",
        {"file": SimpleUploadedFile("large.txt", b"lamps " * (megabytes * 170_000))},
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 507, answer.content[:300]
    assert b"disk is full" in answer.content
    assert not Document.objects.exists()
    assert not Job.objects.exists()
    assert [p for p in storage.rglob("*") if p.is_file()] == []
    assert_nothing_is_wrong(cast)


def test_full_disk_is_recognised_behind_other_errors() -> None:
    try:
        try:
            no_space()
        except OSError as error:
            raise RuntimeError("could not write") from error
    except RuntimeError as error:
        found = disk_full(error)
    assert found is not None
    assert (found.code, found.status) == ("disk_full", 507)
    assert disk_full(OSError(errno.EACCES, "no")) is None
    assert disk_full(RuntimeError("no")) is None


class Embeddings(http.server.BaseHTTPRequestHandler):
    """The wire of an embedding service, in the mood its server is in."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mood = self.server.mood  # type: ignore[attr-defined]
        if mood == "slow":
            time.sleep(2)
        if mood == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status = int(mood) if mood.isdigit() else 200
        dims = DIMS - 1 if mood == "dimensions" else DIMS
        value = float("nan") if mood == "nan" else 0.0 if mood == "zeros" else 1.0
        data: Any = [
            {"object": "embedding", "index": i, "embedding": [value] * dims}
            for i in range(len(body["input"]) - (mood == "few"))
        ]
        answer: Any = {
            "object": "list",
            "model": "m",
            "data": data,
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        if status != 200:
            answer = {"error": {"message": "told to fail", "type": "fake"}}
        raw = b"<html>busy</html>" if mood == "html" else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "mood",
    [
        "refused",
        "500",
        "503",
        "429",
        "401",
        "400",
        "slow",
        "cut",
        "html",
        "dimensions",
        "nan",
        "zeros",
        "few",
    ],
)
def test_document_says_why_and_can_be_retried_when_the_embedder_fails(
    cast: Cast,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
    service: http.server.ThreadingHTTPServer,
    mood: str,
) -> None:
    port = service.server_address[1]
    if mood == "refused":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    service.mood = mood  # type: ignore[attr-defined]

    def make(space: Any, *, tenant: Any) -> Any:
        return OpenAiEmbedder(
            api_key="sk",
            model="m",
            dims=DIMS,
            base_url=f"http://127.0.0.1:{port}/v1",
            timeout_s=0.7,
            deadline_s=1.2,
        )

    monkeypatch.setattr(pipeline, "embedder_for", make)
    document = upload(cast, collection, "lamps.md", LAMPS)
    attempts(document)
    assert (document.status, document.stage) == ("failed", "embed"), document.error_message
    assert document.error_code.startswith("embedder_"), document.error_code
    assert_says_why(document)
    assert_nothing_is_wrong(cast)
    port, service.mood = service.server_address[1], "well"  # type: ignore[attr-defined]
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert attempt(document).status == "ready"
    assert_nothing_is_wrong(cast)


@pytest.mark.parametrize("kind", ["nan", "dimensions", "few", "none"])
def test_document_says_why_when_an_embedder_breaks_its_contract(
    cast: Cast, collection: Collection, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    real = embedder.embed_documents

    def broken(texts: Any, **kwargs: Any) -> Any:
        vectors = real(texts, **kwargs)
        if kind == "nan":
            vectors[0, 0] = np.nan
        return {"dimensions": vectors[:, :-1], "few": vectors[:-1], "none": None}.get(kind, vectors)

    document = upload(cast, collection, "lamps.md", LAMPS)
    with monkeypatch.context() as once:
        once.setattr(embedder, "embed_documents", broken)
        attempts(document)
    assert (document.status, document.stage, document.error_code) == (
        "failed",
        "embed",
        "embedder_bad_response",
    )
    assert_says_why(document)
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert attempt(document).status == "ready"
    assert_gone_when_deleted(cast, document, WORDS)


def test_new_version_that_fails_anywhere_leaves_the_old_one_answering(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = attempt(upload(cast, collection, "lamps.md", LAMPS))
    for number, (_, place, name, failure) in enumerate(POINTS):
        document = upload(cast, collection, "lamps.md", LAMPS + b"\n\nVersion %d." % number)
        with monkeypatch.context() as full:
            full.setattr(place, name, failure)
            attempts(document)
        assert document.status == "failed"
        old.refresh_from_db()
        assert (old.status, old.live_to) == ("ready", None)
        assert_nothing_is_wrong(cast)
    assert_gone_when_deleted(cast, old, WORDS)


def test_child_of_the_full_disk_is_what_it_says() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.collections.ingestion.full_disk_child"],
        input=b"{}\n",
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 1
    assert b"No space left on device" in ended.stderr
