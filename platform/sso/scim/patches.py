"""PATCH (RFC 7644, 3.5.2) of a resource as JSON, in the dialects of Okta and Entra.

Okta replaces without a path, with an object as value. Entra writes its operations with a capital, sends "False" as text,
names parts in keys ("name.givenName"), removes members by a value beside the path, and replaces values that aren't there yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sso.scim.errors import ScimError
from sso.scim.filters import Compare, Filter, Path, fits, path_read

SCHEMA = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
MAX_OPERATIONS = 1000
_LISTS = frozenset({"emails", "members"})
_OBJECTS = frozenset({"name"})


def patched(resource: Mapping[str, Any], body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a resource after the operations of a PATCH.

    Args:
        resource: as SCIM shows it.
        body: of the request.
        names: the attributes that may be named, in lower case -> as they are written, "" for those that aren't kept.

    Raises:
        ScimError: an operation can't be done; none is done then.
    """
    operations = next((v for k, v in body.items() if k.lower() == "operations"), None)
    if not isinstance(operations, list) or not 1 <= len(operations) <= MAX_OPERATIONS:
        raise ScimError(400, f"Send 1 to {MAX_OPERATIONS} Operations.", "invalidSyntax")
    found = {key: _copied(value) for key, value in resource.items()}
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise ScimError(400, "An operation is an object.", "invalidSyntax")
        _apply(found, {k.lower(): v for k, v in operation.items()}, names)
    return found


def _apply(found: dict[str, Any], operation: Mapping[str, Any], names: Mapping[str, str]) -> None:
    kind, path = str(operation.get("op", "")).lower(), operation.get("path")
    if kind not in {"add", "replace", "remove"}:
        raise ScimError(
            400, f"“{kind[:20]}” isn't an operation: use add, replace or remove.", "invalidSyntax"
        )
    value = operation.get("value")
    if path is None or path == "":
        if kind == "remove":
            raise ScimError(400, "Say in path what to remove.", "noTarget")
        if not isinstance(value, Mapping):
            raise ScimError(400, "Without a path the value is an object.", "invalidValue")
        for key, inner in value.items():
            _change(found, kind, path_read(str(key)), inner, names)
        return
    if not isinstance(path, str):
        raise ScimError(400, "A path is text.", "invalidPath")
    _change(found, kind, path_read(path), value, names)


def _change(found: dict[str, Any], kind: str, path: Path, value: Any, names: Mapping[str, str]) -> None:
    if path.attribute.startswith("urn:") or path.attribute == "schemas":
        return  # an extension as a whole, of which nothing is kept
    if path.attribute not in names:
        raise ScimError(400, f"There is no attribute “{path.attribute[:100]}”.", "invalidPath")
    name = names[path.attribute]
    if not name:
        return
    if name in _LISTS:
        found[name] = _list_changed(found.get(name) or [], kind, path, value, names)
    elif path.chosen is not None:
        raise ScimError(400, f"“{name}” has one value, so there is nothing to choose from.", "invalidPath")
    elif name in _OBJECTS:
        found[name] = _object_changed(found.get(name) or {}, kind, path, value)
    elif kind == "remove":
        found.pop(name, None)
    else:
        found[name] = value


def _object_changed(before: Mapping[str, Any], kind: str, path: Path, value: Any) -> dict[str, Any]:
    own = {key.lower(): inner for key, inner in before.items()}
    if path.part:
        if kind == "remove":
            own.pop(path.part, None)
        else:
            own[path.part] = value
        return own
    if kind == "remove":
        return {}
    if not isinstance(value, Mapping):
        raise ScimError(400, f"“{path.attribute}” is an object.", "invalidValue")
    return own | {key.lower(): inner for key, inner in value.items()}


def _list_changed(
    before: list[dict[str, Any]], kind: str, path: Path, value: Any, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    if path.chosen is not None:
        return _chosen_changed(before, kind, path, path.chosen, value)
    if path.part:
        raise ScimError(400, f"Choose one of “{path.attribute}” with a filter in brackets.", "invalidPath")
    if kind == "remove" and value is None:
        return []
    values = [_as_object(one) for one in (value if isinstance(value, list) else [value])]
    given = {str(one.get("value", "")).casefold() for one in values}
    rest = [one for one in before if str(one.get("value", "")).casefold() not in given]
    if kind == "remove":
        return rest
    return values if kind == "replace" else [*rest, *values]


def _chosen_changed(
    before: list[dict[str, Any]], kind: str, path: Path, chosen: Filter, value: Any
) -> list[dict[str, Any]]:
    hits = [one for one in before if fits(chosen, one)]
    if kind == "remove" and not path.part:
        return [one for one in before if one not in hits]
    if not hits and kind != "remove":
        hits = (
            [{chosen.attribute: chosen.value}]
            if isinstance(chosen, Compare) and chosen.operator == "eq"
            else []
        )
        if not hits:
            raise ScimError(400, f"Nothing in “{path.attribute}” matches the filter.", "noTarget")
        before = [*before, *hits]
    changed = []
    for one in before:
        if not any(one is hit for hit in hits):
            changed.append(one)
        elif kind == "remove":
            changed.append({k: v for k, v in one.items() if k.lower() != path.part})
        elif path.part:
            changed.append({**one, path.part: value})
        else:
            changed.append({**one, **_as_object(value)})
    return changed


def _as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return {"value": value}
    raise ScimError(400, "A value of a list is an object with “value”.", "invalidValue")


def _copied(value: Any) -> Any:
    return (
        [dict(one) for one in value]
        if isinstance(value, list) and value and isinstance(value[0], dict)
        else value
    )
