"""Who may call what: every row of the matrix from four sides, and every URL has a row."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tenancy.models import TenantQuerySet
from tenancy.permissions import KEY_SCOPES, ROLE_ACTIONS, rank
from tenancy.row_security import tenant_models
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.factories import actor_of
from tests.permissions.rows import ADMIN_SITE, KEYED, PERSONAL, PUBLIC, Row, room_of
from tests.permissions.rows import API as ALL_API
from tests.permissions.rows import PORTAL as ALL_PORTAL
from tests.permissions.urls import all_urls
from tests.permissions.visitor import Visitor
from tests.permissions.walking import each_row
from tests.permissions.world import Side
from tests.web.page_help import check_help

PORTAL = tuple(r for r in ALL_PORTAL if not r.is_stream)
API = tuple(r for r in ALL_API if not r.is_stream)
# One row of each room, for what is decided before any row's own code.
FIRST = tuple({room_of(r): r for r in reversed(API)}.values())
ROLES = sorted(ROLE_ACTIONS, key=rank)
NAMED = {name for name, _ in all_urls()}


@pytest.fixture
def mine(db: None) -> Side:
    return Side()


@pytest.fixture
def theirs(db: None) -> Side:
    return Side()


def least(action: str) -> str:
    """Return the lowest role that may do it."""
    return next(r for r in ROLES if not action or action in ROLE_ACTIONS[r])


def most_refused(action: str) -> str:
    """Return the highest role that may not do it, "" when everyone may."""
    return next((r for r in reversed(ROLES) if action and action not in ROLE_ACTIONS[r]), "")


def call(client: Client, row: Row, *, slug: str, ids: Side, role: str, **headers: Any) -> Any:
    """Change what must be changed first, and send the row's request."""
    if row.before is not None:
        row.before(ids, role)
    return ask(client, row, slug=slug, ids=ids, role=role, **headers)


def ask(client: Client, row: Row, *, slug: str, ids: Side, role: str, **headers: Any) -> Any:
    """Send the row's request: the URL in tenant ``slug``, ids and data of one side."""
    kwargs = url_arguments(row, slug=slug, ids=ids, role=role)
    data = dict(row.data(ids, role)) if row.data else {}
    is_upload = any(hasattr(v, "read") for v in data.values())
    options: dict[str, Any] = dict(headers)
    if row.url.startswith("api:") and row.method != "GET" and not is_upload:
        options["content_type"] = "application/json"
    send = getattr(client, row.method.lower())
    return send(reverse(row.url, kwargs=kwargs), data, **options)


def url_arguments(row: Row, *, slug: str, ids: Side, role: str) -> dict[str, Any]:
    """Return the URL's arguments: ids of one side's rows, in the tenant of that slug."""
    kwargs: dict[str, Any] = {k: ids.row(label, role).pk for k, label in row.ids.items()}
    kwargs |= {k: v(ids, role) if callable(v) else v for k, v in row.fixed.items()}
    return kwargs if row.url.startswith("api:") else kwargs | {"tenant_slug": slug}


def signed_in(side: Side, role: str) -> Client:
    """Return the browser of somebody signed in."""
    client = Visitor(raise_request_exception=False)
    client.cookies[settings.SESSION_COOKIE_NAME] = side.session(role)
    return client


def key_client(side: Side, scopes: list[str], role: str = "owner") -> Client:
    _, key = api_key_create(tenant=side.tenant, actor=actor_of(side.people[role]), name="k", scopes=scopes)
    return Visitor(raise_request_exception=False, headers={"Authorization": f"Bearer {key}"})


def assert_error(response: Any, status: int) -> None:
    """An API error has the one shape; the compatible addresses say it in OpenAI's words besides, under ``error``."""
    assert response.status_code == status, response.content[:300]
    assert set(response.json()) - {"error"} == {"code", "message", "details", "request_id"}
    assert response.json()["request_id"] == response["X-Request-ID"]


REFUSING = [r for r in PORTAL if most_refused(r.action)]
API_REFUSING = [r for r in API if most_refused(r.action)]


# --- every URL has a row -------------------------------------------------------------------------


def test_every_url_has_a_row():
    covered = {r.url for r in (*ALL_PORTAL, *ALL_API)} | set(PUBLIC) | set(PERSONAL) | set(KEYED)
    missing = sorted(
        f"{name}  {route}"
        for name, route in all_urls()
        if name not in covered and not name.startswith("admin:")
    )
    assert missing == [], "add rows to tests/permissions/rows"


def test_every_row_has_a_url():
    rows = {r.url for r in (*ALL_PORTAL, *ALL_API)} | set(PUBLIC) | set(PERSONAL) | set(KEYED) | ADMIN_SITE
    assert sorted(rows - NAMED) == []


def test_portal_and_api_urls_say_their_tenant():
    """Only the listed pages are outside a tenant."""
    for name, route in all_urls():
        if name in PUBLIC or name in PERSONAL or name.startswith("admin:"):
            continue
        expected = "api/v1/" if name.startswith("api:") else "t/<slug:tenant_slug>/"
        assert route.startswith(expected), name


