"""Reviews, imports, exports, checks and versions over real rows: rules, walls between workspaces, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from django.db import DatabaseError
from django.utils import timezone

from apps.conversations.models import Assistant, AssistantVersion
from apps.datasets.curation import reviews
from apps.datasets.curation import services as curation_services
from apps.datasets.curation.finding_lines import findings_of
from apps.datasets.models import (
    Acceptance,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    Work,
)
from apps.datasets.records import parts
from apps.datasets.records import record as r
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.rows.services import NewRow
from apps.datasets.versions import diffs
from apps.datasets.versions import services as versions_services
from basics.errors import Conflict, Denied, Invalid, Missing
from blobs.leases import blob_read
from blobs.stores import store
from jobs.models import Job
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.pipeline.test_summaries_model import run_job
from tests.datasets.row_samples import ALL, FULL, PLAIN

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("dataset_storage")]


@pytest.fixture
def dataset(cast: Cast) -> Iterator[Dataset]:
    with tenant_scope(cast.tenant.pk):
        yield dataset_services.dataset_create(tenant=cast.tenant, actor=cast.actor("member"), name="Trade")


def add(cast: Cast, dataset: Dataset, *records: r.Record, status: str = "review") -> list[DatasetRow]:
    added = rows_services.rows_add(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        dataset=dataset,
        rows=[NewRow(record, status) for record in records],
        source="test",
    )
    return list(DatasetRow.objects.filter(pk__in=added.created).order_by("pk"))


def version(cast: Cast, dataset: Dataset):
    return versions_services.version_create(tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset)


def review(cast: Cast, row: DatasetRow, role: str, verdict: str = "approve", **more):
    row.refresh_from_db()
    return reviews.row_review(
        tenant=cast.tenant,
        actor=cast.actor(role),
        row=row,
        verdict=verdict,
        content_hash=more.pop("seen", row.content_hash),
        **more,
    ).status


def done(work: Work) -> Work:
    assert work.job is not None
    run_job(work.job)
    work.refresh_from_db()
    return work


def export(cast: Cast, dataset: Dataset, form: str = "jsonl", **more) -> DatasetExport:
    row = curation_services.export_start(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        dataset=dataset,
        version=more.pop("version", None) or version(cast, dataset),
        form=form,
        **more,
    )
    done(row)
    return row


def bring(cast: Cast, dataset: Dataset, content: bytes, form: str = "jsonl", **more) -> DatasetImport:
    row = curation_services.import_start(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        dataset=dataset,
        form=form,
        name="../../etc/rows.jsonl",
        chunks=[content],
        **more,
    )
    done(row)
    return row


def test_two_people_must_approve_the_same_content(cast: Cast, dataset: Dataset) -> None:
    Dataset.objects.filter(pk=dataset.pk).update(needs_two_people=True)
    (row,) = add(cast, dataset, PLAIN)
    assert review(cast, row, "member") == "review"
    assert review(cast, row, "member") == "review"
    rows_services.row_update(
        tenant=cast.tenant, actor=cast.actor("admin"), row=row, changes={"answer": "Other."}
    )
    assert review(cast, row, "admin") == "review", "what member approved is not what stands there"
    assert review(cast, row, "owner") == "approved"
    assert review(cast, row, "admin", "reject", note="No.") == "rejected"
    assert AuditEvent.objects.filter(action="dataset_row.review").count() == 5


def test_a_verdict_is_about_the_content_that_was_seen(cast: Cast, dataset: Dataset) -> None:
    (row,) = add(cast, dataset, PLAIN)
    with pytest.raises(Conflict) as refused:
        review(cast, row, "member", seen="0" * 64)
    assert refused.value.code == "row_changed"
    with pytest.raises(Invalid):
        review(cast, row, "member", "reject")
    with pytest.raises(Denied):
        review(cast, row, "viewer")
    outsider = cast.actor("outsider")
    with tenant_scope(cast.other_tenant.pk), pytest.raises(Missing):
        reviews.row_review(
            tenant=cast.other_tenant,
            actor=outsider,
            row=row,
            verdict="approve",
            content_hash=row.content_hash,
        )


@pytest.mark.parametrize("form", ["jsonl", "openai", "huggingface"])
def test_an_export_is_written_read_back_and_kept(cast: Cast, dataset: Dataset, form: str) -> None:
    add(cast, dataset, *ALL)
    row = export(cast, dataset, form)
    assert (row.status, row.error_message, row.problems) == ("completed", "", [])
    assert row.rows + row.left_out == 3
    assert store().size(row.file) == row.size > 0
    train = export(cast, dataset, form, split="train")
    assert train.rows == 1


def test_what_must_not_leave_blocks_until_a_person_accepts(cast: Cast, dataset: Dataset) -> None:
    add(cast, dataset, PLAIN, replace(PLAIN, question="Whom to ask?", answer="jane@acme-corp.com"))
    frozen = version(cast, dataset)
    row = export(cast, dataset, version=frozen)
    assert (row.status, row.file, row.finding_count) == ("blocked", "", 1)
    (finding,) = row.findings
    assert (finding["kind"], finding["field"]) == ("email", "answer")
    assert "jane@acme-corp.com" not in json.dumps(row.findings)

    def accept(role: str, *fingerprints: str, note: str) -> None:
        curation_services.finding_accept(
            tenant=cast.tenant,
            actor=cast.actor(role),
            dataset=dataset,
            export=row,
            fingerprints=fingerprints,
            note=note,
        )

    for name, note in (("0" * 64, "x"), (finding["fingerprint"], " ")):
        with pytest.raises(Invalid):
            accept("member", name, note=note)
    with pytest.raises(Denied):
        accept("viewer", finding["fingerprint"], note="public")
    accept("admin", finding["fingerprint"], note="public address")
    assert Acceptance.objects.get().note == "public address"
    audit = AuditEvent.objects.get(action="dataset.finding_accept")
    assert "jane" not in json.dumps(audit.data)
    assert export(cast, dataset, version=frozen).status == "completed"


def test_contamination_blocks_an_export(cast: Cast, dataset: Dataset) -> None:
    long = "the importer shall keep all records of the entry for five years from the date of release"
    add(
        cast,
        dataset,
        r.Record("How long?", f"Yes, {long}.", split=parts.Split.TRAIN),
        r.Record("For how long are they kept?", f"Because {long}!", split=parts.Split.TEST),
    )
    for split in ("", "test", "train"):
        row = export(cast, dataset, split=split)
        assert [found["kind"] for found in row.findings] == ["contamination"]
        assert long in row.findings[0]["shown"]


def test_a_document_in_two_splits_blocks_an_export(cast: Cast, dataset: Dataset) -> None:
    source = parts.RecordSource("law.pdf", "Keep them for five years.")
    rows = [
        r.Record(f"Question {split}?", f"{split} answer.", sources=(source,), split=parts.Split(split))
        for split in ("train", "test")
    ]
    one, _ = add(cast, dataset, *rows, r.Record("No split?", "None.", sources=(source,)))[:2]
    blocked = export(cast, dataset, split="test")
    assert [(f["kind"], f["shown"]) for f in blocked.findings] == [
        ("leak", "1 document is in more than one split: “law.pdf”. Divide the rows again to fix this.")
    ]
    done(
        curation_services.split_assign(
            tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, into="test", row_pks=[one.pk]
        )
    )
    assert export(cast, dataset, split="test").status == "completed"


def test_a_damaged_export_is_not_offered(
    cast: Cast, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.datasets.formats import FORMATS

    form = FORMATS["jsonl"]
    monkeypatch.setattr(
        type(form), "write", lambda self, rows, card: iter([b'{"question": "q", "answer": "lost"}\n'])
    )
    add(cast, dataset, PLAIN)
    row = export(cast, dataset)
    assert (row.status, row.error_code, row.file) == ("failed", "export_differs", "")
    assert row.problems


def test_an_import_adds_rows_and_names_those_it_could_not_read(cast: Cast, dataset: Dataset) -> None:
    content = "\n".join([r.to_json(FULL), "no json", r.to_json(PLAIN), r.to_json(PLAIN), '{"question": ""}'])
    trial = bring(cast, dataset, content.encode(), is_trial=True)
    assert (trial.found, trial.created, trial.failed) == (3, 0, 2)
    assert not DatasetRow.objects.filter(dataset=dataset).exists()
    row = bring(cast, dataset, content.encode())
    assert (row.status, row.name) == ("completed", "rows.jsonl")
    assert (row.found, row.created, row.duplicates, row.failed) == (3, 2, 1, 2)
    lines = blob_read(row.errors_file).splitlines()
    assert [json.loads(line)["row"] for line in lines] == [2, 5]
    assert [problem["row"] for problem in row.problems] == [2, 5]
    statuses = DatasetRow.objects.filter(dataset=dataset).values_list("status", flat=True)
    assert set(statuses) == {"review"}
    assert row.file == ""
    manifest = version(cast, dataset).manifest
    assert manifest["imports"] == [{"import": row.pk, "rows": 2, "name": "rows.jsonl", "format": "jsonl"}]
    assert (manifest["counts"]["status"], manifest["generations"]) == ({"review": 2}, [])
    sizes = sorted(len(record.question) for record in (FULL, PLAIN))
    assert manifest["lengths"]["question"] == [sizes[0], *sizes[:1] * 2, *sizes[1:] * 2]
    assert manifest["scores"] == {
        "accuracy": {"mean": 0.75, "levels": [0, 0, 0, 1, 0], "unscored": 0},
        "clarity": {"mean": None, "levels": [0] * 5, "unscored": 1},
    }
    assert manifest["duplicates"] is None


def test_a_file_that_is_none_fails_with_its_reason(cast: Cast, dataset: Dataset) -> None:
    row = bring(cast, dataset, b"question\n", form="parquet")
    assert (row.status, row.error_code) == ("failed", "file_unreadable")


@pytest.mark.parametrize(
    "content", [b'{"question": "\\u0000", "answer": 1}\n', b"\x00\xff\n", b'"\\udc89"\n']
)
def test_an_import_ends_when_its_problems_quote_what_postgres_does_not_take(
    cast: Cast, dataset: Dataset, content: bytes
) -> None:
    row = bring(cast, dataset, content)
    assert (row.status, row.created, row.failed) == ("completed", 0, 1)
    assert [problem["row"] for problem in row.problems] == [1]


def test_an_import_that_crashed_counts_what_it_had_added(
    cast: Cast, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.datasets.curation import jobs as curation_jobs

    monkeypatch.setattr(curation_jobs, "BATCH", 2)
    records = [replace(PLAIN, question=f"Question {n}?") for n in range(6)]
    content = "\n".join(map(r.to_json, records)).encode()
    row = curation_services.import_start(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        dataset=dataset,
        form="jsonl",
        name="x",
        chunks=[content],
    )
    true = rows.rows_insert
    calls: list[int] = []

    def crash_once(*args):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return true(*args)

    monkeypatch.setattr(curation_jobs, "rows_insert", crash_once)
    assert row.job is not None
    run_job(row.job)
    assert DatasetRow.objects.filter(dataset=dataset).count() == 2
    Job.objects.filter(pk=row.job.pk).update(run_after=timezone.now())
    done(row)
    assert (row.status, row.created, row.duplicates) == ("completed", 6, 0)


def test_splits_follow_documents_and_leave_no_leak(cast: Cast, dataset: Dataset) -> None:
    records = [
        r.Record(
            f"Question {n}?",
            "a",
            sources=(parts.RecordSource(f"d{n // 5}", f"quote {n}", start=n, end=n + 9),),
        )
        for n in range(100)
    ]
    add(cast, dataset, *records, status="approved")
    check = curation_services.check_start(
        tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, kind="splits", seed=3
    )
    done(check)
    assert check.result["counts"] == {"train": 80, "validation": 10, "test": 10}
    by_document: dict[str, set[str]] = {}
    for row in DatasetRow.objects.filter(dataset=dataset):
        by_document.setdefault(row.sources[0]["document"], set()).add(row.split)
        assert row.status == "approved"
    assert all(len(found) == 1 for found in by_document.values())
    again = curation_services.check_start(
        tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, kind="splits", seed=3
    )
    done(again)
    assert again.result["moved"] == 0
    with pytest.raises(Invalid):
        curation_services.check_start(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            dataset=dataset,
            kind="splits",
            shares={"train": 0.2},
        )


def test_checks_report_pairs_overlaps_and_secrets(cast: Cast, dataset: Dataset) -> None:
    add(
        cast,
        dataset,
        PLAIN,
        replace(PLAIN, question=PLAIN.question.upper()),
        replace(PLAIN, question="Who?", answer="ghp_" + "a" * 36),
    )
    found: dict[str, dict[str, Any]] = {}
    for kind in ("duplicates", "contamination", "secrets"):
        check = curation_services.check_start(
            tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, kind=kind
        )
        with pytest.raises(Conflict):
            curation_services.check_start(
                tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, kind=kind
            )
        found[kind] = done(check).result  # type: ignore[attr-defined]
    assert found["duplicates"]["counts"] == {"exact": 1}
    assert found["contamination"]["counts"] == {"contaminated": 0, "overlapping": 0}
    assert found["secrets"]["counts"] == {"token": 1}
    assert "aaaa" not in json.dumps(found["secrets"])


def test_rows_for_evaluation_are_held_against_named_sets_and_prompts(cast: Cast, dataset: Dataset) -> None:
    actor, other = cast.actor("owner"), cast.actor("outsider")
    words = "an importer keeps the proof of origin of each entry for at least five full years"
    rows_of = {name: replace(PLAIN, question=f"{name}, {words}?") for name in ("Public", "Test")}
    public = dataset_services.dataset_create(tenant=cast.tenant, actor=actor, name="Public set")
    add(cast, public, rows_of["Public"])
    add(cast, dataset, replace(rows_of["Test"], answer="Yes, five.", split=parts.Split.TEST))
    assistant = Assistant.objects.create(tenant=cast.tenant, slug="clerk", name="Clerk")
    assistant.published = AssistantVersion.objects.create(
        tenant=cast.tenant, assistant=assistant, number=1, prompt=f"Example: {words}."
    )
    assistant.save()
    with tenant_scope(cast.other_tenant.pk):
        theirs = dataset_services.dataset_create(tenant=cast.other_tenant, actor=other, name="Theirs")
    start: dict[str, Any] = {
        "tenant": cast.tenant,
        "actor": actor,
        "dataset": dataset,
        "kind": "contamination",
    }
    with pytest.raises(Invalid):
        curation_services.check_start(**start, against=[theirs.pk])
    result = done(curation_services.check_start(**start, against=[public.pk])).result  # type: ignore[attr-defined]
    assert result["counts"]["contaminated"] == 2
    seen = {hit["seen"].partition(" of ")[2] for hit in result["overlaps"]}
    assert seen == {"Public set", "the assistant Clerk"}
    dataset.refresh_from_db()
    blocked = export(cast, dataset)
    assert (blocked.status, blocked.finding_count) == ("blocked", 1), "the same words are one finding"


def test_meanings_are_compared_once_they_were_asked_for(
    cast: Cast, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Embedder:
        def embed_documents(self, texts: list[str], on_progress: Any) -> Any:
            on_progress(0, 1)
            return np.array(
                [[1, 0] if "long" in text or "time" in text else [0, 1] for text in texts], np.float32
            )

    monkeypatch.setattr("apps.datasets.checks.looking.embedder_for", lambda *_, **__: Embedder())
    add(
        cast,
        dataset,
        replace(PLAIN, question="How long are they kept?", split=parts.Split.TEST),
        replace(
            PLAIN, question="For what time must one hold these?", answer="Five.", split=parts.Split.TRAIN
        ),
    )
    start: dict[str, Any] = {
        "tenant": cast.tenant,
        "actor": cast.actor("member"),
        "dataset": dataset,
        "kind": "contamination",
    }
    plain = done(curation_services.check_start(**start))
    assert plain.result["counts"]["contaminated"] == 0  # type: ignore[attr-defined]
    check = done(curation_services.check_start(**start, with_meaning=True))
    (hit,) = check.result["overlaps"]  # type: ignore[attr-defined]
    assert (hit["similarity"], hit["words"]) == (1.0, 0)
    dataset.refresh_from_db()
    found = findings_of(actor=cast.actor("member"), dataset=dataset, check=check)  # type: ignore[arg-type]
    assert [(line.kind, line.is_open) for line in found.lines] == [("the same meaning", True)]
    blocked = export(cast, dataset)
    assert blocked.status == "blocked"
    assert blocked.findings[0]["shown"].startswith("Means the same as “For what time")


def test_versions_differ_by_their_rows_and_never_change(cast: Cast, dataset: Dataset) -> None:
    actor = cast.actor("member")
    _, edited, goes = add(cast, dataset, *(replace(PLAIN, question=f"Question {n}?") for n in range(3)))
    first = version(cast, dataset)
    rows_services.row_update(
        tenant=cast.tenant, actor=actor, row=edited, changes={"answer": "another answer"}
    )
    gone = goes.pk
    goes.delete()
    (new,) = add(cast, dataset, replace(PLAIN, question="Question 9?"))
    second = version(cast, dataset)
    counts = diffs.version_counts(actor=actor, older=first, newer=second)
    assert counts == diffs.Counts(added=1, removed=1, changed=1, same=1)
    refs = {
        kind: [
            change.ref for change in diffs.version_changes(actor=actor, older=first, newer=second, kind=kind)
        ]
        for kind in get_args(diffs.Change)
    }
    assert refs == {"added": [new.pk], "removed": [gone], "changed": [edited.pk]}
    (change,) = diffs.version_changes(actor=actor, older=first, newer=second, kind="changed")
    assert [field.name for field in change.fields] == ["answer"]
    assert "".join(text for how, text in change.fields[0].pieces if how != "added") == PLAIN.answer
    first.note = "other"
    with pytest.raises(DatabaseError, match="permission denied"):
        first.save()


def test_another_workspace_sees_and_moves_nothing(cast: Cast, dataset: Dataset) -> None:
    add(cast, dataset, PLAIN)
    row = export(cast, dataset)
    assert f"t{cast.tenant.pk}/{dataset.pk}/export-{row.pk}-" in row.file
    with tenant_scope(cast.other_tenant.pk):
        for model in (DatasetExport, DatasetImport, DatasetCheck, Acceptance):
            assert not model.objects.exists()


def test_a_deleted_dataset_takes_its_files_along(
    cast: Cast, dataset: Dataset, django_capture_on_commit_callbacks
) -> None:
    add(cast, dataset, PLAIN)
    key = export(cast, dataset).file
    assert store().size(key)
    with django_capture_on_commit_callbacks(execute=True):
        dataset_services.dataset_delete(tenant=cast.tenant, actor=cast.actor("admin"), dataset=dataset)
    assert store().size(key) is None


def test_only_rows_that_fit_go_into_a_version(cast: Cast, dataset: Dataset) -> None:
    add(cast, dataset, PLAIN, status="approved")
    add(cast, dataset, FULL)
    frozen = versions_services.version_create(
        tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, only=RowFilter(status="approved")
    )
    assert frozen.row_count == 1
