"""Approval by a second person: who decides, what runs, that it runs once, and what everybody is shown."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import Client
from django.utils import timezone

from apps.tools.permissions.services import grant_create, grant_delete
from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from runs.approvals.expiry import decisions_expire
from runs.approvals.selectors import approval_count, approval_list
from runs.approvals.services import call_decide, call_hand_over
from runs.models import PendingDecision, Run, RunEvent
from runs.models import ToolCall as Row
from tenancy.models import AuditEvent, Membership
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import actor_of, make_member
from tests.markup import flat
from tests.tools.calls.test_calls import _tools, _work, execute, paid  # noqa: F401 - a fixture
from toolloop.deferred import Decision

pytestmark = pytest.mark.django_db(transaction=True)
ROLE_ADMIN: dict[str, Any] = {"approver_kind": "role", "approver": "admin"}


def ask(cast: Cast, **values: Any) -> Any:
    """Have calls of ``pay`` asked about, as the owner says."""
    return grant_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        effect="ask",
        target_kind="tool",
        target="pay",
        **values,
    )


async def parked(
    cast: Cast, lane: Executor, *calls: int, role: str = "member", **rule: Any
) -> tuple[Run, list[PendingDecision]]:
    """Return a run whose calls of ``pay`` wait, and what waits."""
    if rule:
        await sync_to_async(ask)(cast, **rule)
    made = [("pay", {"amount": amount}) for amount in calls or (5,)]
    done = await sync_to_async(execute, thread_sensitive=False)(cast, *made, role=role)
    await _work(done.waiting, lane)
    return done.waiting, await sync_to_async(waiting_of)(done.waiting)


def waiting_of(run: Run) -> list[PendingDecision]:
    with tenant_scope(run.tenant_id):
        rows = PendingDecision.objects.filter(run=run, status="pending")
        return list(rows.select_related("run").order_by("pk"))


def decide(cast: Cast, row: PendingDecision, actor: Any, *args: Any, **values: Any) -> PendingDecision:
    made = Decision(*(args or ("approve",)), **values)
    with tenant_scope(cast.tenant.pk):
        found: PendingDecision = call_decide(
            tenant=cast.tenant,
            actor=cast.actor(actor) if isinstance(actor, str) else actor,
            run=row.run,
            decision_id=row.pk,
            decision=made,
        )
    return found


def hand_over(cast: Cast, row: PendingDecision, by: Any, to: str) -> PendingDecision:
    with tenant_scope(cast.tenant.pk):
        found: PendingDecision = call_hand_over(
            tenant=cast.tenant, actor=cast.actor(by), run=row.run, decision_id=row.pk, to=cast.user(to).pk
        )
    return found


def client_of(cast: Cast, role: str) -> Client:
    client = Client()
    client.force_login(cast.user(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


def names(cast: Cast, role: str, box: str) -> list[int]:
    with tenant_scope(cast.tenant.pk):
        return [row.pk for row in approval_list(actor=cast.actor(role), box=box)]


async def test_only_a_second_person_of_the_role_decides_and_it_runs_as_they_edited_it(
    cast: Cast, lane_threads: Executor
) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def attempt() -> None:
        with pytest.raises(Denied, match="up to an admin or owner"):
            decide(cast, row, "member")
        with pytest.raises(Missing):
            decide(cast, row, "viewer")
        with pytest.raises(Missing):
            decide(cast, row, "outsider")
        decide(cast, row, "admin", arguments={"amount": 7})
        with pytest.raises(Conflict):
            decide(cast, row, "owner")

    await sync_to_async(attempt)()
    await _work(run, lane_threads)
    assert paid == [7]

    def look() -> None:
        with tenant_scope(cast.tenant.pk):
            event = RunEvent.objects.get(run=run, kind="decided").data
            assert event["by"] == str(cast.user("admin"))
            assert event["changes"] == [{"path": "amount", "kind": "changed", "before": "5", "after": "7"}]
            facts = AuditEvent.objects.get(action="run.decide").data
            assert facts["approver"] == {"role": "admin"}
            assert facts["requested_by"] == cast.user("member").pk
            assert facts["is_edited"] is True

    await sync_to_async(look)()


async def test_requester_never_approves_for_others_even_with_the_role(
    cast: Cast, lane_threads: Executor
) -> None:
    _, (row,) = await parked(cast, lane_threads, 5, role="admin", **ROLE_ADMIN)

    def attempt() -> None:
        with pytest.raises(Denied):
            decide(cast, row, "admin")
        assert names(cast, "admin", "to_decide") == []
        assert names(cast, "admin", "waiting") == [row.pk]
        # Neither does a key that acts for the requester.
        _, key = api_key_create(
            tenant=cast.tenant, actor=cast.actor("admin"), name="k", scopes=["conversation.write", "run.read"]
        )
        url = f"/api/v1/runs/{row.run_id}/decisions/{row.pk}"
        answer = Client(headers={"authorization": f"Bearer {key}"}).post(
            url, {"decision": "approve"}, "application/json"
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "approver_needed")
        decide(cast, row, "owner")

    await sync_to_async(attempt)()


async def test_edit_cannot_carry_a_call_past_the_person_who_must_approve_it(
    cast: Cast, lane_threads: Executor
) -> None:
    above = [{"kind": "above", "argument": "amount", "value": 100}]
    owner = {"approver_kind": "role", "approver": "owner"}
    run, (row,) = await parked(cast, lane_threads, 5, arguments=above, **owner)
    assert row.approver_kind == "self"
    await sync_to_async(decide)(cast, row, "member", arguments={"amount": 500})
    await _work(run, lane_threads)
    assert paid == []
    (second,) = await sync_to_async(waiting_of)(run)
    assert (second.approver_kind, second.approver) == ("role", "owner")
    assert second.arguments == {"amount": 500}

    def refused() -> None:
        with pytest.raises(Denied):
            decide(cast, second, "member")

    await sync_to_async(refused)()
    await sync_to_async(decide)(cast, second, "owner")
    await _work(run, lane_threads)
    assert paid == [500]  # what the owner saw, not what the model wrote


async def test_edited_arguments_that_do_not_fit_wait_for_the_same_person_again(
    cast: Cast, lane_threads: Executor
) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)
    await sync_to_async(decide)(cast, row, "admin", arguments={"amount": "much"})
    await _work(run, lane_threads)
    (again,) = await sync_to_async(waiting_of)(run)
    assert (again.approver_kind, again.approver) == ("role", "admin")
    assert "do not fit" in again.reason
    assert paid == []


async def test_edited_arguments_that_are_denied_do_not_run(cast: Cast, lane_threads: Executor) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def deny() -> None:
        above = [{"kind": "above", "argument": "amount", "value": 100}]
        grant_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            effect="deny",
            target_kind="tool",
            target="pay",
            arguments=above,
        )
        decide(cast, row, "admin", arguments={"amount": 101})

    await sync_to_async(deny)()
    await _work(run, lane_threads)
    assert paid == []
    with tenant_scope(cast.tenant.pk):
        call = await sync_to_async(Row.objects.get)(run=run)
    assert (call.status, call.error_code) == ("denied", "denied")


async def test_approved_call_does_not_run_when_its_grant_was_withdrawn(
    cast: Cast, lane_threads: Executor
) -> None:
    grant = await sync_to_async(ask)(cast, **ROLE_ADMIN)
    run, (row,) = await parked(cast, lane_threads, 5)
    await sync_to_async(decide)(cast, row, "admin")

    def withdraw() -> None:
        from apps.tools.models import ToolGrant

        with tenant_scope(cast.tenant.pk):
            others = list(ToolGrant.objects.values_list("pk", flat=True))
        for pk in {grant.pk, *others}:
            grant_delete(tenant=cast.tenant, actor=cast.actor("owner"), pk=pk)

    await sync_to_async(withdraw)()
    await _work(run, lane_threads)
    assert paid == []


async def test_two_approvals_at_one_moment_run_it_exactly_once(cast: Cast, lane_threads: Executor) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)
    outcomes: list[str] = []

    def both() -> None:
        gate = threading.Barrier(2)

        def one(role: str) -> None:
            try:
                gate.wait()
                decide(cast, row, role)
                outcomes.append("ok")
            except DomainError as error:
                outcomes.append(error.code)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=one, args=(role,)) for role in ("admin", "owner")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    await sync_to_async(both, thread_sensitive=False)()
    assert sorted(outcomes) == ["call_decided", "ok"]
    await _work(run, lane_threads)
    await _work(run, lane_threads)  # the job once more, as after a lost lease
    assert paid == [5]


async def test_rule_says_how_long_a_call_waits_and_that_a_rejection_needs_a_reason(
    cast: Cast, lane_threads: Executor
) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN, approval_hours=2, needs_reason=True)
    left = row.expires_at - timezone.now()
    assert timedelta(hours=1, minutes=50) < left <= timedelta(hours=2)

    def reject() -> None:
        for reason in ("", "  "):
            with pytest.raises(Invalid, match="Say why"):
                decide(cast, row, "admin", "reject", reason=reason)
        decide(cast, row, "admin", "reject", reason="Too early.")

    await sync_to_async(reject)()
    await _work(run, lane_threads)
    with tenant_scope(cast.tenant.pk):
        call = await sync_to_async(Row.objects.get)(run=run)
    assert "Too early." in call.content
    assert paid == []


async def test_expired_call_is_rejected_on_the_record(cast: Cast, lane_threads: Executor) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def expire() -> None:
        with tenant_scope(cast.tenant.pk):
            PendingDecision.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert names(cast, "admin", "to_decide") == []
        with pytest.raises(Conflict, match="expired"):
            decide(cast, row, "admin")
        assert decisions_expire() == 1
        with tenant_scope(cast.tenant.pk):
            assert AuditEvent.objects.filter(action="run.decision_expired").count() == 1

    await sync_to_async(expire)()
    await _work(run, lane_threads)
    assert paid == []


async def test_decision_is_handed_over_to_nobody_below_and_not_to_who_asked(
    cast: Cast, lane_threads: Executor
) -> None:
    named = {"approver_kind": "member", "approver": str(cast.user("admin").pk)}
    run, (row,) = await parked(cast, lane_threads, 5, **named)

    def attempt() -> None:
        with pytest.raises(Denied, match=str(cast.user("admin"))):
            decide(cast, row, "owner")  # the rule names one person
        for by, to in (("admin", "member"), ("admin", "viewer"), ("admin", "outsider")):
            with pytest.raises(Invalid):
                hand_over(cast, row, by, to)
        for by in ("member", "viewer"):
            with pytest.raises((Denied, Missing)):
                hand_over(cast, row, by, "owner")
        hand_over(cast, row, "admin", "owner")
        assert names(cast, "owner", "to_decide") == names(cast, "admin", "to_decide") == [row.pk]
        decide(cast, row, "owner")
        with tenant_scope(cast.tenant.pk):
            assert AuditEvent.objects.get(action="run.hand_over").data["to"] == cast.user("owner").pk

    await sync_to_async(attempt)()
    await _work(run, lane_threads)
    assert paid == [5]


async def test_admin_hands_on_what_waits_for_somebody_who_has_left(
    cast: Cast, lane_threads: Executor
) -> None:
    gone = await sync_to_async(make_member)(cast.tenant, "admin")
    named = {"approver_kind": "member", "approver": str(gone.user_id)}
    _, (row,) = await parked(cast, lane_threads, 5, **named)

    def attempt() -> None:
        with tenant_scope(cast.tenant.pk):
            Membership.objects.filter(pk=gone.pk).delete()
        assert names(cast, "owner", "to_decide") == []
        hand_over(cast, row, "owner", "admin")
        decide(cast, row, "admin")

    await sync_to_async(attempt)()


async def test_inbox_shows_each_what_is_theirs(cast: Cast, lane_threads: Executor) -> None:
    _, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def look() -> None:
        boxes = {
            role: [names(cast, role, box) for box in ("to_decide", "waiting", "decided")]
            for role in ("owner", "admin", "member", "viewer")
        }
        assert boxes == {
            "owner": [[row.pk], [], []],
            "admin": [[row.pk], [], []],
            "member": [[], [row.pk], []],
            "viewer": [[], [], []],
        }
        base = f"/t/{cast.tenant.slug}/tools/approvals/"
        page = client_of(cast, "admin").get(base).content.decode()
        assert f'id="approval-{row.pk}"' in page
        assert '<span class="count num">1<span class="vh">to decide' in flat(page)  # the side bar
        assert "count num" not in client_of(cast, "member").get(base).content.decode()
        mine = client_of(cast, "member").get(f"{base}?box=waiting").content.decode()
        assert "an admin or owner decides" in mine
        assert client_of(cast, "viewer").get(f"{base}{row.pk}/").status_code == 404
        seen = client_of(cast, "member").get(f"{base}{row.pk}/").content.decode()
        assert "approval-decide" not in seen
        assert 'value="approve"' not in seen
        foreign = client_of(cast, "outsider")
        slug = cast.other_tenant.slug
        assert foreign.get(f"/t/{slug}/tools/approvals/{row.pk}/").status_code == 404
        with tenant_scope(cast.tenant.pk):
            assert approval_count(actor=cast.actor("admin")) == 1

    await sync_to_async(look)()


async def test_inbox_takes_decisions_and_keeps_what_does_not_fit(cast: Cast, lane_threads: Executor) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def click() -> None:
        client, base = client_of(cast, "admin"), f"/t/{cast.tenant.slug}/tools/approvals/"
        url = f"{base}{row.pk}/decide/"
        bad = client.post(url, {"decision": "approve", "arguments": '{"amount": 7'})
        assert bad.status_code == 422
        assert "{&quot;amount&quot;: 7" in bad.content.decode()
        assert client_of(cast, "member").post(url, {"decision": "approve"}).status_code == 403
        good = client.post(url, {"decision": "approve", "arguments": '{"amount": 7}'})
        assert (good.status_code, good["Location"]) == (302, base)
        late = client_of(cast, "owner").post(url, {"decision": "reject"}, follow=True)
        assert "already been decided" in late.content.decode()
        page = client.get(f"{base}{row.pk}/").content.decode()
        assert "<del>5</del>" in page
        assert "<ins>7</ins>" in page

    await sync_to_async(click)()
    await _work(run, lane_threads)
    assert paid == [7]


async def test_chosen_calls_are_approved_at_once_each_by_itself(cast: Cast, lane_threads: Executor) -> None:
    run, rows = await parked(cast, lane_threads, 1, 2, 3, **ROLE_ADMIN)

    def click() -> None:
        decide(cast, rows[0], "owner", "reject", reason="No.")
        url = f"/t/{cast.tenant.slug}/tools/approvals/approve/"
        chosen = {"approval": [str(row.pk) for row in rows] + ["999999999"]}
        page = client_of(cast, "admin").post(url, chosen, follow=True).content.decode()
        assert "2 calls approved." in page
        assert "already been decided" in page

    await sync_to_async(click)()
    await _work(run, lane_threads)
    assert sorted(paid) == [2, 3]


async def test_rest_lists_and_takes_decisions_of_a_second_person(cast: Cast, lane_threads: Executor) -> None:
    run, (row,) = await parked(cast, lane_threads, 5, **ROLE_ADMIN)

    def talk() -> None:
        _, key = api_key_create(
            tenant=cast.tenant,
            actor=actor_of(cast.admin),
            name="k",
            scopes=["conversation.write", "run.read"],
        )
        client = Client(headers={"authorization": f"Bearer {key}"})
        listed = client.get("/api/v1/approvals").json()["results"]
        assert [(r["id"], r["approver"], r["requested_by_id"]) for r in listed] == [
            (row.pk, "admin", cast.user("member").pk)
        ]
        assert client.get("/api/v1/approvals?tool=other").json()["results"] == []
        assert client.get("/api/v1/approvals?box=none").status_code == 400
        to = json.dumps({"to": cast.user("owner").pk})
        over = client.post(f"/api/v1/approvals/{row.pk}/hand-over", to, "application/json")
        assert (over.status_code, over.json()["assigned_to_id"]) == (200, cast.user("owner").pk)
        body = json.dumps({"decision": "approve", "arguments": {"amount": 9}})
        url = f"/api/v1/runs/{run.pk}/decisions/{row.pk}"
        done = client.post(url, body, "application/json")
        assert done.json()["changes"] == [{"path": "amount", "kind": "changed", "before": "5", "after": "9"}]
        decided = client.get("/api/v1/approvals?box=decided").json()["results"]
        assert [r["id"] for r in decided] == [row.pk]

    await sync_to_async(talk)()
    await _work(run, lane_threads)
    assert paid == [9]


@pytest.mark.parametrize(
    "values",
    [
        {"approver_kind": "boss"},
        {"approver_kind": "role"},
        {"approver_kind": "role", "approver": "boss"},
        {"approver": "admin"},
        {"approver_kind": "member", "approver": "07"},
        {"approval_hours": 0},
        {"approval_hours": 9000},
        {"effect": "allow", "approver_kind": "role", "approver": "admin"},
        {"effect": "deny", "needs_reason": True},
    ],
    ids=str,
)
def test_rule_about_approvers_that_cannot_hold_is_refused(cast: Cast, values: dict[str, Any]) -> None:
    made: Any = {"effect": "ask", "target_kind": "tool", "target": "pay", **values}
    with pytest.raises(Invalid):
        grant_create(tenant=cast.tenant, actor=cast.actor("owner"), **made)
