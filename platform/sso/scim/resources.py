"""Users and groups as SCIM shows them, and how its attributes are found in rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.dateparse import parse_datetime

from sso.models import ScimGroup, ScimGroupMember, ScimUser
from sso.scim.filters import Both, Compare, Filter, Not, Within, invalid

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"

# In lower case -> as they are written; "" for what providers send and nobody here needs.
USER_NAMES: dict[str, str] = {
    **{
        name.lower(): name
        for name in ("userName", "externalId", "active", "name", "displayName", "emails", "id", "meta")
    },
    **dict.fromkeys(
        (
            "nickname", "profileurl", "title", "usertype", "preferredlanguage", "locale", "timezone", "password",
            "phonenumbers", "ims", "photos", "addresses", "groups", "entitlements", "roles", "x509certificates",
            "employeenumber", "costcenter", "organization", "division", "department", "manager",
        ),
        "",
    ),
}  # fmt: skip
GROUP_NAMES = {name.lower(): name for name in ("displayName", "externalId", "members", "id", "meta")}

_TEXT = {"eq": "iexact", "co": "icontains", "sw": "istartswith", "ew": "iendswith"}
_EXACT = {"eq": "exact"}
_TIME = {"eq": "exact", "gt": "gt", "ge": "gte", "lt": "lt", "le": "lte"}
Columns = Mapping[str, tuple[str, Mapping[str, str]]]
USER_COLUMNS: Columns = {
    "username": ("user_name", _TEXT),
    "displayname": ("display_name", _TEXT),
    "name.givenname": ("given_name", _TEXT),
    "name.familyname": ("family_name", _TEXT),
    "emails": ("email", _TEXT),
    "emails.value": ("email", _TEXT),
    "externalid": ("external_id", {**_EXACT, "co": "contains", "sw": "startswith", "ew": "endswith"}),
    "id": ("resource_id", _EXACT),
    "active": ("is_active", _EXACT),
    "meta.created": ("created_at", _TIME),
    "meta.lastmodified": ("updated_at", _TIME),
}
GROUP_COLUMNS: Columns = {
    "displayname": ("display_name", _TEXT),
    "externalid": ("external_id", _EXACT),
    "id": ("resource_id", _EXACT),
    "members": ("members__person__resource_id", _EXACT),
    "members.value": ("members__person__resource_id", _EXACT),
    "meta.created": ("created_at", _TIME),
    "meta.lastmodified": ("updated_at", _TIME),
}


def user_json(row: ScimUser, base: str, groups: Iterable[ScimGroup] = ()) -> dict[str, Any]:
    """Return a user.

    Args:
        base: address of SCIM here, without a slash at its end.
        groups: that they are in.
    """
    name = {"givenName": row.given_name, "familyName": row.family_name}
    said: dict[str, Any] = {
        "schemas": [USER],
        "id": str(row.resource_id),
        "userName": row.user_name,
        "active": row.is_active,
        "emails": [{"value": row.email, "type": "work", "primary": True}],
        "groups": [{"value": str(g.resource_id), "display": g.display_name} for g in groups],
        "meta": _meta(row, "User", f"{base}/Users/{row.resource_id}"),
    }
    if any(name.values()):
        said["name"] = {k: v for k, v in name.items() if v} | {
            "formatted": " ".join(v for v in name.values() if v)
        }
    if row.display_name:
        said["displayName"] = row.display_name
    return said | ({"externalId": row.external_id} if row.external_id else {})


def group_json(row: ScimGroup, base: str, members: Iterable[ScimGroupMember] | None) -> dict[str, Any]:
    """Return a group; ``members`` None leaves them out."""
    said: dict[str, Any] = {
        "schemas": [GROUP],
        "id": str(row.resource_id),
        "displayName": row.display_name,
        "meta": _meta(row, "Group", f"{base}/Groups/{row.resource_id}"),
    }
    if members is not None:
        said["members"] = [
            {
                "value": str(one.person.resource_id),
                "display": one.person.user_name,
                "$ref": f"{base}/Users/{one.person.resource_id}",
            }
            for one in members
        ]
    return said | ({"externalId": row.external_id} if row.external_id else {})


def version_of(row: ScimUser | ScimGroup) -> str:
    """Return the entity tag of a resource's state."""
    return f'W/"{int(row.updated_at.timestamp() * 1_000_000):x}"'


def conditions(filter_: Filter, columns: Columns, inside: str = "") -> Q:
    """Return a filter as conditions on rows.

    Args:
        inside: the attribute whose values the filter is of.

    Raises:
        ScimError: invalidFilter: an attribute or operator that can't be searched by.
    """
    if isinstance(filter_, Both):
        left = conditions(filter_.left, columns, inside)
        right = conditions(filter_.right, columns, inside)
        return left & right if filter_.operator == "and" else left | right
    if isinstance(filter_, Not):
        return ~conditions(filter_.inner, columns, inside)
    if isinstance(filter_, Within):
        if inside:
            raise invalid("brackets can't stand in brackets.")
        return conditions(filter_.inner, columns, filter_.attribute)
    return _condition(filter_, columns, inside)


def _condition(one: Compare, columns: Columns, inside: str) -> Q:
    name = f"{inside}.{one.attribute}" if inside else one.attribute
    if name in {"emails.type", "emails.primary"} and one.operator == "eq":
        return Q() if str(one.value).lower() in {"work", "true"} else Q(pk__in=[])
    if name not in columns:
        raise invalid(f"it can't be searched by “{name[:100]}”.")
    column, operators = columns[name]
    if one.operator == "pr":
        return Q(**{f"{column}__isnull": False}) & (Q() if operators is not _TEXT else ~Q(**{column: ""}))
    if one.operator == "ne" and "eq" in operators:
        return ~_condition(Compare(one.attribute, "eq", one.value), columns, inside)
    if one.operator not in operators:
        raise invalid(f"“{name}” can't be compared with {one.operator}.")
    value: Any = one.value
    if operators is _TIME:
        value = _moment(value)
    elif column == "is_active":
        value = value if isinstance(value, bool) else str(value).lower() == "true"
    elif not isinstance(value, str):
        raise invalid(f"“{name}” is text.")
    elif column.endswith("resource_id") and not is_id(value):
        return Q(pk__in=[])
    return Q(**{f"{column}__{operators[one.operator]}": value})


def is_id(text: str) -> bool:
    """Tell whether a text can be the id of a resource here."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _moment(value: Any) -> datetime:
    try:
        found = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise invalid("a time is written as 2026-11-26T12:00:00Z.")
    return found


def _meta(row: ScimUser | ScimGroup, kind: str, location: str) -> dict[str, str]:
    return {
        "resourceType": kind,
        "created": row.created_at.isoformat().replace("+00:00", "Z"),
        "lastModified": row.updated_at.isoformat().replace("+00:00", "Z"),
        "location": location,
        "version": version_of(row),
    }
