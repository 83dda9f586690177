"""The endpoints of SCIM: /scim/v2/..., opened by a workspace's SCIM token and by nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import wraps
from typing import Any

import structlog
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from basics.errors import DomainError
from sso.models import ScimGroup, ScimGroupMember, ScimToken, ScimUser
from sso.people import provider_actor
from sso.scim import described, services
from sso.scim.errors import ScimError
from sso.scim.filters import filter_read, name_of
from sso.scim.patches import patched
from sso.scim.resources import (
    GROUP_COLUMNS,
    GROUP_NAMES,
    USER_COLUMNS,
    USER_NAMES,
    conditions,
    group_json,
    user_json,
    version_of,
)
from sso.scim.shapes import group_read, person_read
from tenancy import tokens
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)
_LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_TYPE = "application/scim+json"
_USUAL = 100
View = Callable[..., HttpResponse]


class _Call:
    """A request that a token has opened."""

    def __init__(self, request: HttpRequest, token: ScimToken) -> None:
        self.request = request
        self.tenant = token.tenant
        self.actor = provider_actor(token.tenant, f"SCIM {token.name}")
        path = reverse("scim:config").removesuffix("/ServiceProviderConfig")
        self.base = request.build_absolute_uri(path)

    def body(self) -> dict[str, Any]:
        try:
            said = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise ScimError(400, "The body isn't JSON.", "invalidSyntax") from None
        if not isinstance(said, dict):
            raise ScimError(400, "The body isn't a JSON object.", "invalidSyntax")
        if "\\u0000" in json.dumps(said):
            raise ScimError(400, "Text can't contain NUL.", "invalidValue")
        return said


def _opened(*methods: str) -> Callable[[Callable[..., HttpResponse]], View]:
    """Let a view be called with these methods and a token, in its workspace's scope; refusals have SCIM's form."""

    def decorate(view: Callable[..., HttpResponse]) -> View:
        @never_cache
        @csrf_exempt
        @wraps(view)
        def called(request: HttpRequest, **kwargs: str) -> HttpResponse:
            try:
                token = _authenticated(request)
                if request.method not in methods:
                    raise ScimError(405, f"Use {', '.join(methods)} here.")
                with tenant_scope(token.tenant_id):
                    return view(_Call(request, token), **kwargs)
            except ScimError as error:
                response = _json(error.as_json(), error.status)
                if error.status == 401:
                    response["WWW-Authenticate"] = 'Bearer realm="scim"'
                return response
            except DomainError as error:
                return _json(ScimError(error.status, error.message).as_json(), error.status)

        return called

    return decorate


def _authenticated(request: HttpRequest) -> ScimToken:
    keyword, _, secret = request.headers.get("Authorization", "").partition(" ")
    if keyword.lower() == "bearer" and secret:
        with platform_scope():
            row: ScimToken | None = (
                ScimToken.objects.select_related("tenant")
                .filter(token_sha256=tokens.digest(secret.strip()), revoked_at=None, tenant__is_active=True)
                .first()
            )
            now = timezone.now()
            if row is not None and (
                row.last_used_at is None or now - row.last_used_at > timedelta(minutes=1)
            ):
                ScimToken.objects.filter(pk=row.pk, tenant_id=row.tenant_id).update(last_used_at=now)
        if row is not None:
            return row
    raise ScimError(401, "Send a SCIM token of the workspace: Authorization: Bearer gws_…")


@_opened("GET", "POST")
def users(call: _Call) -> HttpResponse:
    """List people, or take one in."""
    if call.request.method == "POST":
        row = services.user_create(tenant=call.tenant, actor=call.actor, said=person_read(call.body()))
        return _one(call, _user(call, row), row, 201)
    rows = ScimUser.objects.filter(tenant=call.tenant, deleted_at=None)
    found = _filtered(call, rows, USER_COLUMNS).prefetch_related(Prefetch("groups", _with_group()))
    return _list(call, found, lambda row: _user_with(call, row, row.groups.all()))


@_opened("GET", "PUT", "PATCH", "DELETE")
def user(call: _Call, resource_id: str) -> HttpResponse:
    """Show a person, change or delete one."""
    row = services.user_get(tenant=call.tenant, resource_id=resource_id)
    _version_check(call, row)
    if call.request.method == "GET":
        return _one(call, _user(call, row), row)
    if call.request.method == "DELETE":
        services.user_delete(tenant=call.tenant, actor=call.actor, row=row)
        return HttpResponse(status=204)
    said = call.body()
    if call.request.method == "PATCH":
        said = patched(user_json(row, call.base), said, USER_NAMES)
    changed = services.user_replace(tenant=call.tenant, actor=call.actor, row=row, said=person_read(said))
    return _one(call, _user(call, changed), changed)


@_opened("GET", "POST")
def groups(call: _Call) -> HttpResponse:
    """List groups, or take one in."""
    if call.request.method == "POST":
        row = services.group_put(tenant=call.tenant, actor=call.actor, row=None, said=group_read(call.body()))
        return _one(call, _group(call, row), row, 201)
    rows = ScimGroup.objects.filter(tenant=call.tenant)
    found = _filtered(call, rows, GROUP_COLUMNS).distinct()
    if not _wanted(call, "members"):
        return _list(call, found, lambda row: group_json(row, call.base, None))
    found = found.prefetch_related(Prefetch("members", _with_person()))
    return _list(call, found, lambda row: group_json(row, call.base, row.members.all()))


@_opened("GET", "PUT", "PATCH", "DELETE")
def group(call: _Call, resource_id: str) -> HttpResponse:
    """Show a group, change or delete one."""
    row = services.group_get(tenant=call.tenant, resource_id=resource_id)
    _version_check(call, row)
    if call.request.method == "GET":
        return _one(call, _group(call, row), row)
    if call.request.method == "DELETE":
        services.group_delete(tenant=call.tenant, actor=call.actor, row=row)
        return HttpResponse(status=204)
    said = call.body()
    if call.request.method == "PATCH":
        said = patched(group_json(row, call.base, _members(row)), said, GROUP_NAMES)
        said.setdefault("members", [])
    elif "members" not in said:
        said["members"] = []  # PUT says all of it
    changed = services.group_put(tenant=call.tenant, actor=call.actor, row=row, said=group_read(said))
    return _one(call, _group(call, changed), changed)


@_opened("GET")
def config(call: _Call) -> HttpResponse:
    """Tell what is supported."""
    return _json(described.config(call.base))


@_opened("GET")
def resource_types(call: _Call, name: str = "") -> HttpResponse:
    """List the kinds of resources, or show one."""
    return _described(described.resource_types(call.base), name)


@_opened("GET")
def schemas(call: _Call, name: str = "") -> HttpResponse:
    """List the schemas, or show one."""
    return _described(described.schemas(call.base), name)


@_opened("GET", "POST", "PUT", "PATCH", "DELETE")
def unknown(call: _Call, rest: str) -> HttpResponse:
    """Refuse what isn't there: Bulk, Me, searches by POST."""
    raise ScimError(501 if rest in {"Bulk", "Me", ".search"} else 404, "There is nothing here.")


