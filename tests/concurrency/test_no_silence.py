"""Ingestion is never silent: workers die while a model or a second embedder works, hundreds of hostile files come in.

By day 28 of them come in, the same ones each time: a third is made by hand, the rest by the fuzzer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.db import transaction

from apps.collections.collection import swaps
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents import services as documents_services
from apps.collections.documents import summaries
from apps.collections.models import (
    Chunk,
    ChunkLink,
    Collection,
    Document,
    DocumentStatus,
    Embedding,
    SpaceSwap,
)
from apps.collections.search import LEGS, search_run
from apps.collections.storage.ledger import ledger_count
from blobs.services import placing_inside
from jobs.models import ACTIVE, Job
from runs.models import UsageRecord
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.pipeline.test_summaries_model import answer, asked
from tests.concurrency.conftest import SUMMARISING, Site
from tests.concurrency.documents import make_collection, make_text_pdf, upload
from tests.concurrency.hostile_corpus import hostile_corpus
from tests.concurrency.ledger import (
    assert_ready_and_reconciled,
    assert_statistics_exact,
    document_now,
    wait_ended,
)
from tests.nightly import NIGHTLY
from tests.patience import PATIENCE_S
from tests.processes import is_gone, kill_hard
from tests.servers import wait_for

FILES = int(os.environ.get("NO_SILENCE_FILES", "120" if NIGHTLY else "28"))
RESULTS = os.environ.get("NO_SILENCE_RESULTS", "")
# What tells a person nothing: our classes, our paths, our crashes.
TECHNICAL = re.compile(r"Traceback|Exception|Error\b|\bNone\b|0x[0-9a-f]{6}|/tmp|site-packages|_")


@pytest.fixture(autouse=True)
def _no_files_of_earlier_runs(cast: Cast) -> None:
    """A fresh test database counts tenants from one again; the data folder outlives it."""
    shutil.rmtree(Path(settings.MEDIA_ROOT) / f"t{cast.tenant.pk}", ignore_errors=True)
    images = Path(settings.DATA_DIR) / "cache" / "pages" / f"t{cast.tenant.pk}"
    shutil.rmtree(images, ignore_errors=True)


def _modelled(cast: Cast) -> Collection:
    collection = make_collection(cast, chunk_size=400)
    with tenant_scope(cast.tenant.pk):
        collection.links_by, collection.links_model = "model", f"compatible/{SUMMARISING}"
        collection.save()
    return collection


def _swapping(cast: Cast) -> Collection:
    collection = make_collection(cast)
    with tenant_scope(cast.tenant.pk):
        swaps.swap_start(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            collection=collection,
            embedder="local/all-MiniLM-L6-v2:fp32",
        )
    return collection


def _held(site: Site, cast: Cast) -> dict[str, Document]:
    """Return documents whose workers stand in the model's pass and in the second space."""
    site.model_server.replies[SUMMARISING] = answer
    site.model_server.log.clear()
    held: dict[str, Document] = {}
    for point, collection in (("model", _modelled(cast)), ("swap", _swapping(cast))):
        with transaction.atomic(), placing_inside():
            held[point] = upload(
                cast, collection, f"{point}.pdf", make_text_pdf(pages=4, chars_per_page=2600)
            )
            site.holds.arm(point, held[point].pk)
    return held


def _assert_all_is_well(cast: Cast, held: dict[str, Document]) -> None:
    for document in wait_ended(cast.tenant, [d.pk for d in held.values()]):
        assert (document.status, document.error_message) == ("ready", "")
    with tenant_scope(cast.tenant.pk):
        wait_for(lambda: not Job.objects.filter(status__in=ACTIVE).exists(), "the swap's own job")
        by_model = document_now(cast.tenant, held["model"].pk)
        assert set(Chunk.objects.filter(document=by_model).values_list("points_by", flat=True)) == {"model"}
        links = ChunkLink.objects.filter(document=by_model)
        assert {"rule", "model"} <= set(links.values_list("made_by", flat=True))
        swapped = document_now(cast.tenant, held["swap"].pk)
        swap = SpaceSwap.objects.get(collection=swapped.collection_id)
        assert swap.status == SpaceSwap.Status.READY
        for space in (swap.from_space_id, swap.to_space_id):
            assert ledger_count(swapped, space).vectors == swapped.chunk_count
        assert Embedding.objects.filter(document_id=swapped.pk).count() == 2 * swapped.chunk_count
        assert _findings(cast) == []


