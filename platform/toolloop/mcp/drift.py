"""Has a server changed what its tools say they do? Fingerprints, pins, and readable differences.

A description is an instruction to the model. One that changes after a person has looked at it (a "rug pull") must not
reach the model before somebody has looked again.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolloop.errors import ConfigurationError

PIN_VERSION = 1
_KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True)
class Definition:
    """What a server says about one tool, as it said it.

    Attributes:
        data: ``name``, ``title``, ``description``, ``inputSchema``, ``outputSchema`` and ``annotations``, those that
            are there. Anything else (icons, ``_meta``) is no part of what is reviewed and is not shown to the model.
    """

    data: Mapping[str, Any]

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> Definition:
        """Take the parts that count from an item of ``tools/list``."""
        return cls({key: listed[key] for key in _KEYS if listed.get(key) is not None})

    @property
    def name(self) -> str:
        """Return the server's own name of the tool."""
        return str(self.data["name"])

    @functools.cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON, in hex."""
        text = json.dumps(self.data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def lines(self) -> list[str]:
        """Return the definition as lines to compare; ASCII, so that hidden and look-alike characters show."""
        text = json.dumps(self.data, sort_keys=True, indent=2, ensure_ascii=True)
        # A description is one JSON string: its own lines apart make a difference readable.
        return text.replace("\\n", "\\n\n    ").splitlines()


@dataclass(frozen=True, slots=True)
class Change:
    """One tool that is not as it was accepted.

    Attributes:
        name: the server's own name of the tool.
        kind: what happened to it.
        fingerprint: of the definition that is listed now; "" when removed. Accepting names it, so that what is accepted
            is what was looked at.
        diff: unified difference to what was accepted, in ASCII.
    """

    name: str
    kind: Literal["added", "removed", "changed"]
    fingerprint: str
    diff: str

    def to_json(self) -> dict[str, str]:
        """Return the change as JSON values."""
        return {"name": self.name, "kind": self.kind, "fingerprint": self.fingerprint, "diff": self.diff}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Change:
        """Rebuild the change that ``to_json`` wrote. Raises ConfigurationError for an unknown kind."""
        kind = data["kind"]
        if kind not in ("added", "removed", "changed"):
            raise ConfigurationError(f"unknown change {kind!r}: added, removed or changed")
        return cls(data["name"], kind, data["fingerprint"], data["diff"])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Drift:
    """How what a server lists differs from what was accepted.

    Attributes:
        added, removed, changed: the tools; false as a whole when nothing differs.
        problems: tools that cannot be offered at all, a sentence each.
    """

    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return all changes."""
        return (*self.changed, *self.added, *self.removed)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def report(self) -> str:
        """Say in words what differs, with the differences."""
        parts = [f"{change.name!a} was {change.kind}:\n{change.diff}" for change in self.changes]
        return "\n\n".join([*parts, *self.problems]) or "Nothing has changed."


def drift_find(accepted: Mapping[str, Definition], listed: Mapping[str, Definition]) -> Drift:
    """Compare what is listed with what was accepted, both by the server's own names."""
    added, removed, changed = [], [], []
    for name, definition in listed.items():
        before = accepted.get(name)
        if before is None:
            added.append(Change(name, "added", definition.fingerprint, _diff(None, definition)))
        elif before.fingerprint != definition.fingerprint:
            diff = _diff(before, definition)
            changed.append(Change(name, "changed", definition.fingerprint, diff))
    for name, before in accepted.items():
        if name not in listed:
            removed.append(Change(name, "removed", "", _diff(before, None)))
    return Drift(tuple(added), tuple(removed), tuple(changed))


def _diff(before: Definition | None, after: Definition | None) -> str:
    old = before.lines() if before else []
    new = after.lines() if after else []
    return "\n".join(difflib.unified_diff(old, new, "accepted", "listed now", lineterm="", n=1))


def pin_make(server: str, definitions: Sequence[Definition]) -> dict[str, Any]:
    """Return accepted definitions as JSON values to store."""
    tools = {d.name: {"fingerprint": d.fingerprint, "definition": dict(d.data)} for d in definitions}
    return {"version": PIN_VERSION, "server": server, "tools": tools}


def pin_read(server: str, pin: Mapping[str, Any]) -> dict[str, Definition]:
    """Read what ``pin_make`` wrote.

    Raises:
        ConfigurationError: it is of another server or another version, or was damaged.
    """
    if pin.get("version") != PIN_VERSION:
        raise ConfigurationError(
            f"a pin of version {pin.get('version')!r} cannot be read: connect without it and take a new snapshot"
        )
    if pin.get("server") != server:
        raise ConfigurationError(f"the pin belongs to server {pin.get('server')!r}, not of {server!r}")
    accepted: dict[str, Definition] = {}
    try:
        for name, entry in pin["tools"].items():
            definition = Definition(dict(entry["definition"]))
            if definition.name != name or definition.fingerprint != entry["fingerprint"]:
                raise ConfigurationError(
                    f"the pin of tool {name!r} does not match its fingerprint: it was changed or damaged"
                )
            accepted[name] = definition
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"the pin cannot be read ({error!r}): take a new snapshot") from error
    return accepted
