"""Statements that Postgres parses and plans once per connection, rather than each time they come.

What comes again and again is made known to the connection by ``PREPARE`` and asked for by ``EXECUTE`` from then on, which
fits where a statement's text stood: behind role and tenant, in their message (``tenancy.database.cursors``). psycopg's own
prepared statements are messages of another protocol, which holds one statement each, so that role and tenant would need
messages of their own.

- A value is of the type that Postgres gives its literal, so a statement means the same before and after. What has no
  meaning without its literals (``interval %s``) is refused by PREPARE, and sent as before.
- PREPARE runs between transactions alone: it fails without taking one along.
- A plan with row-level security holds for the role it was made for; Postgres makes it again for another one. So each role
  has its own names, and none is planned twice. The tenant isn't part of a plan: policies read it when it runs, and a
  statement that names ``own_tenant()`` takes it as a value.
- What a connection has prepared is lost on a pooler's, where the next transaction meets another server connection: there
  nothing is prepared.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
import structlog
from django.conf import settings
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus

log = structlog.get_logger(__name__)

LITERAL_TIMES = 2
"""Times that a connection takes a statement as it is before it prepares it: most come once."""
MAX_HELD = 200
"""Statements that a connection holds, of some 20 to 100 kB in the server each; the one unused for longest goes first."""
_MAX_SEEN = 4_000
_MAX_DUE = 50
_MAX_CHARACTERS = 20_000
_MAX_VALUES = 150  # a question is stored by a statement of a hundred

_PREPARABLE = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "(SELECT")
# More than one statement; a number of ours inside of the text; a conflict's index that is found by a value, which a plan
# without values can't be made for; a transaction's own table, which isn't there between transactions.
_UNFIT = re.compile(r";|\$\d|ON\s+CONFLICT\s*\([^)]*\)\s*WHERE|\bpg_temp\.", re.IGNORECASE)
_PLACE = re.compile(r"%(?:\((?P<name>[^)]*)\)s|(?P<kind>.)|$)", re.DOTALL)
_REFUSED = ("42", "0A")
"""Classes of SQLSTATE that say that a statement can't be prepared; others are of this moment."""
_QUOTE = b"'"[0]
_INTEGER_DIGITS, _BIGINT_DIGITS = 9, 18  # that fit, whatever they are
OWN = "own_tenant()"
"""In a statement: the id of the tenant in whose scope it runs (``cursors.tenant_named``)."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement for PREPARE.

    Attributes:
        sql: with ``$1``, ``$2`` and so on for its values.
        names: of its values in that order; None where they have none.
        count: of its values.
        is_owned: whether the tenant's id comes after them.
    """

    sql: str
    names: tuple[str, ...] | None
    count: int
    is_owned: bool


@lru_cache(maxsize=1024)
def _text(query: str, has_params: bool) -> _Text | None:
    """Return a statement as PREPARE takes it, None when it takes none such."""
    if len(query) > _MAX_CHARACTERS or not query.lstrip()[:7].upper().startswith(_PREPARABLE):
        return None
    if _UNFIT.search(query):
        return None
    is_owned = OWN in query
    if not has_params:
        return _Text(query.replace(OWN, "$1"), None, 0, is_owned)
    names: dict[str, int] = {}
    count, is_fit = 0, True

    def number(place: re.Match[str]) -> str:
        nonlocal count, is_fit
        name, kind = place["name"], place["kind"]
        if kind == "%":
            return "%"
        if name is not None:
            return f"${names.setdefault(name, len(names) + 1)}"
        count += 1
        is_fit &= kind == "s"
        return f"${count}"

    sql = _PLACE.sub(number, query)
    if not is_fit or (names and count) or max(len(names), count) > _MAX_VALUES:
        return None
    held = len(names) or count
    return _Text(sql.replace(OWN, f"${held + 1}"), tuple(names) if names else None, held, is_owned)


def literal_type(literal: bytes) -> str | None:
    """Return the type that Postgres gives a literal as psycopg writes it, None when that is not known.

    Texts are "unknown", as Postgres calls what takes its type from where it stands.
    """
    if literal[-1] == _QUOTE:
        return "unknown"
    at = literal.rfind(b"'::")
    if at >= 0:
        return literal[at + 3 :].decode()
    if literal == b"NULL":
        return "unknown"
    if literal in (b"true", b"false"):
        return "boolean"
    digits = literal.lstrip(b" -")
    if digits.isdigit():
        if len(digits) <= _INTEGER_DIGITS or int(digits) < 2**31:
            return "integer"
        return "bigint" if len(digits) <= _BIGINT_DIGITS or int(digits) < 2**63 else "numeric"
    return "numeric" if re.fullmatch(rb"[\d.]+(?:[eE][-+]?\d+)?", digits) else None


