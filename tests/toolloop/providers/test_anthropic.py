"""The Messages wire: exact request bodies, and what only it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.wires import ANTHROPIC, KEY, SEARCH, Recorder, play
from toolloop import errors
from toolloop.events import ReasoningDelta, TextDelta
from toolloop.messages import ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.base import ToolSpec
from toolloop.providers.model_facts import MODELS
from toolloop.providers.profiles import profile_for

USER = UserMessage("What is the duty?")
MARK = {"cache_control": {"type": "ephemeral"}}


async def sent_by(*messages: Any, **changes: Any) -> dict[str, Any]:
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    await play(ANTHROPIC.provider(recorder), ANTHROPIC.request(*messages, **changes))
    return recorder.body


async def test_body_is_exactly_this() -> None:
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    request = ANTHROPIC.request(
        cache_key="t:1", user_key="ada", options={"effort": "low", "temperature": 0.5}
    )
    await play(ANTHROPIC.provider(recorder), request)
    body = recorder.body
    user_id = body["metadata"].pop("user_id")
    assert len(user_id) == 32
    assert body == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "Be brief.", **MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": USER.text, **MARK}]}],
        "tools": [
            {
                "name": "search_documents",
                "description": "Search the documents.",
                "input_schema": SEARCH.parameters,
                **MARK,
            }
        ],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
        "metadata": {},
        "stream": True,
    }
    sent = recorder.requests[0]
    assert str(sent.url) == "https://api.anthropic.com/v1/messages"
    assert KEY in (sent.headers.get("authorization", "") + sent.headers.get("x-api-key", ""))
    assert sent.headers["anthropic-version"]


async def test_answer_streams_when_max_tokens_is_above_the_limit_of_unstreamed_calls() -> None:
    body = await sent_by(max_output_tokens=100_000)
    assert body["max_tokens"] == 100_000
    assert body["stream"] is True


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("claude-sonnet-5-5", 10**6, 128_000),
        ("brand-new", None, 8_192),
        ("brand-new", 50_000, 50_000),
        ("claude-haiku-4-5", None, 32_000),
    ],
)
async def test_max_tokens_follows_the_profile(model: str, wanted: int | None, sent: int) -> None:
    assert (await sent_by(model=model, max_output_tokens=wanted))["max_tokens"] == sent


@pytest.mark.parametrize(
    ("model", "choice", "has_thinking"),
    [("claude-sonnet-5-5", "auto", True), ("claude-sonnet-5", "any", False)],
)
async def test_forced_call_is_sent_only_where_the_model_takes_it(
    model: str, choice: str, has_thinking: bool
) -> None:
    body = await sent_by(model=model, tool_choice="required")
    assert body["tool_choice"] == {"type": choice}
    assert ("thinking" in body) is has_thinking


async def test_budget_models_think_only_when_asked_and_take_a_temperature_only_otherwise() -> None:
    model = "claude-haiku-4-5"
    calm = await sent_by(model=model, options={"temperature": 0.1})
    assert calm["temperature"] == 0.1
    assert "thinking" not in calm
    deep = await sent_by(model=model, options={"temperature": 0.1, "effort": "medium"})
    assert deep["thinking"] == {"type": "enabled", "budget_tokens": 8_192}
    assert "temperature" not in deep
    small = await sent_by(model=model, options={"effort": "high"}, max_output_tokens=4_000)
    assert small["thinking"]["budget_tokens"] < small["max_tokens"]
    tiny = await sent_by(model=model, options={"effort": "high"}, max_output_tokens=900)
    assert "thinking" not in tiny


async def test_all_results_are_in_one_user_message_before_the_next_text() -> None:
    calls = tuple(ToolCall(i, "search_documents", {}) for i in ("a", "b"))
    turn = Turn("elsewhere", "m", tool_calls=calls, stop="tools")
    results = (ToolResult("b", "s", "two", is_error=True), ToolResult("a", "s", "one"))
    body = await sent_by(USER, turn, *results, UserMessage("And?"))
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


async def test_no_empty_text_is_sent_when_a_turn_said_nothing() -> None:
    turn = Turn("elsewhere", "m", text="  \n", stop="stopped")
    body = await sent_by(USER, turn, UserMessage("Again."))
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": USER.text}, {"type": "text", "text": "Again."}]}
    ]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("overloaded_error", errors.ProviderUnavailable),
        ("api_error", errors.ProviderUnavailable),
        ("rate_limit_error", errors.RateLimited),
        ("authentication_error", errors.AuthFailed),
        ("something_new", errors.ProviderUnavailable),
    ],
)
async def test_error_inside_a_stream_is_classified_by_its_type_although_the_status_is_200(
    word: str, kind: type[errors.ProviderError]
) -> None:
    body = ANTHROPIC.encode(Script(text=["half"], stop=""))
    body += sse(ANTHROPIC.error_body(200, word, f"sorry {KEY}"), named=True)
    with pytest.raises(errors.ProviderError) as caught:
        await play(ANTHROPIC.provider(Recorder(body)), ANTHROPIC.request())
    assert type(caught.value) is kind
    assert caught.value.status is None
    assert KEY not in str(caught.value)


async def test_refusal_keeps_category_and_explanation() -> None:
    body = ANTHROPIC.encode(Script(text=["no"], stop="refusal"))
    _, turn = await play(ANTHROPIC.provider(Recorder(body)), ANTHROPIC.request())
    assert turn.stop_detail == "refusal: cyber: no"


async def test_stop_is_tools_when_calls_come_with_end_turn() -> None:
    body = ANTHROPIC.encode(Script(calls=[Call("a")])).replace(b'"tool_use", "stop', b'"end_turn", "stop')
    assert b"end_turn" in body
    _, turn = await play(ANTHROPIC.provider(Recorder(body)), ANTHROPIC.request())
    assert turn.stop == "tools"


async def test_input_counts_when_it_came_with_the_start_of_the_block() -> None:
    block = {"type": "tool_use", "id": "a", "name": "search_documents", "input": {"query": "x"}}
    body = sse(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
        named=True,
    )
    _, turn = await play(ANTHROPIC.provider(Recorder(body)), ANTHROPIC.request())
    assert turn.tool_calls[0].arguments == {"query": "x"}
    assert turn.native == [block]


async def test_thinking_never_shows_in_the_answer_and_blocks_do_not_run_together() -> None:
    def block(index: int, kind: str, field: str, *pieces: str) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, field: ""}},
            *(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": f"{kind}_delta", field: piece},
                }
                for piece in pieces
            ),
            {"type": "content_block_stop", "index": index},
        ]

    body = sse(
        *block(0, "thinking", "thinking", "one", " two"),
        *block(1, "text", "text", "A", "B"),
        *block(2, "text", "text", "C"),
        *block(3, "thinking", "thinking", "three"),
        *block(4, "text", "text", "D", "E"),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        named=True,
    )
    events, turn = await play(ANTHROPIC.provider(Recorder(body)), ANTHROPIC.request())
    assert turn.text == "ABC\n\nDE"
    assert turn.reasoning == "one two\n\nthree"
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == turn.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == turn.reasoning


async def test_request_id_is_kept() -> None:
    content = ANTHROPIC.encode(Script(text=["x"]))
    response = httpx2.Response(200, headers={"request-id": "req_7"}, content=content)
    _, turn = await play(ANTHROPIC.provider(Recorder(response)), ANTHROPIC.request())
    assert turn.request_id == "req_7"


async def test_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://elsewhere.example")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-platform")
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    await play(ANTHROPIC.provider(recorder), ANTHROPIC.request())
    assert recorder.requests[0].url.host == "api.anthropic.com"
    assert "token-of-the-platform" not in str(recorder.requests[0].headers.raw)


async def test_no_span_is_made_by_the_sdk_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spans come from the loop; the SDK's own are on by default and would name models, ids and token counts."""
    from anthropic import AsyncAnthropic

    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "true")
    by_default = AsyncAnthropic(api_key=KEY)
    provider: Any = ANTHROPIC.provider(Recorder())
    try:
        assert by_default.open_telemetry["traces"]["enabled"] is True
        assert provider._client.open_telemetry["traces"]["enabled"] is False
        assert provider._client.open_telemetry["propagation"] is False
    finally:
        await by_default.close()
        await provider.aclose()


async def test_tools_are_strict_only_when_the_profile_says_so() -> None:
    """A request takes few strict tools and is refused whole beyond: see decisions.md."""
    from anthropic.types import ToolParam

    assert "strict" in ToolParam.__annotations__
    loose = ToolSpec("loose", "Loose.", {"type": "object", "properties": {"a": {"type": "string"}}})
    for name in MODELS["anthropic"]:
        own = profile_for("anthropic", name)
        for profile, expected in ((None, []), (replace(own, strict_tools=True), [SEARCH.name])):
            body = await sent_by(model=name, tools=[SEARCH, loose], profile=profile)
            assert [tool["name"] for tool in body["tools"] if tool.get("strict")] == expected
