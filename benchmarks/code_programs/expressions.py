"""Random expressions by type. Every one is deterministic and ends soon, also where it ends in an exception."""

from __future__ import annotations

import random

INTS = ("0", "1", "-1", "2", "3", "7", "-7", "10", "255", "-128", "10**18", "-(2**70)", "True", "False")
FLOATS = (
    "0.0",
    "-0.0",
    "1.0",
    "2.675",
    "1.005",
    "0.1",
    "-2.5",
    "0.5",
    "1.5",
    "1e16",
    "1e-7",
    "1e300",
    "3.0",
    "123456.789",
    "float('inf')",
    "float('-inf')",
    "float('nan')",
)
TEXTS = (
    "''",
    "'a'",
    "'Hello World'",
    "'straße'",
    "'ǅungla'",
    "'İx'",
    "'  pad\\t\\n'",
    "'a,b,,c'",
    "'12'",
    "'-3'",
    "'1_000'",
    "'٣'",
    "'e\\u0301'",
    "'x\\x00y'",
    "'\\U0001f600'",
    "'a\\r\\nb\\x0bc\\u2028d'",
    "'ABC'",
    "'ÀÉ'",
    "'ﬁ'",
    "'null'",
)
BYTES = ("b''", "b'abc'", "b'\\x00\\xff'", "b'a b'", "bytes([1, 2, 250])", "bytearray(b'xyz')")
SPECS = (
    "",
    "5",
    "<8",
    ">8",
    "^9",
    "08",
    "+",
    " ",
    ",",
    "_",
    ".2f",
    ".0f",
    "10.3f",
    "e",
    ".3e",
    "g",
    ".3g",
    "G",
    "%",
    ".1%",
    "x",
    "#x",
    "X",
    "b",
    "#o",
    "c",
    "n",
    "+.2f",
    "08.3f",
    "*^12",
    "=+8",
    ">+8.1f",
    ",.2f",
    "_x",
    "z.1f",
    ".1",
    "s",
    "d",
    "5s",
    ".2s",
    "10.4",
)
PERCENTS = (
    "%d",
    "%5d",
    "%-5d|",
    "%05d",
    "%+d",
    "%x",
    "%#X",
    "%o",
    "%s",
    "%r",
    "%a",
    "%.2f",
    "%8.3e",
    "%g",
    "%c",
    "%i",
    "%5.1s|",
    "%%%d",
    "%u",
)


