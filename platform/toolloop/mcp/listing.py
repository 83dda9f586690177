"""From what a server lists to what may be offered: pure, without a connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolloop.mcp.drift import Definition, Drift, drift_find
from toolloop.mcp.schemas import SchemaRefused, depth_check, schema_safe
from toolloop.mcp.text import name_shown, text_clean, tool_name

_MAX_DESCRIPTION = 8_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool in the form in which it may be shown.

    Attributes:
        name: for the model.
        definition: what the server said.
        description, parameters, output_schema: made safe.
    """

    name: str
    definition: Definition
    description: str
    parameters: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Listing:
    """What to do with a list of tools.

    Attributes:
        offers: tools to offer, by their name for the model.
        withheld: by name for the model, why a call of it is refused.
        listed: every definition, by the server's own name.
        drift: how the list differs from what was accepted, and what cannot be used at all.
        collisions: sentences about names that two tools share.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    listed: Mapping[str, Definition] = field(default_factory=dict)
    drift: Drift = Drift()  # noqa: RUF009 - frozen
    collisions: tuple[str, ...] = ()


def listing_read(
    server: str,
    definitions: Sequence[Definition],
    accepted: Mapping[str, Definition] | None,
    *,
    reserved: Sequence[str] = (),
    offer_added: bool = False,
    known: Mapping[str, Offer] | None = None,
) -> Listing:
    """Sort a server's tools into offered and withheld.

    Args:
        server: its name, the prefix of its tools.
        definitions: as listed.
        accepted: by the server's own names; None accepts all that is listed.
        reserved: names for the model that are taken.
        offer_added: offer tools that were not there when the others were accepted.
        known: offers made earlier, by name; checking a schema takes some milliseconds, once.
    """
    names = Counter(definition.name for definition in definitions)
    shown = Counter(tool_name(server, name) for name in names)
    shown.update(reserved)
    collisions = [f"tool {name_shown(n)} is listed {count} times" for n, count in names.items() if count > 1]
    for name, count in shown.items():
        if count > 1:
            own = ", ".join(name_shown(n) for n in names if tool_name(server, n) == name)
            collisions.append(f"{own} would be {name!r}, which is taken")
    unique = {d.name: d for d in definitions if names[d.name] == 1}
    drift = drift_find(unique if accepted is None else accepted, unique)
    changed = {change.name: change for change in drift.changed}
    added = set() if offer_added else {change.name for change in drift.added}
    offers: dict[str, Offer] = {}
    withheld: dict[str, str] = {}
    problems: list[str] = []
    for definition in unique.values():
        name = tool_name(server, definition.name)
        if shown[name] > 1:
            withheld[name] = "its name is shared by another tool"
        elif definition.name in changed:
            withheld[name] = "its description has changed and has not been reviewed yet"
        elif definition.name in added:
            withheld[name] = "it is new and has not been reviewed yet"
        else:
            before = (known or {}).get(name)
            if before is not None and before.definition.fingerprint == definition.fingerprint:
                offers[name] = before
                continue
            try:
                offers[name] = _offer(name, definition)
            except SchemaRefused as error:
                withheld[name] = str(error)
                problems.append(f"{name_shown(definition.name)} cannot be offered: {error}")
    for name, definition in ((n, d) for n, d in (accepted or {}).items() if n not in unique):
        shown_name = tool_name(server, definition.name)
        withheld.setdefault(shown_name, f"the server no longer lists {name_shown(name)}")
    drift = replace(drift, problems=(*collisions, *problems))
    return Listing(offers, withheld, unique, drift, tuple(collisions))


def _offer(name: str, definition: Definition) -> Offer:
    data = definition.data
    title = text_clean(str(data.get("title", "")), 200).strip()
    said = text_clean(str(data.get("description", "")), _MAX_DESCRIPTION).strip()
    description = said or title or f"The tool {name_shown(definition.name)}; nothing more is known."
    output = data.get("outputSchema")
    if output is not None:
        depth_check(output)
    return Offer(
        name=name,
        definition=definition,
        description=description,
        parameters=schema_safe(data.get("inputSchema", {})),
        output_schema=None if output is None else schema_safe(output),
    )
