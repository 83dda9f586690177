"""Retention rules: what a preview shows is what goes, a hold wins, other workspaces and what is in use stay."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import transaction
from django.utils import timezone

from apps.collections.models import Chunk, Collection, Document
from apps.conversations.models import Conversation
from apps.datasets.models import Dataset, DatasetRow, DatasetVersion, GenerationJob, RowContent
from apps.evaluations.models import AnnotationItem, Arm, Baseline, Experiment, Trial
from audit.models import AuditStream, ContentRead
from basics.errors import Denied, Invalid
from erasure import removal
from erasure.holds import hold_place, hold_release
from erasure.models import RetentionRule
from erasure.removal import removal_round
from erasure.retention import (
    Preview,
    RetentionKind,
    due_rows,
    retention_kinds,
    retention_overview,
    retention_rules_set,
)
from jobs import registry
from jobs.models import Job
from runs.models import Run
from tenancy.models import AuditEvent, TenantModel
from tenancy.scope import platform_scope, tenant_scope
from tests.factories import actor_of
from tests.permissions.test_matrix import key_client
from tests.permissions.world import Side, make_row
from webhooks.models import WebhookDelivery

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
NAMES = ["documents", "conversations", "runs", "datasets", "experiments", "reads", "deliveries", "jobs"]


@pytest.fixture(autouse=True)
def at_once(settings: Any) -> None:
    """Rules begin when they are set."""
    settings.ERASURE_GRACE_DAYS = 0
    settings.READ_AUDIT_DAYS, settings.RETENTION_DAYS, settings.CONVERSATION_DAYS = 0, 0, 0


@pytest.fixture
def side() -> Side:
    return Side()


def kind_of(name: str) -> RetentionKind:
    return next(kind for kind in retention_kinds() if kind.name == name)


def rule(side: Side, name: str, days: int | None, role: str = "owner", now: datetime = NOW) -> None:
    actor = actor_of(side.people[role])
    retention_rules_set(tenant=side.tenant, actor=actor, changes={name: days}, now=now)


def preview(
    side: Side, name: str, now: datetime = NOW, changes: dict[str, int | None] | None = None
) -> Preview:
    actor = actor_of(side.people["admin"])
    found = retention_overview(tenant=side.tenant, actor=actor, changes=changes, now=now)
    return next(line for line in found.rules if line.kind.name == name)


def document(side: Side, at: datetime, path: str = "", **given: Any) -> Document:
    """Make a ready document whose only version came at a moment."""
    given = {"status": "ready", "live_from": at, "created_at": at, "size": 10, **given}
    if path:
        given["path"] = path
    made: Document = make_row(
        Document,
        side.tenant,
        side.user("owner"),
        collection=side.row("collections.Collection", "owner"),
        **given,
    )
    return made


def conversation(side: Side, at: datetime) -> Conversation:
    made: Conversation = make_row(
        Conversation, side.tenant, side.user("owner"), model="extractive", updated_at=at
    )
    return made


def run(side: Side, at: datetime) -> Run:
    made: Run = make_row(
        Run, side.tenant, side.user("owner"), model="extractive", status="completed", finished_at=at
    )
    return made


def dataset(side: Side, at: datetime, **given: Any) -> Dataset:
    made: Dataset = make_row(Dataset, side.tenant, side.user("owner"), **given)
    with platform_scope():
        Dataset.objects.filter(pk=made.pk).update(updated_at=at)
    return made


def experiment(side: Side, at: datetime, state: str = "completed") -> Experiment:
    held = dataset(side, at)
    version = make_row(DatasetVersion, side.tenant, side.user("owner"), dataset=held, created_at=at)
    made: Experiment = make_row(
        Experiment,
        side.tenant,
        side.user("owner"),
        dataset=held,
        version=version,
        state=state,
        created_at=at,
        finished_at=at,
        scorers=[],
    )
    return made


def trial(side: Side, of: Experiment, **given: Any) -> Trial:
    person = side.user("owner")
    arm = make_row(Arm, side.tenant, person, experiment=of)
    content = make_row(RowContent, side.tenant, person, dataset=of.dataset)
    made: Trial = make_row(Trial, side.tenant, person, experiment=of, arm=arm, content=content, **given)
    return made


_seq = iter(range(1, 10**6))


def read(side: Side, at: datetime) -> ContentRead:
    made: ContentRead = make_row(ContentRead, side.tenant, side.user("owner"), at=at, seq=next(_seq))
    return made


def delivery(side: Side, at: datetime) -> WebhookDelivery:
    made: WebhookDelivery = make_row(
        WebhookDelivery, side.tenant, side.user("owner"), status="delivered", created_at=at
    )
    return made


def job(side: Side, at: datetime) -> Job:
    made: Job = make_row(Job, side.tenant, side.user("owner"), status="failed", finished_at=at)
    return made


MAKERS: dict[str, Any] = {
    "documents": document,
    "conversations": conversation,
    "runs": run,
    "datasets": dataset,
    "experiments": experiment,
    "reads": read,
    "deliveries": delivery,
    "jobs": job,
}


def made(side: Side, name: str, at: datetime) -> TenantModel:
    found: TenantModel = MAKERS[name](side, at)
    if name == "reads":
        read(side, NOW)  # the newest keeps the count, and always stays
    return found


def is_there(row: TenantModel) -> bool:
    """Tell whether a row, or of a run what was said in it, is there."""
    with platform_scope():
        found = type(row)._base_manager.filter(pk=row.pk)
        if isinstance(row, Run):
            return Run.objects.filter(pk=row.pk, pruned_at=None).exists()
        return bool(found.exists())


def test_all_kinds_have_a_rule_and_keep_things_for_ever_unless_the_server_limits_them(side: Side) -> None:
    assert [kind.name for kind in retention_kinds()] == NAMES
    assert [preview(side, name).days for name in NAMES] == [0, 0, 0, 0, 0, 0, 30, 0]
    kept = [made(side, name, NOW - timedelta(days=29)) for name in NAMES]
    assert [removal_round(kind, now=NOW) for kind in retention_kinds()] == [0] * 8
    assert all(is_there(row) for row in kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_ends_at_the_exact_moment(side: Side, name: str) -> None:
    """What is exactly as old as the rule says stays; a moment later it goes. Nothing else does."""
    rule(side, name, 30)
    edge = NOW - timedelta(days=30)
    row = made(side, name, edge)
    assert preview(side, name).count == 0
    assert removal_round(kind_of(name), now=NOW) == 0
    assert is_there(row)
    later = NOW + MOMENT
    told = preview(side, name, later)
    assert (told.count, told.oldest) == (1, edge)
    assert removal_round(kind_of(name), now=later) == 1
    assert not is_there(row)
    after = preview(side, name, later)
    assert (after.count, after.removed, after.removed_at) == (0, 1, later)


@pytest.mark.parametrize("name", NAMES)
def test_a_hold_keeps_everything_and_the_preview_counts_it(side: Side, name: str) -> None:
    rule(side, name, 30)
    row = made(side, name, NOW - timedelta(days=100))
    owner = actor_of(side.people["owner"])
    hold_place(tenant=side.tenant, actor=owner, reason="Case 12")
    assert removal_round(kind_of(name), now=NOW) == 0
    found = retention_overview(tenant=side.tenant, actor=owner, now=NOW)
    assert found.hold is not None
    assert found.held == 1
    assert is_there(row)
    hold_release(tenant=side.tenant, actor=owner)
    assert removal_round(kind_of(name), now=NOW) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_never_reaches_another_workspace(side: Side, name: str) -> None:
    other = Side()
    rule(side, name, 30)
    old = NOW - timedelta(days=100)
    mine = made(side, name, old)
    # Deliveries alone have a limit that the server sets for all.
    theirs = made(other, name, NOW - timedelta(days=29) if name == "deliveries" else old)
    assert preview(side, name).count == 1
    assert preview(other, name).count == 0
    assert removal_round(kind_of(name), now=NOW) == 1
    assert not is_there(mine)
    assert is_there(theirs)
    with platform_scope():
        assert not RetentionRule.objects.filter(tenant=other.tenant).exists()
        assert not AuditEvent.objects.filter(tenant=other.tenant, action__startswith="retention").exists()


@pytest.mark.parametrize("seed", range(6))
def test_the_preview_is_what_is_removed(side: Side, seed: int) -> None:
    """Made of ages around the rule, with versions, uses and a few of everything: counts, oldest and rows are the same."""
    chance = random.Random(seed)
    days = chance.randint(30, 200)
    rows: dict[str, list[TenantModel]] = {}
    for name in NAMES:
        for _ in range(chance.randint(1, 5)):
            age = timedelta(days=days) + chance.choice([-MOMENT, timedelta(), MOMENT, timedelta(days=9)])
            row = MAKERS[name](side, NOW - age)
            rows.setdefault(name, []).append(row)
            if name == "documents" and chance.random() < 0.5:
                newer = NOW - timedelta(days=days) + chance.choice([-MOMENT, timedelta(days=1)])
                with platform_scope():
                    Document.objects.filter(pk=row.pk).update(live_to=newer)
                document(side, newer, row.path, version=2, size=5)
        limit = min(days, 30) if name == "deliveries" else days
        rule(side, name, limit)
        told = preview(side, name)
        with tenant_scope(side.tenant.pk):
            due = due_rows(kind_of(name), side.tenant.pk, NOW - timedelta(days=limit))
            model, pks = due.model, set(due.values_list("pk", flat=True))
            every = set(model._base_manager.values_list("pk", flat=True))
            sized = {pk: size for pk, size in due.values_list("pk", "bytes") if size is not None}
        assert told.count == len(pks)
        assert told.size == (sum(sized.values()) if sized else None)
        removed = 0
        while count := removal_round(kind_of(name), now=NOW, batch=2):
            removed += count
        assert removed == told.count
        with tenant_scope(side.tenant.pk):
            left = set(model._base_manager.values_list("pk", flat=True))
            if name == "runs":
                left -= set(Run.objects.exclude(pruned_at=None).values_list("pk", flat=True))
                assert left == every - pks
            elif name == "documents":  # all versions go with the newest
                assert not left & pks
            else:
                assert left == every - pks
        assert preview(side, name).count == 0


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
    assert [(k.why, k.count) for k in told.kept] == [("being read by an ingestion", 1)]
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


def test_reads_wait_for_the_audit_stream(side: Side) -> None:
    rule(side, "reads", 30)
    row = made(side, "reads", NOW - timedelta(days=90))
    stream = make_row(AuditStream, side.tenant, side.user("owner"), url="https://example.org")
    told = preview(side, "reads")
    assert (told.count, [(k.why, k.count) for k in told.kept]) == (
        0,
        [("not sent to the audit stream yet", 1)],
    )
    assert removal_round(kind_of("reads"), now=NOW) == 0
    with platform_scope():
        AuditStream.objects.filter(pk=stream.pk).update(read_seq=cast("ContentRead", row).seq)
    assert removal_round(kind_of("reads"), now=NOW) == 1


@pytest.mark.parametrize("dies_at", range(1, 5))
def test_a_killed_round_is_continued_and_its_counts_are_told_once(
    side: Side, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    """It dies in the middle of a removal: that one is undone, those before it stay removed and counted."""
    rule(side, "conversations", 30)
    rows = [conversation(side, NOW - timedelta(days=90 - n)) for n in range(5)]
    found = removal._step
    calls = 0

    class Killed(BaseException):
        """Nothing catches it, as nothing catches a kill."""

    def dies(*given: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            with transaction.atomic():
                found(*given)
                raise Killed
        return found(*given)

    monkeypatch.setattr(removal, "_step", dies)
    with pytest.raises(Killed):
        removal_round(kind_of("conversations"), now=NOW)
    assert [is_there(row) for row in rows] == [False] * (dies_at - 1) + [True] * (6 - dies_at)
    assert preview(side, "conversations").removed == dies_at - 1
    monkeypatch.setattr(removal, "_step", found)
    assert removal_round(kind_of("conversations"), now=NOW) == 6 - dies_at
    with tenant_scope(side.tenant.pk):
        told = AuditEvent.objects.filter(action="retention.remove").values_list("data", flat=True)
        assert list(told) == [{"kind": "conversations", "count": 5}]
        assert AuditEvent.objects.filter(action="conversation.expire").count() == 5


def test_a_shorter_rule_waits_and_can_be_undone_a_longer_one_holds_at_once(side: Side, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    row = document(side, NOW - timedelta(days=90))
    rule(side, "documents", 30)
    starts = NOW + timedelta(days=7)
    assert preview(side, "documents").starts_at == starts
    assert removal_round(kind_of("documents"), now=starts - MOMENT) == 0
    rule(side, "documents", 365, now=NOW + timedelta(days=1))  # longer: what waited is over
    assert removal_round(kind_of("documents"), now=starts + MOMENT) == 0
    rule(side, "documents", 60, now=starts)
    assert preview(side, "documents", starts).starts_at == starts + timedelta(days=7)
    rule(side, "documents", 0, now=starts)
    assert preview(side, "documents", starts).starts_at is None
    rule(side, "documents", 60, now=starts)
    assert removal_round(kind_of("documents"), now=starts + timedelta(days=7)) == 1
    assert not is_there(row)


def test_a_rule_that_is_lengthened_meanwhile_stops_the_round(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(side, "conversations", 30)
    rows = [conversation(side, NOW - timedelta(days=90 - n)) for n in range(3)]
    found = removal._step

    def changed_after(*given: Any) -> int:
        count = found(*given)
        rule(side, "conversations", 365)
        return count

    monkeypatch.setattr(removal, "_step", changed_after)
    assert removal_round(kind_of("conversations"), now=NOW) == 1
    assert [is_there(row) for row in rows] == [False, True, True]


def test_a_hold_that_is_placed_meanwhile_stops_the_round(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    rule(side, "conversations", 30)
    rows = [conversation(side, NOW - timedelta(days=90 - n)) for n in range(3)]
    found, owner = removal._step, actor_of(side.people["owner"])
    placed: list[Any] = []

    def held_after(*given: Any) -> int:
        count = found(*given)
        if not placed:
            placed.append(hold_place(tenant=side.tenant, actor=owner, reason="Case"))
        return count

    monkeypatch.setattr(removal, "_step", held_after)
    assert removal_round(kind_of("conversations"), now=NOW) == 1
    assert [is_there(row) for row in rows] == [False, True, True]


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
def test_only_owners_set_rules_and_only_admins_see_them(side: Side, role: str) -> None:
    with pytest.raises(Denied):
        rule(side, "documents", 30, role)
    actor = actor_of(side.people[role])
    if role == "admin":
        assert retention_overview(tenant=side.tenant, actor=actor).rules
        return
    with pytest.raises(Denied):
        retention_overview(tenant=side.tenant, actor=actor)


@pytest.mark.parametrize(
    ("name", "days"),
    [
        ("documents", -1),
        ("documents", 3651),
        ("reads", 29),
        ("deliveries", 0),
        ("deliveries", 31),
        ("jobs", 6),
        ("audit", 30),
    ],
)
def test_days_that_cannot_be_chosen_are_refused_and_nothing_is_saved(
    side: Side, name: str, days: int
) -> None:
    owner = actor_of(side.people["owner"])
    with pytest.raises(Invalid) as refused:
        retention_rules_set(tenant=side.tenant, actor=owner, changes={"conversations": 30, name: days})
    assert list(refused.value.data["fields"]) == [name]
    assert preview(side, "conversations").days == 0
    with pytest.raises(Invalid):
        preview(side, "documents", changes={name: days})


def test_the_operators_limit_wins_over_a_longer_rule(side: Side, settings: Any) -> None:
    rule(side, "reads", 200)
    assert preview(side, "reads").days == 200
    settings.READ_AUDIT_DAYS = 90
    assert preview(side, "reads").days == 90
    rule(side, "reads", None)
    assert preview(side, "reads").days == 90
    row = made(side, "reads", NOW - timedelta(days=91))
    assert removal_round(kind_of("reads"), now=NOW) == 1
    assert not is_there(row)


def test_a_preview_of_other_days_changes_nothing(side: Side) -> None:
    row = document(side, NOW - timedelta(days=90))
    told = preview(side, "documents", changes={"documents": 30})
    assert (told.own, told.days, told.count) == (30, 30, 1)
    assert preview(side, "documents").days == 0
    assert removal_round(kind_of("documents"), now=timezone.now() + timedelta(days=9999)) == 0
    assert is_there(row)


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


def test_each_kind_is_swept_by_itself_at_start_up(side: Side) -> None:
    """Registering a kind is all that a room does: the sweeper then carries its rule out."""
    for name in NAMES:
        rule(side, name, 30)
    rows = [made(side, name, datetime(2020, 1, 1, tzinfo=UTC)) for name in NAMES if name != "deliveries"]
    rows.append(delivery(side, datetime(2020, 1, 1, tzinfo=UTC)))
    hooks = {hook.__qualname__: hook for hook in registry._sweeps if "retention of" in hook.__qualname__}
    assert sorted(hooks) == sorted(f"retention of {name}" for name in NAMES)
    assert [hooks[f"retention of {name}"]() for name in NAMES] == [1] * 8
    assert not any(is_there(row) for row in rows)


def test_the_older_doors_set_the_same_rules_with_the_same_grace(side: Side, settings: Any) -> None:
    """What one door sets the others show, and a shorter rule waits whichever door it came by."""
    settings.ERASURE_GRACE_DAYS = 7
    client = key_client(side, ["audit.read", "retention.manage"])

    def put(path: str, sent: dict[str, Any]) -> Any:
        answer = client.put(f"/api/v1/{path}", sent, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def shown() -> dict[str, Any]:
        rules = {rule["kind"]: rule for rule in client.get("/api/v1/retention/rules").json()["rules"]}
        assert client.get("/api/v1/retention").json()["days"] == rules["runs"]["own_days"]
        older = client.get("/api/v1/conversations/rules").json()
        assert older["keep_days"] == rules["conversations"]["own_days"]
        return rules

    put("retention", {"days": 40})
    put("conversations/rules", {"keep_days": 50})
    first = shown()
    assert [first[name]["own_days"] for name in ("runs", "conversations")] == [40, 50]
    assert all(first[name]["starts_at"] for name in ("runs", "conversations"))
    rows = run(side, NOW - timedelta(days=9999)), conversation(side, NOW - timedelta(days=9999))
    assert [removal_round(kind_of(name)) for name in ("runs", "conversations")] == [0, 0]
    assert all(is_there(row) for row in rows)
    new = {"rules": [{"kind": "runs", "days": 60}, {"kind": "conversations", "days": 70}]}
    put("retention/rules", new)
    second = shown()
    assert [second[name]["own_days"] for name in ("runs", "conversations")] == [60, 70]
    put("conversations/rules", {"makes_titles": False})  # leaves the days alone
    put("retention", {"days": None})
    last = shown()
    assert [last[name]["own_days"] for name in ("runs", "conversations")] == [None, 70]
    with tenant_scope(side.tenant.pk):
        told = AuditEvent.objects.filter(action="retention.set").order_by("pk")
        assert [(e.data["kind"], e.data["before"], e.data["after"]) for e in told] == [
            ("runs", None, 40),
            ("conversations", None, 50),
            ("runs", 40, 60),
            ("conversations", 50, 70),
            ("runs", 60, None),
        ]
