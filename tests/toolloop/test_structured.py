"""Structured answers: natively on every provider, checked here, repaired on a budget of their own."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import pydantic
import pytest

from tests.toolloop.helpers import add, converse
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, OPENAI, SEARCH, WIRES, XAI, Recorder, Wire
from tests.walked import each
from toolloop.errors import ConfigurationError
from toolloop.events import StepReset
from toolloop.json_reading import clean_json, extract_json
from toolloop.limits import Limits
from toolloop.messages import Turn, UserMessage
from toolloop.output import Output, output_of, request_structured
from toolloop.providers._common import is_recursive, is_strict_schema
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import profile_for
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.structured import GenerationFailed, generate
from toolloop.tools.validation import problems_find


class Part(pydantic.BaseModel):
    sku: str = pydantic.Field(pattern=r"^A-\d+$", description="article")
    count: int = pydantic.Field(default=1, ge=1)


class Order(pydantic.BaseModel):
    """An order."""

    kind: Literal["buy", "sell"]
    parts: list[Part] = pydantic.Field(min_length=1)
    note: str | None = None
    priority: int = 3


GOOD = {"kind": "buy", "parts": [{"sku": "A-1", "count": None}], "note": None, "priority": None}
OPEN_SCHEMA = {"type": "object", "additionalProperties": {"type": "integer"}}


def schema_on_the_wire(wire: Wire, body: dict[str, Any]) -> Any:
    if wire in (OPENAI, XAI):
        assert body["text"]["format"]["type"] == "json_schema"
        assert body["text"]["format"]["strict"] is True
        assert body["text"]["format"]["name"] == "Order"
        return body["text"]["format"]["schema"]
    if wire is COMPATIBLE:
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["name"] == "Order"
        return body["response_format"]["json_schema"]["schema"]
    if wire is ANTHROPIC:
        assert body["output_config"]["format"]["type"] == "json_schema"
        return body["output_config"]["format"]["schema"]
    assert body["generationConfig"]["responseMimeType"] == "application/json"
    return body["generationConfig"]["responseJsonSchema"]


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_schema_goes_out_natively_and_the_answer_comes_back_as_a_model(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=[json.dumps(GOOD)])))
    provider = wire.provider(recorder)
    try:
        made = await generate(provider=provider, model=wire.model, prompt="Order.", output=Order)
    finally:
        await provider.aclose()
    assert made.value == Order(kind="buy", parts=[Part(sku="A-1")])
    sent = schema_on_the_wire(wire, recorder.body)
    assert is_strict_schema(sent)
    assert sent["required"] == ["kind", "parts", "note", "priority"]
    assert sent["properties"]["priority"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert "matches ^A-" in sent["$defs"]["Part"]["properties"]["sku"]["description"]


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_free_text_requests_carry_no_schema(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["Hi"])))
    provider = wire.provider(recorder)
    await generate(provider=provider, model=wire.model, prompt="Hi")
    await provider.aclose()
    body = recorder.body
    assert not {"text", "response_format"} & set(body)
    assert "format" not in body.get("output_config", {})
    assert "responseMimeType" not in body.get("generationConfig", {})


def test_effort_and_format_share_one_field_on_anthropic() -> None:
    request = ANTHROPIC.request(options={"effort": "low"}, response_schema=output_of(Order).wire)
    provider: Any = ANTHROPIC.provider(Recorder())
    config = provider.body(request)["output_config"]
    assert config["effort"] == "low"
    assert "format" in config


def test_schema_goes_into_the_prompt_when_the_model_cannot_be_told_natively() -> None:
    output = output_of(Order)
    plain = ModelRequest("gpt-4", "Be brief.", [UserMessage("x")])
    asked = request_structured(plain, output, profile_for("openai", "gpt-4"))
    assert asked.response_schema is None
    assert asked.system.startswith("Be brief.")
    assert '"kind"' in asked.system
    beside_tools = ModelRequest("gemini-2.5-pro", "", [UserMessage("x")], tools=(SEARCH,))
    profile = profile_for("google", "gemini-2.5-pro")
    assert request_structured(beside_tools, output, profile).response_schema is None
    alone = ModelRequest("gemini-2.5-pro", "", [UserMessage("x")])
    assert request_structured(alone, output, profile).response_schema is output.wire


def test_open_schema_is_sent_as_not_strict_and_said_in_the_prompt() -> None:
    output = output_of(OPEN_SCHEMA, "table")
    assert (output.wire.strict, output.wire.schema) == (False, OPEN_SCHEMA)
    request = ModelRequest("gpt-5", "", [UserMessage("x")])
    asked = request_structured(request, output, profile_for("openai", "gpt-5"))
    assert asked.response_schema is output.wire
    assert "additionalProperties" in asked.system
    provider: Any = ANTHROPIC.provider(Recorder())
    body = provider.body(ANTHROPIC.request(response_schema=output.wire))
    assert "format" not in body.get("output_config", {})


async def test_answer_is_repaired_when_it_does_not_fit() -> None:
    provider = ScriptedProvider(
        [says('{"kind": "rent", "parts": []}'), says("Sorry. " + json.dumps(GOOD), expect="kind")]
    )
    made = await generate(provider=provider, model="m", prompt="Order.", output=Order)
    assert made.value.kind == "buy"
    assert made.usage.requests == 2
    notice = provider.requests[1].messages[-1]
    assert isinstance(notice, UserMessage)
    assert notice.notice
    assert isinstance(provider.requests[1].messages[-2], Turn)


async def test_repairs_do_not_count_as_steps_and_void_what_was_streamed() -> None:
    script = [calls(call("add", a=1, b=2)), says("no json"), says('{"kind": 1}'), says(json.dumps(GOOD))]
    dialogue = await converse(script, add, limits=Limits(max_steps=2), output=output_of(Order))
    assert dialogue.end.status == "completed"
    assert dialogue.end.limit == ""
    assert isinstance(dialogue.end.output, Order)
    assert dialogue.end.text == json.dumps(GOOD)
    assert [(e.reason, e.step) for e in dialogue.of(StepReset)] == [
        ("invalid_output", 1),
        ("invalid_output", 2),
    ]


async def test_failure_is_said_when_the_repairs_are_used_up() -> None:
    provider = ScriptedProvider([says("no")] * 3)
    with pytest.raises(GenerationFailed, match="contains no JSON") as caught:
        await generate(provider=provider, model="m", prompt="Order.", output=Order)
    assert caught.value.code == "invalid_output"
    assert caught.value.usage.requests == 3


@pytest.mark.parametrize("stop", ["refusal", "filter", "length"])
async def test_refused_and_cut_answers_are_not_asked_again(stop: Any) -> None:
    provider = ScriptedProvider([says("I will not", stop=stop)])
    with pytest.raises(GenerationFailed) as caught:
        await generate(provider=provider, model="m", prompt="Order.", output=Order)
    assert caught.value.code == "no_answer"
    assert len(provider.requests) == 1


async def test_resumed_run_repairs_the_answer_it_was_killed_after() -> None:
    bad = Turn("scripted", "script-1", text="no json")
    dialogue = await converse(
        [says(json.dumps(GOOD))], history=[UserMessage("Order."), bad], first_step=1, output=output_of(Order)
    )
    assert isinstance(dialogue.end.output, Order)


async def test_json_schema_alone_gives_the_json_value() -> None:
    provider = ScriptedProvider([says('{"a": "x"}'), says('{"a": 2}')])
    made = await generate(provider=provider, model="m", prompt="?", output=OPEN_SCHEMA)
    assert made.value == {"a": 2}
    notice = provider.requests[1].messages[-1]
    assert isinstance(notice, UserMessage)
    assert "expected integer" in notice.text


def test_nulls_that_stand_for_left_out_are_removed_only_there() -> None:
    output = output_of(
        {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"]},
                "b": {"type": "integer"},
                "c": {"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]},
            },
            "required": ["a"],
            "$defs": {"C": {"type": "object", "properties": {"d": {"type": "integer"}}}},
        }
    )
    value, problem = output.parse('{"a": null, "b": null, "c": {"d": null}}')
    assert (value, problem) == ({"a": None, "c": {}}, "")
    assert output.parse('{"b": 1}')[1]


@pytest.mark.parametrize("form", ["x", {"type": "array"}, {"$ref": "#/$defs/no"}])
def test_configuration_error_when_the_form_is_none(form: Any) -> None:
    with pytest.raises(ConfigurationError):
        output_of(form)


def test_recursive_model_stays_checkable() -> None:
    class Node(pydantic.BaseModel):
        name: str
        children: list[Node] = []

    Node.model_rebuild(_types_namespace={"Node": Node})
    output = output_of(Node)
    value, problem = output.parse('{"name": "a", "children": [{"name": "b", "children": null}]}')
    assert problem == ""
    assert value.children[0].name == "b"
    assert isinstance(output, Output)
    assert output.wire.schema["type"] == "object"
    assert is_recursive(output.wire.schema)
    assert not is_recursive(output_of(Order).wire.schema)
    provider: Any = ANTHROPIC.provider(Recorder())
    asked = request_structured(ANTHROPIC.request(), output, profile_for("anthropic", ANTHROPIC.model))
    assert "format" not in provider.body(asked).get("output_config", {})
    assert "children" in asked.system
    assert is_recursive({"type": "object", "properties": {"a": {"$ref": "#"}}})


def random_schema(chosen: random.Random, depth: int = 0) -> tuple[dict[str, Any], Any]:
    """Make a schema and a value that fits it."""
    kind = chosen.choice(["string", "integer", "null?", "array", "object"][: 5 if depth < 3 else 3])
    if kind == "string":
        return {"type": "string", "minLength": 1}, "x"
    if kind == "integer":
        return {"type": "integer", "maximum": 9}, 3
    if kind == "null?":
        return {"anyOf": [{"type": "string"}, {"type": "null"}]}, chosen.choice([None, "y"])
    if kind == "array":
        items, value = random_schema(chosen, depth + 1)
        return {"type": "array", "items": items}, [value] * chosen.randint(0, 2)
    return random_object(chosen, depth + 1)


def random_object(chosen: random.Random, depth: int = 0) -> tuple[dict[str, Any], Any]:
    properties: dict[str, Any] = {}
    value: dict[str, Any] = {}
    required = []
    for name in ("type", "b", "default")[: chosen.randint(1, 3)]:
        properties[name], item = random_schema(chosen, depth)
        if chosen.random() < 0.5:
            required.append(name)
        if name in required or chosen.random() < 0.5:
            value[name] = item
    return {"type": "object", "properties": properties, "required": required}, value


def filled(value: Any, schema: dict[str, Any]) -> Any:
    """Write a value as a strict mode must: null for what is left out."""
    if isinstance(value, list):
        return [filled(item, schema["items"]) for item in value]
    if isinstance(value, dict):
        return {
            name: filled(value[name], item) if name in value else None
            for name, item in schema["properties"].items()
        }
    return value


def without_null(value: Any) -> Any:
    """Compare null and left out as one: an optional property that takes null may keep it."""
    if isinstance(value, list):
        return [without_null(item) for item in value]
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    return value


@each("seed", range(100))
def test_strict_form_takes_and_gives_back_every_value_of_the_schema(seed: int) -> None:
    schema, value = random_object(random.Random(seed))
    output = output_of(schema)
    assert output.wire.strict
    strict = filled(value, schema)
    assert problems_find(strict, output.wire.schema) == []
    parsed, problem = output.parse(json.dumps(strict))
    assert problem == ""
    assert without_null(parsed) == without_null(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```\nHope that helps {you}.', {"a": 1}),
        ("```python\nprint()\n```\n```\n[1]\n```", [1]),
        ('The answer: {"a": "}"} and more }', {"a": "}"}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": True, "b": None, "c": "None, True,]"}', {"a": True, "b": None, "c": "None, True,]"}),
        ('\ufeff{"a": "x\\"y,]"}', {"a": 'x"y,]'}),
        ("[[1], [2]] trailing", [[1], [2]]),
    ],
)
def test_json_is_found_in_what_models_write(text: str, value: Any) -> None:
    assert extract_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "no json", '{"a": 1', '{"a": [1, 2', "42 is it", '{"a" 1}', "[" * 100_000]
)
def test_broken_or_truncated_json_is_never_completed(text: str) -> None:
    with pytest.raises(ValueError, match="answer"):
        extract_json(text)


def test_clean_json_leaves_other_text_alone() -> None:
    assert clean_json("  plain words ") == "plain words"
    assert clean_json('```json\n{"a": 1}\n```') == '{"a": 1}'
