"""Whatever a tool returns: it took effect once, and the model learns so; nothing that is no JSON leaves the loop."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import threading
import types
import uuid
import zoneinfo
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import product
from typing import Any, Literal, NamedTuple, NewType

import numpy
import pydantic
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.toolloop.helpers import converse
from tests.walked import each
from toolloop.messages import ToolResult
from toolloop.providers.scripted import ScriptedCall, call, calls, says
from toolloop.storable import json_storable
from toolloop.tools import ToolContext, ToolDefinitionError, ToolOutput, tool
from toolloop.tools.results import NoJsonForm, json_copy, json_text


class Colour(enum.Enum):
    RED = "red"
    OTHER = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Part:
    name: str
    price: decimal.Decimal
    when: dt.date | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    parts: tuple[Part, ...]
    colours: frozenset[Colour] = frozenset()


class Row(pydantic.BaseModel):
    day: dt.date
    amount: decimal.Decimal
    data: bytes = b"ab"
    maybe: float = float("nan")


class Opaque(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    lock: Any = None


class Pair(NamedTuple):
    a: int
    b: str


def counted(n: int) -> Iterator[int]:
    yield from range(n)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: Any = 1
for _ in range(5000):
    DEEP = [DEEP]

SHOWN: dict[str, tuple[Callable[[], Any], Any]] = {
    "dataclass": (
        lambda: Part("a", decimal.Decimal("1.10"), dt.date(2026, 1, 2)),
        {"name": "a", "price": "1.10", "when": "2026-01-02"},
    ),
    "nested dataclass": (
        lambda: Whole((Part("a", decimal.Decimal(1)),), frozenset({Colour.RED})),
        {"parts": [{"name": "a", "price": "1", "when": None}], "colours": ["red"]},
    ),
    "pydantic model": (
        lambda: Row(day=dt.date(2026, 1, 2), amount=decimal.Decimal("0.1")),
        {"day": "2026-01-02", "amount": "0.1", "data": "ab", "maybe": "NaN"},
    ),
    "models in a list": (
        lambda: [Row(day=dt.date(2026, 1, 2), amount=decimal.Decimal(1), maybe=1)],
        [{"day": "2026-01-02", "amount": "1", "data": "ab", "maybe": 1}],
    ),
    "binary in a model": (
        lambda: Row(day=dt.date(2026, 1, 2), amount=decimal.Decimal(1), data=b"\xff", maybe=0),
        {"day": "2026-01-02", "amount": "1", "data": "data:;base64,/w==", "maybe": 0},
    ),
    "decimal": (lambda: decimal.Decimal("1.10"), "1.10"),
    "decimal nan": (lambda: [decimal.Decimal("NaN"), decimal.Decimal("-Infinity")], ["NaN", "-Infinity"]),
    "bytes": (lambda: b"text", "text"),
    "binary": (lambda: [b"\xff\x00", bytearray(b"a"), memoryview(b"b")], ["data:;base64,/wA=", "a", "b"]),
    "date": (lambda: dt.date(2026, 1, 2), "2026-01-02"),
    "times": (
        lambda: [
            dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC),
            dt.time(4, 5),
            dt.timedelta(days=1, hours=2),
            -dt.timedelta(minutes=30),
            dt.timedelta(0),
        ],
        ["2026-01-02T03:00:00+00:00", "04:05:00", "P1DT2H", "-PT30M", "PT0S"],
    ),
    "uuid": (lambda: uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "path": (lambda: pathlib.PurePosixPath("/a/b"), "/a/b"),
    "addresses": (
        lambda: [ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8")],
        ["::1", "10.0.0.0/8"],
    ),
    "zone": (lambda: zoneinfo.ZoneInfo("Europe/Berlin"), "Europe/Berlin"),
    "enum": (lambda: [Colour.RED, Colour.OTHER, Level.HIGH], ["red", "OTHER", 3]),
    "set": (lambda: {"b", "a"}, ["a", "b"]),
    "mixed set": (lambda: {1, "a", None}, ["a", 1, None]),
    "tuple": (lambda: (1, (2,)), [1, [2]]),
    "named tuple": (lambda: Pair(1, "x"), [1, "x"]),
    "deque": (lambda: collections.deque([1]), [1]),
    "generator inside": (lambda: {"n": counted(3)}, {"n": [0, 1, 2]}),
    "range and views": (
        lambda: [range(2), {"b": 1, "a": 2}.keys(), {"a": 2}.items()],
        [[0, 1], ["b", "a"], [["a", 2]]],
    ),
    "odd keys": (
        lambda: {2: "a", None: "b", True: "c", dt.date(2026, 1, 2): "d", (1, 2): "e"},
        {"2": "a", "null": "b", "true": "c", "2026-01-02": "d", "[1, 2]": "e"},
    ),
    "not finite": (
        lambda: [float("nan"), float("inf"), -float("inf"), 0.5],
        ["NaN", "Infinity", "-Infinity", 0.5],
    ),
    "huge int": (lambda: [10**3000, 1 << 20_000], [10**3000, hex(1 << 20_000)]),
    "lone surrogate": (lambda: {"a\ud800": "b\udfff"}, {"a\ufffd": "b\ufffd"}),
    "nul": (lambda: ["a\x00b"], ["a\ufffdb"]),
    "numpy": (
        lambda: [
            numpy.float64(0.5),
            numpy.int64(3),
            numpy.bool_(True),
            numpy.array([1, 2]),
            numpy.float32("nan"),
        ],
        [0.5, 3, True, [1, 2], "NaN"],
    ),
    "fraction, complex, pattern": (
        lambda: [fractions.Fraction(1, 3), 1 + 2j, re.compile("a+")],
        ["1/3", "(1+2j)", "a+"],
    ),
    "exception": (lambda: ValueError("no"), "ValueError: no"),
    "namespace": (lambda: types.SimpleNamespace(a={1}), {"a": [1]}),
}
HIDDEN: dict[str, Callable[[], Any]] = {
    "object": object,
    "lock": lambda: {"x": threading.Lock()},
    "function": lambda: [counted],
    "class": lambda: Row,
    "circle": lambda: CIRCLE,
    "deep": lambda: DEEP,
    "keys that clash": lambda: {1: "a", "1": "b"},
    "keys that clash inside": lambda: [{1.0: "a", "1.0": "b"}],
    "opaque model": lambda: Opaque(lock=threading.Lock()),
    "bad repr": lambda: {Unspeakable(): 1},
    "payload": lambda: ToolOutput("text", {"x": object()}),
}


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


async def result_of(make: Callable[[], Any], *, is_plain: bool) -> tuple[ToolResult, list[str]]:
    """Run a tool that takes effect and returns something, as a model's call; return its result and the effects."""
    effects: list[str] = []

    @tool(side_effects=True)
    async def act():
        """Act."""
        effects.append("done")
        return make()

    @tool(side_effects=True)
    def act_plain():
        """Act."""
        effects.append("done")
        return make()

    name = "act_plain" if is_plain else "act"
    dialogue = await converse([calls(call(name)), says("done")], act, act_plain)
    assert dialogue.end.status == "completed"
    (result,) = dialogue.told()
    return result, effects


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@each("kind, is_plain", product(SHOWN, [False, True]))
async def test_result_of_every_type_is_shown(kind: str, is_plain: bool) -> None:
    make, expected = SHOWN[kind]
    result, effects = await result_of(make, is_plain=is_plain)
    assert (result.is_error, effects) == (False, ["done"])
    if isinstance(expected, str):
        assert result.content == expected
    else:
        assert strict(result.content) == expected
        assert result.payload == expected
    # What is written down is what was said.
    assert json_storable(result.to_json()) == strict(json.dumps(result.to_json(), allow_nan=False))
    result.content.encode()


