"""Give the rows of another installation numbers of this one, wherever the old ones stand: columns, JSON, text, keys of files.

A number is never looked up in the database: it stands for a row of the file, or for none at all.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.db import connection

from basics.errors import Invalid
from erasure.places import file_places
from exports.moves import KEYS, LATER, USER, staying


def refused(why: str) -> Invalid:
    """Return the refusal of a file. Nothing of it is kept."""
    return Invalid("import_refused", f"This file can't be imported: {why}.")


CHUNK = "collections.Chunk"
_MARKS = re.compile(r"\[[cC]?\d{1,19}(?:[,;\s]+[cC]?\d{1,19})*\s?\]")
_ONE = re.compile(r"\b([cC])(\d{1,19})\b")
_NAMED = re.compile(r'(\\*")(\w+)(\\*"\s*:\s*)(\\*"c?|c)?(\d{1,19})\b')
_LISTED = re.compile(r'(\\*")(\w+)(\\*"\s*:\s*\[)([\d,\s]+)(?=\])')
_WHOLE = re.compile(r"c(\d{1,19})|person:(\d{1,19})|(?:resp_g|chatcmpl-)(\d{1,19})(_\d+)?")
_KEY = re.compile(r"((?:[a-z]+/)?)t(\d{1,19})/(\d{1,19})/(.*)")
_FILE = re.compile(r"t\d+/\d+/[0-9a-f]{2}/[0-9a-f]{64}|[a-z]+/t\d+/\d+/[A-Za-z0-9._-]+")
_WORK = re.compile(r"([a-z]+)-(\d{1,19})(-.*)")
_PROMPTS = frozenset({"system"})
"""Keys of instructions to a model, which show what a name looks like and name no row."""
_OPERATORS = frozenset({"eq", "ne", "in", "nin"})
"""Keys of conditions of a search: what they hold is of the field above, as in ``{"document_id": {"in": [3]}}``."""
MOST = 2**63 - 1
_AT_ONCE = 10_000


class Numbers:
    """Which number here stands for which number of the file, by the model's label.

    Args:
        source: the workspace's number in the file.
        target: its number here.
    """

    def __init__(self, source: int, target: int) -> None:
        self.source, self.target = source, target
        self._rows: dict[str, tuple[array[int], array[int]]] = {}
        self._found: dict[str, dict[int, int]] = {}
        self._gone: dict[str, dict[int, int]] = {}
        self._named: set[tuple[str, int]] = set()

    def rows_take(self, label: str, old: array[int]) -> None:
        """Give rows of the file their numbers.

        Args:
            old: in rising order. Both are kept as plain numbers, 16 bytes a row: there may be millions.
        """
        self._rows[label] = old, _fresh(label, len(old))

    def stands_for(self, label: str, old: int, here: int) -> None:
        """Note which row here stands for one of the file: a person, or a row that workspaces share."""
        self._found.setdefault(label, {})[old] = here

    def name(self, label: str, old: int) -> None:
        """Note that a column names a row, which may be gone: texts that name it mean the same."""
        if self.of(label, old) is not None:
            self._named.add((label, old))

    def is_told(self, label: str, old: int) -> bool:
        """Tell whether a number in a text is that of a row: one that is in the file, or that a column names."""
        return self.has(label, old) or (label, old) in self._named

    def has(self, label: str, old: int) -> bool:
        """Tell whether a number is that of a row in the file."""
        return self._here(label, old) is not None

    def of(self, label: str, old: int) -> int | None:
        """Return the number here; one that no row has for what isn't in the file, None for what stays in it."""
        if label in staying() or not 0 < old <= MOST:
            return None
        if (here := self._here(label, old)) is not None:
            return here
        gone = self._gone.setdefault(label, {})
        if old not in gone:
            gone[old] = _fresh(label, 1)[0]
        return gone[old]

    def _here(self, label: str, old: int) -> int | None:
        if label not in self._rows:
            return self._found.get(label, {}).get(old)
        there, here = self._rows[label]
        place = bisect_left(there, old)
        return here[place] if place < len(there) and there[place] == old else None


def _fresh(label: str, count: int) -> array[int]:
    table = apps.get_model(label)._meta.db_table
    found: array[int] = array("q")
    with connection.cursor() as cursor:
        while missing := min(count - len(found), _AT_ONCE):
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                [table, missing],
            )
            found.extend(number for (number,) in cursor.fetchall())
    return found


