"""A workspace that people have worked in, moved: it is found, cited and counted as it was."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from apps.collections.models import Chunk, Collection, Document
from apps.collections.pipeline.passages import KIND
from apps.collections.search import search_run
from apps.conversations.models import Citation
from apps.datasets.collect.services import rows_collect
from apps.datasets.models import DatasetRow, DatasetVersion, RowContent
from apps.datasets.records.columns import record_of
from apps.datasets.rows.dataset_services import dataset_create
from apps.datasets.versions.services import version_create, version_is_intact
from blobs.leases import blob_read
from exports.files import workspace_export
from exports.imports import workspace_import
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from runs.models import Run
from tenancy.actors import system_actor
from tenancy.audit_chain import audit_chain_verify
from tenancy.models import AuditEvent, Membership, Tenant
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.collections.conftest import LAMPS, WordEmbedder, embedder, ingest
from tests.conversations.support import answer, ask
from tests.exports.moved import NEW, OLD, canonical, old_numbers, sequences_begin, sequences_set
from tests.factories import make_collection
from tests.runs.conftest import _streams_closed, lane_threads

__all__ = ["_streams_closed", "embedder", "lane_threads"]
pytestmark = pytest.mark.django_db(transaction=True)


def jobs_do(tenant: Tenant) -> list[str]:
    """Do the jobs of a workspace as the worker does, until none waits; returns their kinds."""
    done = []
    with tenant_scope(tenant.pk):
        while (row := Job.objects.filter(status=JobStatus.QUEUED).order_by("pk").first()) is not None:
            job = runner.claim(tenant.pk, row.pk)
            assert job is not None
            context = JobContext(job)
            error: BaseException | None = None
            try:
                registry.get(job.kind).handler(context, **job.payload)
            except Exception as raised:  # noqa: BLE001 - recorded as the runner does
                error = raised
            runner._finish(context, job, error)
            row.refresh_from_db()
            assert row.status == JobStatus.SUCCEEDED, (row.kind, row.error_message)
            done.append(job.kind)
    return done


def found(tenant: Tenant, query: str) -> list[tuple[str, str]]:
    """Return what a search finds."""
    with tenant_scope(tenant.pk):
        rows = list(Collection.objects.order_by("pk"))
        hits = search_run(tenant=tenant, actor=system_actor(tenant.pk), collections=rows, query=query).hits
        return [(hit.document_name, hit.text) for hit in hits]


def lively(cast: Cast, lane: Executor) -> None:
    """Let people upload, ask and collect."""
    tenant, owner = cast.tenant, cast.actor("owner")
    collection = make_collection(tenant, "Trade", chunk_size=400, chunk_overlap=50)
    with tenant_scope(tenant.pk):
        ingest(cast, collection, "lamps.md", LAMPS + b"\n\nAn earlier sentence about buoys.\n")
        ingest(cast, collection, "lamps.md", LAMPS)
        ingest(cast, collection, "ships.md", b"# Ships\n\nA bill of lading names the vessel and the port.\n")
    turn = ask(cast, "What is the duty on LED lamps of heading 8539.50.00?", role="owner")
    asyncio.run(answer(turn, lane))
    with tenant_scope(tenant.pk):
        dataset = dataset_create(tenant=tenant, actor=owner, name="Kept")
        rows_collect(
            tenant=tenant,
            actor=owner,
            dataset=dataset,
            conversation=turn.conversation,
            turn_pks=[turn.pk],
        )
        version_create(tenant=tenant, actor=owner, dataset=dataset)


def test_it_is_found_cited_and_counted_as_it_was(
    home: Path, tmp_path: Path, embedder: WordEmbedder, lane_threads: Executor, monkeypatch: Any
) -> None:
    monkeypatch.setattr("apps.collections.pipeline.passages.embedder_for", lambda space, *, tenant: embedder)
    before = sequences_begin(OLD)
    try:
        cast = make_cast()
        lively(cast, lane_threads)
        workspace_export(cast.tenant, tmp_path / "first.zip")
        sequences_begin(NEW)
        made = workspace_import(tmp_path / "first.zip", slug="elsewhere")
        assert KIND in jobs_do(made.tenant)
        known = {str(m.user_id) for m in (cast.owner, cast.admin, cast.member, cast.viewer)}
        left = [one for one in old_numbers(made.tenant.pk) if not any(n in one for n in known)]
        assert "\n".join(left) == ""
        for query in ("LED lamps of heading 8539.50.00", "bill of lading", "INV-100234"):
            assert found(made.tenant, query) == found(cast.tenant, query)
            assert found(made.tenant, query)
        _same(cast.tenant, made.tenant)
        workspace_export(made.tenant, tmp_path / "second.zip")
        first, second = canonical(tmp_path / "first.zip"), canonical(tmp_path / "second.zip")
        differ = {name: (told, second.get(name)) for name, told in first.items() if second.get(name) != told}
        assert differ == {}
        assert set(second) == set(first)
        assert len(first) > 300
    finally:
        sequences_set(before)


def _same(source: Tenant, target: Tenant) -> None:
    def told(tenant: Tenant) -> Any:
        with tenant_scope(tenant.pk):
            collection = Collection.objects.get(name="Trade")
            cited = [
                (c.number, c.quote, None if c.chunk is None else c.chunk.text)
                for c in Citation.objects.select_related("chunk").order_by("pk")
            ]
            documents = [
                (d.path, d.version, d.live_from, d.live_to, d.vector_count, d.lexical_count, d.sha256)
                for d in Document.objects.order_by("pk")
            ]
            originals = [blob_read(d.file) for d in Document.objects.order_by("pk")]
            people = sorted(Membership.objects.values_list("user__email", "role"))
            counted = collection.term_total, collection.chunk_total, collection.lexical_forms
            return cited, documents, originals, people, counted, Chunk.objects.count()

    assert told(source) == told(target)
    assert told(target)[0]
    with tenant_scope(target.pk):
        assert f"[c{Citation.objects.get(number=1).chunk_ref}]" in Run.objects.get().answer
        assert version_is_intact(DatasetVersion.objects.get())
        row = DatasetRow.objects.get()
        assert row.content_hash == record_of(row).content_hash == RowContent.objects.get().hash
        assert row.sources[0]["chunk_id"] in set(Chunk.objects.values_list("pk", flat=True))
        first = AuditEvent.objects.order_by("seq").first()
        assert first is not None
        assert first.action == "tenant.import"
        assert len(first.data["file_sha256"]) == 64
        assert first.data["trail_head"].partition(":")[0].isdecimal()
    assert audit_chain_verify(tenant=target).is_intact
