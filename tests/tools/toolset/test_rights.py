"""The one statement that reads grants, entries and limits: it gives what is stored, to those whom it is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.tools.models import ToolEntry, ToolGrant, Toolkit, ToolkitMember, ToolLimit
from apps.tools.policy.engine import Grant, Policy, Subject, ToolFacts
from apps.tools.toolset.guard import EntryFacts
from apps.tools.toolset.rights import subject_and_rules, tool_rules
from apps.tools.toolset.selectors import subject_of
from tenancy.models import Membership
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import key_actor
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.statements import statements_noted
from toolloop.deferred import Approval

pytestmark = pytest.mark.django_db


def grants(policy: Policy, tool: str) -> list[Grant]:
    found = (rule.grant for rules in policy.rules_about(ToolFacts(tool)) for rule in rules)
    return sorted(found, key=lambda grant: grant.id)


def stored(cast: Cast, **fields: Any) -> ToolGrant:
    row = {"tenant": cast.tenant, "effect": "allow", "target_kind": "tool", "target": "pay"}
    with platform_scope():
        made: ToolGrant = ToolGrant.objects.create(**{**row, **fields})
    return made


def test_grants_are_read_as_they_are_stored(cast: Cast) -> None:
    later = timezone.now() + timedelta(hours=1)
    condition = [{"path": "amount", "op": "at_most", "value": 10.5}]
    with tenant_scope(cast.tenant.pk):
        kit = Toolkit.objects.create(tenant=cast.tenant, name="Money")
        ToolkitMember.objects.create(tenant=cast.tenant, toolkit=kit, tool_name="pay")
    by_kit = stored(cast, target_kind="toolkit", target="", toolkit=kit)
    asking = stored(
        cast,
        effect="ask",
        subject_kind="role",
        subject="member",
        calls="side_effects",
        arguments=condition,
        expires_at=later,
        note="Said “so”.",
        approver_kind="role",
        approver="owner",
        approval_hours=3,
        needs_reason=True,
    )
    stored(cast, expires_at=timezone.now() - timedelta(seconds=1))
    actor = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        found = grants(tool_rules(actor=actor, subject=subject_of(actor)).policy, "pay")
    assert found == [
        Grant(by_kit.pk, "allow", "toolkit", members=frozenset({"pay"})),
        Grant(
            asking.pk,
            "ask",
            "tool",
            "pay",
            calls="side_effects",
            subject_kind="role",
            subject="member",
            arguments=condition,
            expires_at=later,
            note="Said “so”.",
            approval=Approval("role", "owner", 3, True),
        ),
    ]


def test_rules_about_others_are_left_out(cast: Cast) -> None:
    mine = stored(cast, subject_kind="member", subject=str(cast.user("member").pk))
    others = [
        stored(cast, subject_kind="member", subject=str(cast.user("owner").pk)),
        stored(cast, subject_kind="role", subject="owner"),
        stored(cast, subject_kind="api_key", subject=str(cast.user("member").pk)),
    ]
    stored(cast, tenant=cast.other_tenant)
    with platform_scope():
        for tenant, name in ((cast.tenant, "pay"), (cast.other_tenant, "spy")):
            ToolEntry.objects.create(
                tenant=tenant, name=name, is_enabled=False, description="D", timeout_s=2.5
            )
            ToolLimit.objects.create(
                tenant=tenant, kind="tenant", period="day", calls=1, target_kind="tool", target=name
            )
        for role in ("member", "owner"):
            ToolLimit.objects.create(
                tenant=cast.tenant,
                kind="member",
                user=cast.user(role),
                period="day",
                calls=1,
                target_kind="tool",
                target=f"of-{role}",
            )
    actor = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        rules = tool_rules(actor=actor, subject=subject_of(actor))
        everybody = tool_rules(actor=actor).policy
        nobody = tool_rules(actor=actor, subject=Subject())
    assert [grant.id for grant in grants(rules.policy, "pay")] == [mine.pk]
    assert [grant.id for grant in grants(everybody, "pay")] == [mine.pk, *(r.pk for r in others)]
    assert grants(nobody.policy, "pay") == []
    assert rules.entries == {"pay": EntryFacts(is_enabled=False, description="D", timeout_s=2.5)}
    assert rules.limited == {("tool", "pay"), ("tool", "of-member")}
    assert not rules.has_sources


def test_a_keys_rules_and_its_persons_role_are_of_one_statement(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        made, _ = api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=["tool.run"])
        key = key_actor(made)
        assert key is not None
        theirs = [
            stored(cast, subject_kind="role", subject="owner"),
            stored(cast, subject_kind="api_key", subject=str(made.pk)),
        ]
        stored(cast, subject_kind="role", subject="member")
        stored(cast, tenant=cast.other_tenant, subject_kind="role", subject="owner")
        with statements_noted() as sent:
            subject, rules = subject_and_rules(key)
        assert len(sent) == 1
        assert subject == subject_of(key)
        assert subject.role == "owner"
        assert [grant.id for grant in grants(rules.policy, "pay")] == [row.pk for row in theirs]
        Membership.objects.filter(user=cast.user("owner")).update(role="member")
        assert subject_and_rules(key)[0].role == "member"
        Membership.objects.filter(user=cast.user("owner")).delete()
        subject, rules = subject_and_rules(key)
        assert subject == subject_of(key)
        assert not subject.role
        assert [grant.id for grant in grants(rules.policy, "pay")] == [theirs[1].pk]
