"""Buckets are never overdrawn, whoever calls at once, and say what is left and when to come again."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.db.models import F
from django.test import Client

from tenancy.actors import Actor
from tenancy.models import ApiKey, RateBucket, RateLimit, Tenant
from tenancy.permissions import KEY_SCOPES
from tenancy.rate_limits import RateLimited, RateState, rate_take
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.factories import make_tenant
from tests.permissions.test_matrix import assert_error, key_client, signed_in
from tests.permissions.world import Side
from tests.statements import statements_noted

ME = "/api/v1/me"


@pytest.fixture(autouse=True)
def _defaults(settings: Any) -> None:
    settings.RATE_PER_MINUTE, settings.TENANT_RATE_PER_MINUTE = 0, 0


def limit(tenant: Tenant, kind: str, per_minute: int, burst: int, **whose: Any) -> None:
    with tenant_scope(tenant.pk):
        RateLimit.objects.create(tenant=tenant, kind=kind, per_minute=per_minute, burst=burst, **whose)


def person(number: int) -> Actor:
    return Actor("user", 0, frozenset(), user_id=number)


def take(tenant: Tenant, actor: Actor) -> RateState | None:
    with tenant_scope(tenant.pk):
        return rate_take(tenant=tenant, actor=actor)


def granted(tenant: Tenant, actor: Actor, most: int = 50) -> int:
    """Return how many requests in a row are allowed."""
    for count in range(most):
        try:
            take(tenant, actor)
        except RateLimited:
            return count
    return most


def pass_time(tenant: Tenant, seconds: float) -> None:
    with tenant_scope(tenant.pk):
        RateBucket.objects.update(updated_at=F("updated_at") - timedelta(seconds=seconds))


def test_nothing_is_limited_or_stored_without_limits(cast: Cast):
    assert take(cast.tenant, cast.actor("member")) is None
    with tenant_scope(cast.tenant.pk):
        assert not RateBucket.objects.exists()


def test_bucket_holds_its_burst_and_is_refilled_at_its_rate(cast: Cast):
    limit(cast.tenant, "member", 60, 5)
    actor = cast.actor("member")
    assert take(cast.tenant, actor) == RateState("member", 60, 4, 1, 0)
    assert granted(cast.tenant, actor) == 4
    pass_time(cast.tenant, 2.1)
    assert granted(cast.tenant, actor) == 2
    pass_time(cast.tenant, 3600)
    assert granted(cast.tenant, actor) == 5


def test_refusal_says_what_is_left_and_when(cast: Cast):
    limit(cast.tenant, "member", 6, 1)
    actor = cast.actor("member")
    take(cast.tenant, actor)
    with pytest.raises(RateLimited) as refused:
        take(cast.tenant, actor)
    assert refused.value.status == 429
    assert refused.value.data == {
        "scope": "member",
        "limit": 6,
        "remaining": 0,
        "reset": 10,
        "retry_after": 10,
    }


def test_each_caller_has_a_bucket_and_a_refused_one_takes_nothing_from_the_workspace(cast: Cast):
    limit(cast.tenant, "member", 1, 2)
    limit(cast.tenant, "tenant", 1, 5)
    assert granted(cast.tenant, cast.actor("member")) == 2
    assert granted(cast.tenant, cast.actor("viewer")) == 2
    with pytest.raises(RateLimited):
        take(cast.tenant, cast.actor("member"))
    assert granted(cast.tenant, cast.actor("admin")) == 1  # the fifth of the workspace
    with pytest.raises(RateLimited, match="This workspace"):
        take(cast.tenant, cast.actor("owner"))


def test_narrower_limit_wins_over_that_of_all(cast: Cast):
    limit(cast.tenant, "member", 60, 1)
    limit(cast.tenant, "member", 60, 3, user=cast.user("owner"))
    assert granted(cast.tenant, cast.actor("owner")) == 3
    assert granted(cast.tenant, cast.actor("member")) == 1


def test_limits_of_keys_and_of_other_tenants_do_not_touch_members(cast: Cast):
    limit(cast.tenant, "key", 60, 1)
    limit(cast.other_tenant, "tenant", 60, 1)
    assert take(cast.tenant, cast.actor("member")) is None


def test_workspace_cannot_raise_the_operators_limit(cast: Cast, settings: Any):
    settings.TENANT_RATE_PER_MINUTE = 12
    limit(cast.tenant, "tenant", 6000, 6000)
    assert granted(cast.tenant, cast.actor("member")) == 2
    with tenant_scope(cast.tenant.pk):
        RateLimit.objects.update(per_minute=6, burst=1)
        RateBucket.objects.all().delete()
    assert granted(cast.tenant, cast.actor("member")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "tenant", "per_minute": 0, "burst": 1},
        {"kind": "tenant", "per_minute": 1, "burst": 0},
        {"kind": "tenant", "per_minute": 1, "burst": 1, "user": True},
        {"kind": "key", "per_minute": 1, "burst": 1, "user": True},
    ],
)
def test_limit_that_makes_no_sense_is_refused(cast: Cast, wrong: dict[str, Any]):
    if wrong.get("user"):
        wrong = wrong | {"user": cast.user("owner")}
    with tenant_scope(cast.tenant.pk), pytest.raises(IntegrityError), transaction.atomic():
        RateLimit.objects.create(tenant=cast.tenant, **wrong)


@pytest.mark.django_db(transaction=True)
def test_concurrent_callers_never_overdraw_a_bucket():
    tenant = make_tenant()
    limit(tenant, "member", 1, 20)
    limit(tenant, "tenant", 1, 30)
    allowed: list[int] = []

    def call(number: int) -> None:
        allowed.append(granted(tenant, person(number % 2)))
        connections.close_all()

    threads = [threading.Thread(target=call, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(allowed) == 30


@pytest.mark.django_db(transaction=True)
def test_request_costs_one_statement():
    tenant = make_tenant()
    limit(tenant, "member", 1_000_000, 1_000_000)
    limit(tenant, "tenant", 1_000_000, 1_000_000)
    with tenant_scope(tenant.pk):
        rate_take(tenant=tenant, actor=person(1))
        with statements_noted() as sent:
            rate_take(tenant=tenant, actor=person(1))
    assert len(sent) == 1, sent


@pytest.mark.django_db
def test_buckets_are_unlogged():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE oid = 'tenancy_ratebucket'::regclass")
        assert cursor.fetchone()[0] == "u"


# --- at the edge -------------------------------------------------------------------------------


@pytest.mark.django_db
def test_key_over_its_limit_gets_429_with_everything_a_client_needs():
    side = Side()
    client = key_client(side, sorted(KEY_SCOPES))
    with tenant_scope(side.tenant.pk):
        key = ApiKey.objects.get()
    limit(side.tenant, "key", 6, 2, api_key=key)
    first, second, third = (client.get(ME) for _ in range(3))
    assert [r.status_code for r in (first, second, third)] == [200, 200, 429]
    assert [r["RateLimit-Remaining"] for r in (first, second, third)] == ["1", "0", "0"]
    assert {r["RateLimit-Limit"] for r in (first, second, third)} == {"6"}
    assert int(first["RateLimit-Reset"]) == 10
    assert "Retry-After" not in first
    assert_error(third, 429)
    assert third.json()["code"] == "rate_limited"
    assert third.json()["details"]["scope"] == "key"
    assert third["Retry-After"] == str(third.json()["details"]["retry_after"])
    assert 1 <= int(third["Retry-After"]) <= 10
    assert key_client(side, sorted(KEY_SCOPES)).get(ME).status_code == 200


@pytest.mark.django_db
def test_session_is_limited_as_its_member_and_refused_calls_count():
    side = Side()
    limit(side.tenant, "member", 1, 2)
    client = signed_in(side, "viewer")
    headers = {"X-Tenant": side.tenant.slug}
    statuses = [client.get("/api/v1/members", headers=headers).status_code for _ in range(3)]
    assert statuses == [403, 403, 429]
    assert Client().get(ME).status_code == 401
