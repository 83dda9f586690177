"""The Responses wire: exact request bodies, and the events that only it has."""

from __future__ import annotations

import inspect
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Script, sse
from tests.toolloop.providers.wires import KEY, OPENAI, SEARCH, XAI, Recorder, play
from toolloop import errors
from toolloop.events import TextDelta, ToolCallStarted
from toolloop.messages import UserMessage
from toolloop.providers import openai
from toolloop.providers.base import ToolSpec

DONE = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}


async def sent_by(wire: Any = OPENAI, **changes: Any) -> dict[str, Any]:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request(**changes))
    return recorder.body


async def test_body_is_exactly_this() -> None:
    recorder = Recorder(OPENAI.encode(Script(text=["x"])))
    request = OPENAI.request(max_output_tokens=500, options={"effort": "low", "reasoning_summary": True})
    await play(OPENAI.provider(recorder), request)
    assert recorder.body == {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "What is the duty?"}],
        "tools": [
            {
                "type": "function",
                "name": "search_documents",
                "description": "Search the documents.",
                "parameters": SEARCH.parameters,
                "strict": True,
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "max_output_tokens": 500,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
    }
    sent = recorder.requests[0]
    assert str(sent.url) == "https://api.openai.com/v1/responses"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "openai-organization" not in sent.headers


async def test_xai_gets_the_system_prompt_as_an_item_and_the_user_under_its_own_name() -> None:
    recorder = Recorder(XAI.encode(Script(text=["x"])))
    await play(XAI.provider(recorder), XAI.request(user_key="ada", cache_key="t:1"))
    body = recorder.body
    assert str(recorder.requests[0].url) == "https://api.x.ai/v1/responses"
    assert "instructions" not in body
    assert body["input"][0] == {"role": "system", "content": "Be brief."}
    assert len(body["user"]) == len(body["prompt_cache_key"]) == 32
    assert "safety_identifier" not in body


@pytest.mark.parametrize(
    ("model", "options", "temperature"),
    [
        ("gpt-4.1", {"temperature": 0.2}, 0.2),
        ("gpt-5", {"temperature": 0.2}, None),
        ("gpt-6-luna", {"temperature": 0.2}, None),
        ("gpt-6-luna", {"temperature": 0.2, "effort": "none"}, 0.2),
        ("gpt-6-luna", {"temperature": 0.2, "effort": "low"}, None),
        ("gpt-6.1-sol", {"temperature": 0.2, "effort": "none"}, None),
    ],
)
async def test_temperature_is_sent_only_where_the_profile_allows_it(
    model: str, options: dict[str, Any], temperature: float | None
) -> None:
    body = await sent_by(model=model, options=options)
    assert body.get("temperature") == temperature


async def test_nothing_about_reasoning_is_sent_when_the_model_has_none() -> None:
    body = await sent_by(model="gpt-4.1", options={"effort": "high", "reasoning_summary": True})
    assert "reasoning" not in body
    assert "include" not in body


async def test_output_limit_is_capped_at_what_the_model_can() -> None:
    assert (await sent_by(model="gpt-4.1", max_output_tokens=10**6))["max_output_tokens"] == 32_768


async def test_tool_fields_are_absent_when_there_are_no_tools() -> None:
    body = await sent_by(tools=())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "object"}}},
            "required": ["a"],
            "additionalProperties": False,
        },
    ],
)
async def test_tool_is_sent_as_not_strict_when_its_schema_does_not_qualify(
    parameters: dict[str, Any],
) -> None:
    body = await sent_by(tools=(ToolSpec("t", "", parameters),))
    assert body["tools"][0]["strict"] is False


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "m"}, errors.ProviderUnavailable),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "m"}, errors.RateLimited),
        ({"error": {"message": "m", "code": 503}}, errors.ProviderUnavailable),
        ({"error": {"message": "m", "type": "insufficient_quota"}}, errors.QuotaExhausted),
        ({"type": "error", "code": None, "message": "?"}, errors.ProviderUnavailable),
        ({"type": "error", "code": "context_length_exceeded", "message": "m"}, errors.ContextTooLong),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "m"}},
            },
            errors.ProviderUnavailable,
        ),
        (
            {
                "type": "response.failed",
                "response": {"error": {"code": "invalid_prompt", "message": "policy"}},
            },
            errors.ContentRefused,
        ),
        ({"type": "response.failed", "response": None}, errors.ProviderUnavailable),
    ],
    ids=str,
)
async def test_error_events_raise(event: dict[str, Any], kind: type[errors.ProviderError]) -> None:
    start = {"type": "response.output_text.delta", "output_index": 0, "delta": "half"}
    recorder = Recorder(sse(start, event, named="type" in event))
    with pytest.raises(errors.ProviderError) as caught:
        await play(OPENAI.provider(recorder), OPENAI.request())
    assert type(caught.value) is kind
    assert caught.value.message


