"""Nobody is told what isn't theirs, or what they may not see at the moment in which they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.collections.models import Import, ImportStatus
from apps.conversations.models import Conversation
from basics.errors import Denied, Invalid
from budgets.models import Budget, BudgetSpend
from budgets.services import budget_set
from budgets.warnings import budgets_tell
from jobs.models import Job
from jobs.runner import run_here
from notices import services
from notices.models import Notice
from notices.selectors import MOST, notice_list, notice_ways, ways_default
from notices.sources import SOURCES
from runs.approvals.parking import decision_tell
from runs.models import PendingDecision, Run
from tenancy.models import Membership, User
from tenancy.permissions import BY_NAME_ALONE, KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import actor_of, make_collection

pytestmark = pytest.mark.django_db


def put(cast: Cast, pk: int, *roles: str, kind: str = "import", state: str = "completed") -> None:
    people = [cast.user(role).pk for role in roles or ("member",)]
    services.notice_put(tenant_id=cast.tenant.pk, people=people, kind=kind, pk=pk, state=state)


def imported(cast: Cast, name: str) -> Import:
    row: Import = Import.objects.create(
        tenant=cast.tenant,
        collection=make_collection(cast.tenant, name),
        created_by=cast.user("member"),
        status=ImportStatus.COMPLETED,
    )
    return row


def told(cast: Cast, role: str = "member") -> list[tuple[str, str]]:
    """What the bell tells somebody: text and name."""
    return [(str(one.text), one.name) for one in notice_list(tenant=cast.tenant, actor=cast.actor(role))]


def browser(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_a_notice_is_its_persons_alone(cast: Cast) -> None:
    url = reverse("web:notices", args=[cast.tenant.slug])
    with tenant_scope(cast.tenant.pk):
        row = imported(cast, "Zqcanary")
        put(cast, row.pk)
        services.notice_put(  # who is not a member is told nothing, whatever the caller says
            tenant_id=cast.tenant.pk,
            people=[cast.user("outsider").pk, None],
            kind="import",
            pk=row.pk,
            state="completed",
        )
        mine = Notice.objects.get()
        assert told(cast) == [("Import finished", "Zqcanary")]
        for role in ("owner", "admin", "viewer", "outsider"):
            assert told(cast, role) == []
            services.notices_read(tenant=cast.tenant, actor=cast.actor(role))
            services.notices_read(tenant=cast.tenant, actor=cast.actor(role), pk=mine.pk)
            assert services.notices_claim(tenant=cast.tenant, actor=cast.actor(role)) == ([], None)
        mine.refresh_from_db()
        assert mine.read_at is mine.shown_at is None
        _, key = api_key_create(
            tenant=cast.tenant, actor=cast.actor("admin"), name="k", scopes=sorted(KEY_SCOPES - BY_NAME_ALONE)
        )
    for role in ("owner", "admin", "viewer"):
        page = browser(getattr(cast, role)).get(url)
        assert b"Zqcanary" not in page.content.split(b'id="main"')[1].split(b"</main>")[0]
    assert b"Zqcanary" in browser(cast.member).get(url).content
    assert browser(cast.outsider).get(url).status_code == 404
    for path in ("notices", "notices/ways"):
        answer = Client().get(f"/api/v1/me/{path}", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 403
    with tenant_scope(cast.other_tenant.pk):
        assert not Notice.objects.exists()  # the database's own wall
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM notices_notice")
            assert cursor.fetchone() == (0,)


def test_rights_are_read_when_it_is_told(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        row, gone = imported(cast, "Zqkept"), imported(cast, "Zqgone")
        put(cast, row.pk)
        put(cast, gone.pk)
        gone.collection.owner = cast.user("owner")  # it is somebody's private collection now
        gone.collection.save()
        talk = Conversation.objects.create(tenant=cast.tenant, user=cast.user("owner"), title="Zqsecret")
        put(cast, talk.pk, "member", "owner", kind="answer")
        assert told(cast) == [("Import finished", "Zqkept")]
        assert ("Answer ready", "Zqsecret") in told(cast, "owner")
        assert [one.name for one in _aged(cast, "member")] == ["Zqkept"]
        Membership.objects.filter(pk=cast.member.pk).update(role="viewer")
        lower = actor_of(Membership.objects.get(pk=cast.member.pk))
        assert notice_list(tenant=cast.tenant, actor=lower) == []  # a viewer imports nothing
        assert set(SOURCES) >= {"answer", "approval", "import", "rows", "generation", "experiment", "budget"}


def _aged(cast: Cast, role: str) -> list[Any]:
    """What a browser gets once everything is a minute old."""
    Notice.objects.filter(tenant=cast.tenant).update(at=timezone.now() - timedelta(minutes=1))
    return services.notices_claim(tenant=cast.tenant, actor=cast.actor(role))[0]


def test_one_browser_is_handed_each_notice_and_none_what_is_read(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        rows = [imported(cast, f"C{n}") for n in range(3)]
        for row in rows:
            put(cast, row.pk)
        none, again = services.notices_claim(tenant=cast.tenant, actor=cast.actor("member"))
        assert none == []
        assert again is not None
        assert 1 <= again <= 6
        seen = reverse("collections:import", args=[cast.tenant.slug, rows[0].collection_id, rows[0].pk])
        member = Membership.objects.select_related("user", "tenant").get(pk=cast.member.pk)
        unread = services.notices_look(membership=member, actor=cast.actor("member"), path=seen)
        assert {one.name for one in unread} == {"C1", "C2"}
        assert {one.name for one in _aged(cast, "member")} == {"C1", "C2"}
        assert _aged(cast, "member") == []
        put(cast, rows[1].pk, state="failed")  # again, and otherwise: it is news once more, in one row
        assert [(one.text, one.name) for one in _aged(cast, "member")] == [("Import failed", "C1")]
        assert Notice.objects.count() == 3


def test_what_can_no_longer_be_told_hides_nothing(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        put(cast, imported(cast, "C").pk)
        for pk in range(10**9, 10**9 + MOST + 1):  # newer, and gone
            put(cast, pk)
        assert told(cast) == [("Import finished", "C")]
        member = Membership.objects.select_related("user", "tenant").get(pk=cast.member.pk)
        unread = services.notices_look(membership=member, actor=cast.actor("member"), path="/")
        assert [one.name for one in unread] == ["C"]
        assert Notice.objects.filter(read_at=None).count() == 1
        assert Membership.objects.get(pk=cast.member.pk).has_notices
        Import.objects.all().delete()
        assert services.notices_look(membership=member, actor=cast.actor("member"), path="/") == []
        assert not Membership.objects.get(pk=cast.member.pk).has_notices


def test_who_has_nothing_to_read_costs_no_statement(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        row = imported(cast, "C")

        def look() -> tuple[int, int]:
            member = Membership.objects.select_related("user", "tenant").get(pk=cast.member.pk)
            with CaptureQueriesContext(
                connection,
            ) as asked:
                found = services.notices_look(membership=member, actor=cast.actor("member"), path="")
            return len(found), len(asked)

        assert look() == (0, 0)
        put(cast, row.pk)
        assert look() == (1, 3)  # the setting, the notices, the imports
        row.collection.owner = cast.user("owner")
        row.collection.save()
        assert look()[0] == 0  # nothing that may be told: the flag comes down
        assert look() == (0, 0)
        put(cast, row.pk)
        assert Membership.objects.get(pk=cast.member.pk).has_notices


@pytest.mark.django_db(transaction=True)
def test_those_who_decide_are_told_until_it_is_decided(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(
            tenant=cast.tenant, user=cast.user("member"), kind="conversation", model="m", status="parked"
        )

        def waits(kind: str, approver: str) -> PendingDecision:
            row: PendingDecision = PendingDecision.objects.create(
                tenant=cast.tenant,
                run=run,
                step=1,
                call_id=f"{kind}{approver}",
                name=f"pay_{kind}",
                kind="approval",
                arguments={},
                expires_at="2999-01-01T00:00:00Z",
                approver_kind=kind,
                approver=approver,
            )
            decision_tell(row)
            return row

        rows = [waits("self", ""), waits("role", "admin"), waits("member", str(cast.user("viewer").pk))]
        assert told(cast, "owner") == []
        (spread,) = Job.objects.filter(kind="notices.spread")
    assert run_here(cast.tenant.pk, spread.pk).status == "succeeded"
    with tenant_scope(cast.tenant.pk):
        heard = {
            role: [name for _, name in told(cast, role)] for role in ("owner", "admin", "member", "viewer")
        }
        assert heard == {
            "owner": ["pay_role"],
            "admin": ["pay_role"],
            "member": ["pay_self"],
            "viewer": ["pay_member"],
        }
        decision_tell(rows[1], cast.user("viewer").pk)  # handed to who may not take it: told nothing
        assert [name for _, name in told(cast, "viewer")] == ["pay_member"]
        PendingDecision.objects.update(status="approved")
        assert all(told(cast, role) == [] for role in heard)


def test_a_role_of_many_is_told_by_a_job_in_bounded_steps_once(
    cast: Cast,
) -> None:
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(
            tenant=cast.tenant, user=cast.user("member"), kind="conversation", model="m", status="parked"
        )
        people = User.objects.bulk_create(User(email=f"m{n}@example.org") for n in range(1_100))
        Membership.objects.bulk_create(
            Membership(tenant=cast.tenant, user=user, role="admin") for user in people
        )
        row = PendingDecision.objects.create(
            tenant=cast.tenant,
            run=run,
            step=1,
            call_id="a",
            name="pay",
            kind="approval",
            arguments={},
            expires_at="2999-01-01T00:00:00Z",
            approver_kind="role",
            approver="admin",
        )
        with CaptureQueriesContext(connection) as asked:
            decision_tell(row)
        assert len(asked) <= 3
        assert not Notice.objects.exists()
        (job,) = Job.objects.filter(kind="notices.spread")
        spread: dict[str, Any] = {"tenant_id": cast.tenant.pk, "since": job.created_at, **job.payload}
        with CaptureQueriesContext(connection) as asked:
            services.notices_spread(**spread)
        assert len(asked) <= 6, "who decides, who was told, and one for each 500"
        assert Notice.objects.count() == 1_102
        Notice.objects.update(read_at=timezone.now())
        services.notices_spread(**spread)  # as after a crash
        assert not Notice.objects.filter(read_at=None).exists()
        assert set(Notice.objects.values_list("tenant_id", flat=True)) == {cast.tenant.pk}


def test_a_budget_is_told_to_whom_it_limits_and_to_who_manages_it(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
        for kind, subject, spent in (("tenant", 0, "8.5"), ("member", cast.user("member").pk, "10")):
            budget_set(**who, kind=kind, amount_usd=Decimal(10))
            BudgetSpend.objects.create(
                tenant=cast.tenant,
                budget=Budget.objects.get(kind=kind),
                subject_id=subject,
                starts_at="2026-01-01T00:00:00Z",
                spent_usd=spent,
            )
        assert budgets_tell(cast.tenant.pk) == 2
        assert told(cast, "owner") == [("Budget 80 % spent", "The whole workspace: $10 a month")]
        assert told(cast, "member") == [("Budget used up", "Your budget of $10")]
        assert told(cast, "admin") == told(cast, "viewer") == []


def test_choices_are_checked_and_ones_own(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        member, owner = cast.actor("member"), cast.actor("owner")
        services.notice_ways_set(tenant=cast.tenant, actor=member, ways={"work": ["mail"]})
        chosen = notice_ways(actor=member)
        assert chosen == {**ways_default(), "work": frozenset({"mail"})}
        assert notice_ways(actor=owner) == ways_default()
        for wrong in ({"weather": ["mail"]}, {"work": ["pigeon"]}):
            with pytest.raises(Invalid):
                services.notice_ways_set(tenant=cast.tenant, actor=member, ways=wrong)
        put(cast, imported(cast, "C").pk)
        assert told(cast) == []
        assert _aged(cast, "member") == []
        key = replace(member, kind="api_key", api_key_id=1)
        assert notice_list(tenant=cast.tenant, actor=key) == []
        with pytest.raises(Denied):
            services.notices_read(tenant=cast.tenant, actor=key)


def test_old_notices_go(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        rows = [imported(cast, "C"), imported(cast, "D")]
        for row in rows:
            put(cast, row.pk)
        assert services.notices_forget() == 0
        old = Notice.objects.filter(object_id=rows[0].pk)
        old.update(at=timezone.now() - timedelta(days=services.KEPT_DAYS, minutes=1))
    assert services.notices_forget() == 1
    with tenant_scope(cast.tenant.pk):
        assert told(cast) == [("Import finished", "D")]
