"""Two-turn echo: what a provider signed or encrypted goes through our JSON store and back, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    XAI,
    Recorder,
    Wire,
    play,
    stored,
)
from toolloop.messages import ToolResult, Turn, UserMessage

USER = UserMessage("What is the duty?")
# Both alphabets of base64, escapes, non-ASCII and key order: whatever a re-encoding would change.
SECRET = "EqQBCkYIBxgCKkD+/zA9_-==\\u00e9 é \u2028 \n\t\"'<>&"


async def two_turns(wire: Wire, first: bytes, call_id: str = "call_a", **settings: Any) -> Any:
    """Play a turn with one call, store and reload it, answer the call; return the turn and the second request."""
    recorder = Recorder(first, wire.encode(Script(text=["done"])))
    provider = wire.provider(recorder, **settings)
    events = [event async for event in provider.stream(wire.request(USER))]
    turn = stored(events[-1].turn)  # type: ignore[union-attr]
    call = turn.tool_calls[0]
    answer = ToolResult(call.id, call.name, "5 %")
    await play(provider, wire.request(USER, turn, answer))
    return turn, recorder.body, recorder.requests[-1].content.decode()


def assert_bytes_on_wire(items: list[dict[str, Any]], content: str) -> None:
    """Each item must stand in the request exactly as it came, apart from how JSON escapes and spaces it."""
    sent = json.dumps(json.loads(content), ensure_ascii=False)
    for item in items:
        assert json.dumps(item, ensure_ascii=False) in sent


@pytest.mark.parametrize("wire", [OPENAI, XAI], ids=str)
async def test_reasoning_item_comes_back_unaltered(wire: Wire) -> None:
    items: list[dict[str, Any]] = [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [],
            "encrypted_content": SECRET,
            "unknown_field": {"z": 1, "a": None},
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_a",
            "name": "search_documents",
            "arguments": '{ "query" : "\\u00e9" }',
            "namespace": "default",
        },
    ]
    response = {"id": "resp_1", "status": "completed", "output": items}
    done = [
        {"type": "response.output_item.done", "output_index": i, "item": item} for i, item in enumerate(items)
    ]
    body = sse(*done, {"type": "response.completed", "response": response}, named=True)
    turn, sent, content = await two_turns(wire, body)

    assert turn.native == items
    assert turn.text == "I look."
    start = 1 if wire is OPENAI else 2
    assert sent["input"][start : start + 3] == items
    assert sent["input"][start + 3] == {"type": "function_call_output", "call_id": "call_a", "output": "5 %"}
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert "previous_response_id" not in sent
    assert_bytes_on_wire(items, content)


async def test_reasoning_item_is_dropped_when_it_refers_to_what_nobody_stored() -> None:
    body = OPENAI.encode(Script(reasoning="Hm.", calls=[Call("call_a")]))
    body = body.replace(b'"gA+/=="', b"null")
    _, sent, _ = await two_turns(OPENAI, body)
    assert "reasoning" not in {item.get("type") for item in sent["input"]}
    assert "function_call" in {item.get("type") for item in sent["input"]}


async def test_items_of_the_stream_serve_when_the_terminal_event_has_none() -> None:
    body = OPENAI.encode(Script(reasoning="Hm.", calls=[Call("call_a")]))
    events = [json.loads(line[6:]) for line in body.decode().splitlines() if line[:5] == "data:"]
    events[-1]["response"].pop("output")
    turn, sent, _ = await two_turns(OPENAI, sse(*events, named=True))
    assert [item["type"] for item in turn.native] == ["reasoning", "function_call"]
    assert sent["input"][1:3] == turn.native


async def test_thinking_blocks_come_back_unaltered() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Let me think é.", "signature": SECRET},
        {"type": "redacted_thinking", "data": SECRET[::-1]},
        {"type": "text", "text": "I look."},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "search_documents",
            "input": {"query": "é", "z": 1, "a": None},
        },
    ]
    half = len(SECRET) // 2
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    deltas: list[list[dict[str, Any]]] = [
        [
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "think é."},
            {"type": "signature_delta", "signature": SECRET[:half]},
            {"type": "signature_delta", "signature": SECRET[half:]},
        ],
        [],
        [{"type": "text_delta", "text": "I look."}],
        [{"type": "input_json_delta", "partial_json": json.dumps(blocks[3]["input"])}],
    ]
    starts: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "", "signature": ""},
        blocks[1],
        {"type": "text", "text": ""},
        {**blocks[3], "input": {}},
    ]
    for index, (start, pieces) in enumerate(zip(starts, deltas, strict=True)):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in pieces]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    turn, sent, content = await two_turns(ANTHROPIC, sse(*events, named=True))

    assert turn.native == blocks
    assert turn.reasoning == "Let me think é."
    assert turn.text == "I look."
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][1]["content"] == blocks
    assert sent["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "5 %"}
    ]
    assert_bytes_on_wire(blocks, content)


async def test_turn_is_not_echoed_when_it_held_what_could_not_be_rebuilt() -> None:
    body = ANTHROPIC.encode(Script(reasoning="Hm.", calls=[Call("call_a")]))
    body = body.replace(b'"signature_delta"', b'"signature_delta_v2"')
    turn, sent, _ = await two_turns(ANTHROPIC, body)
    assert turn.native is None
    assert [b["type"] for b in sent["messages"][1]["content"]] == ["tool_use"]


async def test_paused_turn_is_sent_back_as_it_is() -> None:
    first = ANTHROPIC.encode(Script(text=["Wait."], reasoning="Hm.", stop="pause"))
    recorder = Recorder(first, ANTHROPIC.encode(Script(text=["done"])))
    provider = ANTHROPIC.provider(recorder)
    events = [event async for event in provider.stream(ANTHROPIC.request(USER))]
    turn = stored(events[-1].turn)  # type: ignore[union-attr]
    assert turn.stop == "pause"
    await play(provider, ANTHROPIC.request(USER, turn))
    assert recorder.body["messages"][-1] == {"role": "assistant", "content": turn.native}


@pytest.mark.parametrize("call_id", ["", "fc-1"])
async def test_thought_signatures_come_back_unaltered(call_id: str) -> None:
    function: dict[str, Any] = {"name": "search_documents", "args": {"query": "é", "my_key": 1, "n": None}}
    if call_id:
        function = {"id": call_id, **function}
    chunks: list[list[dict[str, Any]]] = [
        [{"text": "I think", "thought": True}, {"text": " so.", "thought": True}],
        [{"text": "I "}],
        [{"text": "look."}, {"text": "", "thoughtSignature": SECRET}],
        [{"functionCall": function, "thoughtSignature": SECRET[::-1], "newField": {"b": 1}}],
        [{"functionCall": {"name": "search_documents", "args": {}}}],
    ]
    events: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": parts}}]} for parts in chunks
    ]
    events.append({"candidates": [{"finishReason": "STOP"}]})
    recorder = Recorder(sse(*events), GOOGLE.encode(Script(text=["done"])))
    provider = GOOGLE.provider(recorder)
    seen = [event async for event in provider.stream(GOOGLE.request(USER))]
    turn: Turn = stored(seen[-1].turn)  # type: ignore[union-attr]
    first, second = turn.tool_calls
    results = (ToolResult(second.id, "b", "two"), ToolResult(first.id, "a", "one"))
    await play(provider, GOOGLE.request(USER, turn, *results))

    parts: list[dict[str, Any]] = [
        {"text": "I think so.", "thought": True},
        {"text": "I look."},
        {"text": "", "thoughtSignature": SECRET},
        chunks[3][0],
        chunks[4][0],
    ]
    assert turn.native == [{"role": "model", "parts": parts}]
    assert turn.text == "I look."
    assert first.id
    assert first.id != second.id
    sent = recorder.body["contents"]
    assert sent[1] == {"role": "model", "parts": parts}
    given = {"id": call_id} if call_id else {}
    assert sent[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "a", "response": {"output": "one"}, **given}},
            {"functionResponse": {"name": "b", "response": {"output": "two"}}},
        ],
    }
    assert len(sent) == 3
    assert_bytes_on_wire(parts, recorder.requests[-1].content.decode())


@pytest.mark.parametrize("replay", [False, True])
async def test_reasoning_goes_back_to_a_compatible_server_only_when_asked(replay: bool) -> None:
    body = COMPATIBLE.encode(Script(reasoning=SECRET, text=["I look."], calls=[Call("call_a")]))
    turn, sent, content = await two_turns(COMPATIBLE, body, replay_reasoning=replay)
    message = sent["messages"][2]
    assert turn.native
    assert message.get("reasoning_content") == (SECRET if replay else None)
    assert message["content"] == "I look."
    assert message["tool_calls"][0]["id"] == "call_a"
    if replay:
        assert_bytes_on_wire(turn.native, content)


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC, GOOGLE], ids=str)
async def test_native_form_stays_home_when_the_model_is_another(wire: Wire) -> None:
    body = wire.encode(Script(reasoning="Hm.", calls=[Call("call_a")]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request(USER))
    assert turn.native
    second = Recorder(wire.encode(Script(text=["done"])))
    answer = ToolResult("call_a", "search_documents", "5 %")
    request = wire.request(USER, replace(turn, model="an-older-model"), answer)
    await play(wire.provider(second), request)
    sent = second.requests[0].content.decode()
    for secret in ("gA+/==", "Eq+/sig==", "CiQ+/sig=="):
        assert secret not in sent
    assert wire.call_names(second.body) == ["search_documents"]