async def test_stop_is_error_when_incomplete_for_an_unknown_reason() -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": "steered"}}
    body = sse({"type": "response.incomplete", "response": response}, named=True)
    _, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert (turn.stop, turn.stop_detail) == ("error", "steered")


async def test_stop_is_length_when_incomplete_without_a_reason() -> None:
    response = {"status": "incomplete", "incomplete_details": None}
    body = sse({"type": "response.incomplete", "response": response}, named=True)
    _, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert turn.stop == "length"


async def test_text_is_complete_when_a_server_sends_no_deltas() -> None:
    content = [{"type": "output_text", "text": "all at once"}]
    item = {"type": "message", "content": content}
    body = sse({"type": "response.output_item.done", "output_index": 0, "item": item}, DONE)
    events, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert turn.text == "all at once"
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["all at once"]


async def test_two_messages_do_not_run_into_each_other() -> None:
    body = sse(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "I search."},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "It is "},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "5 %."},
        DONE,
    )
    events, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert turn.text == "I search.\n\nIt is 5 %."
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == turn.text


async def test_calls_get_ids_when_a_server_gives_none_or_the_same_twice() -> None:
    item = {"type": "function_call", "name": "search_documents", "arguments": {"query": "x"}}
    items = [item, {**item, "call_id": "same"}, {**item, "call_id": "same"}]
    events = [
        {"type": f"response.output_item.{when}", "output_index": i, "item": it}
        for i, it in enumerate(items)
        for when in ("added", "done")
    ]
    seen, turn = await play(OPENAI.provider(Recorder(sse(*events, DONE))), OPENAI.request())
    ids = [call.id for call in turn.tool_calls]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [e.call_id for e in seen if isinstance(e, ToolCallStarted)] == ids
    assert turn.tool_calls[0].arguments == {"query": "x"}
    assert turn.native is None, "items without usable ids cannot be echoed"


async def test_request_id_is_kept() -> None:
    body = OPENAI.encode(Script(text=["x"]))
    response = httpx2.Response(200, headers={"x-request-id": "req_7"}, content=body)
    _, turn = await play(OPENAI.provider(Recorder(response)), OPENAI.request())
    assert turn.request_id == "req_7"


async def test_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-platform")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-platform")
    recorder = Recorder(OPENAI.encode(Script(text=["x"])))
    await play(OPENAI.provider(recorder), OPENAI.request())
    assert recorder.requests[0].url.host == "api.openai.com"
    assert "of-the-platform" not in str(recorder.requests[0].headers.raw)


async def test_sdk_transform_is_bypassed_when_the_history_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    from openai._utils import _transform

    async def refuse(*args: object, **kwargs: object) -> object:
        raise AssertionError("the request transform costs 342 ms for 400 items")

    monkeypatch.setattr(_transform, "_async_transform_recursive", refuse)
    history = [UserMessage(f"message {i}") for i in range(400)]
    body = await sent_by(messages=history)
    assert len(body["input"]) == 400


def test_no_model_name_stands_outside_the_profiles() -> None:
    source = inspect.getsource(openai)
    for name in ("gpt-", "grok", "claude", "gemini", "o3"):
        assert name not in source.lower()


async def test_broken_surrogates_do_not_break_the_stream() -> None:
    body = sse(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "\ud83d"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "é\u2028x"},
        DONE,
    )
    _, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert turn.text == "?é\u2028x"
    turn.text.encode()


async def test_history_is_refused_with_a_reason_when_it_cannot_be_encoded() -> None:
    with pytest.raises(errors.BadRequest, match="Unicode"):
        await sent_by(messages=[UserMessage("half \ud83d")])
