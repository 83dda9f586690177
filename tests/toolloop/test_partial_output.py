"""A structured answer while it streams: what is shown is certain, grows, and ends as the checked value."""

from __future__ import annotations

import itertools
import json
import random
from datetime import date
from typing import Annotated, Any, Literal

import pydantic
import pytest

from tests.toolloop.helpers import add
from tests.toolloop.test_output_types import FORMS, written
from tests.walked import each
from toolloop import Client
from toolloop.errors import ConfigurationError
from toolloop.events import RunFinished, StepReset, TextDelta, TurnFinished
from toolloop.generation import RunFailed
from toolloop.messages import Turn
from toolloop.output import output_of
from toolloop.partial_output import PartialOutput
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tokens import Usage


class Item(pydantic.BaseModel):
    sku: str = pydantic.Field(pattern=r"^A-\d+$")
    count: int = pydantic.Field(ge=1)
    note: str = ""


class Report(pydantic.BaseModel):
    title: str
    kind: Literal["long", "short"]
    day: date
    grade: Annotated[int, pydantic.Field(ge=1, le=5)]
    items: list[Item]


WHOLE = {
    "title": 'A "report" \\ with é, 😀 and \n',
    "kind": "long",
    "day": "2026-01-31",
    "grade": 12,
    "items": [{"sku": "A-1", "count": 12, "note": "half"}, {"sku": "A-2", "count": 3, "note": None}],
}


def seen(form: Any, pieces: list[str]) -> list[Any]:
    """Return the values that come while a text streams."""
    partial = PartialOutput(form)
    return [partial.value for piece in pieces if partial.see(TextDelta(piece))]


def test_each_member_is_shown_as_soon_as_it_is_certain() -> None:
    good = {**WHOLE, "grade": 4, "title": "Hi"}
    values = seen(Report, list(json.dumps(good)))
    assert values[:3] == [{}, {"title": ""}, {"title": "H"}]
    # Half of a fixed word, of a date and of a number are never shown.
    assert {v.get("kind") for v in values} == {None, "long"}
    assert {v.get("day") for v in values} == {None, "2026-01-31"}
    assert {v.get("grade") for v in values} == {None, 4}
    items = [v["items"] for v in values if "items" in v]
    assert items[:4] == [[], [{}], [{"sku": "A-1"}], [{"sku": "A-1", "count": 12}]]
    assert [{"sku": "A-1", "count": 12, "note": "hal"}] in items
    assert items[-1] == [{"sku": "A-1", "count": 12, "note": "half"}, {"sku": "A-2", "count": 3}]


def test_member_that_does_not_fit_is_left_out_and_an_item_ends_its_list() -> None:
    values = seen(Report, list(json.dumps(WHOLE)))
    assert all("grade" not in value for value in values)
    assert values[-1]["items"][0]["sku"] == "A-1"
    bad = {"items": [{"sku": "A-1", "count": 1, "note": ""}, {"sku": "B", "count": 1}, {"sku": "A-3"}]}
    last = seen(Report, [json.dumps(bad)[:-3]])[-1]
    assert [item.get("sku") for item in last["items"]] == ["A-1", None] or len(last["items"]) == 1


def grows(before: Any, after: Any) -> bool:
    """Tell whether nothing that was shown is taken back: texts and lists get longer, objects get members."""
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(grows, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and grows(value, after[name]) for name, value in before.items())
    return bool(before == after)


@each("seed", range(30))
def test_values_only_grow_however_the_text_is_cut_and_whatever_is_around_it(seed: int) -> None:
    chosen = random.Random(seed)
    text = json.dumps(
        {**WHOLE, "grade": 4}, ensure_ascii=chosen.random() < 0.5, indent=chosen.choice([None, 2])
    )
    if chosen.random() < 0.5:
        text = f"Here it is:\n```json\n{text}\n```\nDone {{x}}."
    pieces, at = [], 0
    while at < len(text):
        size = chosen.randint(1, 7)
        pieces.append(text[at : at + size])
        at += size
    values = seen(Report, pieces)
    assert len(values) > 12
    for before, after in itertools.pairwise(values):
        assert grows(before, after)
    json.dumps(values, ensure_ascii=False).encode()  # no half of a pair
    expected = output_of(Report).parse(text)[0]
    assert Report.model_validate(values[-1]) == expected


