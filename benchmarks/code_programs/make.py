"""Make programs from the fragments: the same seed gives the same program on every machine."""

from __future__ import annotations

import contextlib
import random
import re
import warnings

from benchmarks.code_programs import fragments
from benchmarks.code_programs.expressions import Expressions

_HEAD = """\
def show(f):
    try:
        value = f()
        print(type(value).__name__, repr(value))
    except Exception as e:
        print(type(e).__name__, e)
"""
_CHOICE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SLOT = re.compile(r"\$(\$|[a-zA-Z])")
FAMILIES = {
    name: [part.strip("\n") for part in text.split("\n====\n")]
    for name, text in (
        ("values", fragments.VALUES),
        ("built-in", fragments.BUILT_IN),
        ("language", fragments.LANGUAGE),
        ("modules", fragments.MODULES),
        ("tools", fragments.TOOLS),
        ("awaited", fragments.AWAITED),
    )
}


def program_make(seed: int) -> tuple[str, str]:
    """Return a program and the families of its fragments.

    Args:
        seed: any integer.
    """
    rng = random.Random(seed)
    while True:
        text, families = _made(rng)
        with contextlib.suppress(SyntaxError), warnings.catch_warnings(action="ignore"):
            compile(text, "program", "exec")
            return text, families


def _made(rng: random.Random) -> tuple[str, str]:
    made = Expressions(rng)
    families = rng.choices(list(FAMILIES), weights=(3, 3, 3, 3, 5, 2), k=rng.randrange(1, 4))
    if "awaited" in families:  # Tools are awaited in the whole program, or nowhere.
        parts = [_HEAD, _filled(rng.choice(FAMILIES["awaited"]), made)]
        return "\n".join(parts) + "\n", "awaited"
    parts = [_HEAD]
    for family in families:
        part = _filled(rng.choice(FAMILIES[family]), made)
        parts.append(_placed(part, rng))
    last = rng.randrange(4)
    if last == 0:
        parts.append(made.number(1))
    elif last == 1:
        parts.append(f"[{made.plain(1)}, lookup({rng.randrange(4)})['name']]")
    elif last == 2:
        parts.append("print('last', check(5))")
    return "\n".join(parts) + "\n", "+".join(sorted(set(families)))


def _placed(part: str, rng: random.Random) -> str:
    """Put a fragment at the top, into a function, under ``if`` or into a loop."""
    where = rng.randrange(6)
    inner = "\n".join(f"    {line}" if line else "" for line in part.split("\n"))
    plain = not re.search(r"\b(global|nonlocal|await|async|except\*)\b", part) and "\\n" not in part
    if where == 0 and plain:
        return f"def fragment():\n{inner}\nfragment()"
    if where == 1 and plain:
        return f"if rows(1):\n{inner}"
    if where == 2 and plain:
        return (
            f"try:\n{inner}\nexcept Exception as error:\n    print('fragment', type(error).__name__, error)"
        )
    return part


def _filled(part: str, made: Expressions) -> str:
    def chosen(found: re.Match[str]) -> str:
        return made.rng.choice(_alternatives(found[1]))

    def slot(found: re.Match[str]) -> str:
        match found[1]:
            case "$":
                return "$"
            case "i":
                return made.small()
            case "n":
                return made.number(1)
            case "t":
                return made.text(1)
            case "m":
                return made.text_result()
            case "p":
                return made.plain(1)
            case "L":
                return made.list(1)
            case "I":
                return made.ints()
            case "N":
                return made.numbers()
            case "W":
                return made.words()
            case "D":
                return made.dict(1)
            case "S":
                return made.set()
            case "b":
                return made.truth(1)
            case "s":
                return made.slice()
            case "k":
                return made.key()
            case _:
                return found[0]

    return _SLOT.sub(slot, _CHOICE.sub(chosen, part))


def _alternatives(text: str) -> list[str]:
    """Split at slashes, but not inside brackets or quotes; an alternative "//" begins with a slash of its own."""
    parts, depth, quote, current = [], 0, "", ""
    for i, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and text[i - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        if sign == "/" and not quote and depth <= 0:
            parts.append(current)
            current = ""
        else:
            current += sign
    return [*parts, current]