class Rewriter:
    """Puts new numbers in place of old ones in values."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def value(self, value: Any, extra: Mapping[str, str], key: str = "", above: str = "") -> Any:
        """Return a JSON value with the numbers of rows here.

        Args:
            extra: keys of this column that hold numbers, beside those of ``KEYS``.
            key, above: where the value stands.
        """
        if isinstance(value, dict):
            by = extra.get(f"{key}{{}}")
            return {
                self._decimal(by, name) if by else name: self.value(item, extra, name, key)
                for name, item in value.items()
            }
        if isinstance(value, list):
            if (first := extra.get(f"{key}[0]")) and all(isinstance(pair, list) and pair for pair in value):
                return [[self.value(pair[0], {"": first}), *pair[1:]] for pair in value]
            return [self.value(item, extra, key, above) for item in value]
        if isinstance(value, bool) or value is None:
            return value
        target = (
            extra.get(f"{above}/{key}") or extra.get(key) or KEYS.get(above if key in _OPERATORS else key)
        )
        if isinstance(value, int):
            return self._numbers.of(target, value) if target and target != LATER else value
        if isinstance(value, str):
            if key in _PROMPTS or target == LATER:
                return value
            if target and _is_number(value):
                return self._decimal(target, value)
            return self.text(value)
        return value

    def _decimal(self, label: str, text: str) -> str:
        """Return a number that is written as a text; any other text stays."""
        return _text(self._numbers.of(label, int(text))) if _is_number(text) else text

    def text(self, text: str) -> str:
        """Return a text with the names of rows as they are here."""
        if found := _WHOLE.fullmatch(text):
            return self._whole(found)
        if _FILE.fullmatch(text):
            return self.key(text)
        if "[" in text:
            text = _MARKS.sub(lambda marks: _ONE.sub(self._mark, marks[0]), text)
        if '"' in text:
            text = _LISTED.sub(self._list, _NAMED.sub(self._named, text))
        return text

    def marks(self, text: str) -> list[tuple[int, int, str]]:
        """Return where a text cites passages: begin, end and what stands there here, of each ``[c12, c13]``."""
        return [(m.start(), m.end(), _ONE.sub(self._mark, m[0])) for m in _MARKS.finditer(text)]

    def words(self, text: str, words: Mapping[str, str]) -> str:
        """Return a text with the numbers of rows here behind these words, by the model's label."""
        for word, label in words.items():
            pattern = rf"\b{re.escape(word)} (\d{{1,19}})\b"
            parts = re.split(pattern, text)
            told = [f"{word} {self._told(label, old)}" for old in parts[1::2]]
            text = "".join(a + b for a, b in zip(parts[::2], [*told, ""], strict=True))
        return text

    def key(self, key: str) -> str:
        """Return the key of a file here. Raises Invalid for one that isn't of the file's workspace."""
        found = _KEY.fullmatch(key)
        place = next((p for p in file_places() if found and p.prefix == found[1]), None)
        if found is None or place is None or int(found[2]) != self._numbers.source:
            raise refused("it names a file of another workspace")
        name = found[4]
        if work := _WORK.fullmatch(name):
            label = place.works.get(work[1])
            if label:
                name = f"{work[1]}-{self._numbers.of(label, int(work[2]))}{work[3]}"
        return f"{place.prefix}t{self._numbers.target}/{self._numbers.of(place.owner, int(found[3]))}/{name}"

    def _whole(self, found: re.Match[str]) -> str:
        if found[1]:
            return f"c{self._told(CHUNK, found[1])}"
        if found[2]:
            return f"person:{self._told(USER, found[2])}"
        return f"{found[0][: found.start(3)]}{self._told('runs.Run', found[3])}{found[4] or ''}"

    def _mark(self, found: re.Match[str]) -> str:
        return f"{found[1]}{self._told(CHUNK, found[2])}"

    def _named(self, found: re.Match[str]) -> str:
        name, kind = found[2], found[4] or ""
        label = CHUNK if kind.endswith("c") and name == "id" else KEYS.get(name, "")
        if not name.endswith("id") or not label:
            return found[0]
        return f"{found[1]}{name}{found[3]}{kind}{self._told(label, found[5])}"

    def _list(self, found: re.Match[str]) -> str:
        label = KEYS.get(found[2], "")
        if not label or not found[2].endswith("ids"):
            return found[0]
        listed = re.sub(r"\d+", lambda one: self._told(label, one[0]), found[4])
        return f"{found[1]}{found[2]}{found[3]}{listed}"

    def _told(self, label: str, old: str) -> str:
        """Return a number of a text as it is here; one that is no row's means something else, and stays."""
        number = int(old)
        return _text(self._numbers.of(label, number)) if self._numbers.is_told(label, number) else old


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _text(number: int | None) -> str:
    return "0" if number is None else str(number)