@each("form, value, made", FORMS.values())
def test_every_form_streams_to_its_value(form: Any, value: Any, made: Any) -> None:
    partial = PartialOutput(form)
    shown = [partial.value for piece in written(form, value) if partial.see(TextDelta(piece))]
    for before, after in itertools.pairwise(shown):
        assert grows(before, after)
    assert partial.see(RunFinished("completed", "", Usage(), output=made, has_output=True))
    assert partial.value == made
    assert partial.is_final


def test_half_an_answer_of_a_union_shows_the_branch_that_it_can_be() -> None:
    class Cat(pydantic.BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(pydantic.BaseModel):
        kind: Literal["dog"]
        name: str

    values = seen(list[Cat | Dog], list('{"value": [{"kind": "dog", "name": "Re'))
    assert values[-1] == [{"kind": "dog", "name": "Re"}]


async def test_client_streams_partial_values_and_then_the_checked_one() -> None:
    good = {**WHOLE, "grade": 4}
    script = [says(list(json.dumps(WHOLE))), says(list(json.dumps(good)))]
    async with Client("m", provider=ScriptedProvider(script)).stream("?", output=Report) as stream:
        values = [value async for value in stream.outputs()]
    assert isinstance(values[-1], Report)
    assert values[-1] == stream.generation.output
    assert all(isinstance(value, dict) for value in values[:-1])
    assert sum(value == {} for value in values) == 2  # The second answer begins with nothing again.


async def test_words_before_a_tool_call_are_no_part_of_the_answer() -> None:
    script = [says('{"value": [9', call("add", a=1, b=2)), says('{"value": [1, 2]}')]
    client = Client("m", provider=ScriptedProvider(script), tools=[add])
    async with client.stream("?", output=list[int]) as stream:
        values = [value async for value in stream.outputs()]
    assert values[-1] == [1, 2]
    assert [9] not in values


async def test_paused_answer_goes_on_in_the_next_turn() -> None:
    partial = PartialOutput(list[int])
    partial.see(TextDelta('{"value": [1, '))
    partial.see(TurnFinished(Turn("p", "m", text='{"value": [1, ', stop="pause")))
    assert partial.see(TextDelta("2, ", 1))
    assert partial.value == [1, 2]
    assert partial.see(StepReset("cut", 1))
    assert partial.value is None


async def test_failed_run_raises_at_the_end_of_its_values() -> None:
    provider = ScriptedProvider([says(list('{"value": [1, "x"]}'))] * 3)
    values: list[Any] = []

    async def read() -> None:
        async with Client("m", provider=provider).stream("?", output=list[int]) as stream:
            async for value in stream.outputs():
                values.append(value)  # noqa: PERF401 - what came before the failure is kept

    with pytest.raises(RunFailed, match="form asked for"):
        await read()
    assert values[-1] == [1]


async def test_parked_run_ends_without_a_value_and_text_has_none() -> None:
    async with Client("m", provider=ScriptedProvider([says("Hi")])).stream("?") as stream:
        with pytest.raises(ConfigurationError, match="output="):
            await anext(stream.outputs())
    from toolloop.tools import Tool

    guarded = Tool("add", "Add.", add.parameters, add.function, needs_approval=True)
    provider = ScriptedProvider([calls(call("add", a=1, b=2))])
    async with Client("m", provider=provider, tools=[guarded]).stream("?", output=int) as stream:
        assert [value async for value in stream.outputs()] == []
    assert stream.generation.status == "parked"


def test_cost_of_a_long_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolloop import partial_output

    reads: list[int] = []
    read = partial_output._Prefix.read

    def counted(self: Any) -> Any:
        reads.append(self.length)
        return read(self)

    monkeypatch.setattr(partial_output._Prefix, "read", counted)
    text = json.dumps({"value": [f"item {number}" for number in range(1_500)]})
    values = seen(list[str], [text[at : at + 4] for at in range(0, len(text), 4)])
    assert len(values[-1]) > 1_400
    assert len(reads) < 500  # of 5,000 deltas
    assert sum(reads) < 80 * len(text)