def test_document_ends_ready_when_its_worker_dies_in_a_models_pass_or_between_two_spaces(
    site: Site, cast: Cast
) -> None:
    held = _held(site, cast)
    for point, document in held.items():
        kill_hard(site.holds.reached(point, document.pk))
        site.holds.release(point, document.pk)
    _assert_all_is_well(cast, held)
    windows = Counter(tuple(asked(entry)[0]) for entry in site.model_server.log)
    assert sorted(windows.values())[-2:] == [1, 2], "one window is paid for twice, no other"
    with tenant_scope(cast.tenant.pk):
        records = UsageRecord.objects.filter(kind="summary", attribution__document=held["model"].pk)
        assert records.count() == windows.total()


def test_documents_end_ready_when_the_whole_command_dies_in_a_models_pass_or_between_two_spaces(
    site: Site, cast: Cast
) -> None:
    held = _held(site, cast)
    for point, document in held.items():
        site.holds.reached(point, document.pk)
    command = site.stack.worker
    assert command is not None
    family = [command.pid, *(p.pid for p in psutil.Process(command.pid).children(recursive=True))]
    command.kill()
    command.wait(PATIENCE_S)
    wait_for(lambda: all(is_gone(pid) for pid in family), "the command's processes to end")
    for point, document in held.items():
        site.holds.release(point, document.pk)
    site.stack.start_worker()
    _assert_all_is_well(cast, held)


def test_document_is_ready_by_rule_and_says_so_when_the_model_server_is_gone(site: Site, cast: Cast) -> None:
    site.model_server.replies[SUMMARISING] = lambda body: 401
    collection = _modelled(cast)
    document = upload(cast, collection, "alone.txt", b"The duty applies to every lamp here. " * 40)
    (ended,) = wait_ended(cast.tenant, [document.pk])
    assert ended.status == "ready"
    assert "by rule" in ended.warnings[0]
    site.model_server.replies[SUMMARISING] = answer
    with tenant_scope(cast.tenant.pk):
        summaries.document_summarise_again(tenant=cast.tenant, actor=cast.actor("member"), document=ended)
    wait_for(lambda: not document_now(cast.tenant, ended.pk).warnings, "the warning to go")


@pytest.fixture
def real_documents() -> Path | None:
    folder = os.environ.get("GROUNDWORK_SHARED_DATA")
    return Path(folder) if folder else None