# --- portal ------------------------------------------------------------------------------------


@each_row(PORTAL, of="mine", role=lambda row: least(row.action))
def test_portal_allows_the_lowest_role_with_the_right(row: Row, mine: Side):
    role = least(row.action)
    response = ask(signed_in(mine, role), row, slug=mine.tenant.slug, ids=mine, role=role)
    assert response.status_code == row.ok, response.content[:500]
    if row.method == "GET":
        check_help(row.url, response)


@each_row(REFUSING, of="mine", role=lambda row: most_refused(row.action))
def test_portal_refuses_the_highest_role_without_the_right(row: Row, mine: Side):
    role = most_refused(row.action)
    response = ask(signed_in(mine, role), row, slug=mine.tenant.slug, ids=mine, role=role)
    assert response.status_code == 403


@each_row(PORTAL, of="mine")
def test_portal_sends_strangers_to_sign_in(row: Row, mine: Side):
    slug = mine.tenant.slug
    response = ask(Visitor(), row, slug=slug, ids=mine, role="owner")
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))
    fragment = ask(Visitor(headers={"HX-Request": "true"}), row, slug=slug, ids=mine, role="owner")
    assert fragment.status_code == 401


@each_row(PORTAL, of="theirs")
def test_workspace_of_others_does_not_exist(row: Row, mine: Side, theirs: Side):
    """With the ids that are there; those of one's own workspace aren't in any case."""
    response = ask(signed_in(mine, "owner"), row, slug=theirs.tenant.slug, ids=theirs, role="owner")
    assert response.status_code == 404


@each_row([r for r in PORTAL if r.body_ids and not r.ids], of="theirs")
def test_ids_of_another_workspace_do_not_exist_in_what_is_sent(row: Row, mine: Side, theirs: Side):
    response = ask(signed_in(mine, "owner"), row, slug=mine.tenant.slug, ids=theirs, role="owner")
    assert response.status_code == row.body_ids


@each_row([r for r in PORTAL if r.ids], of="theirs")
def test_ids_of_another_workspace_look_like_those_that_never_were(row: Row, mine: Side, theirs: Side):
    """Nothing tells a foreign id from one that does not exist."""
    client, slug = signed_in(mine, "owner"), mine.tenant.slug
    foreign = ask(client, row, slug=slug, ids=theirs, role="owner")
    kwargs = url_arguments(row, slug=slug, ids=theirs, role="owner")
    kwargs |= dict.fromkeys(row.ids, 987_654_321)
    data = dict(row.data(mine, "owner")) if row.data else {}
    absent = getattr(client, row.method.lower())(reverse(row.url, kwargs=kwargs), data)
    assert absent.status_code == foreign.status_code == 404
    assert _plain(absent) == _plain(foreign)


def _plain(response: Any) -> str:
    return str(response.content.decode()).replace(response["X-Request-ID"], "")


_ONES_OWN = {"conversations.Conversation", "conversations.MemoryEntry"}
PRIVATE = [r for r in PORTAL if _ONES_OWN & set(r.ids.values())]


@each_row(PRIVATE, of="mine", role=lambda row: "member")
def test_conversation_or_note_of_a_colleague_does_not_exist(row: Row, mine: Side):
    response = ask(signed_in(mine, "owner"), row, slug=mine.tenant.slug, ids=mine, role="member")
    assert response.status_code == 404


# --- REST --------------------------------------------------------------------------------------


@each_row(API, of="mine")
def test_api_allows_a_key_with_just_the_scope(row: Row, mine: Side):
    """What no key may have a scope for is its people's: they are allowed when they are signed in."""
    response = _allowed_call(row, mine, ids=mine)
    assert response.status_code == row.ok, response.content[:500]


@each_row(API, of="mine")
def test_api_refuses_a_key_with_every_other_scope(row: Row, mine: Side):
    client = key_client(mine, sorted(KEY_SCOPES - {row.action}))
    assert_error(ask(client, row, slug="", ids=mine, role="owner"), 403)


@each_row(API_REFUSING, of="mine", role=lambda row: most_refused(row.action))
def test_api_refuses_a_session_whose_role_lacks_the_right(row: Row, mine: Side):
    role = most_refused(row.action)
    headers = {"X-Tenant": mine.tenant.slug}
    response = ask(signed_in(mine, role), row, slug="", ids=mine, role=role, headers=headers)
    assert_error(response, 403)


@each_row(API, of="mine")
def test_api_asks_strangers_for_a_key(row: Row, mine: Side):
    assert_asks_for_a_key(Visitor(), row, mine)


@each_row(FIRST, of="mine")
def test_api_takes_nothing_else_for_a_key(row: Row, mine: Side):
    for header in ("Bearer nonsense", "Basic eDp5"):
        assert_asks_for_a_key(Visitor(headers={"Authorization": header}), row, mine)


