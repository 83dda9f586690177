"""``operator`` for programs: getters, and the operators as functions."""

# The interpreter that runs this file is not CPython.
# ruff: noqa: A001

from typing import Any


def itemgetter(*names: Any) -> Any:
    if len(names) == 1:
        name = names[0]
        return lambda thing: thing[name]
    return lambda thing: tuple([thing[n] for n in names])


def _walk(thing: Any, path: Any) -> Any:
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


def attrgetter(*names: Any) -> Any:
    if len(names) == 1:
        name = names[0]
        return lambda thing: _walk(thing, name)
    return lambda thing: tuple([_walk(thing, n) for n in names])


def add(a: Any, b: Any) -> Any:
    return a + b


def sub(a: Any, b: Any) -> Any:
    return a - b


def mul(a: Any, b: Any) -> Any:
    return a * b


def truediv(a: Any, b: Any) -> Any:
    return a / b


def floordiv(a: Any, b: Any) -> Any:
    return a // b


def mod(a: Any, b: Any) -> Any:
    return a % b


def pow(a: Any, b: Any) -> Any:
    return a**b


def neg(a: Any) -> Any:
    return -a


def concat(a: Any, b: Any) -> Any:
    return a + b


def and_(a: Any, b: Any) -> Any:
    return a & b


def or_(a: Any, b: Any) -> Any:
    return a | b


def xor(a: Any, b: Any) -> Any:
    return a ^ b


def not_(a: Any) -> bool:
    return not a


def truth(a: Any) -> bool:
    return bool(a)


def eq(a: Any, b: Any) -> Any:
    return a == b


def ne(a: Any, b: Any) -> Any:
    return a != b


def lt(a: Any, b: Any) -> Any:
    return a < b


def le(a: Any, b: Any) -> Any:
    return a <= b


def gt(a: Any, b: Any) -> Any:
    return a > b


def ge(a: Any, b: Any) -> Any:
    return a >= b


def is_(a: Any, b: Any) -> bool:
    return a is b


def is_not(a: Any, b: Any) -> bool:
    return a is not b


def contains(a: Any, b: Any) -> bool:
    return b in a


def getitem(a: Any, b: Any) -> Any:
    return a[b]


def setitem(a: Any, b: Any, c: Any) -> None:
    a[b] = c


def countOf(a: Any, b: Any) -> int:
    return len([item for item in a if item == b])


def indexOf(a: Any, b: Any) -> int:
    for i, item in enumerate(a):
        if item == b:
            return i
    raise ValueError("sequence.index(x): x not in sequence")
