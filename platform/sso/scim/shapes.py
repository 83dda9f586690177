"""What a provider sends about a person or a group, read strictly enough to be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from sso.scim.errors import ScimError

MAX_MEMBERS = 20_000
_BOOLS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Person:
    """A user as it was sent; ``email`` in lower case."""

    user_name: str
    external_id: str
    email: str
    given_name: str
    family_name: str
    display_name: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it was sent; ``members`` are ids of users, None where nothing was said of them."""

    display_name: str
    external_id: str
    members: tuple[str, ...] | None


def person_read(said: Mapping[str, Any]) -> Person:
    """Return a user. Raises ScimError (invalidValue)."""
    given = _folded(said)
    name = given.get("name") or {}
    if not isinstance(name, Mapping):
        raise _invalid("“name” is an object.")
    names = _folded(name)
    user_name = _text(given, "username", "userName", 254)
    if not user_name:
        raise _invalid("“userName” is needed.")
    return Person(
        user_name=user_name,
        external_id=_text(given, "externalid", "externalId", 255),
        email=_email(given.get("emails"), user_name),
        given_name=_text(names, "givenname", "name.givenName", 150),
        family_name=_text(names, "familyname", "name.familyName", 150),
        display_name=_text(given, "displayname", "displayName", 200),
        is_active=_bool(given.get("active", True)),
    )


def group_read(said: Mapping[str, Any]) -> Group:
    """Return a group. Raises ScimError (invalidValue)."""
    given = _folded(said)
    display_name = _text(given, "displayname", "displayName", 200)
    if not display_name:
        raise _invalid("“displayName” is needed.")
    return Group(display_name, _text(given, "externalid", "externalId", 255), _members(given))


def _members(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "members" not in given:
        return None
    said = given["members"] or []
    if not isinstance(said, list) or not all(isinstance(one, Mapping) for one in said):
        raise _invalid("“members” is a list of objects with “value”.")
    if len(said) > MAX_MEMBERS:
        raise ScimError(413, f"A group has at most {MAX_MEMBERS:,} members.", "tooMany")
    ids = [_folded(one).get("value") for one in said]
    if not all(isinstance(one, str) and one for one in ids):
        raise _invalid("Each of “members” needs the “value” of a user.")
    return tuple(dict.fromkeys(str(one).lower() for one in ids))


def _email(said: Any, user_name: str) -> str:
    values = [_folded(one) for one in said if isinstance(one, Mapping)] if isinstance(said, list) else []
    texts = [one for one in values if isinstance(one.get("value"), str) and one["value"]]
    texts.sort(key=lambda one: (not _is_true(one.get("primary")), one.get("type") != "work"))
    email = str(texts[0]["value"] if texts else user_name).strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise _invalid("A person needs an email address, in “emails” or as “userName”.") from None
    if not email.isascii() or len(email) > 254:
        raise _invalid("Email addresses must be ASCII, of at most 254 characters.")
    return email


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _bool(value: Any) -> bool:
    found = value if isinstance(value, bool) else _BOOLS.get(str(value).lower())
    if found is None:
        raise _invalid("“active” is true or false.")
    return found


def _text(given: Mapping[str, Any], name: str, shown: str, most: int) -> str:
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise _invalid(f"“{shown}” is text of at most {most} characters, in one line.")
    return value.strip()


def _folded(said: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in said.items()}


def _invalid(detail: str) -> ScimError:
    return ScimError(400, detail, "invalidValue")
