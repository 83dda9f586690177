"""Reads the SQL of a migration: what each statement does to the tables it names.

The grammar is PostgreSQL's, as far as migrations use it. A statement that isn't known is a finding, never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tenancy.upgrades.effects import Effect, Lock, Mark, Work

_NAME = r'(?:"?\w+"?\.)?"?(?P<table>\w+)"?'
_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|(?P<dollars>\$(?:[A-Za-z_]\w*)?\$).*?(?P=dollars)|E?'(?:[^'\\]|''|\\.)*'", re.DOTALL
)
_STEADY = re.compile(
    r"DEFAULT (?:NULL|TRUE|FALSE|-?[\d.]+|'[^']*'|(?:NOW|STATEMENT_TIMESTAMP|TRANSACTION_TIMESTAMP) ?\(\)|CURRENT_\w+)"
    r"(?:::[\w ]+(?:\[\])?)?(?: NOT NULL| NULL|$)",
    re.IGNORECASE,
)
"""Defaults that PostgreSQL keeps in the catalog: a constant, or what is the same for the whole statement."""
_FINE = re.compile(
    r"(?:SET|RESET|COMMENT|GRANT|REVOKE|SELECT|BEGIN|COMMIT|CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|VIEW)"
    r"|CREATE (?:EXTENSION|SCHEMA|SEQUENCE|TYPE|DOMAIN|ROLE|COLLATION|TEXT SEARCH|TEMP|TEMPORARY|MATERIALIZED VIEW)"
    r"|ALTER (?:FUNCTION|SEQUENCE|INDEX|ROLE|DEFAULT PRIVILEGES|STATISTICS)|CREATE STATISTICS|ANALYZE)\b",
    re.IGNORECASE,
)
"""Statements that lock no table that is in use, or take no longer than a look into the catalog."""
_CHANGED_ROWS = "a data move in a migration holds its row locks until all of it is done"
_JOB = "Move rows in a job that can be resumed, or give the reason in `explained`."
_CONCURRENTLY = (
    "Use tenancy.upgrades.operations.AddIndexConcurrently in a migration of its own, with atomic = False."
)
_NOT_VALID = "Add it NOT VALID, and VALIDATE CONSTRAINT in the next migration."
_EXPAND = "Add what is new, fill it by a job, and remove the old in a later release."
_CONTRACT = "Remove it one release after the last code that used it, in a migration with `contract`."


def statements_read(text: str, known_new: set[str]) -> Iterator[Effect]:
    """Yield what the statements of a text do, the first one first.

    Args:
        text: one or more statements of PostgreSQL.
        known_new: tables that this migration has made; those made here are added.
    """
    for statement in _split(text):
        for effect in _statement(statement, known_new):
            if effect.table in known_new:
                effect = replace(effect, is_new=True, problem="", instead="")
            yield replace(effect, step=f"RunSQL {effect.step}")


def _split(text: str) -> list[str]:
    """Return the statements without comments, with one space between words, and strings without what they say."""

    def plain(found: re.Match[str]) -> str:
        return " " if found[0].startswith(("--", "/*")) else "''"

    parts = (" ".join(part.split()) for part in _QUOTED.sub(plain, text).split(";"))
    return [part for part in parts if part]


def _statement(sql: str, known_new: set[str]) -> Iterator[Effect]:
    for pattern, read in _READERS:
        if found := re.match(pattern, sql, re.IGNORECASE):
            yield from read(sql, found, known_new)
            return
    if _FINE.match(sql):
        return
    yield Effect(
        _words(sql.replace("''", ""), 3),
        problem="it isn't known what this statement locks",
        instead="Give the reason in `explained`: what it locks, and for how long.",
    )


def _words(sql: str, count: int) -> str:
    return " ".join(sql.split()[:count])


def _create_table(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    known_new.add(found["table"])
    yield Effect(f"CREATE TABLE {found['table']}", found["table"])


def _create_index(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    step = f"CREATE INDEX {found['table']}"
    if found["concurrently"]:
        yield Effect(
            step,
            found["table"],
            Lock.SHARE_UPDATE_EXCLUSIVE,
            Work.INDEX,
            problem="killed midway, it leaves an index that isn't valid, and the next run stops at its name",
            instead=_CONCURRENTLY,
        )
        return
    yield Effect(
        step,
        found["table"],
        Lock.SHARE,
        Work.INDEX,
        problem="writes wait until the index is built",
        instead=_CONCURRENTLY,
    )


def _drop_index(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    lock = Lock.SHARE_UPDATE_EXCLUSIVE if found["concurrently"] else Lock.ACCESS_EXCLUSIVE
    yield Effect(f"DROP INDEX {found['table']}", "", lock)


def _drop(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    is_table = found["kind"].upper() == "TABLE"
    yield Effect(
        f"DROP {found['kind'].upper()} {found['table']}",
        found["table"] if is_table else "",
        Lock.ACCESS_EXCLUSIVE,
        problem="servers of the version before may still use it",
        instead=_CONTRACT,
        mark=Mark.CONTRACT,
    )


def _trigger(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    is_drop = found["what"].upper() == "DROP"
    step = f"{found['what'].upper()} {found['kind'].upper()} {found['table']}"
    yield Effect(step, found["table"], Lock.ACCESS_EXCLUSIVE if is_drop else Lock.SHARE_ROW_EXCLUSIVE)


def _rows(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    step = f"{found['what'].upper().split()[0]} {found['table']}"
    yield Effect(step, found["table"], Lock.ROWS, Work.DATA, problem=_CHANGED_ROWS, instead=_JOB)


def _insert(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    step = f"INSERT {found['table']}"
    if re.search(r"\bSELECT\b", sql, re.IGNORECASE):
        yield Effect(step, found["table"], Lock.ROWS, Work.DATA, problem=_CHANGED_ROWS, instead=_JOB)
    else:
        yield Effect(step, found["table"], Lock.ROWS)


def _whole_table(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    yield Effect(
        f"{found['what'].upper()} {found['table']}",
        found["table"],
        Lock.ACCESS_EXCLUSIVE,
        Work.REWRITE,
        problem="nobody can use the table until it is done",
        instead="Leave it to a time when the servers are stopped, or give the reason in `explained`.",
    )


def _alter_table(sql: str, found: re.Match[str], known_new: set[str]) -> Iterator[Effect]:
    for action in _actions(sql[found.end() :]):
        effect = _action(action, found["table"])
        yield replace(effect, step=f"{effect.step} {found['table']}", table=found["table"])


_READERS = (
    (
        rf"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?{_NAME}",
        _create_table,
    ),
    (
        rf"CREATE (?:UNIQUE )?INDEX (?P<concurrently>CONCURRENTLY )?(?:IF NOT EXISTS )?(?:\"?\w+\"? )??ON (?:ONLY )?{_NAME}",
        _create_index,
    ),
    (rf"DROP INDEX (?P<concurrently>CONCURRENTLY )?(?:IF EXISTS )?{_NAME}", _drop_index),
    (
        rf"(?P<what>CREATE|DROP|ALTER)(?: OR REPLACE)?(?: CONSTRAINT)? (?P<kind>TRIGGER|POLICY) .*?\bON {_NAME}",
        _trigger,
    ),
    (
        rf"DROP (?P<kind>TABLE|VIEW|MATERIALIZED VIEW|FUNCTION|PROCEDURE|TYPE|SCHEMA|SEQUENCE|EXTENSION) (?:IF EXISTS )?{_NAME}",
        _drop,
    ),
    (rf"(?P<what>UPDATE|DELETE FROM|MERGE INTO|WITH) (?:ONLY )?{_NAME}", _rows),
    (rf"INSERT INTO {_NAME}", _insert),
    (
        rf"(?P<what>TRUNCATE|LOCK|VACUUM|CLUSTER|REINDEX(?: TABLE| INDEX)?|REFRESH MATERIALIZED VIEW)(?: TABLE| FULL| ONLY)* {_NAME}",
        _whole_table,
    ),
    (rf"ALTER TABLE (?:IF EXISTS )?(?:ONLY )?{_NAME}\*? ", _alter_table),
)


def _actions(text: str) -> list[str]:
    """Return the parts of ALTER TABLE, which commas outside of brackets divide."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _action(action: str, table: str) -> Effect:
    """Return what one part of ALTER TABLE does; its step lacks the table."""
    words = action.upper()
    everything = Lock.ACCESS_EXCLUSIVE
    if re.match(r"ADD (CONSTRAINT|PRIMARY|UNIQUE|FOREIGN|CHECK|EXCLUDE)\b", words):
        lock = Lock.SHARE_ROW_EXCLUSIVE if "FOREIGN KEY" in words else everything
        if "NOT VALID" in words or "USING INDEX" in words:
            return Effect("ADD CONSTRAINT", lock=lock)
        is_index = bool(re.search(r"\b(PRIMARY|UNIQUE|EXCLUDE)\b", words))
        return Effect(
            "ADD CONSTRAINT",
            lock=lock,
            work=Work.INDEX if is_index else Work.READ,
            problem="every row is checked while the table is locked",
            instead=_CONCURRENTLY if is_index else _NOT_VALID,
        )
    if words.startswith("ADD "):
        return _add_column(words)
    if words.startswith("VALIDATE CONSTRAINT"):
        return Effect("VALIDATE CONSTRAINT", lock=Lock.SHARE_UPDATE_EXCLUSIVE, work=Work.READ)
    if words.startswith("DROP "):
        what = "CONSTRAINT" if words.startswith("DROP CONSTRAINT") else "COLUMN"
        return Effect(
            f"DROP {what}",
            lock=everything,
            problem="servers of the version before may still use it",
            instead=_CONTRACT,
            mark=Mark.CONTRACT,
        )
    if words.startswith("RENAME"):
        return Effect(
            "RENAME",
            lock=everything,
            problem="servers of the version before use the old name",
            instead=_EXPAND,
        )
    if re.match(r"SET (LOGGED|UNLOGGED|TABLESPACE|ACCESS METHOD)", words):
        return Effect(
            _words(words, 2),
            lock=everything,
            work=Work.REWRITE,
            problem="the table is written again while nobody can use it",
            instead="Give the reason in `explained`.",
        )
    if words.startswith("ALTER "):
        return _alter_column(words)
    if re.match(r"(SET|RESET) ?\(|(NO )?(ENABLE|DISABLE|FORCE) |OWNER TO|(NO )?INHERIT|REPLICA", words):
        return Effect(_words(words, 2), lock=everything)
    return Effect(
        _words(words, 2),
        lock=everything,
        problem="it isn't known what this does to the table",
        instead="Give the reason in `explained`: what it locks, and for how long.",
    )


