"""Arithmetic that a model writes: exact where it can be, bounded always, and never Python's ``eval``.

Decimals and divisions are exact fractions, so that 0.1 + 0.2 is 0.3; roots, logarithms and angles are floats. Every number
is bounded before it is computed, because ``9**9**9`` would take all the memory there is.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

_MOST_CHARS: Final = 500
_MOST_BITS: Final = 4_096  # About 1,200 digits.
_MOST_DEPTH: Final = 60
_MOST_NODES: Final = 400
_MOST_ARGUMENTS: Final = 100
_MOST_FACTORIAL: Final = 400
_MOST_CHOICES: Final = 1_000
_SIGNIFICANT: Final = Context(prec=15)
_LONGEST_DECIMAL: Final = 40  # Places up to which a fraction that ends is shown whole.
_SIGNS: Final = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})

Number = Fraction | float


class CannotCalculate(ValueError):
    """The expression cannot be computed; the text says why, in words a model can act on."""


@dataclass(frozen=True, slots=True)
class Calculated:
    """A result; ``is_exact`` is False when it was rounded to 15 digits on the way or in the end."""

    text: str
    is_exact: bool


def calculated(expression: str) -> Calculated:
    """Compute an arithmetic expression.

    Args:
        expression: numbers, ``+ - * / // % **`` (``^`` is power too), parentheses, and the functions and constants that
            ``FUNCTIONS`` and ``CONSTANTS`` name; at most 500 characters.

    Raises:
        CannotCalculate: for anything else, and for results beyond about 1,200 digits.
    """
    text = expression.strip().translate(_SIGNS)
    if not text:
        raise CannotCalculate("The expression is empty.")
    if len(text) > _MOST_CHARS:
        raise CannotCalculate(f"The expression has more than {_MOST_CHARS} characters: compute it in parts.")
    if not text.isascii() or not (text.replace("\n", " ").replace("\t", " ").isprintable()):
        raise CannotCalculate("Write the expression with the digits 0-9 and ASCII signs only.")
    try:
        tree = ast.parse(f"(\n{text}\n)", mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        hint = " Write factorial(5) for 5!." if "!" in text else ""
        raise CannotCalculate(f"This isn't an arithmetic expression.{hint}") from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise CannotCalculate("The expression is too long: compute it in parts.")
    try:
        return _shown(_value(tree.body, 0))
    except ZeroDivisionError:
        raise CannotCalculate("This divides by zero.") from None
    except OverflowError:
        raise CannotCalculate("A number of this is too large.") from None


def _value(node: ast.expr, depth: int) -> Number:
    if depth > _MOST_DEPTH:
        raise CannotCalculate("The expression is nested too deep: compute it in parts.")
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int(value)):
            return _bounded(Fraction(value))
        case ast.Constant(value=float(value)):
            if not math.isfinite(value):
                raise CannotCalculate("A number of this is too large.")
            return _bounded(Fraction(repr(value)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, depth + 1), _value(right, depth + 1)
            if isinstance(op, ast.Pow):
                return _bounded(_power(a, b))
            compute = _OPERATORS.get(type(op))
            if compute is not None:
                return _bounded(compute(a, b))
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Name(id=name) if name in FUNCTIONS:
            raise CannotCalculate(f"{name} is a function: write {name}(...).")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            if len(arguments) > _MOST_ARGUMENTS:
                raise CannotCalculate(f"{name} takes at most {_MOST_ARGUMENTS} values.")
            return _called(name, [_value(argument, depth + 1) for argument in arguments])
        case _:
            pass
    names = ", ".join((*FUNCTIONS, *CONSTANTS))
    raise CannotCalculate(f"Only numbers, + - * / // % ** ( ) and these are known: {names}.")


def _called(name: str, values: list[Number]) -> Number:
    try:
        return _bounded(FUNCTIONS[name](*values))
    except TypeError:
        raise CannotCalculate(f"{name} does not take {len(values)} values.") from None
    except ValueError as error:
        if isinstance(error, CannotCalculate):
            raise
        raise CannotCalculate(f"{name} is not defined for this value.") from None


def _bounded(value: Number | int) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CannotCalculate("A number of this is too large, or not defined.")
        return value
    exact = Fraction(value)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        raise CannotCalculate("A number of this is too large: the most is about 1,200 digits.")
    return exact


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        times = abs(exponent.numerator)
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        # 0, 1 and -1 have one bit, and stay small whatever the exponent is.
        if bits > 1 and times * (bits - 1) > _MOST_BITS:
            raise CannotCalculate("This power is too large: the most is about 1,200 digits.")
        if abs(base) <= 1 and base.denominator == 1:
            times = times % 2 if base else min(times, 1)
            exponent = Fraction(times if exponent >= 0 else -times)
        return Fraction(base**exponent)
    found: Any = float(base) ** float(exponent)
    if isinstance(found, complex):
        raise CannotCalculate("The root of a negative number isn't a real number.")
    return float(found)


def _root(value: Number) -> Number:
    if value < 0:
        raise CannotCalculate("The root of a negative number isn't a real number.")
    if isinstance(value, Fraction):
        above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if above**2 == value.numerator and below**2 == value.denominator:
            return Fraction(above, below)
    return math.sqrt(value)


def _rounded(value: Number, places: Number = Fraction(0)) -> Number:
    digits = _whole("round", places, -20, 20)
    return Fraction(round(Fraction(value), digits))


def _whole(name: str, value: Number, least: int, most: int | None) -> int:
    if value != int(value) or value < least or (most is not None and value > most):
        reach = f"from {least} up" if most is None else f"from {least} to {most}"
        raise CannotCalculate(f"{name} takes whole numbers {reach} here.")
    return int(value)


def _logarithm(value: Number, base: Number | None = None) -> float:
    top = _ln(value)
    return top if base is None else top / _ln(base)


def _ln(value: Number) -> float:
    if isinstance(value, Fraction) and value > 0:  # Its parts may be too large for a float.
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)


def _log_of(base: int) -> Callable[[Number], float]:
    compute = math.log10 if base == 10 else math.log2

    def logarithm(value: Number) -> float:
        if isinstance(value, Fraction) and value > 0:
            return compute(value.numerator) - compute(value.denominator)
        return compute(value)

    return logarithm


def _sum(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total += value
    return total


def _mean(first: Number, *others: Number) -> Number:
    return _sum(first, *others) / (1 + len(others))


def _integers(name: str, compute: Callable[..., int], most: int | None) -> Callable[..., Number]:
    def function(*values: Number) -> Number:
        return Fraction(compute(*(_whole(name, value, 0, most) for value in values)))

    return function


CONSTANTS: Final[dict[str, float]] = {"pi": math.pi, "e": math.e, "tau": math.tau}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs,
    "round": _rounded,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "trunc": lambda value: Fraction(math.trunc(value)),
    "min": lambda first, *others: min((first, *others)),
    "max": lambda first, *others: max((first, *others)),
    "sum": _sum,
    "mean": _mean,
    "sqrt": _root,
    "hypot": math.hypot,
    "exp": math.exp,
    "ln": _logarithm,
    "log": _logarithm,
    "log2": _log_of(2),
    "log10": _log_of(10),
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "degrees": math.degrees,
    "radians": math.radians,
    "factorial": _integers("factorial", math.factorial, _MOST_FACTORIAL),
    "comb": _integers("comb", math.comb, _MOST_CHOICES),
    "perm": _integers("perm", math.perm, _MOST_FACTORIAL),
    "gcd": _integers("gcd", math.gcd, None),
    "lcm": _integers("lcm", math.lcm, None),
}
_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Number | int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _shown(value: Number) -> Calculated:
    if isinstance(value, float):
        return Calculated(_decimal_text(_SIGNIFICANT.create_decimal_from_float(value)), False)
    if value.denominator == 1:
        return Calculated(str(value.numerator), True)
    places = _places(value.denominator)
    if places is not None:
        digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
        sign = "-" if value < 0 else ""
        return Calculated(f"{sign}{digits[:-places]}.{digits[-places:]}", True)
    rounded = _SIGNIFICANT.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Calculated(_decimal_text(rounded), False)


def _places(denominator: int) -> int | None:
    """Return the decimal places of a fraction that ends soon, None for others."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    places = max(twos, fives)
    return places if denominator == 1 and places <= _LONGEST_DECIMAL else None


def _decimal_text(value: Decimal) -> str:
    if value == value.to_integral_value() and abs(value) < Decimal(10) ** 15:
        return str(int(value))
    if -7 <= value.adjusted() < 15:
        return f"{value:f}"
    return str(value)
