"""Retention rules: what a preview shows is what goes, a hold wins, and other workspaces stay."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import transaction

from apps.collections.models import Document
from audit.models import AuditStream, ContentRead
from erasure import removal
from erasure.holds import hold_place, hold_release
from erasure.models import RetentionRule
from erasure.removal import removal_round
from erasure.retention import (
    due_rows,
    retention_kinds,
    retention_overview,
)
from jobs import registry
from runs.models import Run
from tenancy.models import AuditEvent, TenantModel
from tenancy.scope import platform_scope, tenant_scope
from tests.erasure.aged import (
    MAKERS,
    MOMENT,
    NAMES,
    NOW,
    conversation,
    delivery,
    document,
    is_there,
    kind_of,
    made,
    preview,
    rule,
)
from tests.factories import actor_of
from tests.permissions.world import Side, make_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]


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
        rule(side, name, None)  # else each preview that follows would count these as well


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
