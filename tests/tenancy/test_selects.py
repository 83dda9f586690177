"""SELECTs whose columns are kept say what Django would write each time."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.models import Count, Exists, F, OuterRef, Q, Value

from tenancy.database import selects
from tenancy.database.selects import KeptSelects
from tenancy.models import Membership, User
from tenancy.scope import tenant_scope
from tests.cast import Cast

OWN = ("get_select", "get_converters", "get_default_columns", "_order_by_pairs", "compile")


def asked_in_each_way(model: type[models.Model]) -> list[models.QuerySet[Any]]:
    """Return querysets over a model: what changes columns, their aliases or their order."""
    rows = model._default_manager.all()
    names = [f.name for f in model._meta.concrete_fields]
    some = {f"{names[-1]}__isnull": False}
    others = [f.name for f in model._meta.concrete_fields if f.is_relation and f.name != "tenant"]
    found = [
        rows,
        rows.order_by("pk"),
        rows.order_by("-pk")[:1],
        rows.reverse(),
        rows.order_by(F(names[-1]).desc(nulls_last=True), "pk"),
        rows.only("pk", names[-1]),
        rows.defer(names[-1]),
        rows.filter(pk__in=rows.filter(**some)),
        rows.filter(Exists(rows.filter(pk=OuterRef("pk")))),
        rows.annotate(counted_rows=Count("*")).order_by("counted_rows"),
        rows.extra(select={"extra_one": "1"}),
        rows.values("pk", names[-1]),
        rows.values_list("pk", flat=True).order_by("pk"),
        rows.distinct().order_by("pk"),
        rows.filter(**some).union(rows),
        rows.select_for_update(no_key=True, of=("self",)).filter(**some),
    ]
    for name in others:
        found += [
            rows.select_related(name),
            rows.select_related(name).order_by(f"{name}__pk", "pk"),
            rows.filter(**{f"{name}__isnull": False}).select_related(name).only("pk", name),
            rows.order_by(name),
        ]
    return found


def written(asked: models.QuerySet[Any]) -> tuple[Any, ...]:
    """Return a statement, its values, and which columns are converted."""
    compiler = asked.query.get_compiler(connection=connection)
    text, values = compiler.as_sql()
    converters = compiler.get_converters([one[0] for one in compiler.select[: compiler.col_count]])
    info = compiler.klass_info and (compiler.klass_info["model"], compiler.klass_info["select_fields"])
    return text, values, sorted(converters), info, compiler.annotation_col_map


@pytest.mark.django_db
def test_statements_are_those_that_django_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selects, "_kept", {})
    monkeypatch.setattr(selects, "_related", {})
    every = [model for model in apps.get_models() if not model._meta.proxy]
    assert len(every) > 90
    with tenant_scope(7):
        ours = [[written(asked) for asked in asked_in_each_way(model)] for model in every for _ in range(2)]
        assert selects._kept
        assert selects._related
        for name in OWN:
            monkeypatch.delattr(KeptSelects, name)
        theirs = [[written(asked) for asked in asked_in_each_way(model)] for model in every]
    for number, django in enumerate(theirs):
        assert ours[2 * number : 2 * number + 2] == [django, django]


@pytest.mark.django_db
def test_a_condition_without_a_table_is_checked() -> None:
    assert Q(one__gt=0).check({"one": Value(1)})
    assert not Q(one__gt=0).check({"one": Value(-1)})


def test_rows_are_read_as_before(cast: Cast) -> None:
    owner = cast.user("owner")
    for _ in range(2):
        (person,) = User.objects.filter(pk=owner.pk)
        assert person.get_deferred_fields() == set()
        assert (person.email, person.is_staff, person.last_login) == (
            owner.email,
            owner.is_staff,
            owner.last_login,
        )
        assert User.objects.only("email").get(pk=owner.pk).get_deferred_fields() >= {"password"}
        with tenant_scope(cast.tenant.pk):
            (one,) = Membership.objects.select_related("user", "tenant").filter(user=owner)
            assert (one.user.email, one.tenant.slug, one.role) == (
                owner.email,
                cast.tenant.slug,
                cast.owner.role,
            )