class Expressions:
    """Makes expressions.

    Args:
        rng: decides.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def number(self, depth: int = 2) -> str:
        if depth <= 0 or self.rng.random() < 0.25:
            return self.one(*INTS, *FLOATS)
        left, right = self.number(depth - 1), self.number(depth - 1)
        kind = self.rng.randrange(17)
        if kind < 7:
            return f"({left} {self.one('+', '-', '*', '/', '//', '%')} {right})"
        if kind == 7:
            return f"(({left}) ** {self.one('0', '1', '2', '3', '-1', '0.5', '-2.0')})"
        if kind == 8:
            return f"round({left}{self.one('', ', 0', ', 1', ', 2', ', -1', ', -2', ', None', ', 5')})"
        if kind == 9:
            return f"divmod({left}, {right})[{self.one('0', '1')}]"
        if kind == 10:
            return f"abs({left})"
        if kind == 11:
            return f"{self.one('min', 'max')}({left}, {right})"
        if kind == 12:
            return f"({left} if {self.truth(depth - 1)} else {right})"
        if kind == 13:
            return f"{self.one('int', 'float', 'bool')}({left})"
        if kind == 14:
            return f"({self.small()} {self.one('&', '|', '^', '<<', '>>')} {self.one('0', '1', '3', '7')})"
        if kind == 15:
            return f"pow({self.small()}, {self.one('0', '2', '5', '-1')}, {self.one('7', '10', '-3', '1')})"
        return f"{self.one('-', '+', '~')}{self.small()}"

    def small(self) -> str:
        return self.one("0", "1", "2", "3", "5", "-1", "-2", "-3")

    def truth(self, depth: int = 1) -> str:
        kind = self.rng.randrange(7)
        compare = self.one("<", "<=", "==", "!=", ">", ">=")
        if kind == 0:
            return f"({self.number(depth)} {compare} {self.number(depth)})"
        if kind == 1:
            return (
                f"({self.number(0)} {compare} {self.number(0)} {self.one('<', '==', '>=')} {self.number(0)})"
            )
        if kind == 2:
            return f"({self.text(0)} {self.one('in', 'not in')} {self.text(0)})"
        if kind == 3:
            return f"({self.any(depth)} {self.one('is', 'is not')} None)"
        if kind == 4:
            return f"(not {self.any(depth)})"
        if kind == 5:
            return f"isinstance({self.any(depth)}, {self.one('int', 'bool', 'float', 'str', '(int, str)', 'list | dict', 'object')})"
        return f"bool({self.any(depth)})"

    def text(self, depth: int = 2) -> str:
        if depth <= 0 or self.rng.random() < 0.3:
            return self.one(*TEXTS)
        inner = self.text(depth - 1)
        kind = self.rng.randrange(12)
        if kind < 4:
            return f"{inner}.{self._text_method()}"
        if kind == 4:
            return f"({inner} + {self.text(depth - 1)})"
        if kind == 5:
            return f"({inner} * {self.small()})"
        if kind == 6:
            return f"{inner}[{self.slice()}]"
        if kind == 7:
            return f"f'{{{self.number(1)}:{self.one(*SPECS)}}}'"
        if kind == 8:
            return f"f'<{{{self.plain(1)}!{self.one('r', 's', 'a')}}}>'"
        if kind == 9:
            return f"({self.one(*PERCENTS)!r} % {self.one(self.number(0), self.text(0), f'({self.number(0)},)')})"
        if kind == 10:
            spec = self.one(*SPECS)
            return f"'{{0:{spec}}}|{{1!r}}|{{name}}'.format({self.number(1)}, {self.plain(1)}, name={self.number(0)})"
        return f"{self.one('str', 'repr', 'ascii')}({self.plain(depth - 1)})"

    def _text_method(self) -> str:
        fill = self.one("'*'", "'-'", "'é'", "'ab'")
        part = self.text(0)
        return self.one(
            "upper()",
            "lower()",
            "title()",
            "capitalize()",
            "swapcase()",
            "casefold()",
            "strip()",
            "lstrip()",
            "rstrip()",
            "strip('a b')",
            f"center({self.one('0', '7', '12')}, {fill})",
            f"ljust(8, {fill})",
            "rjust(9)",
            f"zfill({self.one('1', '6')})",
            f"replace({part}, 'Z')",
            f"replace({part}, 'Z', {self.one('0', '1', '-1', '2')})",
            f"removeprefix({part})",
            f"removesuffix({part})",
            "expandtabs(4)",
            f"join({self.one('[]', repr(['a', 'b']), repr('xyz'), '[1]')})",
            "translate({97: 'Q', 98: None})",
            "translate(str.maketrans('ab', 'xy', 'c'))",
            "encode().decode('latin-1')",
            "format()",
        )

    def text_result(self) -> str:
        """Return a call of a text's method whose result is no text."""
        part = self.text(0)
        method = self.one(
            "split()",
            "split(',')",
            "split(',', 1)",
            "split(None, 1)",
            "rsplit(',', 1)",
            "rsplit()",
            "splitlines()",
            "splitlines(True)",
            f"partition({part})",
            f"rpartition({part})",
            f"find({part})",
            f"rfind({part}, 1)",
            f"index({part})",
            f"rindex({part}, 0, 4)",
            f"count({part})",
            f"count({part}, 1, 5)",
            f"startswith({part})",
            f"startswith(('a', {part}), 1)",
            f"endswith({part})",
            "isalpha()",
            "isdigit()",
            "isdecimal()",
            "isnumeric()",
            "isalnum()",
            "isspace()",
            "isupper()",
            "istitle()",
            "isidentifier()",
            "isprintable()",
            "isascii()",
            "encode()",
            "encode('ascii', 'replace')",
            "encode('latin-1')",
            "encode('utf-16')",
            "encode('ascii', 'xmlcharrefreplace')",
            "__len__()",
        )
        return f"{self.text(1)}.{method}"

    def slice(self) -> str:
        def bound() -> str:
            return self.one("", "0", "1", "2", "-1", "-2", "5", "-9", "None")

        if self.rng.random() < 0.2:
            return self.one("0", "-1", "1", "99", "True", "-99", "1.0", "'a'")
        step = self.one("", ":", ":1", ":2", ":-1", ":-2", ":0", ":3")
        return f"{bound()}:{bound()}{step}"

    def plain(self, depth: int = 2) -> str:
        """Return an expression of any type whose text is the same in every process."""
        kind = self.rng.randrange(9)
        if depth <= 0 or kind < 2:
            return self.one(
                self.number(0), self.text(0), "None", "True", "...", "()", "[]", "{}", "3j", "(1-2.5j)"
            )
        if kind == 2:
            return self.list(depth - 1)
        if kind == 3:
            return self.dict(depth - 1)
        if kind == 4:
            return f"({self.plain(depth - 1)}, {self.plain(depth - 1)})"
        if kind == 5:
            return self.set()
        if kind == 6:
            return self.one(*BYTES)
        if kind == 7:
            return self.text(depth - 1)
        return self.number(depth)

    any = plain

    def list(self, depth: int = 1) -> str:
        kind = self.rng.randrange(9)
        items = ", ".join(self.plain(depth - 1) for _ in range(self.rng.randrange(5)))
        if kind < 4:
            return f"[{items}]"
        if kind == 4:
            return f"[{items}][{self.slice()}]"
        if kind == 5:
            return f"list(range({self.small()}, {self.one('0', '5', '9')}, {self.one('1', '2', '-1', '3')}))"
        if kind == 6:
            return f"[{self.one('x', 'x * 2', 'x ** 2', '-x', '(x, x)', 'str(x)')} for x in range({self.one('0', '3', '6')}) if {self.one('x', 'x % 2', 'True', 'x > 1')}]"
        if kind == 7:
            return f"([{items}] * {self.one('0', '1', '2', '-1')})"
        return f"[*{self.one('(1, 2)', repr('ab'), '{3: 4}')}, {self.plain(0)}]"

    def numbers(self) -> str:
        return "[" + ", ".join(self.number(1) for _ in range(self.rng.randrange(1, 6))) + "]"

    def ints(self) -> str:
        return "[" + ", ".join(str(self.rng.randrange(-9, 30)) for _ in range(self.rng.randrange(7))) + "]"

    def words(self) -> str:
        return "[" + ", ".join(self.one(*TEXTS) for _ in range(self.rng.randrange(1, 6))) + "]"

    def key(self) -> str:
        return self.one(
            "1",
            "1.0",
            "True",
            "0",
            "False",
            "-0.0",
            "'a'",
            "'b'",
            "None",
            "(1, 2)",
            "(1.0, 2)",
            "b'k'",
            "frozenset((1,))",
            "2**61 - 1",
            "-1",
            "-2",
        )

    def dict(self, depth: int = 1) -> str:
        if self.rng.random() < 0.2:
            return f"{{k: {self.one('k', 'k * 2', 'str(k)')} for k in {self.ints()}}}"
        pairs = [f"{self.key()}: {self.plain(depth - 1)}" for _ in range(self.rng.randrange(5))]
        if self.rng.random() < 0.2:
            pairs.append("**{'a': 9, 'z': 0}")
        return "{" + ", ".join(pairs) + "}"

    def set(self) -> str:
        items = ", ".join(
            self.one("1", "2", "3.0", "True", "17", "-5", "'a'", "'b'", "(1,)", "100", "8")
            for _ in range(self.rng.randrange(1, 5))
        )
        return self.one(
            f"{{{items}}}",
            f"frozenset([{items}])",
            f"({{{items}}} | {{4, 5}})",
            f"({{{items}}} & {{1, 2, 'a'}})",
            f"({{{items}}} ^ {{1, 9}})",
            f"({{{items}}} - {{2}})",
            f"set([{items}])",
        )
