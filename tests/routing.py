"""What a router of a sharded Postgres reads in a statement: whether each tenant's table in it is held to one tenant.

A table is held when ``tenant_id`` equals a value, or equals that of a table which is held, in WHERE or ON, with no OR
beside it. It reads what our statements are made of; what it doesn't know it takes for "not held".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>[eE]?'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |(?P<value>%s|%b|%t|%\(\w+\)[sbt]|\$\d+|\d+(?:\.\d+)?)
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>::|[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_VALUE, _NAME, _MARK = "value", "name", "mark"
_ENDS_ALIAS = frozenset(
    "ON WHERE JOIN INNER LEFT RIGHT FULL CROSS NATURAL USING SET GROUP ORDER LIMIT OFFSET FOR UNION EXCEPT INTERSECT HAVING "
    "WINDOW RETURNING VALUES SELECT DEFAULT OVERRIDING FETCH TABLESAMPLE WITH AND OR WHEN DO".split()
)
_ENDS_WHERE = frozenset("GROUP ORDER LIMIT OFFSET HAVING WINDOW RETURNING FETCH FOR SET VALUES".split())
_BEGINS = frozenset("RECURSIVE AS NOT MATERIALIZED SELECT INSERT UPDATE DELETE".split())
_NO_CALL = frozenset(
    "AND OR ON WHERE IN NOT AS FROM JOIN EXISTS ANY ALL LATERAL USING VALUES WHEN THEN ELSE".split()
)


@dataclass(slots=True)
class _Token:
    kind: str
    text: str  # of a word: in capitals where it may be a keyword; of a name: as it is
    name: str = ""

    def is_(self, *words: str) -> bool:
        return self.text in words


@dataclass(slots=True, eq=False)
class _Table:
    name: str
    alias: str
    is_held: bool = False
    same: list[_Table] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """One SELECT, UPDATE, DELETE or INSERT."""

    outer: _Level | None
    tables: list[_Table] = field(default_factory=list)
    derived: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Equal:
    level: _Level
    left: str  # the alias, "" for none
    right: str | None  # the alias, None for a value


def tables_loose(sql: str, tenants: Collection[str]) -> list[str]:
    """Return the tenants' tables of a statement that aren't held to one tenant, each as often as it is named.

    Args:
        sql: one statement or several, with psycopg's placeholders.
        tenants: the names of tenants' tables.
    """
    return _Reader(_tokens(sql), frozenset(tenants)).loose()


def _tokens(sql: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        text = match[0]
        if kind in ("text", "tag"):
            found.append(_Token(_VALUE, "''"))
        elif kind == "value":
            found.append(_Token(_VALUE, text))
        elif kind == "quoted":
            found.append(_Token(_NAME, "", text[1:-1]))
        elif kind == "word":
            found.append(_Token(_NAME, text.upper(), text))
        elif kind == "mark":
            found.append(_Token(_MARK, text))
    return found


@dataclass(slots=True)
class _Part:
    """Conditions that are joined by AND; open when an OR, a NOT or a call makes them say nothing."""

    is_open: bool = False
    equals: list[_Equal] = field(default_factory=list)


class _Reader:
    def __init__(self, tokens: list[_Token], tenants: frozenset[str]) -> None:
        end = _Token(_MARK, "")
        self._tokens = [*tokens, end, end, end, end, end]
        self._size = len(tokens)
        self._tenants = tenants
        self._levels: list[_Level] = []
        self._equals: list[_Equal] = []
        self._ctes: set[str] = set()

    def loose(self) -> list[str]:
        """Return the tables that aren't held."""
        at = 0
        while at < self._size:
            at = self._level(at, None) + 1
        for equal in self._equals:
            self._hold(equal)
        tables = [table for level in self._levels for table in level.tables if table.name in self._tenants]
        held = [table for table in tables if table.is_held]
        while held:
            for table in held.pop().same:
                if not table.is_held:
                    table.is_held = True
                    held.append(table)
        return [table.name for table in tables if not table.is_held]

    def _hold(self, equal: _Equal) -> None:
        left = self._find(equal.level, equal.left)
        right = True if equal.right is None else self._find(equal.level, equal.right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, _Table):
                if isinstance(other, _Table):
                    one.same.append(other)
                elif other:
                    one.is_held = True

    def _find(self, level: _Level, alias: str) -> _Table | bool:
        """Return the table of a name, True for a derived one (whose tables are looked at by themselves), else False."""
        here: _Level | None = level
        while here is not None:
            if not alias:
                own = [t for t in here.tables if t.name in self._tenants]
                return own[0] if len(own) == 1 else False
            for table in here.tables:
                if table.alias == alias:
                    return table if table.name in self._tenants else table.name in self._ctes
            if alias in here.derived:
                return True
            here = here.outer
        return False

    def _level(self, at: int, outer: _Level | None) -> int:
        """Read a statement up to its closing bracket or semicolon, and return where that is."""
        level = self._new(outer)
        zone, part = "", _Part()
        while at < self._size:
            token = self._tokens[at]
            if token.is_(")", ";"):
                break
            if zone == "with" and token.kind == _NAME and not token.is_(*_BEGINS):
                self._ctes.add(token.name)
            elif token.is_("WITH") and not zone:
                zone = "with"
            elif token.is_("SELECT"):
                zone = "list"
            elif token.is_("UNION", "EXCEPT", "INTERSECT"):
                self._end(part)
                level, zone, part = self._new(outer), "", _Part()
            elif token.is_("UPDATE") and zone in ("", "with"):
                zone, at = "set", self._table(at + 1, level)
                continue
            elif token.is_("INTO") and self._tokens[at - 1].is_("INSERT"):
                zone, at = "insert", self._insert(at + 1, level)
                continue
            elif zone == "from" and token.is_("USING") and self._tokens[at + 1].is_("("):
                at = self._using(at + 2, level)
                continue
            elif (token.is_("FROM") and not self._tokens[at - 1].is_("DISTINCT")) or (
                zone == "from" and token.is_("JOIN", ",", "USING")
            ):
                self._end(part)
                zone, part, at = "from", _Part(), self._table(at + 1, level)
                continue
            elif token.is_("WHERE") and zone != "insert":
                self._end(part)
                zone, part = "where", _Part()
            elif token.is_(*_ENDS_WHERE) and zone in ("from", "where"):
                zone = "rest"
            elif token.is_("("):
                at = self._group(at, level, part if zone in ("from", "where") else _Part(is_open=True))
                continue
            elif zone in ("from", "where"):
                self._condition(at, level, part)
            at += 1
        self._end(part)
        return at

    def _group(self, at: int, level: _Level, part: _Part) -> int:
        """Read what stands in brackets, and return where it goes on."""
        before = self._tokens[at - 1]
        if self._tokens[at + 1].is_("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES"):
            return self._level(at + 1, level) + 1
        if self._tokens[at + 1].is_("(") and self._is_select(at + 1):
            return self._level(at + 1, level) + 1
        is_call = before.kind == _NAME and before.text not in _NO_CALL
        inner = _Part(is_open=is_call or before.is_("NOT"))
        at += 1
        while at < self._size and not self._tokens[at].is_(")"):
            if self._tokens[at].is_("("):
                at = self._group(at, level, inner)
                continue
            self._condition(at, level, inner)
            at += 1
        if not inner.is_open:
            part.equals += inner.equals
        return at + 1

    def _is_select(self, at: int) -> bool:
        while self._tokens[at].is_("("):
            at += 1
        return self._tokens[at].is_("SELECT")

    def _condition(self, at: int, level: _Level, part: _Part) -> None:
        """Note an OR, or that two things are equal, at least one of them a tenant."""
        token = self._tokens[at]
        if token.is_("OR"):
            part.is_open = True
        elif token.name == "tenant_id":
            alias = self._tokens[at - 2].name if self._tokens[at - 1].is_(".") else ""
            before = self._tokens[at - (3 if alias else 1)]
            if self._tokens[at + 1].is_("="):
                part.equals += self._other(level, alias, at + 2)
            elif self._tokens[at + 1].is_("IN") and self._tokens[at + 4].is_(")"):
                part.equals += self._other(level, alias, at + 3)
            elif before.is_("=") and self._tokens[at - (4 if alias else 2)].kind == _VALUE:
                part.equals.append(_Equal(level, alias, None))

    def _other(self, level: _Level, alias: str, at: int) -> list[_Equal]:
        """Return what a tenant equals, if a router can know it."""
        while self._tokens[at].is_("(") and not self._tokens[at + 1].is_("SELECT"):
            at += 1
        token = self._tokens[at]
        if token.kind == _VALUE or token.is_("OWN_TENANT"):
            return [_Equal(level, alias, None)]
        if token.kind == _NAME and self._tokens[at + 1].is_(".") and self._tokens[at + 2].name == "tenant_id":
            return [_Equal(level, alias, token.name)]
        return []

    def _table(self, at: int, level: _Level) -> int:
        """Read a table behind FROM, JOIN, UPDATE or a comma, and return where it goes on."""
        while self._tokens[at].is_("ONLY", "LATERAL"):
            at += 1
        token = self._tokens[at]
        if token.is_("("):
            if not self._is_select(at) and not self._tokens[at + 1].is_("WITH", "VALUES"):
                return self._table(at + 1, level)  # joins in brackets
            at = self._level(at + 1, level) + 1
            level.derived.add(self._alias(at)[0])
            return self._alias(at)[1]
        if self._tokens[at + 1].is_("."):
            at += 2
            token = self._tokens[at]
        if self._tokens[at + 1].is_("("):
            return at + 1  # a function; its brackets are read as any
        alias, after = self._alias(at + 1)
        level.tables.append(_Table(token.name, alias or token.name))
        return after

    def _alias(self, at: int) -> tuple[str, int]:
        if self._tokens[at].is_("AS"):
            at += 1
        token = self._tokens[at]
        if token.kind == _NAME and token.text not in _ENDS_ALIAS:
            return token.name, at + 1
        return "", at

    def _insert(self, at: int, level: _Level) -> int:
        """Read the table and the columns of an INSERT: one that names the tenant is held."""
        target = _Table(self._tokens[at].name, self._tokens[at].name)
        level.tables.append(target)
        at = self._alias(at + 1)[1]
        if self._tokens[at].is_("(") and not self._is_select(at):
            while not self._tokens[at].is_(")"):
                target.is_held = target.is_held or self._tokens[at].name == "tenant_id"
                at += 1
            at += 1
        return at

    def _using(self, at: int, level: _Level) -> int:
        """Read the columns of USING (...)."""
        while at < self._size and not self._tokens[at].is_(")"):
            if self._tokens[at].name == "tenant_id" and len(level.tables) > 1:
                level.tables[-1].same.append(level.tables[-2])
                level.tables[-2].same.append(level.tables[-1])
            at += 1
        return at + 1

    def _end(self, part: _Part) -> None:
        if not part.is_open:
            self._equals += part.equals
        part.equals = []

    def _new(self, outer: _Level | None) -> _Level:
        level = _Level(outer)
        self._levels.append(level)
        return level