def _described(found: list[dict[str, Any]], name: str) -> HttpResponse:
    if not name:
        return _json(_listed(found, len(found), 1))
    one = next((one for one in found if one["id"] == name), None)
    if one is None:
        raise ScimError(404, "There is nothing here.")
    return _json(one)


def _user(call: _Call, row: ScimUser) -> dict[str, Any]:
    return _user_with(call, row, _with_group().filter(person=row))


def _user_with(call: _Call, row: ScimUser, groups: Iterable[ScimGroupMember]) -> dict[str, Any]:
    return user_json(row, call.base, [one.group for one in groups])


def _group(call: _Call, row: ScimGroup) -> dict[str, Any]:
    return group_json(row, call.base, _members(row) if _wanted(call, "members") else None)


def _members(row: ScimGroup) -> QuerySet[ScimGroupMember]:
    return _with_person().filter(group=row)


def _with_group() -> QuerySet[ScimGroupMember]:
    found: QuerySet[ScimGroupMember] = ScimGroupMember.objects.select_related("group")
    return found.order_by("group__display_key")


def _with_person() -> QuerySet[ScimGroupMember]:
    found: QuerySet[ScimGroupMember] = ScimGroupMember.objects.select_related("person")
    return found.order_by("pk")


def _filtered(call: _Call, rows: Any, columns: Any) -> Any:
    text = call.request.GET.get("filter", "")
    return rows.filter(conditions(filter_read(text), columns)) if text.strip() else rows


def _list(call: _Call, rows: Any, shown: Callable[[Any], dict[str, Any]]) -> HttpResponse:
    first = max(_number(call, "startIndex", 1), 1)
    count = min(max(_number(call, "count", _USUAL), 0), described.MOST)
    total = rows.count()
    page = list(rows.order_by("pk")[first - 1 : first - 1 + count])
    return _json(_listed([_projected(call, shown(row)) for row in page], total, first))


def _listed(found: list[dict[str, Any]], total: int, first: int) -> dict[str, Any]:
    return {
        "schemas": [_LIST],
        "totalResults": total,
        "startIndex": first,
        "itemsPerPage": len(found),
        "Resources": found,
    }


def _number(call: _Call, name: str, usual: int) -> int:
    text = call.request.GET.get(name, "")
    if not text:
        return usual
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 9:
        raise ScimError(400, f"“{name}” is a whole number.", "invalidValue")
    return int(text)


def _names(call: _Call, parameter: str) -> set[str]:
    return {
        name_of(one).partition(".")[0]
        for one in call.request.GET.get(parameter, "").split(",")
        if one.strip()
    }


def _wanted(call: _Call, name: str) -> bool:
    only = _names(call, "attributes")
    return (not only or name in only) and name not in _names(call, "excludedAttributes")


def _projected(call: _Call, said: dict[str, Any]) -> dict[str, Any]:
    always = {"schemas", "id"}
    return {key: value for key, value in said.items() if key in always or _wanted(call, key.lower())}


def _version_check(call: _Call, row: ScimUser | ScimGroup) -> None:
    given = call.request.headers.get("If-Match", "")
    if given and given != "*" and version_of(row) not in {one.strip() for one in given.split(",")}:
        raise ScimError(412, "The resource has changed since. Read it again.")


def _one(call: _Call, said: Mapping[str, Any], row: ScimUser | ScimGroup, status: int = 200) -> HttpResponse:
    version = version_of(row)
    if call.request.method == "GET" and call.request.headers.get("If-None-Match") == version:
        response = HttpResponse(status=304)
    else:
        response = _json(_projected(call, dict(said)), status)
        response["Location"] = said["meta"]["location"]
    response["ETag"] = version
    return response


def _json(said: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(json.dumps(said), status=status, content_type=_TYPE)