def _add_column(words: str) -> Effect:
    everything = Lock.ACCESS_EXCLUSIVE
    if re.search(r"\b(PRIMARY KEY|UNIQUE)\b", words):
        return Effect(
            "ADD COLUMN",
            lock=everything,
            work=Work.INDEX,
            problem="an index is built while nobody can use the table",
            instead=_CONCURRENTLY,
        )
    if " GENERATED " in words or (" DEFAULT " in words and not _STEADY.search(words)):
        return Effect(
            "ADD COLUMN",
            lock=everything,
            work=Work.REWRITE,
            problem="the table is written again while nobody can use it",
            instead="Add it with a constant default or none, and fill it by a job.",
        )
    if "NOT NULL" in words and " DEFAULT " not in words:
        return Effect(
            "ADD COLUMN",
            lock=everything,
            problem="servers of the version before insert rows without it",
            instead="Make it nullable, or give it a database default.",
        )
    return Effect("ADD COLUMN", lock=everything)


def _alter_column(words: str) -> Effect:
    everything = Lock.ACCESS_EXCLUSIVE
    if re.search(r" (SET DATA )?TYPE ", words):
        return Effect(
            "ALTER TYPE",
            lock=everything,
            work=Work.REWRITE,
            problem="the table is written again while nobody can use it",
            instead=_EXPAND,
        )
    if "SET NOT NULL" in words:
        return Effect(
            "SET NOT NULL",
            lock=everything,
            work=Work.READ,
            problem="servers of the version before may write NULL, and every row is read under the lock",
            instead="Add CHECK (... IS NOT NULL) NOT VALID, validate it in the next migration, then give the reason.",
        )
    if "DROP DEFAULT" in words:
        return Effect(
            "DROP DEFAULT",
            lock=everything,
            problem="servers of the version before rely on the default",
            instead=_CONTRACT,
        )
    if re.search(
        r"(DROP (NOT NULL|IDENTITY|EXPRESSION)|SET (DEFAULT|STATISTICS|STORAGE|COMPRESSION|\())", words
    ):
        return Effect("ALTER COLUMN", lock=everything)
    return Effect(
        "ALTER COLUMN",
        lock=everything,
        problem="it isn't known what this does to the table",
        instead="Give the reason in `explained`: what it locks, and for how long.",
    )