class Prepared:
    """What one connection has prepared.

    Args:
        raw: psycopg's connection; it is used by one thread at a time.
    """

    def __init__(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self._raw = raw
        self._transformer = Transformer(raw)
        self._seen: dict[int, int] = {}
        self._held: OrderedDict[tuple[str, str, tuple[str, ...]], str] = OrderedDict()  # "": refused
        self._due: dict[tuple[str, str, tuple[str, ...]], _Text] = {}
        self._number = 0
        self._is_direct: bool | None = None
        self._is_lost = False

    @property
    def is_due(self) -> bool:
        """Whether ``catch_up`` has something to do."""
        return bool(self._due) or self._is_lost

    def call(
        self, query: Any, params: Any, role: str, tenant: str = "", *, may_send: bool = True
    ) -> bytes | None:
        """Return the EXECUTE that stands for a statement, None when it has to be sent as it is.

        Between transactions this prepares what has come often enough, by messages of its own.

        Args:
            query: as it goes to psycopg; only text is prepared.
            params: its values, by place or by name; None for none, where ``%`` is just a character.
            role: in which it runs.
            tenant: id of the tenant in whose scope it runs, for statements that name ``own_tenant()``.
            may_send: False in an event loop, which waits for no message: what is to be prepared is left to ``catch_up``.

        Raises:
            psycopg.Error: a value can't be sent, or the connection is lost.
        """
        found = self._found(query, params, role, tenant, may_send=may_send)
        if found is None:
            return None
        name, _, literals = found
        values_sql = b"(%s)" % b", ".join(literals) if literals else b""
        return b"EXECUTE %s%s" % (name.encode(), values_sql)

    def bound(
        self, query: Any, params: Any, role: str, tenant: str = ""
    ) -> tuple[bytes, Sequence[Any]] | None:
        """Return the name of a statement's preparation and its values as texts, for the protocol's own Bind.

        Arguments, errors and when it is None: as ``call``.
        """
        found = self._found(query, params, role, tenant)
        if found is None:
            return None
        name, values, _ = found
        return name.encode(), self._transformer.dump_sequence(values, [PyFormat.TEXT] * len(values))

    def _found(
        self, query: Any, params: Any, role: str, tenant: str, *, may_send: bool = True
    ) -> tuple[str, Sequence[Any], list[bytes]] | None:
        """Return a preparation's name, its values and their literals."""
        if self._is_direct is False or not isinstance(query, str):
            return None
        is_idle = may_send and self._raw.pgconn.transaction_status == TransactionStatus.IDLE
        if is_idle and self.is_due:
            self.catch_up()
        one = hash((role, query))
        times = self._seen.get(one, 0)
        if times < LITERAL_TIMES:
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            self._seen[one] = times + 1
            return None
        text = _text(query, params is not None)
        values = None if text is None else _values(text, params)
        if text is None or values is None:
            return None
        if text.is_owned:
            if not tenant.isdecimal():
                return None
            values = (*values, int(tenant))
        literals = [self._transformer.as_literal(v) if v is not None else b"NULL" for v in values]
        types = tuple(map(literal_type, literals))
        if None in types:
            return None
        key: Any = (query, role, types)
        name = self._held.get(key)
        if name is None and is_idle:
            name = self._prepare(key, text)
        elif name is None and len(self._due) < _MAX_DUE:
            self._due[key] = text
        if not name:
            return None
        self._held.move_to_end(key)
        return name, values, literals

    def forget(self) -> None:
        """Know nothing of what is prepared: the server has dropped it, or a table isn't what it was."""
        self._held.clear()
        self._due.clear()
        self._is_lost = True  # the rest goes as soon as no transaction is open

    def catch_up(self) -> None:
        """Prepare what could not be prepared when it came; only between transactions. It waits for the server."""
        if self._is_lost:
            self._send("DEALLOCATE ALL")
            self._is_lost = False
        due, self._due = self._due, {}
        for key, text in due.items():
            if key not in self._held:
                self._prepare(key, text)

    def _prepare(self, key: tuple[str, str, tuple[str, ...]], text: _Text) -> str:
        """Prepare a statement; returns its name, "" when that isn't possible."""
        if self._is_direct is None:
            self._is_direct = self._looks_direct()
        if not self._is_direct:
            return ""
        while len(self._held) >= MAX_HELD:
            _, oldest = self._held.popitem(last=False)
            if oldest:
                self._send(f"DEALLOCATE {oldest}")
        self._number += 1
        name, (query, role, types) = f"again_{self._number}", key
        declared = f" ({', '.join(types)})" if types else ""
        state = self._send(f"SET LOCAL ROLE {role}; PREPARE {name}{declared} AS {text.sql}")
        if state:
            log.info("statement_not_prepared", state=state, types=types, statement=query[:300])
            if not state.startswith(_REFUSED):
                return ""
            name = ""
        self._held[key] = name
        return name

    def _looks_direct(self) -> bool:
        """Tell whether this connection is the server's own: a pooler makes up the process number that it tells."""
        if settings.LISTEN_DATABASE is not None:
            return False
        found = self._raw.pgconn.exec_(b"SELECT pg_backend_pid()").get_value(0, 0)
        return found is not None and int(found) == self._raw.pgconn.backend_pid

    def _send(self, message: str) -> str:
        """Send a message that is a transaction of its own; returns the SQLSTATE of its error, "" when it is done."""
        result = self._raw.pgconn.exec_(message.encode())
        if result.status == ExecStatus.COMMAND_OK:
            return ""
        return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"?????").decode()


def _values(text: _Text, params: Any) -> Sequence[Any] | None:
    """Return a statement's values in the order of its numbers, None when they aren't those that it has."""
    if not text.count:
        return ()
    if text.names is None:
        return params if isinstance(params, list | tuple) and len(params) == text.count else None
    if not isinstance(params, Mapping) or not all(name in params for name in text.names):
        return None
    return [params[name] for name in text.names]
