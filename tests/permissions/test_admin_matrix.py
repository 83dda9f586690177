"""The Django admin: each page of each registered model, from every side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.admin.filters import RelatedFieldListFilter
from django.db import models
from django.template import Context, Engine
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import reverse

from tenancy.admin_scope import JournalAdmin, TenantScopedAdmin
from tenancy.models import AuditEvent, Membership, Tenant, TenantModel, User
from tenancy.scope import platform_scope, tenant_scope
from tests.factories import make_member, make_tenant, make_user
from tests.markup import flat
from tests.permissions.rows import ADMIN_SITE
from tests.permissions.test_matrix import signed_in
from tests.permissions.urls import all_urls
from tests.permissions.visitor import Visitor
from tests.permissions.walking import each_page
from tests.permissions.world import Side

REGISTRY: dict[type[models.Model], Any] = dict(admin.site._registry)
SCOPED = [m for m, page in REGISTRY.items() if isinstance(page, TenantScopedAdmin)]
OF_THE_OPERATOR = [m for m in REGISTRY if m not in SCOPED]
PAGES = ("change", "delete", "history")


def url(model: type[models.Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def label(model: type[models.Model]) -> str:
    return model._meta.label


@pytest.fixture
def mine(db: None) -> Side:
    return Side()


@pytest.fixture
def theirs(db: None) -> Side:
    return Side()


@pytest.fixture
def superuser(db: None) -> Client:
    client = Visitor()
    client.force_login(
        User.objects.create_superuser("root@example.org", "secret-password"),
        "django.contrib.auth.backends.ModelBackend",
    )
    return client


def row_of(side: Side, model: type[models.Model]) -> Any:
    return side.row(model._meta.label, "owner")


def test_every_admin_url_is_of_a_known_kind():
    """Pages of models are driven below; anything else must be listed in rows/site.py."""
    known = set(ADMIN_SITE)
    for model in REGISTRY:
        stem = f"admin:{model._meta.app_label}_{model._meta.model_name}_"
        known |= {stem + page for page in ("changelist", "add", *PAGES)}
    known |= {"admin:auth_user_password_change", "admin:tenancy_user_password_change"}
    found = {name for name, _ in all_urls() if name.startswith("admin:")}
    assert sorted(found - known) == []


def test_admin_of_a_tenant_table_is_scoped(subtests: pytest.Subtests):
    for model, page in REGISTRY.items():
        if not issubclass(model, TenantModel):
            continue
        with subtests.test(label(model)):
            assert isinstance(page, TenantScopedAdmin)
            for inline in page.inlines:
                assert hasattr(inline, "owner_may"), f"{inline.__name__} must be a TenantScopedInline"


def _list_filters() -> Iterator[tuple[type[models.Model], Any]]:
    for model in SCOPED:
        for entry in REGISTRY[model].list_filter:
            yield model, entry


def test_no_list_filter_lists_people_of_other_tenants():
    """A plain filter over a shared table shows all its rows, however the page itself is limited."""
    for model, entry in _list_filters():
        if isinstance(entry, str) and "__" not in entry:
            field = model._meta.get_field(entry)
            assert not (field.is_relation and field.related_model is User), f"{label(model)}: {entry}"
        elif isinstance(entry, tuple):
            assert entry[1] is not RelatedFieldListFilter


# --- who may come in ---------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
def test_admin_is_closed_to_everyone_below_owner(role: str, mine: Side):
    response = signed_in(mine, role).get(reverse("admin:index"), follow=True)
    assert response.status_code == 403


@each_page("model", REGISTRY)
def test_strangers_are_sent_to_the_one_sign_in_page(model: type[models.Model], mine: Side):
    ident = 1 if model not in SCOPED else row_of(mine, model).pk
    for address in (url(model, "changelist"), *(url(model, p, ident) for p in PAGES)):
        response = Visitor().get(address)
        assert response.status_code == 302, address
        assert response["Location"].startswith(reverse("admin:login")), address
    # The admin's own sign-in leads on, from each page alike; the one that it leads to is not asked for 200 times.
    response = Visitor().get(response["Location"])
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))


@each_page("model", OF_THE_OPERATOR)
def test_owner_is_refused_what_is_the_operators(model: type[models.Model], mine: Side):
    client = signed_in(mine, "owner")
    assert client.get(url(model, "changelist")).status_code == 403


# --- one workspace for its owner -----------------------------------------------------------------


@each_page("model", SCOPED)
def test_owner_sees_own_rows_and_no_others(model: type[models.Model], mine: Side, theirs: Side):
    own, foreign = row_of(mine, model), row_of(theirs, model)
    response = signed_in(mine, "owner").get(url(model, "changelist"))
    assert response.status_code == 200
    listed = {row.pk for row in response.context["cl"].result_list}
    assert own.pk in listed
    assert foreign.pk not in listed
    assert theirs.tenant.slug not in response.content.decode()


@each_page("model,page", [(model, page) for model in SCOPED for page in PAGES])
def test_row_of_another_tenant_does_not_exist(model: type[models.Model], page: str, mine: Side, theirs: Side):
    client = signed_in(mine, "owner")
    assert client.get(url(model, page, row_of(theirs, model).pk)).status_code == 404
    assert client.post(url(model, page, row_of(theirs, model).pk), {"post": "yes"}).status_code in {404, 405}


@each_page("model", SCOPED)
def test_owner_opens_own_rows(model: type[models.Model], mine: Side):
    client, ident = signed_in(mine, "owner"), row_of(mine, model).pk
    assert client.get(url(model, "change", ident)).status_code == 200
    assert client.get(url(model, "history", ident)).status_code == 200
    may = REGISTRY[model].owner_may
    assert client.get(url(model, "delete", ident)).status_code == (200 if _may(model, "delete") else 403)
    assert client.get(url(model, "add")).status_code == (200 if _may(model, "add") else 403)
    assert "view" in may


def _may(model: type[models.Model], what: str) -> bool:
    page = REGISTRY[model]
    if isinstance(page, JournalAdmin) or (model is Tenant and what == "delete"):
        return False
    return what in page.owner_may


@each_page("model", SCOPED)
def test_superuser_sees_every_tenants_rows(
    model: type[models.Model], mine: Side, theirs: Side, superuser: Client
):
    own, foreign = row_of(mine, model), row_of(theirs, model)
    response = superuser.get(url(model, "changelist"))
    assert response.status_code == 200
    listed = {row.pk for row in response.context["cl"].result_list}
    assert {own.pk, foreign.pk} <= listed
    assert superuser.get(url(model, "change", own.pk)).status_code == 200


@each_page("model", [m for m in SCOPED if isinstance(REGISTRY[m], JournalAdmin)])
def test_journal_is_read_only_even_for_superusers(model: type[models.Model], mine: Side, superuser: Client):
    ident = row_of(mine, model).pk
    assert superuser.get(url(model, "add")).status_code == 403
    assert superuser.post(url(model, "delete", ident), {"post": "yes"}).status_code == 403
    assert superuser.post(url(model, "change", ident), {}).status_code == 403
    response = superuser.post(
        url(model, "changelist"), {"action": "delete_selected", "_selected_action": ident, "post": "yes"}
    )
    assert response.status_code in {200, 302}
    with platform_scope():
        assert model._base_manager.filter(pk=ident).exists()


@each_page("model", [m for m in SCOPED if REGISTRY[m].search_fields])
def test_search_runs(model: type[models.Model], mine: Side):
    row_of(mine, model)
    response = signed_in(mine, "owner").get(url(model, "changelist"), {"q": "1"})
    assert response.status_code == 200


def test_autocompletion_offers_own_rows_only(mine: Side, theirs: Side):
    everyone, _ = mine.people.everyone(), theirs.people.everyone()
    client = signed_in(mine, "owner")
    response = client.get(
        reverse("admin:autocomplete"),
        {"app_label": "tenancy", "model_name": "membership", "field_name": "user", "term": ""},
    )
    assert response.status_code == 200
    offered = {int(r["id"]) for r in response.json()["results"]}
    assert offered == {m.user_id for m in everyone}


# --- rules and secrets ---------------------------------------------------------------------------


def test_owner_of_several_chooses_one_and_only_of_their_own(mine: Side, theirs: Side):
    second = make_tenant()
    make_member(second, "owner", mine.user("owner"))
    client = signed_in(mine, "owner")
    switch = reverse("admin:switch_tenant")
    assert client.post(switch, {"tenant": theirs.tenant.pk}).status_code == 404
    assert client.post(switch, {"tenant": "x"}).status_code == 404
    assert client.post(switch, {"tenant": second.pk}).status_code == 302
    assert client.get(reverse("admin:index")).context["admin_tenant"] == second
    # The choice is worth nothing once the membership is gone.
    with tenant_scope(second.pk):
        Membership.objects.filter(user=mine.user("owner")).update(role="admin")
    assert client.get(reverse("admin:index")).context["admin_tenant"] == mine.tenant


def test_last_owner_stays_in_the_admin_too(mine: Side):
    client, row = signed_in(mine, "owner"), mine.people["owner"]
    response = client.post(url(Membership, "change", row.pk), {"role": "viewer"}, follow=True)
    assert "only owner" in response.content.decode()
    client.post(url(Membership, "delete", row.pk), {"post": "yes"})
    with tenant_scope(mine.tenant.pk):
        assert Membership.objects.get(pk=row.pk).role == "owner"


def test_role_change_in_the_admin_is_audited_as_everywhere(mine: Side):
    row = mine.people["viewer"]
    response = signed_in(mine, "owner").post(url(Membership, "change", row.pk), {"role": "member"})
    assert response.status_code == 302
    with tenant_scope(mine.tenant.pk):
        assert Membership.objects.get(pk=row.pk).role == "member"
        assert "member.role_change" in AuditEvent.objects.values_list("action", flat=True)


def test_owner_cannot_make_themselves_operator(mine: Side):
    client, user = signed_in(mine, "owner"), mine.user("owner")
    for address in (url(User, "change", user.pk), url(User, "add")):
        client.post(address, {"email": user.email, "is_superuser": "on", "is_staff": "on"})
    user.refresh_from_db()
    assert not user.is_superuser
    assert client.get(f"{url(User, 'changelist')}?is_superuser__exact=1").status_code in {200, 302, 400}


@pytest.mark.parametrize(
    ("model", "field"),
    [("ApiKey", "secret_sha256"), ("Invite", "token_sha256"), ("ProviderCredential", "secret_encrypted")],
)
def test_secret_columns_are_neither_shown_nor_searchable(
    model: str, field: str, mine: Side, superuser: Client
):
    row = mine.row(f"tenancy.{model}", "owner")
    kept = getattr(row, field)
    for client in (superuser, signed_in(mine, "owner")):
        page = client.get(url(type(row), "change", row.pk)).content.decode()
        assert field not in page
        assert isinstance(kept, bytes) or kept not in page
        refused = client.get(url(type(row), "changelist"), {f"{field}__startswith": "a"})
        assert refused.status_code == 400


def test_superuser_cannot_move_a_row_to_another_tenant(mine: Side, theirs: Side, superuser: Client):
    row = mine.people["viewer"]
    superuser.post(url(Membership, "change", row.pk), {"role": "member", "tenant": theirs.tenant.pk})
    with platform_scope():
        assert Membership.objects.get(pk=row.pk).tenant_id == mine.tenant.pk


def test_superuser_adds_a_member_by_the_rules(mine: Side, superuser: Client):
    person = make_user()
    data = {"tenant": mine.tenant.pk, "user": person.pk, "role": "admin"}
    response = superuser.post(url(Membership, "add"), data)
    assert response.status_code == 302
    with tenant_scope(mine.tenant.pk):
        assert Membership.objects.get(user=person).role == "admin"
        event = AuditEvent.objects.get(action="member.add")
    assert event.actor_name == "root@example.org"


def test_admin_page_keeps_the_strict_policy(mine: Side, superuser: Client):
    response = superuser.get(url(Membership, "changelist"))
    policy = response["Content-Security-Policy"]
    assert "unsafe" not in policy
    body = response.content.decode()
    for forbidden in (" style=", "<style", " onclick=", "javascript:"):
        assert forbidden not in body


@pytest.mark.parametrize("who", ["operator", "owner", "nobody"])
def test_list_of_apps_is_the_one_django_makes(who: str, mine: Side, superuser: Client):
    """Ours looks the addresses up once, and its template asks once for what is the same for every model."""
    request = RequestFactory().get("/admin/tenancy/membership/")
    request.user = User.objects.get(is_superuser=True) if who == "operator" else mine.user("owner")
    request.admin_tenant = mine.tenant if who == "owner" else None  # type: ignore[attr-defined]
    for label_ in (None, "tenancy", "no_such_app"):
        made = cast("Any", admin.site).apps_listed(request, label_)
        assert made == AdminSite.get_app_list(admin.site, request, label_)
        assert bool(made) == (who != "nobody" and label_ != "no_such_app")
    name = "admin/app_list.html"
    engine = Engine(
        [str(Path(admin.__file__).parent / "templates")], libraries={"i18n": "django.templatetags.i18n"}
    )
    template = engine.get_template(name)
    for shown in (True, False):
        context = {
            "app_list": admin.site.get_app_list(request),
            "show_changelinks": shown,
            "request": request,
        }
        assert flat(render_to_string(name, context)) == flat(template.render(Context(context)))
