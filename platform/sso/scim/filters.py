"""Filters and paths of SCIM (RFC 7644, 3.4.2.2 and 3.5.2), read into values; what they mean is for those who use them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sso.scim.errors import ScimError

MAX_FILTER = 2000
MAX_DEPTH = 10
OPERATORS = frozenset({"eq", "ne", "co", "sw", "ew", "pr", "gt", "ge", "lt", "le"})
URN = re.compile(r"urn:[a-z0-9:.]+:2\.0:[A-Za-z]+:", re.IGNORECASE)
Value = str | bool | int | float | None
_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[()\[\]])|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z0-9_$:.\-+]+))""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Compare:
    """``attribute operator value``; ``value`` is None with ``pr``."""

    attribute: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Both:
    """``left and right``, or ``left or right``."""

    operator: str
    left: Filter
    right: Filter


@dataclass(frozen=True, slots=True)
class Not:
    """``not (inner)``."""

    inner: Filter


@dataclass(frozen=True, slots=True)
class Within:
    """``attribute[inner]``: one of its values fits all of that."""

    attribute: str
    inner: Filter


Filter = Compare | Both | Not | Within


@dataclass(frozen=True, slots=True)
class Path:
    """What an operation of a PATCH names: ``attribute[chosen].part``; attribute and part in lower case."""

    attribute: str
    part: str = ""
    chosen: Filter | None = None


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_FILTER:
            raise invalid(f"A filter has at most {MAX_FILTER} characters.")
        self._tokens = list(_tokens(text))
        self._at = 0

    def whole(self) -> Filter:
        found = self._either(0)
        if self._at != len(self._tokens):
            raise invalid(f"“{self._tokens[self._at]}” was not expected.")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise invalid("The filter ends too early.")
        self._at += 1
        return token

    def _expect(self, mark: str) -> None:
        if self._take() != mark:
            raise invalid(f"“{mark}” was expected.")

    def _either(self, depth: int) -> Filter:
        found = self._all(depth)
        while self._peek().lower() == "or":
            self._take()
            found = Both("or", found, self._all(depth))
        return found

    def _all(self, depth: int) -> Filter:
        found = self._one(depth)
        while self._peek().lower() == "and":
            self._take()
            found = Both("and", found, self._one(depth))
        return found

    def _one(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise invalid("The filter is nested too deeply.")
        token = self._take()
        if token == "(":  # noqa: S105 - no password
            found = self._either(depth + 1)
            self._expect(")")
            return found
        if token.lower() == "not" and self._peek() == "(":
            self._take()
            found = self._either(depth + 1)
            self._expect(")")
            return Not(found)
        if token[0] in '"()[]':
            raise invalid(f"An attribute was expected instead of {token}.")
        attribute = name_of(token)
        if self._peek() == "[":
            self._take()
            inner = self._either(depth + 1)
            self._expect("]")
            return Within(attribute, inner)
        operator = self._take().lower()
        if operator not in OPERATORS:
            raise invalid(f"“{operator}” isn't an operator.")
        return Compare(attribute, operator, None if operator == "pr" else _value(self._take()))


def filter_read(text: str) -> Filter:
    """Return what a filter says. Raises ScimError (invalidFilter)."""
    return _Reader(text).whole()


def path_read(text: str) -> Path:
    """Return what a path of a PATCH names. Raises ScimError (invalidPath)."""
    head, bracket, rest = text.strip().partition("[")
    if not bracket:
        attribute, _, part = name_of(head).partition(".")
        if not attribute or " " in attribute:
            raise ScimError(400, f"“{text[:100]}” isn't a path.", "invalidPath")
        return Path(attribute, part)
    inner, closing, tail = rest.rpartition("]")
    if not closing or (tail and not tail.startswith(".")):
        raise ScimError(400, f"“{text[:100]}” isn't a path.", "invalidPath")
    return Path(name_of(head), tail[1:].lower(), filter_read(inner))


def name_of(text: str) -> str:
    """Return an attribute's name in lower case, without the name of the schema before it."""
    return URN.sub("", text.strip()).lower()


def fits(filter_: Filter, values: Mapping[str, object]) -> bool:
    """Tell whether one value of an attribute with several fits, such as one email of ``emails``; texts without their case."""
    if isinstance(filter_, Both):
        left, right = fits(filter_.left, values), fits(filter_.right, values)
        return (left and right) if filter_.operator == "and" else (left or right)
    if isinstance(filter_, Not):
        return not fits(filter_.inner, values)
    if isinstance(filter_, Within):
        raise invalid("A filter of a value can't have another one inside.")
    own = {name.lower(): value for name, value in values.items()}.get(filter_.attribute)
    if filter_.operator == "pr":
        return own not in (None, "")
    if filter_.operator == "eq":
        return _folded(own) == _folded(filter_.value)
    if filter_.operator == "ne":
        return _folded(own) != _folded(filter_.value)
    raise invalid(f"Values can be chosen with eq, ne and pr, not with {filter_.operator}.")


def invalid(detail: str) -> ScimError:
    """Return the refusal of a filter."""
    return ScimError(400, f"The filter can't be used: {detail}", "invalidFilter")


def _folded(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


def _tokens(text: str) -> Iterator[str]:
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise invalid(f"it can't be read at “{text[at : at + 20]}”.")
        yield found[0].strip()
        at = found.end()


def _value(token: str) -> Value:
    try:
        value = json.loads(token if token[0] == '"' else token.lower())
    except ValueError:
        raise invalid(f"“{token[:50]}” isn't a value. Put texts in double quotes.") from None
    if isinstance(value, str) and "\x00" in value:
        raise invalid("text can't contain NUL.")
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    raise invalid(f"“{token[:50]}” isn't a value.")
