"""A structured answer while it streams: as much of its value as is certain.

What has come is plain JSON in the shape of the answer. A member that is complete is checked against the schema, and left out
where it does not fit; the one that is being written is shown as far as it came: objects and lists with their complete
members, free text up to its last character, but no half number and no half of a fixed word. An item of a list that does not
fit ends the list there, so that no item changes its place. The type itself, with its own validators and defaults, checks
the whole answer when it is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolloop.events import Event, RunFinished, StepReset, TextDelta, TurnFinished
from toolloop.output import WRAPPED, Form, Output, output_of, resolved, without_nulls
from toolloop.tools.validation import problems_find

_NOTHING = object()
_UNFINISHED = re.compile(
    r"\\(?:u[0-9a-fA-F]{0,3})?$|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?$"
)
_FIXED = frozenset(("enum", "const", "pattern", "format"))
# A longer answer is read again each time it has grown by this part, so that all readings together cost what few would.
_PART = 64


class PartialOutput:
    """What there is of a structured answer. Show it every event of a run, in order.

    Args:
        form: as for ``output=`` of the run.

    Attributes:
        value: JSON value of what has come so far; None before there is anything, and again after a ``StepReset``. At the
            end of a completed run it is the checked value itself.
        is_final: it is.
    """

    def __init__(self, form: Form) -> None:
        self._form: Output = output_of(form)
        self.value: Any = None
        self.is_final = False
        self._is_over = False
        self._clear()

    def see(self, event: Event) -> bool:
        """Take note of an event; tell whether there is another value."""
        if isinstance(event, TextDelta):
            if self._is_over:
                self._clear()
            self._prefix.feed(event.text)
            return self._renewed()
        if isinstance(event, TurnFinished):
            # The text of a paused turn goes on in the next one.
            self._is_over = event.turn.stop != "pause"
            return self._renewed(at_once=True)
        if isinstance(event, StepReset):
            had, self.value = self.value is not None, None
            self._clear()
            return had
        if isinstance(event, RunFinished) and event.has_output:
            self.value, self.is_final = event.output, True
            return True
        return False

    def _clear(self) -> None:
        self._prefix = _Prefix()
        self._read_at = 0
        self._is_over = False

    def _renewed(self, *, at_once: bool = False) -> bool:
        length = self._prefix.length
        if length == self._read_at or (not at_once and length - self._read_at < self._read_at // _PART):
            return False
        self._read_at = length
        try:
            read, open_depth = self._prefix.read()
        except (ValueError, RecursionError):
            return False  # Not JSON so far; the whole answer is judged when it is there.
        schema = self._form.schema
        value = _certain(read, schema, schema, open_depth)
        if self._form.is_wrapped:
            value = value.get(WRAPPED, _NOTHING) if isinstance(value, dict) else _NOTHING
        if value is _NOTHING or (value == self.value and type(value) is type(self.value)):
            return False
        self.value = value
        return True


def finished(text: str) -> int:
    """Return how much of a JSON string that is still being written can be read: half an escape cannot."""
    cut = _UNFINISHED.search(text)
    if cut is None:
        return len(text)
    before = text[: cut.start()]
    is_escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
    return len(text) if is_escaped else cut.start()


class _Prefix:
    """The beginning of a JSON text, and where in it one may stop.

    Attributes:
        length: characters of the JSON so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._open: list[str] = []  # What closes the objects and lists that are open.
        self._in_string = self._is_escaped = False
        self._is_key = False  # The string being read, or the last one, names a member.
        self._wants_key = False
        self._is_whole = False
        # Where the text can be cut so that it is JSON once it is closed, with what closes it there.
        self._cut, self._closing, self._depth = 0, "", 0

    def feed(self, text: str) -> None:
        """Take a piece of the text; what is before the first object or list, and behind it, is left out."""
        if self._is_whole:
            return
        if not self._open:
            starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
            if not starts:
                return
            text = text[min(starts) :]
        for at, char in enumerate(text):
            if self._in_string:
                if self._is_escaped:
                    self._is_escaped = False
                elif char == "\\":
                    self._is_escaped = True
                elif char == '"':
                    self._in_string = False
                    if not self._is_key:
                        self._may_cut(at + 1)
            elif char == '"':
                self._in_string, self._is_key = True, self._wants_key
            elif char in "{[":
                self._open.append("}" if char == "{" else "]")
                self._wants_key = char == "{"
                self._may_cut(at + 1)
            elif char in "}]":
                if not self._open or self._open.pop() != char:
                    self._is_whole = True  # Not JSON; nothing more is read.
                    break
                self._may_cut(at + 1)
                if not self._open:
                    self._is_whole = True
                    text = text[: at + 1]
                    break
                self._wants_key = False
            elif char == ":":
                self._wants_key = False
            elif char == ",":
                self._may_cut(at)
                self._wants_key = self._open[-1] == "}"
        self._pieces.append(text)
        self.length += len(text)

    def read(self) -> tuple[Any, int]:
        """Return the value so far, and how many objects and lists on its right edge are open.

        An open string counts as one more.

        Raises:
            ValueError: it is no JSON.
        """
        text = "".join(self._pieces)
        self._pieces = [text]
        if self._in_string and not self._is_key:
            begun = text[: finished(text)]
            return json.loads(begun + '"' + "".join(reversed(self._open))), len(self._open) + 1
        return json.loads(text[: self._cut] + self._closing), self._depth

    def _may_cut(self, at: int) -> None:
        self._cut, self._closing = self.length + at, "".join(reversed(self._open))
        self._depth = len(self._open)