@pytest.mark.parametrize("kind", HIDDEN)
async def test_result_that_cannot_be_shown_says_that_the_call_was_carried_out(kind: str) -> None:
    result, effects = await result_of(HIDDEN[kind], is_plain=False)
    assert (result.is_error, result.error_code, effects) == (False, "", ["done"])
    assert "was carried out, but its result cannot be shown" in result.content
    assert "error" not in result.content.lower()
    strict(json.dumps(result.to_json(), allow_nan=False))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.decimals()
    | st.uuids()
    | st.fractions()
    | st.sampled_from(Colour)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.floats() | st.dates(), inner, max_size=4)
        | st.builds(Part, st.text(max_size=3), st.decimals())
    ),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(value=anything)
def test_any_mixture_is_json_or_is_refused(value: Any) -> None:
    try:
        text, plain = json_text(value)
    except NoJsonForm:
        assume(False)  # Two keys of one text.
    text.encode()
    assert "\x00" not in text
    assert strict(text) == plain
    assert json_storable(plain) == plain, "a store changes nothing"
    assert repr(json_copy(value)) == repr(plain), "a copy is what the text holds, type by type"


@pytest.mark.parametrize(
    "plain", [{"a": [1, -0.0, 1e22, True, None, "é"], "b": {"": []}}, [[]], "", 0, 2**13_000, "x" * 9]
)
def test_a_copy_of_plain_json_is_equal_and_shares_nothing_that_changes(plain: Any) -> None:
    copy = json_copy(plain)
    assert repr(copy) == repr(plain)
    assert not isinstance(plain, dict | list) or copy is not plain


