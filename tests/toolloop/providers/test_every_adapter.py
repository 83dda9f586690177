"""What every adapter must do, through the real SDKs over a mock transport."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    KEY,
    OPENAI,
    SEARCH,
    WIRES,
    XAI,
    Recorder,
    Wire,
    play,
    stored,
)
from toolloop import errors
from toolloop.events import ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted, TurnFinished
from toolloop.messages import ToolCall, ToolResult, Turn, UserMessage
from toolloop.tokens import Usage

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
USER = UserMessage("What is the duty?")
A, B, C = Call("call_a"), Call("call_b"), Call("call_c")


def foreign_turn(*calls: Call, **changes: Any) -> Turn:
    """A turn that some other provider wrote."""
    given: dict[str, Any] = {
        "provider": "elsewhere",
        "model": "m",
        "text": "I will look.",
        "tool_calls": tuple(ToolCall(c.id, c.name, json.loads(c.raw), c.raw) for c in calls),
        "stop": "tools" if calls else "end",
        "native": [{"type": "reasoning", "encrypted_content": "SECRET-OF-ANOTHER"}],
        "account": "other",
        **changes,
    }
    return Turn(**given)


def result(call: Call, content: str = "", **changes: Any) -> ToolResult:
    return ToolResult(call.id, call.name, content or f"found for {call.id}", **changes)


# --- streaming -------------------------------------------------------------------------------------------------------


@every_wire
async def test_text_streams_and_adds_up_when_the_model_answers(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["The duty", " is 5 %."], reasoning="Hm.")))
    events, turn = await play(wire.provider(recorder), wire.request())

    assert [e.text for e in events if isinstance(e, TextDelta)] == ["The duty", " is 5 %."]
    assert turn.text == "The duty is 5 %."
    assert turn.reasoning == "Hm."
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Hm."
    assert (turn.stop, turn.provider, turn.model) == ("end", wire.name, wire.model)
    assert turn.tool_calls == ()
    assert turn.account
    assert KEY not in turn.account
    assert recorder.requests[0].url.path == wire.path


@every_wire
async def test_calls_are_announced_and_parsed_when_the_model_calls_in_parallel(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["Let me see."], calls=[A, B])))
    events, turn = await play(wire.provider(recorder), wire.request())

    assert turn.stop == "tools"
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        ("call_a", "search_documents", {"query": "duty"}),
        ("call_b", "search_documents", {"query": "duty"}),
    ]
    started = [e for e in events if isinstance(e, ToolCallStarted)]
    assert [(e.call_id, e.name) for e in started] == [(c.id, c.name) for c in turn.tool_calls]
    for call in turn.tool_calls:
        pieces = [e.delta for e in events if isinstance(e, ToolArgumentsDelta) and e.call_id == call.id]
        assert json.loads("".join(pieces)) == call.arguments


@every_wire
async def test_usage_is_normalised_when_the_provider_reports_it(wire: Wire) -> None:
    _, turn = await play(wire.provider(Recorder(wire.encode(Script(text=["x"])))), wire.request())
    written = 7 if wire in {OPENAI, XAI, ANTHROPIC} else 0
    assert turn.usage == Usage(100, 40, written, 20, 5, requests=1)


@every_wire
async def test_usage_is_zero_when_the_provider_reports_none(wire: Wire) -> None:
    body = wire.encode(Script(text=["x"], usage=False))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.usage == Usage(requests=1)


# --- calls that are not as they should be ----------------------------------------------------------------------------


@every_wire
async def test_empty_arguments_become_an_empty_object(wire: Wire) -> None:
    body = wire.encode(Script(calls=[Call("call_a", raw="")]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.tool_calls[0].arguments == {}
    assert turn.tool_calls[0].problem == ""


# On Gemini's wire, where arguments are JSON already, null means that there are none.
NO_OBJECTS = [
    (wire, raw)
    for wire in WIRES
    for raw in ("[1, 2]", '"text"', "7", "null")
    if (wire, raw) != (GOOGLE, "null")
]


@pytest.mark.parametrize(("wire", "raw"), NO_OBJECTS, ids=str)
async def test_problem_is_told_when_arguments_are_no_object(wire: Wire, raw: str) -> None:
    body = wire.encode(Script(calls=[Call("call_a", raw=raw)]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.tool_calls[0].arguments is None
    assert "object" in turn.tool_calls[0].problem


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, ANTHROPIC], ids=str)
async def test_call_is_marked_and_stop_is_length_when_it_was_truncated(wire: Wire) -> None:
    cut = Call("call_b", raw='{"query": "du')
    recorder = Recorder(wire.encode(Script(calls=[A, cut], stop="length")), wire.encode(Script(text=["ok"])))
    provider = wire.provider(recorder)
    turn = None
    async for event in provider.stream(wire.request()):
        if isinstance(event, TurnFinished):
            turn = event.turn
    assert turn is not None
    assert turn.stop == "length"
    assert turn.tool_calls[1].arguments is None
    assert "JSON" in turn.tool_calls[1].problem
    # The next request is valid whether or not somebody answered the calls.
    await play(provider, wire.request(USER, stored(turn), UserMessage("Go on.")))
    assert wire.results(recorder.body) == []
    assert wire.call_names(recorder.body) == []


async def test_stop_is_length_when_gemini_hits_the_limit_beside_a_call() -> None:
    body = GOOGLE.encode(Script(text=["x"], calls=[A], stop="length"))
    _, turn = await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert turn.stop == "length"
    assert turn.native is None


# --- histories -------------------------------------------------------------------------------------------------------


@every_wire
async def test_results_keep_call_order_when_tools_finished_out_of_order(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(calls=[A, B, C], reasoning="Hm.")))
    _, turn = await play(wire.provider(first), wire.request())
    second = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, stored(turn), result(C), result(A), result(B, "it broke", is_error=True))
    await play(wire.provider(second), wire.request(*history))

    assert wire.results(second.body) == [
        ("call_a", "found for call_a", False),
        ("call_b", "it broke", True),
        ("call_c", "found for call_c", False),
    ]
    assert wire.call_names(second.body) == ["search_documents"] * 3


@every_wire
async def test_turn_is_rendered_without_its_native_form_when_another_provider_wrote_it(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, foreign_turn(A, B), result(A), result(B))
    await play(wire.provider(recorder), wire.request(*history))

    wire_text = recorder.requests[0].content.decode()
    assert "SECRET-OF-ANOTHER" not in wire_text
    assert "I will look." in wire_text
    assert wire.call_names(recorder.body) == ["search_documents"] * 2
    assert [content for _, content, _ in wire.results(recorder.body)] == [
        "found for call_a",
        "found for call_b",
    ]


@every_wire
async def test_native_form_stays_home_when_the_account_is_another(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(text=["x"], calls=[A], reasoning="Hm.")))
    _, turn = await play(wire.provider(first, account="one"), wire.request())
    assert turn.native
    second = Recorder(wire.encode(Script(text=["done"])))
    await play(wire.provider(second, account="two"), wire.request(USER, turn, result(A)))
    sent = second.requests[0].content.decode()
    for secret in ("gA+/==", "Eq+/sig==", "CiQ+/sig==", "reasoning_content"):
        assert secret not in sent


@every_wire
async def test_call_ids_are_the_same_in_every_request_when_they_had_to_be_replaced(wire: Wire) -> None:
    odd = Call("functions.search:0/" + "x" * 80)
    bodies = []
    for _ in range(2):
        recorder = Recorder(wire.encode(Script(text=["done"])))
        await play(wire.provider(recorder), wire.request(USER, foreign_turn(odd), result(odd)))
        bodies.append(recorder.requests[0].content)
    assert bodies[0] == bodies[1]
    if wire in {OPENAI, XAI, ANTHROPIC}:
        sent_id = wire.results(json.loads(bodies[0]))[0][0]
        assert len(sent_id) <= 64
        assert sent_id.replace("_", "").isalnum()


@every_wire
async def test_unanswered_calls_are_left_out_when_a_run_was_stopped_between(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, foreign_turn(A, B), result(A), UserMessage("And now?"))
    await play(wire.provider(recorder), wire.request(*history))
    assert len(wire.call_names(recorder.body)) == len(wire.results(recorder.body)) == 1


@every_wire
async def test_request_is_refused_when_a_result_answers_no_call(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["never"])))
    with pytest.raises(errors.BadRequest, match="call_a"):
        await play(wire.provider(recorder), wire.request(USER, result(A)))
    assert recorder.requests == []


@every_wire
async def test_tools_stay_declared_when_they_may_not_be_called(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request(tool_choice="none"))
    body = recorder.body
    assert SEARCH.name in json.dumps(body["tools"])
    choice = body.get("tool_choice") or body["toolConfig"]["functionCallingConfig"]["mode"]
    assert choice in ("none", {"type": "none"}, "NONE")


@every_wire
async def test_no_identifier_leaves_in_clear_when_keys_are_given(wire: Wire) -> None:
    settings = {"send_keys": True} if wire is COMPATIBLE else {}
    bodies = []
    for _ in range(2):
        recorder = Recorder(wire.encode(Script(text=["x"])))
        request = wire.request(cache_key="tenant-7:conversation-9", user_key="ada@example.org")
        await play(wire.provider(recorder, **settings), request)
        bodies.append(recorder.requests[0].content)
    assert bodies[0] == bodies[1]
    assert b"tenant-7" not in bodies[0]
    assert b"ada@" not in bodies[0]


# --- stops -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "stop"),
    [
        *((wire, "length") for wire in WIRES),
        *((wire, "filter") for wire in (OPENAI, XAI, COMPATIBLE, GOOGLE)),
        *((wire, "refusal") for wire in (OPENAI, XAI, COMPATIBLE, ANTHROPIC)),
        (ANTHROPIC, "pause"),
        (ANTHROPIC, "context"),
    ],
    ids=lambda value: str(value),
)
async def test_stop_is_normalised(wire: Wire, stop: str) -> None:
    body = wire.encode(Script(text=["I cannot"], stop=stop))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.stop == stop
    assert turn.text == "I cannot"
    assert turn.stop_detail
    if stop != "pause":
        assert turn.native is None


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, ANTHROPIC], ids=str)
async def test_refused_turn_is_not_replayed(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(text=["I refuse"], stop="refusal")))
    _, turn = await play(wire.provider(first), wire.request())
    second = Recorder(wire.encode(Script(text=["ok"])))
    await play(wire.provider(second), wire.request(USER, turn, UserMessage("Else?")))
    assert "I refuse" not in second.requests[0].content.decode()


# --- parameters ------------------------------------------------------------------------------------------------------


@every_wire
async def test_unknown_model_gets_no_risky_parameter(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    options = {"temperature": 0.3, "effort": "high", "colour": "ultraviolet"}
    request = wire.request(model="brand-new", options=options, tool_choice="required")
    await play(wire.provider(recorder), request)
    sent = recorder.requests[0].content.decode()
    assert "ultraviolet" not in sent
    assert "high" not in sent
    assert "inking" not in sent
    assert ("temperature" in sent) is (wire is COMPATIBLE)


@pytest.mark.parametrize(
    ("wire", "model", "expected"),
    [
        (OPENAI, "gpt-4.1", {"top_p": 0.5, "parallel_tool_calls": False}),
        (XAI, "grok-4", {"parallel_tool_calls": False}),
        (
            ANTHROPIC,
            "claude-haiku-4-5",
            {
                "top_p": 0.5,
                "stop_sequences": ["END"],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
        ),
        (
            GOOGLE,
            "gemini-2.5-flash",
            {"generationConfig": {"topP": 0.5, "stopSequences": ["END"], "seed": 7}},
        ),
        (COMPATIBLE, "m", {"top_p": 0.5, "stop": ["END"], "seed": 7, "parallel_tool_calls": False}),
    ],
    ids=["openai", "xai", "anthropic", "google", "compatible"],
)
async def test_settings_go_by_the_names_of_the_provider_that_has_them(
    wire: Wire, model: str, expected: dict[str, Any]
) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    options = {"top_p": 0.5, "stop": ["END"], "seed": 7, "parallel_tool_calls": False}
    await play(wire.provider(recorder), wire.request(model=model, options=options))
    body = recorder.body
    config = {k: v for k, v in body.get("generationConfig", {}).items() if k != "thinkingConfig"}
    body = {**body, "generationConfig": config}
    assert {name: body[name] for name in expected} == expected
    names = {"top_p", "stop", "stop_sequences", "seed", "parallel_tool_calls"}
    assert names & set(body) == names & set(expected)
    temperate = Recorder(wire.encode(Script(text=["x"])))
    both = wire.request(model=model, options={"temperature": 0.2, "top_p": 0.5})
    await play(wire.provider(temperate), both)
    assert ("top_p" in temperate.body) is ("top_p" in expected and wire is not ANTHROPIC)


@every_wire
async def test_schema_is_sent_unaltered(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request())
    assert json.dumps(SEARCH.parameters) in json.dumps(recorder.body["tools"])