def assert_asks_for_a_key(client: Client, row: Row, side: Side) -> None:
    response = ask(client, row, slug="", ids=side, role="owner")
    assert_error(response, 401)
    assert response["WWW-Authenticate"] == "Bearer"


@each_row([r for r in API if r.ids or r.body_ids], of="theirs")
def test_api_ids_of_another_workspace_do_not_exist(row: Row, mine: Side, theirs: Side):
    response = _allowed_call(row, mine, ids=theirs)
    assert_error(response, 404 if row.ids else row.body_ids)


def _allowed_call(row: Row, side: Side, *, ids: Side) -> Any:
    """Send a row's request with a key that has just its scopes, or signed in where no key can have them."""
    if row.action in KEY_SCOPES:
        return ask(key_client(side, [row.action, *row.also]), row, slug="", ids=ids, role="owner")
    headers = {"X-Tenant": side.tenant.slug}
    return ask(signed_in(side, "owner"), row, slug="", ids=ids, role="owner", headers=headers)


@each_row(API, of="theirs")
def test_api_session_in_the_workspace_of_others_does_not_exist(row: Row, mine: Side, theirs: Side):
    headers = {"X-Tenant": theirs.tenant.slug}
    response = ask(signed_in(mine, "owner"), row, slug="", ids=theirs, role="owner", headers=headers)
    assert_error(response, 404)


@each_row(FIRST, of="mine")
def test_api_session_in_a_workspace_that_never_was_sees_the_same(row: Row, mine: Side):
    headers = {"X-Tenant": "no-such-workspace"}
    response = ask(signed_in(mine, "owner"), row, slug="", ids=mine, role="owner", headers=headers)
    assert_error(response, 404)


# --- what keys alone open -----------------------------------------------------------------------


@pytest.mark.parametrize("name", KEYED)
def test_keyed_url_is_open_to_the_workspaces_own_keys_alone(name: str, mine: Side, theirs: Side):
    def send(client: Client, side: Side) -> int:
        url, data = reverse(name, kwargs={"tenant_slug": side.tenant.slug}), KEYED[name]["data"]
        accept = {"Accept": "application/json"}
        status: int = client.post(url, data, content_type="application/json", headers=accept).status_code
        return status

    own = key_client(mine, ["run.read"])
    assert send(own, mine) == 200
    assert send(own, theirs) == 404
    for stranger in (Visitor(), signed_in(mine, "owner"), Visitor(headers={"Authorization": "Bearer x"})):
        assert send(stranger, mine) == 401


# --- public and personal pages -----------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.django_db
def test_public_page_is_open_and_shows_no_tenant(name: str, mine: Side):
    how = PUBLIC[name]
    response = Visitor().get(reverse(name, args=how.get("args"), kwargs=how.get("kwargs")))
    assert response.status_code in how.get("ok", (200,))
    assert mine.tenant.slug not in response.content.decode()


@pytest.mark.parametrize("name", PERSONAL)
@pytest.mark.django_db
def test_personal_page_needs_sign_in(name: str, mine: Side):
    how = PERSONAL[name]
    path = reverse(name, args=how.get("args"))
    anonymous = Visitor().get(path)
    assert anonymous.status_code == 302
    inside = signed_in(mine, "viewer").get(path)
    assert inside.status_code in how.get("ok", (200,)), inside.content[:300]
    check_help(name, inside)


# --- without the application's own filters -------------------------------------------------------


@pytest.fixture
def no_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the first net: every read of a tenant table starts from all rows."""
    seen: list[Any] = [TenantQuerySet]
    for cls in seen:
        seen += [c for c in cls.__subclasses__() if c not in seen]
        if "visible_to" in vars(cls):
            monkeypatch.setattr(cls, "visible_to", lambda self, actor: self.all())


@pytest.mark.usefixtures("no_filters")
@each_row([r for r in (*PORTAL, *API) if r.ids], of="theirs")
def test_database_refuses_what_a_forgotten_filter_would_show(row: Row, mine: Side, theirs: Side):
    if row.url.startswith("api:"):
        response = _allowed_call(row, mine, ids=theirs)
    else:
        client = signed_in(mine, "owner")
        response = ask(client, row, slug=mine.tenant.slug, ids=theirs, role="owner")
    assert response.status_code == 404


@pytest.mark.django_db
def test_no_model_shows_a_row_of_another_tenant(mine: Side, theirs: Side):
    """Raw ORM queries without any filter, for every tenant table, with a row of both sides in each."""
    for model in tenant_models():
        for side in (mine, theirs):
            side.row(model._meta.label, "owner")
        for inside, outside in ((mine, theirs), (theirs, mine)):
            with tenant_scope(inside.tenant.pk):
                seen = set(model._base_manager.values_list("tenant_id", flat=True))
                assert seen == {inside.tenant.pk}, model._meta.label
                assert not model._base_manager.filter(tenant_id=outside.tenant.pk).exists()
        assert not model._base_manager.exists(), f"{model._meta.label} shows rows without a scope"