@pytest.mark.parametrize(
    "odd",
    [
        "\x00",
        "\ud800",
        {"\x00": 1},
        {"a\udfff": [2]},
        {1: "a"},
        {True: 1, "b": (1, 2)},
        [float("nan")],
        [Level.HIGH],
    ],
    ids=repr,
)
def test_a_copy_of_anything_else_is_what_its_text_holds(odd: Any) -> None:
    assert repr(json_copy(odd)) == repr(json_text(odd)[1])


def test_a_copy_of_what_contains_itself_is_refused() -> None:
    round_: list[Any] = []
    round_.append(round_)
    with pytest.raises(NoJsonForm):
        json_copy(round_)


class Socket:
    """A class without a JSON form."""


@dataclasses.dataclass
class Holder:
    inner: list[Socket]


def gives_socket() -> Socket:
    raise NotImplementedError


def gives_list() -> list[Socket]:
    raise NotImplementedError


def gives_maybe() -> dict[str, Socket] | None:
    raise NotImplementedError


def gives_holder() -> Holder:
    raise NotImplementedError


def gives_function() -> Callable[[], int]:
    raise NotImplementedError


def gives_lock() -> threading.Event:
    raise NotImplementedError


async def gives_stream() -> AsyncIterator[Socket]:
    yield Socket()


@pytest.mark.parametrize(
    "function",
    [gives_socket, gives_list, gives_maybe, gives_holder, gives_function, gives_lock, gives_stream],
)
def test_tool_is_refused_when_its_return_type_has_no_json_form(function: Any) -> None:
    function.__doc__ = "Give."
    with pytest.raises(ToolDefinitionError, match="has no JSON form"):
        tool(function)


@each(
    "hint",
    [
        str,
        int | None,
        list[Part],
        dict[str, Row],
        Whole,
        Pair,
        Colour,
        set[int],
        bytes,
        decimal.Decimal,
        uuid.UUID,
        pathlib.Path,
        tuple[int, ...],
        Any,
        object,
        None,
        ToolOutput,
        Iterator[str],
        AsyncIterator[dt.date],
        Literal["a"],
        NewType("Number", int),
        collections.OrderedDict[str, int],
        numpy.float64,
        BaseException,
        collections.abc.Sequence[str],
        dict[int, dt.timedelta],
        zoneinfo.ZoneInfo,
        ipaddress.IPv4Address,
    ],
)
def test_tool_is_taken_when_its_return_type_has_a_json_form(hint: Any) -> None:
    def give():
        """Give."""

    give.__annotations__["return"] = hint
    assert tool(give).name == "give"


# Arguments

