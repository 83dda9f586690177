"""Reads without the ORM, and the connection that is asked for no sign of life: neither may be told apart from Django's own."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.forms import model_to_dict

from runs.models import Run
from tenancy.database import base
from tenancy.database.columns import Columns
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tenancy.selectors import membership_find
from tests.cast import Cast
from tests.servers import database_url, wait_for


@pytest.mark.django_db
def test_columns_give_the_models_that_the_orm_gives(cast: Cast) -> None:
    run, member = Columns(Run, "r"), Columns(Membership, "m")
    with tenant_scope(cast.tenant.pk), connection.cursor() as cursor:
        stored = Run.objects.create(
            tenant=cast.tenant, kind="test", model="extractive", request={"a": [1, {"b": "é"}]}
        )
        cursor.execute(
            f"SELECT {run}, {member}, 'last' FROM runs_run r JOIN tenancy_membership m USING (tenant_id) "
            "WHERE r.id = %s AND m.id = %s",
            [stored.pk, cast.member.pk],
        )
        values = iter(cursor.fetchone())
        found, whose = run.take(values), member.take(values)
        assert next(values) == "last"
        assert model_to_dict(found) == model_to_dict(Run.objects.get(pk=stored.pk))
        assert model_to_dict(whose) == model_to_dict(cast.member)
        found.status = "running"
        found.save(update_fields=["status"])  # an UPDATE: it is known to be stored


@pytest.mark.django_db
def test_membership_of_an_inactive_or_foreign_workspace_is_not_found(cast: Cast) -> None:
    slug, member = cast.tenant.slug, cast.user("member")
    found = membership_find(user=member, slug=slug)
    assert found == cast.member
    assert found.tenant == cast.tenant
    assert membership_find(user=cast.user("outsider"), slug=slug) is None
    cast.tenant.is_active = False
    cast.tenant.save()
    assert membership_find(user=member, slug=slug) is None


@pytest.mark.django_db(transaction=True)
def test_only_a_connection_that_was_ended_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    line: Any = connections["default"]
    asked: list[str] = []
    usable = line.is_usable

    def is_usable() -> bool:
        asked.append("round trip")
        return bool(usable())

    def backend() -> int:
        line.close_if_unusable_or_obsolete()  # what begins a request, a job, a step of one
        with line.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    monkeypatch.setattr(base, "TRUSTED_S", 3600.0)  # however slow this machine is
    monkeypatch.setattr(line, "is_usable", is_usable)
    first = backend()
    monkeypatch.setattr(line, "health_check_enabled", True)
    assert backend() == first
    assert asked == []
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [first])
    wait_for(lambda: base._has_news(line.connection), what="the server's farewell")
    assert backend() != first
    assert asked == ["round trip"]
