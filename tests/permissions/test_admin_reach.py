"""Whatever an admin page can do, it does to the rows of its own workspace: tried for every registered page from outside.

The pages are found, not listed: a newly registered admin, a new action, a new inline, a new field with autocompletion is
tried without further work, and a new URL of its own fails until it is named in ``OWN_PAGES`` with how to call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import RequestFactory
from django.urls import reverse

from tenancy.admin_scope import TenantScopedAdmin
from tenancy.models import AuditEvent, Membership, Tenant, TenantModel, User
from tenancy.scope import platform_scope, tenant_scope
from tests.permissions.test_admin_matrix import REGISTRY, SCOPED, label, row_of, url
from tests.permissions.test_matrix import signed_in
from tests.permissions.visitor import Visitor
from tests.permissions.walking import each_page
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db
OF_TENANTS = [m for m in SCOPED if issubclass(m, TenantModel)]
STANDARD = {"changelist", "add", "change", "delete", "history"}


def _ids(side: Side, label: str) -> str:
    return str(side.row(label, "owner").pk)


def _event(side: Side) -> int:
    """Return a change of the side that could be brought back."""
    with tenant_scope(side.tenant.pk):
        return AuditEvent.objects.create(
            tenant=side.tenant,
            actor_kind="user",
            action="tool_entry.set",
            object_type="tools.toolentry",
            object_name="mine",
            data={"before": None, "after": {"name": "mine"}},
        ).pk


def _tenant(side: Side) -> str:
    return f"?tenant={side.tenant.pk}"


# Pages beside those of rows: how one that is about a side's rows is addressed, what is sent, and whether its address
# names rows (which must not exist for others) or a workspace (which must be ignored for an owner).
OwnPage = tuple[Callable[[Side], str], dict[str, Any], bool]
OWN_PAGES: dict[str, OwnPage] = {
    "collections_check": (lambda s: f"?ids={_ids(s, 'collections.Collection')}", {}, True),
    "tools_exchange": (_tenant, {"step": "export", "form": "json"}, False),
    "tools_matrix": (_tenant, {"row": "tool|calculate", "column": "role:viewer", "effect": "deny"}, False),
    "tools_decide": (lambda s: f"?do=reject&ids={_ids(s, 'tools.ToolVersion')}", {}, True),
    "tools_run_tests": (lambda s: f"?ids={_ids(s, 'tools.ContractTest')}", {}, True),
    **{
        f"tools_{m}_changes": (_tenant, {}, False)
        for m in ("toolentry", "toolkit", "toolgrant", "toolsource")
    },
}
RESTORE = {f"tools_{m}_restore" for m in ("toolentry", "toolkit", "toolgrant", "toolsource")}


def kept(tenant: Tenant) -> list[tuple[str, str]]:
    """Return every row of a workspace, of every table, but for the audit trail of its own doings."""
    with platform_scope(), connection.cursor() as cursor:
        # Prepared, as this walk asks for it by the hundred: making its plan takes Postgres thirty times as long as
        # carrying it out.
        cursor.execute("SELECT FROM pg_prepared_statements WHERE name = 'kept'")
        if not cursor.fetchall():
            cursor.execute(f"PREPARE kept (bigint) AS {_rows_statement()}")
        cursor.execute("EXECUTE kept (%s)", [tenant.pk])
        return [(str(model), str(row)) for model, row in cursor.fetchall()]


@cache
def _rows_statement() -> str:
    """Return the statement that gives (model, row as text) of a workspace, $1: asked one by one, tables cost most of a test."""
    parts = []
    for model in REGISTRY:
        if issubclass(model, TenantModel):
            columns = ", ".join(
                f'"{f.column}"' for f in model._meta.concrete_fields if f.name != "last_used_at"
            )
            rows = f'SELECT {columns} FROM "{model._meta.db_table}" WHERE tenant_id = $1'
            parts.append(f"SELECT '{label(model)}' AS model, one::text AS row FROM ({rows}) one")
    return " UNION ALL ".join(parts) + " ORDER BY model, row"


@pytest.fixture
def mine(db: None) -> Side:
    return Side()


@pytest.fixture
def theirs(db: None) -> Side:
    return Side()


def actions_of(model: type[models.Model]) -> list[str]:
    page = REGISTRY[model]
    return [a if isinstance(a, str) else a.__name__ for a in page.actions or ()]


def _actions() -> Iterator[Any]:
    for model in SCOPED:
        for action in ("delete_selected", *actions_of(model)):
            yield model, action


@each_page("model,action", list(_actions()))
def test_action_on_a_row_of_another_workspace_does_nothing(
    model: type[models.Model], action: str, mine: Side, theirs: Side
) -> None:
    row_of(mine, model)
    foreign = row_of(theirs, model)
    before = kept(theirs.tenant)
    client = signed_in(mine, "owner")
    data = {"action": action, "_selected_action": [foreign.pk], "post": "yes"}
    response = client.post(url(model, "changelist"), data)
    assert response.status_code in {200, 302, 403}
    assert kept(theirs.tenant) == before
    denied = signed_in(mine, "member").post(url(model, "changelist"), data)
    assert denied.status_code in {302, 403}


@each_page("model,action", list(_actions()))
def test_action_on_own_rows_is_answered(
    model: type[models.Model], action: str, mine: Side, theirs: Side
) -> None:
    """All rows of the list at once, which is how an action could reach beyond its workspace."""
    own = row_of(mine, model)
    row_of(theirs, model)
    before = kept(theirs.tenant)
    data = {"action": action, "_selected_action": [own.pk], "select_across": "1", "index": "0", "post": "yes"}
    response = signed_in(mine, "owner").post(url(model, "changelist"), data)
    assert response.status_code in {200, 302, 403}
    assert kept(theirs.tenant) == before


def _autocompletes() -> Iterator[Any]:
    for model in SCOPED:
        for page in (REGISTRY[model], *REGISTRY[model].inlines):
            for field in page.autocomplete_fields:
                yield (model if page is REGISTRY[model] else page.model), field


@each_page("model,field", list(_autocompletes()))
def test_autocompletion_of_every_field_offers_own_rows_only(
    model: type[models.Model], field: str, mine: Side, theirs: Side
) -> None:
    target: Any = model._meta.get_field(field).related_model
    foreign = row_of(theirs, target)
    asked = {
        "app_label": model._meta.app_label,
        "model_name": str(model._meta.model_name),
        "field_name": field,
        "term": "",
    }
    answer = signed_in(mine, "owner").get(reverse("admin:autocomplete"), asked)
    if answer.status_code == 403:
        return
    ids = {r["id"] for r in answer.json()["results"]}
    if target is User:
        with tenant_scope(mine.tenant.pk):
            assert ids == {str(pk) for pk in Membership.objects.values_list("user_id", flat=True)}
    else:
        assert str(foreign.pk) not in ids
    member = signed_in(mine, "member").get(reverse("admin:autocomplete"), asked)
    assert member.status_code in {302, 403}


@each_page("model", OF_TENANTS)
def test_new_row_lands_in_the_own_workspace_or_nowhere(
    model: type[models.Model], mine: Side, theirs: Side
) -> None:
    """Every reference of the form names a row of the other workspace, the tenant too."""
    foreign = row_of(theirs, model)
    own = row_of(mine, model)
    before = kept(theirs.tenant)
    data: dict[str, Any] = {"tenant": theirs.tenant.pk, "tenant_id": theirs.tenant.pk}
    for field in model._meta.concrete_fields:
        value = getattr(foreign, field.attname)
        if value is not None and field.name not in ("tenant", "id"):
            data[field.name] = value if isinstance(value, str | int | bool) else str(value)
    for inline in REGISTRY[model].inlines:
        prefix = inline.model._meta.get_field(_fk(inline.model, model)).remote_field.get_accessor_name()
        data |= {f"{prefix}-TOTAL_FORMS": "0", f"{prefix}-INITIAL_FORMS": "0"}
    client = signed_in(mine, "owner")
    for address in (url(model, "add"), url(model, "change", own.pk)):
        assert client.post(address, data).status_code in {200, 302, 403}
    assert client.post(url(model, "change", foreign.pk), data).status_code == 404
    assert kept(theirs.tenant) == before
    with platform_scope():
        row: Any = model._base_manager.filter(pk=own.pk).first()
        assert row is None or row.tenant_id == mine.tenant.pk


def _fk(model: type[models.Model], parent: type[models.Model]) -> str:
    return next(f.name for f in model._meta.local_fields if f.related_model is parent)


def _inlines() -> Iterator[Any]:
    for model in SCOPED:
        for inline in REGISTRY[model].inlines:
            yield model, inline


@each_page("model,inline", list(_inlines()))
def test_inline_neither_shows_nor_takes_rows_of_another_workspace(
    model: type[models.Model], inline: Any, mine: Side, theirs: Side
) -> None:
    own, foreign = row_of(mine, model), theirs.row(inline.model._meta.label, "owner")
    before = kept(theirs.tenant)
    request = RequestFactory().get("/admin/")
    request.user, request.admin_tenant = mine.user("owner"), mine.tenant  # type: ignore[attr-defined]
    with tenant_scope(mine.tenant.pk):
        shown = inline(model, admin.site).get_queryset(request)
        assert not shown.filter(pk=foreign.pk).exists()
    name = _fk(inline.model, model)
    prefix = inline.model._meta.get_field(name).remote_field.get_accessor_name()
    for change in ({f"{prefix}-0-DELETE": "on"}, {f"{prefix}-0-{name}": own.pk}):
        data = {
            f"{prefix}-TOTAL_FORMS": "1",
            f"{prefix}-INITIAL_FORMS": "1",
            f"{prefix}-0-id": foreign.pk,
            **change,
        }
        assert signed_in(mine, "owner").post(url(model, "change", own.pk), data).status_code in {
            200,
            302,
            403,
        }
    assert kept(theirs.tenant) == before


def _own_urls() -> set[str]:
    """Return the names of URLs that admins add to the standard ones."""
    found = set()
    for model, page in REGISTRY.items():
        stem = f"{model._meta.app_label}_{model._meta.model_name}_"
        known = {stem + name for name in STANDARD}
        for pattern in page.get_urls():
            name = getattr(pattern, "name", None)
            if name and name not in known and name != "auth_user_password_change":
                found.add(name)
    return found


def test_every_page_of_its_own_is_tried_here() -> None:
    assert sorted(_own_urls() - set(OWN_PAGES) - RESTORE - {"tenancy_user_password_change"}) == []


@pytest.mark.parametrize("name", sorted(OWN_PAGES))
def test_page_of_its_own_reaches_only_its_workspace(name: str, mine: Side, theirs: Side) -> None:
    address, data, names_rows = OWN_PAGES[name]
    foreign = reverse(f"admin:{name}") + address(theirs)
    before = kept(theirs.tenant)
    owner = signed_in(mine, "owner")
    answers = [owner.get(foreign), owner.post(foreign, {**data, "tenant": theirs.tenant.pk})]
    for answer in answers:
        assert answer.status_code == 404 if names_rows else answer.status_code in {200, 302}
        assert theirs.tenant.slug not in answer.content.decode()
    assert kept(theirs.tenant) == before
    own = reverse(f"admin:{name}") + address(mine)
    assert owner.get(own).status_code == 200
    for role in ("admin", "member", "viewer"):
        person = signed_in(mine, role)
        assert person.get(own, follow=True).status_code == 403
        assert person.post(own, data).status_code in {302, 403}
    assert Visitor().get(own).status_code == 302
    root = Visitor()
    root.force_login(
        User.objects.create_superuser("root@example.org", "secret-password"),
        "django.contrib.auth.backends.ModelBackend",
    )
    for side in (mine, theirs):
        assert root.get(reverse(f"admin:{name}") + address(side)).status_code == 200


@pytest.mark.parametrize("name", sorted(RESTORE))
def test_change_of_another_workspace_is_not_brought_back(name: str, mine: Side, theirs: Side) -> None:
    event = _event(theirs)
    before = kept(theirs.tenant)
    address = reverse(f"admin:{name}", args=[event])
    for role, status in (("owner", {404}), ("member", {302, 403})):
        client = signed_in(mine, role)
        assert client.get(address).status_code in status
        assert client.post(address).status_code in status
    assert kept(theirs.tenant) == before


def test_every_page_that_the_site_has_is_tried_by_a_scoped_class() -> None:
    """What is not scoped is the operator's alone; ``test_admin_matrix.py`` proves that of each."""
    for model, page in REGISTRY.items():
        assert isinstance(page, TenantScopedAdmin) or not issubclass(model, TenantModel)
        for inline in page.inlines:
            assert hasattr(inline, "owner_may")