ARGUMENTS: list[tuple[Any, Any, Any]] = [
    (
        Part,
        {"name": "a", "price": "1.10", "when": "2026-01-02"},
        Part("a", decimal.Decimal("1.10"), dt.date(2026, 1, 2)),
    ),
    (list[Part], [{"name": "a", "price": 2}], [Part("a", decimal.Decimal(2))]),
    (
        Row,
        {"day": "2026-01-02", "amount": "1", "maybe": 0},
        Row(day=dt.date(2026, 1, 2), amount=decimal.Decimal(1), maybe=0),
    ),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
    (bytes, "text", b"text"),
    (dt.date, "2026-01-02", dt.date(2026, 1, 2)),
    (dt.datetime, "2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    (dt.time, "04:05:00", dt.time(4, 5)),
    (dt.timedelta, "P1DT2H", dt.timedelta(days=1, hours=2)),
    (uuid.UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
    (pathlib.Path, "/a", pathlib.Path("/a")),
    (set[dt.date], ["2026-01-02"], {dt.date(2026, 1, 2)}),
    (frozenset[int], [1, 2], frozenset({1, 2})),
    (tuple[int, dt.date], [1, "2026-01-02"], (1, dt.date(2026, 1, 2))),
    (Pair, [1, "x"], Pair(1, "x")),
    (Colour, "red", Colour.RED),
    (Colour, "OTHER", Colour.OTHER),
    (Level, 3, Level.HIGH),
    (Literal["a", 1], 1, 1),
    (Literal[Colour.RED], "red", Colour.RED),
    (dt.date | int, "2026-01-02", dt.date(2026, 1, 2)),
    (dt.date | str, "soon", "soon"),
    (dt.date | uuid.UUID | str, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
    (Part | None, None, None),
    (dict[str, decimal.Decimal], {"a": "1"}, {"a": decimal.Decimal(1)}),
    (NewType("Day", dt.date), "2026-01-02", dt.date(2026, 1, 2)),
    (collections.deque[int], [1], collections.deque([1])),
    (ipaddress.IPv4Address, "10.0.0.1", ipaddress.IPv4Address("10.0.0.1")),
]


@each("hint, given, expected", ARGUMENTS)
async def test_argument_is_of_its_annotated_type(hint: Any, given: Any, expected: Any) -> None:
    got: list[Any] = []

    async def take(value: Any, ctx: ToolContext) -> str:
        """Take."""
        got.append(value)
        return "taken"

    take.__annotations__["value"] = hint
    made = tool(take)
    strict(json.dumps(made.parameters, allow_nan=False))
    dialogue = await converse([calls(call("take", value=given)), says("done")], made)
    assert dialogue.told()[-1].content == "taken"
    assert got == [expected]
    assert type(got[0]) is type(expected)


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        (dt.date, "soon"),
        (dt.date, 3),
        (decimal.Decimal, "much"),
        (uuid.UUID, "x"),
        (Part, {"name": "a"}),
        (Colour, "blue"),
        (dt.date | uuid.UUID, "x"),
        (set[dt.date], ["x"]),
        (Literal["a"], "b"),
        (Pair, [1]),
        (list[Part], [{"name": 1}]),
    ],
)
async def test_call_is_not_made_when_an_argument_is_none_of_its_type(hint: Any, given: Any) -> None:
    async def take(value: Any) -> str:
        """Take."""
        raise AssertionError("never called")

    take.__annotations__["value"] = hint
    dialogue = await converse([calls(call("take", value=given)), says("done")], tool(take))
    (result,) = dialogue.told()
    assert result.error_code == "invalid_arguments"
    assert "value" in result.content


@pytest.mark.parametrize("hint", [Socket, Callable[[], int], list[Socket], Holder, Literal[b"x"]])
def test_tool_is_refused_when_an_argument_has_no_json_form(hint: Any) -> None:
    def take(value: Any) -> str:
        """Take."""
        return ""

    take.__annotations__["value"] = hint
    with pytest.raises(ToolDefinitionError, match="no JSON form"):
        tool(take)


async def test_arguments_that_are_no_json_never_reach_a_tool() -> None:
    @tool
    async def take(value: Any) -> str:
        """Take."""
        raise AssertionError("never called")

    for raw in ('{"value": NaN}', '{"value": [Infinity]}', '{"value": 1e999}', '{"value": {"a": -1e999}}'):
        script = [calls(ScriptedCall("take", {}, raw=raw)), says("done")]
        dialogue = await converse(script, take)
        assert dialogue.told()[-1].error_code == "invalid_arguments", raw


async def test_default_of_any_type_leaves_the_schema_json() -> None:
    @tool
    async def take(
        day: dt.date = dt.date(2026, 1, 2), rate: float = float("nan"), thing: Any = CIRCLE
    ) -> str:
        """Take."""
        return f"{day} {rate}"

    schema = strict(json.dumps(take.parameters, allow_nan=False))["properties"]
    assert schema["day"]["default"] == "2026-01-02"
    assert "default" not in schema["thing"]
    dialogue = await converse([calls(call("take")), says("done")], take)
    assert dialogue.told()[-1].content == "2026-01-02 nan"
