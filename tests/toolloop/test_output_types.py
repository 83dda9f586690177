"""Types as forms of an answer: what pydantic's TypeAdapter takes, on every wire, checked, or refused when it is given."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import json
import math
import subprocess
import sys
import typing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypeVar
from uuid import UUID

import pydantic
import pytest
from typing_extensions import TypedDict

from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import WIRES, Recorder, Wire
from tests.walked import each
from toolloop import Client
from toolloop.errors import ConfigurationError
from toolloop.events import StepReset
from toolloop.generation import Generation, RunFailed
from toolloop.json_reading import extract_json
from toolloop.messages import UserMessage
from toolloop.output import output_of
from toolloop.providers._common import is_strict_schema
from toolloop.providers.scripted import ScriptedProvider, says
from toolloop.structured import GenerationFailed, generate

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str
    toys: list[Cat] | None = None


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    day: date
    price: Decimal


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Tree(pydantic.BaseModel):
    name: str
    children: list[Tree] = []


class Aliased(pydantic.BaseModel):
    from_: str = pydantic.Field(alias="from")


class Wrapper(pydantic.RootModel[list[int]]):
    pass


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5
    label: str | None = None


@pydantic.dataclasses.dataclass
class Box:
    corner: Point
    size: Annotated[int, pydantic.Field(ge=1)]


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str


Score = NewType("Score", int)
Grade = Annotated[int, pydantic.Field(ge=1, le=5)]
Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]

# form, what a model writes for it (the value itself), the value it becomes
FORMS: dict[str, tuple[Any, Any, Any]] = {
    "model": (Dog, {"kind": "dog", "name": "Rex", "toys": None}, Dog(kind="dog", name="Rex")),
    "generic model": (Page[int], {"items": [1, 2]}, Page[int](items=[1, 2])),
    "recursive model": (
        Tree,
        {"name": "a", "children": [{"name": "b", "children": []}]},
        Tree(name="a", children=[Tree(name="b")]),
    ),
    "strict model": (
        Strict,
        {"day": "2026-01-31", "price": "1.10"},
        Strict(day=date(2026, 1, 31), price=Decimal("1.10")),
    ),
    "aliased model": (Aliased, {"from": "Ann"}, Aliased(**{"from": "Ann"})),
    "root model": (Wrapper, [1, 2], Wrapper([1, 2])),
    "dataclass": (Point, {"x": 1, "y": None, "label": None}, Point(1)),
    "pydantic dataclass": (
        Box,
        {"corner": {"x": 1, "y": 2.5, "label": "a"}, "size": 3},
        Box(Point(1, 2.5, "a"), 3),
    ),
    "typed dict": (Movie, {"title": "M", "year": None}, {"title": "M"}),
    "named tuple": (Pair, [1, "a"], Pair(1, "a")),
    "list of models": (list[Cat], [{"kind": "cat", "lives": None}], [Cat(kind="cat")]),
    "optional list": (list[Cat] | None, [{"kind": "cat", "lives": None}], [Cat(kind="cat")]),
    "union of models": (
        Cat | Dog,
        {"kind": "dog", "name": "Rex", "toys": [{"kind": "cat", "lives": None}]},
        Dog(kind="dog", name="Rex", toys=[Cat(kind="cat")]),
    ),
    "discriminated union": (Pet, {"kind": "cat", "lives": 3}, Cat(kind="cat", lives=3)),
    "union of a model and text": (Cat | str, "none", "none"),
    "literal": (Literal["yes", "no", 3], "no", "no"),
    "mixed literal": (Literal["yes", "no", 3], 3, 3),
    "enum": (Colour, "red", Colour.RED),
    "int": (int, 5, 5),
    "float": (float, 0.5, 0.5),
    "bool": (bool, False, False),
    "str": (str, "a } b", "a } b"),
    "none": (type(None), None, None),
    "optional with a value": (Optional[int], 3, 3),  # noqa: UP045 - the older spelling too
    "optional without": (int | None, None, None),
    "annotated": (Grade, 4, 4),
    "list of annotated": (Annotated[list[Grade], pydantic.Field(min_length=1)], [1, 5], [1, 5]),
    "new type": (Score, 7, 7),
    "date": (date, "2026-01-31", date(2026, 1, 31)),
    "datetime": (datetime, "2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    "duration": (timedelta, "PT90S", timedelta(seconds=90)),
    "decimal": (Decimal, "12345678901234567.89", Decimal("12345678901234567.89")),
    "uuid": (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    "bytes": (bytes, "abc", b"abc"),
    "dict": (dict[str, int], {"a": 1}, {"a": 1}),
    "dict with other keys": (dict[int, Cat], {"1": {"kind": "cat"}}, {1: Cat(kind="cat")}),
    "set": (set[int], [1, 2, 2], {1, 2}),
    "tuple": (tuple[int, str], [1, "a"], (1, "a")),
    "anything": (Any, {"a": [1]}, {"a": [1]}),
    "type adapter": (pydantic.TypeAdapter(list[int]), [1], [1]),
}


def written(form: Any, value: Any) -> str:
    """Return what a model that keeps to the form writes."""
    return json.dumps({"value": value} if output_of(form).is_wrapped else value)


@each("form, value, made", FORMS.values())
def test_value_comes_back_as_the_type(form: Any, value: Any, made: Any) -> None:
    output = output_of(form)
    assert output.wire.schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(output.wire.schema)
    if output.wire.strict:
        assert is_strict_schema(output.wire.schema)
    assert output.parse(written(form, value)) == (made, "")
    # Asked in words only, models leave the wrapper out.
    assert output.parse(json.dumps(value)) == (made, "")
    assert type(output.parse(written(form, value))[0]) is type(made)


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_every_wire_takes_a_list_and_gives_it_back(wire: Wire) -> None:
    text = json.dumps({"value": [{"kind": "cat", "lives": None}]})
    recorder = Recorder(wire.encode(Script(text=[text])))
    provider = wire.provider(recorder)
    made = await generate(provider=provider, model=wire.model, prompt="?", output=list[Cat])
    await provider.aclose()
    assert made.value == [Cat(kind="cat")]
    assert '"value"' in json.dumps(recorder.body)


@each("form, value, made", FORMS.values())
async def test_generate_gives_the_value_whatever_it_is(form: Any, value: Any, made: Any) -> None:
    script = [says(written(form, value))]
    got = await generate(provider=ScriptedProvider(script), model="m", prompt="?", output=form)
    assert got.value == made
    ended = await Client("m", provider=ScriptedProvider(script)).generate("?", output=form)
    assert ended.output == made
    again = Generation.from_json(json.loads(json.dumps(ended.to_json(), allow_nan=False)))
    assert (again.output is None) == (made is None)


INVALID: dict[str, tuple[Any, Any, str]] = {
    "wrong type": (int, "many", "valid integer"),
    "out of bounds": (Grade, 9, "less than or equal to 5"),
    "unknown literal": (Literal["a", "b"], "c", "'a' or 'b'"),
    "unknown member": (Colour, "green", "'red' or 'blue'"),
    "no date": (date, "2026-02-31", "date"),
    "null": (int, None, "integer"),
    "item": (list[Cat], [{"kind": "dog"}], "0.kind"),
    "no branch": (Pet, {"kind": "cow"}, "kind"),
    "missing": (Movie, {}, "title"),
}


@pytest.mark.parametrize(("form", "value", "said"), INVALID.values(), ids=INVALID)
async def test_what_does_not_fit_is_asked_for_again_a_bounded_number_of_times(
    form: Any, value: Any, said: str
) -> None:
    provider = ScriptedProvider([says(written(form, value))] * 3)
    with pytest.raises(GenerationFailed) as caught:
        await generate(provider=provider, model="m", prompt="?", output=form)
    assert caught.value.code == "invalid_output"
    assert len(provider.requests) == 3
    notice = provider.requests[1].messages[-1]
    assert isinstance(notice, UserMessage)
    assert said in notice.text
    assert "errors.pydantic.dev" not in notice.text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (float, '{"value": NaN}'),
        (float, '{"value": Infinity}'),
        (float, '{"value": -1e999}'),
        (float, '{"value": "NaN"}'),
        (list[float], '{"value": ["inf"]}'),
        (Point, '{"x": 1, "y": "nan", "label": null}'),
        (Decimal, '{"value": "NaN"}'),
        (Any, '{"value": [NaN]}'),
        ({"type": "object", "properties": {"a": {"type": "number"}}}, '{"a": NaN}'),
    ],
)
def test_nan_is_no_json(form: Any, text: str) -> None:
    value, problem = output_of(form).parse(text)
    assert value is None
    assert problem


def test_nan_is_not_found_in_texts_either() -> None:
    for text in ("NaN", '{"a": -Infinity}', "```json\n[NaN,]\n```"):
        with pytest.raises(ValueError, match=r"contains no JSON|not valid JSON"):
            extract_json(text)


def test_decimals_keep_their_digits_however_they_are_written() -> None:
    for text in ('{"value": 12345678901234567.89}', '{"value": "12345678901234567.89"}'):
        assert output_of(Decimal).parse(text)[0] == Decimal("12345678901234567.89")


class Plain:
    """A class that pydantic knows nothing of."""


def function(a: int) -> int:
    return a


UNFIT: dict[str, Any] = {
    "a class of one's own": Plain,
    "a list of them": list[Plain],
    "a function": function,
    "callable": collections.abc.Callable[[int], int],
    "an iterator": collections.abc.Iterator[int],
    "an iterable within": dict[str, collections.abc.Iterable[int]],
    "a class": type[int],
    "type": type,
    "no return": typing.NoReturn,
    "a name": "int",
    "an unknown name": list["Nobody"],  # type: ignore[name-defined]  # noqa: F821
    "a number": 5,
    "a list": [int],
    "an instance": Cat(kind="cat"),
    "a JSON Schema of a list": {"type": "array"},
}


@pytest.mark.parametrize("form", UNFIT.values(), ids=UNFIT)
async def test_what_cannot_be_done_is_refused_before_a_model_is_asked(form: Any) -> None:
    provider = ScriptedProvider([])
    with pytest.raises(ConfigurationError):
        await generate(provider=provider, model="m", prompt="?", output=form)
    with pytest.raises(ConfigurationError):
        Client("m", provider=provider).stream("?", output=form)
    assert provider.requests == []


async def test_no_form_means_text() -> None:
    ended = await Client("m", provider=ScriptedProvider([says("Hi")])).generate("?", output=None)
    assert (ended.text, ended.output) == ("Hi", None)


async def test_refusal_is_no_value_of_an_optional_form() -> None:
    client = Client("m", provider=ScriptedProvider([says("I will not", stop="refusal")]))
    with pytest.raises(RunFailed) as caught:
        await client.generate("?", output=int | None)
    assert caught.value.code == "no_answer"


async def test_invalid_answer_is_void_in_the_stream() -> None:
    provider = ScriptedProvider([says('{"value": 9}'), says('{"value": 4}')])
    async with Client("m", provider=provider).stream("?", output=Grade) as stream:
        events = [event async for event in stream]
    assert sum(isinstance(event, StepReset) for event in events) == 1
    assert stream.generation.output == 4
    assert math.isfinite(stream.generation.usage.output_total)


def test_pydantic_is_not_imported_before_a_type_is_given() -> None:
    code = (
        "import sys, toolloop.output; assert 'pydantic' not in sys.modules; "
        "toolloop.output.output_of({'type': 'object'}); assert 'pydantic' not in sys.modules; "
        "toolloop.output.output_of(list[int]); assert 'pydantic' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
