"""Retention keeps what is in use: documents that are read, searched or asked about, datasets, experiments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.collections.models import Chunk, Collection, Document
from apps.datasets.models import DatasetRow, GenerationJob
from apps.evaluations.models import AnnotationItem, Arm, Baseline, Experiment
from erasure.removal import removal_round
from erasure.retention import (
    due_rows,
)
from runs.models import Run
from tenancy.models import AuditEvent
from tenancy.scope import platform_scope, tenant_scope
from tests.erasure.aged import (
    MOMENT,
    NOW,
    dataset,
    document,
    experiment,
    is_there,
    kind_of,
    preview,
    rule,
    run,
    trial,
)
from tests.permissions.world import Side, make_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]


def test_a_document_is_as_old_as_its_bytes(side: Side) -> None:
    """Read again, a document is no newer; replaced, it is; and all versions go together."""
    rule(side, "documents", 30)
    old, new = NOW - timedelta(days=90), NOW - timedelta(days=5)
    again = document(side, old, "again.md", sha256="a" * 64, live_to=new)
    document(side, new, "again.md", sha256="a" * 64, version=2, size=7)
    replaced = document(side, old, "replaced.md", sha256="b" * 64, live_to=new)
    document(side, new, "replaced.md", sha256="c" * 64, version=2)
    back = document(side, old, "back.md", sha256="d" * 64, live_to=old)
    document(side, old, "back.md", sha256="e" * 64, version=2, live_to=new)
    document(side, new, "back.md", sha256="d" * 64, version=3)
    told = preview(side, "documents")
    assert (told.count, told.oldest, told.size) == (1, old, 17)
    assert removal_round(kind_of("documents"), now=NOW) == 1
    with tenant_scope(side.tenant.pk):
        assert not Document.objects.filter(path=again.path).exists()
        assert Document.objects.filter(path=replaced.path).count() == 2
        assert Document.objects.filter(path=back.path).count() == 3


def test_documents_go_by_the_way_they_are_deleted(side: Side) -> None:
    rule(side, "documents", 30)
    row = document(side, NOW - timedelta(days=31))
    chunk = make_row(Chunk, side.tenant, side.user("owner"), document=row, collection=row.collection)
    assert removal_round(kind_of("documents"), now=NOW) == 1
    assert not is_there(chunk)
    with tenant_scope(side.tenant.pk):
        event = AuditEvent.objects.get(action="document.expire")
        assert (event.object_id, event.actor_kind) == (str(row.pk), "system")
        assert not AuditEvent.objects.filter(action="document.delete").exists()
        told = AuditEvent.objects.get(action="retention.remove")
        assert told.data == {"kind": "documents", "count": 1}


def test_what_is_being_read_or_attached_stays(side: Side) -> None:
    rule(side, "documents", 30)
    old = NOW - timedelta(days=90)
    reading = document(side, old, status="processing", live_from=None)
    private = make_row(Collection, side.tenant, side.user("owner"), owner=side.user("owner"))
    attached = make_row(
        Document, side.tenant, side.user("owner"), collection=private, status="ready", created_at=old
    )
    told = preview(side, "documents")
    assert told.count == 0
    assert [(k.why, k.count) for k in told.kept] == [("being read", 1)]
    assert removal_round(kind_of("documents"), now=NOW) == 0
    assert is_there(reading)
    assert is_there(attached)


def test_datasets_that_are_used_stay_and_the_reason_is_told_once(side: Side) -> None:
    rule(side, "datasets", 30)
    old = NOW - timedelta(days=90)
    free = dataset(side, old)
    fresh = dataset(side, old)
    make_row(
        DatasetRow, side.tenant, side.user("owner"), dataset=fresh
    )  # changed now, which is long before NOW
    with platform_scope():
        DatasetRow.objects.filter(dataset=fresh).update(updated_at=NOW - timedelta(days=1))
    generated = dataset(side, old)
    make_row(GenerationJob, side.tenant, side.user("owner"), dataset=generated, state="running")
    compared = experiment(side, old).dataset
    gated = experiment(side, old)
    arm = make_row(Arm, side.tenant, side.user("owner"), experiment=gated)
    make_row(Baseline, side.tenant, side.user("owner"), dataset=gated.dataset, arm=arm)
    told = preview(side, "datasets")
    assert told.count == 1
    assert {k.why: k.count for k in told.kept} == {
        "rows are being generated": 1,
        "a gate compares with it": 1,
        "an experiment was made with it": 1,
    }
    assert removal_round(kind_of("datasets"), now=NOW) == 1
    assert not is_there(free)
    assert all(is_there(row) for row in (fresh, generated, compared, gated.dataset))


def test_experiments_go_with_the_runs_of_their_trials_and_free_their_datasets(side: Side) -> None:
    rule(side, "experiments", 30)
    rule(side, "datasets", 30)
    old = NOW - timedelta(days=90)
    row, running = experiment(side, old), experiment(side, old, "paused")
    graded, gated = experiment(side, old), experiment(side, old)
    asked = run(side, old)
    asked_trial, graded_trial = trial(side, row, run=asked), trial(side, graded)
    item = make_row(AnnotationItem, side.tenant, side.user("owner"), trial=graded_trial)
    best = make_row(Arm, side.tenant, side.user("owner"), experiment=gated)
    make_row(Baseline, side.tenant, side.user("owner"), dataset=gated.dataset, arm=best)
    told = preview(side, "experiments")
    assert {k.why: k.count for k in told.kept} == {
        "running or paused": 1,
        "the baseline of a gate": 1,
        "people are grading its answers": 1,
    }
    count = told.count
    with tenant_scope(side.tenant.pk):
        assert due_rows(kind_of("experiments"), side.tenant.pk, old + MOMENT).filter(pk=row.pk).exists()
    assert removal_round(kind_of("experiments"), now=NOW) == count
    with platform_scope():
        assert not Run.objects.filter(pk=asked.pk).exists()
    assert not any(is_there(gone) for gone in (row, asked_trial.arm, asked_trial))
    assert all(is_there(kept) for kept in (running, graded, gated, item))
    removal_round(kind_of("datasets"), now=NOW)
    assert not is_there(row.dataset)
    assert is_there(gated.dataset)


def _searching(side: Side, target: dict[str, Any], state: str = "running") -> Experiment:
    made: Experiment = experiment(side, NOW, state)
    make_row(Arm, side.tenant, side.user("owner"), experiment=made, target=target)
    return made


SEARCHED = "an experiment under way searches its collection"


@pytest.mark.parametrize("state", ["running", "paused"])
@pytest.mark.parametrize("kind", ["retriever", "assistant", "all"])
def test_documents_that_an_experiment_under_way_searches_stay_until_it_ends(
    side: Side, kind: str, state: str
) -> None:
    rule(side, "documents", 30)
    other = Side()
    rule(other, "documents", 30)
    old = NOW - timedelta(days=90)
    searched, elsewhere, theirs = document(side, old), document(side, old), document(other, old)
    with platform_scope():
        apart = make_row(Collection, side.tenant, side.user("owner"))
        Document.objects.filter(pk=elsewhere.pk).update(collection=apart)
    chosen = None if kind == "all" else [searched.collection_id]
    target = {"kind": "assistant" if kind == "all" else kind, "collections": chosen}
    made = _searching(side, target, state)
    kept = 2 if kind == "all" else 1
    told = preview(side, "documents")
    assert (told.count, [(k.why, k.count) for k in told.kept]) == (2 - kept, [(SEARCHED, kept)])
    assert removal_round(kind_of("documents"), now=NOW) == 3 - kept
    assert (is_there(searched), is_there(elsewhere), is_there(theirs)) == (True, kind == "all", False)
    with platform_scope():
        Experiment.objects.filter(pk=made.pk).update(state="completed")
    assert preview(side, "documents").kept == ()
    assert removal_round(kind_of("documents"), now=NOW) == kept
    assert not is_there(searched)


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "retriever", "collections": []},
        {"kind": "assistant", "collections": []},
        {"kind": "model", "model": "m"},
        {"kind": "reference"},
        {},
    ],
)
def test_experiments_that_search_nothing_keep_nothing(side: Side, target: dict[str, Any]) -> None:
    rule(side, "documents", 30)
    row = document(side, NOW - timedelta(days=90))
    _searching(side, target)
    assert preview(side, "documents").kept == ()
    assert removal_round(kind_of("documents"), now=NOW) == 1
    assert not is_there(row)


@pytest.mark.parametrize("state", ["queued", "running", "paused"])
def test_documents_that_rows_are_generated_from_stay_until_the_job_ends(side: Side, state: str) -> None:
    rule(side, "documents", 30)
    row = document(side, NOW - timedelta(days=90))
    job = make_row(
        GenerationJob,
        side.tenant,
        side.user("owner"),
        state=state,
        options={"collections": [row.collection_id]},
    )
    told = preview(side, "documents")
    assert [(k.why, k.count) for k in told.kept] == [
        ("dataset rows are being generated from its collection", 1)
    ]
    assert removal_round(kind_of("documents"), now=NOW) == 0
    with platform_scope():
        GenerationJob.objects.filter(pk=job.pk).update(state="stopped")
    assert removal_round(kind_of("documents"), now=NOW) == 1
    assert not is_there(row)