def _certain(value: Any, schema: Any, root: Mapping[str, Any], open_depth: int) -> Any:
    """Return what of a value is certain, ``_NOTHING`` where nothing is.

    Args:
        value: as far as it came.
        schema: of the whole value.
        root: holds the definitions.
        open_depth: how many levels of its right edge are still being written, this one included.
    """
    schema = resolved(schema, root)
    if open_depth <= 0:
        cleaned = without_nulls(value, schema, root)
        fits = not problems_find(cleaned, {**schema, "$defs": root.get("$defs", {})})
        return cleaned if fits else _NOTHING
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if options:
        found = (_certain(value, option, root, open_depth) for option in options)
        best = [made for made in found if made is not _NOTHING]
        return max(best, key=_size) if best else _NOTHING
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, dict) and (named is None or "object" in named):
        return _certain_object(value, schema, root, open_depth)
    if isinstance(value, list) and (named is None or "array" in named):
        return _certain_list(value, schema, root, open_depth)
    if isinstance(value, str) and (named is None or "string" in named):
        too_long = len(value) > schema.get("maxLength", len(value))
        return _NOTHING if _FIXED & set(schema) or too_long else value
    return _NOTHING


def _certain_object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], open_depth: int
) -> Any:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    kept: dict[str, Any] = {}
    for place, (name, item) in enumerate(value.items(), 1):
        inner = properties.get(name, others)
        if inner is False:
            continue
        depth = open_depth - 1 if place == len(value) else 0
        made = _certain(item, {} if inner is True else inner, root, depth)
        if made is not _NOTHING:
            kept[name] = made
        elif depth <= 0 and name in properties and {"const", "enum"} & set(resolved(inner, root)):
            return _NOTHING  # Another option of a union is meant.
    return kept


def _certain_list(
    value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], open_depth: int
) -> Any:
    first, rest = schema.get("prefixItems", ()), schema.get("items", {})
    kept: list[Any] = []
    for place, item in enumerate(value):
        depth = open_depth - 1 if place == len(value) - 1 else 0
        made = _certain(item, first[place] if place < len(first) else rest, root, depth)
        if made is _NOTHING:
            break
        kept.append(made)
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value))
