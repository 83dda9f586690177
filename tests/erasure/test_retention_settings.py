"""Who sets retention rules, to what, and from when they hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from basics.errors import Denied, Invalid
from erasure.removal import removal_round
from erasure.retention import (
    retention_overview,
    retention_rules_set,
)
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.erasure.aged import (
    MOMENT,
    NOW,
    conversation,
    document,
    is_there,
    kind_of,
    made,
    preview,
    rule,
    run,
)
from tests.factories import actor_of
from tests.permissions.test_matrix import key_client
from tests.permissions.world import Side

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]


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
