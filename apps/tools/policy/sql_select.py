"""Tell whether a text is one SQL statement that only reads: a strict reader that refuses what it does not know.

It is a filter on what a model writes, not a wall: the role that runs the statement must have no other rights. Refusing a
harmless statement costs a second attempt; so comments, dollar quotes, backslashes and unknown characters are refused, and
so is every word that begins or hides a write, even where it would be a column's name (quote it then).
"""

from __future__ import annotations

import re

MAX_CHARS = 20_000
_TOKENS = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<string>'(?:[^'\\]|'')*')
      | (?P<quoted>"(?:[^"\\]|"")*")
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<comment>--|/\*)
      | (?P<mark>[(),.*+\-/%<>=!|:\[\]&^~?@\#])
      | (?P<end>;)""",
    re.VERBOSE,
)
_WRITES = frozenset(
    """
        insert update delete merge upsert replace into truncate create alter drop rename grant revoke copy
        call do exec execute prepare deallocate declare set reset begin start commit rollback savepoint
        release lock vacuum analyze cluster reindex refresh attach detach pragma load import export install
        use listen notify unlisten discard comment security share outfile dumpfile handler kill shutdown flush
        returning nextval setval sleep benchmark waitfor openrowset load_file load_extension set_config
        query_to_xml readfile writefile
    """.split()
)
# Functions of servers that reach files, other servers, or sleep.
_PREFIXES = ("pg_", "lo_", "dblink", "xp_", "sp_", "sys_")


def select_problem(statement: str) -> str:
    """Return why a text is not one reading statement, "" when it is."""
    if len(statement) > MAX_CHARS:
        return f"a statement has at most {MAX_CHARS:,} characters"
    words: list[str] = []
    at, depth, is_over = 0, 0, False
    while at < len(statement):
        token = _TOKENS.match(statement, at)
        if token is None:
            return f"{statement[at]!r} at character {at + 1} is not accepted"
        kind, text = token.lastgroup, token.group()
        at = token.end()
        if kind == "space":
            continue
        if is_over:
            return "only one statement is allowed"
        if kind == "comment":
            return "comments are not accepted"
        if kind == "end":
            is_over = True
        elif kind == "word":
            words.append(text.lower())
        elif text in "()":
            depth += 1 if text == "(" else -1
            if depth < 0:
                return "the parentheses do not match"
        if not words and kind not in ("word", "mark"):
            return "a statement begins with SELECT or WITH"
    if depth:
        return "the parentheses do not match"
    if not words or words[0] not in ("select", "with", "values"):
        return "a statement begins with SELECT or WITH"
    found = next((w for w in words if w in _WRITES or w.startswith(_PREFIXES)), "")
    return f"{found.upper()} is not accepted" if found else ""