def test_every_hostile_file_ends_ready_or_says_why(
    site: Site, cast: Cast, real_documents: Path | None
) -> None:
    collection = make_collection(cast, chunk_size=2000)
    site.holds.quicken(is_quick=True)
    began = time.monotonic()
    names: dict[int, str] = {}
    for name, data in hostile_corpus(FILES, real_documents):
        names[upload(cast, collection, name, data).pk] = name
    try:
        documents = wait_ended(cast.tenant, list(names))
    finally:
        site.holds.quicken(is_quick=False)
    seconds = time.monotonic() - began

    ready = [d for d in documents if d.status == DocumentStatus.READY]
    failed = [d for d in documents if d.status == DocumentStatus.FAILED]
    assert len(documents) == FILES == len(ready) + len(failed)
    wrong: list[str] = []
    repeated: list[str] = []
    longest = 0.0
    for document in documents:
        job = document.job
        assert job is not None
        assert job.started_at is not None
        assert job.finished_at is not None
        longest = max(longest, (job.finished_at - job.started_at).total_seconds())
        said = document.error_message
        if job.attempts > 1:  # a machine that is too busy to renew a lease of three seconds
            repeated.append(document.name)
        if document.status == "failed" and (
            document.error_code in ("", "internal_error", "worker_lost")
            or len(said) < 25
            or not said.endswith(".")
            or TECHNICAL.search(said)
        ):
            wrong.append(f"{document.name}: {document.error_code}: {said}")
    assert wrong == []
    assert ready
    assert failed
    _assert_reconciled(cast, collection, ready)
    again = _retried(cast, failed[:: max(1, len(failed) // 8)])
    gone = _deleted(cast, ready[:: max(1, len(ready) // 8)], collection)
    result = {
        "files": FILES,
        "real_documents_damaged": real_documents is not None,
        "ready": len(ready),
        "failed_with_a_reason": len(failed),
        "silent": FILES - len(ready) - len(failed),
        "reasons": dict(Counter(d.error_code for d in failed).most_common()),
        "retried": again,
        "deleted_and_found_by_no_leg": gone,
        "findings_of_the_check": 0,
        "taken_over_and_ended": repeated,
        "seconds": round(seconds, 1),
        "longest_job_seconds": round(longest, 1),
    }
    print(json.dumps(result, indent=1))  # noqa: T201
    if RESULTS:
        Path(RESULTS).write_text(json.dumps(result, indent=1) + "\n")


def _findings(cast: Cast) -> list[Any]:
    """Return what is wrong with the tenant's collections.

    Another process of the run has tenants of the same numbers, and the same data folder: datasets' files are its own.
    """
    found = ingestion_check(tenant=cast.tenant, actor=cast.actor("owner")).findings
    return [one for one in found if not one.subject.startswith("datasets/")]


def _assert_reconciled(cast: Cast, collection: Collection, ready: list[Document]) -> None:
    for document in ready[:: max(1, len(ready) // 20)]:
        if document.media_type.startswith("text/x-") or document.name.endswith((".py", ".js", ".c")):
            continue  # code is cut with its path, which the recomputation does not have
        assert_ready_and_reconciled(cast.tenant, document.pk)
    assert_statistics_exact(cast.tenant, collection)
    _settled(cast)
    with tenant_scope(cast.tenant.pk):
        assert _findings(cast) == []


def _settled(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        wait_for(lambda: not Job.objects.filter(status__in=ACTIVE).exists(), "all jobs to end")


def _retried(cast: Cast, failed: list[Document]) -> int:
    """Retry some: each ends again, for the same reason."""
    for document in failed:
        with tenant_scope(cast.tenant.pk):
            documents_services.document_retry(
                tenant=cast.tenant, actor=cast.actor("member"), document=document
            )
    ended = wait_ended(cast.tenant, [d.pk for d in failed])
    assert [d.error_code for d in ended] == [d.error_code for d in failed]
    return len(failed)


def _deleted(cast: Cast, ready: list[Document], collection: Collection) -> int:
    """Delete some: no leg finds them by their own words."""
    owner = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        said: dict[int, Any] = {}
        for document in ready:
            chunk: Chunk = Chunk.objects.filter(document=document).order_by("index")[0]
            said[document.pk] = chunk.text[:300]
            documents_services.document_delete(tenant=cast.tenant, actor=owner, document=document)
        for pk, words in said.items():
            assert not Embedding.objects.filter(document_id=pk).exists()
            for leg in LEGS if words.strip() else ():
                found: Any = search_run(
                    tenant=cast.tenant, actor=owner, collections=[collection], query=words, k=50, legs=[leg]
                )
                assert pk not in {hit.document_id for hit in found.hits}, (pk, leg)
    _settled(cast)
    assert_statistics_exact(cast.tenant, collection)
    with tenant_scope(cast.tenant.pk):
        assert _findings(cast) == []
    return len(said)
