"""What changed between two versions of a tool, for whoever accepts the new one. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from apps.tools.models import ToolVersion

_PLAIN = (
    "title",
    "description",
    "category",
    "tags",
    "side_effects",
    "idempotent",
    "timeout_s",
    "returns",
    "examples",
    "wire",
)
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One fact that differs; ``is_risk`` when the new tool may do more, or goes elsewhere."""

    field: str
    old: Any
    new: Any
    is_risk: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """One parameter that differs.

    Attributes:
        name: dotted path, ``order.lines[].sku``.
        change: added, removed or changed.
        type_old, type_new: as text, "" where there is none.
        required_old, required_new: None where the parameter is not there.
        what: keywords of its schema that differ, for one that changed.
        breaks: calls that worked before do not fit any more.
    """

    name: str
    change: str
    type_old: str = ""
    type_new: str = ""
    required_old: bool | None = None
    required_new: bool | None = None
    what: tuple[str, ...] = ()
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """What differs; ``old`` has number 0 when there is no older version."""

    tool_name: str
    old_number: int
    new_number: int
    fields: tuple[FieldChange, ...]
    parameters: tuple[ParameterChange, ...]

    @property
    def risks(self) -> tuple[str, ...]:
        """Return why the new version needs a second look, in sentences."""
        return tuple(change.why for change in self.fields if change.is_risk)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing differs."""
        return not self.fields and not self.parameters


def version_diff(old: ToolVersion | None, new: ToolVersion) -> VersionDiff:
    """Compare two versions of a tool.

    Args:
        old: None compares with nothing: all is new.
    """
    before: Mapping[str, Any] = old.spec if old is not None else {}
    fields = tuple(
        _field(name, before.get(name), new.spec.get(name), is_first=old is None)
        for name in _PLAIN
        if not _same(before.get(name), new.spec.get(name))
        and (old is not None or new.spec.get(name) not in (None, "", [], {}))
    )
    return VersionDiff(
        new.tool_name,
        old.number if old is not None else 0,
        new.number,
        fields,
        tuple(_parameters(before.get("parameters", {}), new.spec.get("parameters", {}))),
    )


def _same(one: Any, two: Any) -> bool:
    # By text, as the digest has it: to Python, true is 1.
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def _field(name: str, old: Any, new: Any, *, is_first: bool) -> FieldChange:
    why = ""
    if name == "side_effects" and new:
        why = (
            _("It changes data outside.")
            if is_first
            else _("It only read data before; now it changes data outside.")
        )
    elif name == "idempotent" and not new and not is_first:
        why = _("Repeating it was safe before; now it may not be.")
    elif name == "wire" and not is_first:
        why = _("Its address, or the way it is called, has changed.")
    return FieldChange(name, old, new, bool(why), why)


def _parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ParameterChange]:
    before, after = dict(_flat(old)), dict(_flat(new))
    for name in [*after, *(n for n in before if n not in after)]:
        if name not in before:
            schema, required = after[name]
            yield ParameterChange(
                name, "added", type_new=_type(schema), required_new=required, breaks=required
            )
        elif name not in after:
            schema, required = before[name]
            yield ParameterChange(name, "removed", type_old=_type(schema), required_old=required, breaks=True)
        else:
            (was, needed), (now, needs) = before[name], after[name]
            what = tuple(
                key
                for key in sorted({*was, *now} - {"properties", "items", "required"})
                if not _same(was.get(key), now.get(key))
            )
            if what or needed != needs:
                narrower = (needs and not needed) or bool({"type", "enum", "const"} & set(what))
                yield ParameterChange(name, "changed", _type(was), _type(now), needed, needs, what, narrower)


def _flat(schema: Any, at: str = "", depth: int = 0) -> Iterator[tuple[str, tuple[Mapping[str, Any], bool]]]:
    """Give every named parameter of an object's schema with whether it is required, its own parameters after it."""
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return
    if isinstance(schema.get("items"), Mapping):
        yield from _flat(schema["items"], f"{at}[]", depth + 1)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    required = schema.get("required", ())
    for name, part in properties.items():
        path = f"{at}.{name}" if at else name
        shown = part if isinstance(part, Mapping) else {}
        yield path, (shown, name in required)
        yield from _flat(part, path, depth + 1)


def _type(schema: Mapping[str, Any]) -> str:
    given = schema.get("type")
    if isinstance(given, list):
        return " or ".join(str(one) for one in given)
    if given == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_type(schema['items'])}"
    if given:
        return str(given)
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for keyword in ("oneOf", "anyOf", "allOf"):
        if isinstance(schema.get(keyword), list):
            return keyword
    return "enum" if "enum" in schema else "any"
