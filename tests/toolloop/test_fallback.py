"""Another model answers when the first cannot, but never after something was shown; answers are cached; calls planned."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.helpers import add, converse, loop_values
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import ANTHROPIC, OPENAI, SEARCH, Recorder
from toolloop.errors import (
    AuthFailed,
    BadRequest,
    ConfigurationError,
    ContentRefused,
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
)
from toolloop.events import StepReset, TextDelta
from toolloop.fallback import FallbackProvider
from toolloop.history import history_merge
from toolloop.intent import Intent, calls_plan, calls_run
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, says
from toolloop.response_cache import CachedProvider, MemoryCache
from toolloop.server_tools import WebSearch
from toolloop.structured import generate
from toolloop.tokens import Usage
from toolloop.tools import Tool, Toolset, tool

NO_RETRY = Limits(max_retries=0)


def chain(*scripts: Any) -> tuple[FallbackProvider, list[ScriptedProvider]]:
    made = [ScriptedProvider(script, name=f"p{n}") for n, script in enumerate(scripts)]
    return FallbackProvider([(provider, f"m{n}") for n, provider in enumerate(made)]), made


async def ask(provider: Any, model: str = "m0", **settings: Any) -> list[Any]:
    stream = run_loop(
        *loop_values(
            model=model,
            system="",
            history=[UserMessage("Hi")],
            toolset=Toolset([add]),
            provider=provider,
            **{"limits": NO_RETRY, **settings},
        )
    )
    return [event async for event in stream]


@pytest.mark.parametrize("kind", [RateLimited, ProviderUnavailable, QuotaExhausted, ContextTooLong])
async def test_next_model_answers_when_the_first_cannot_be_had(kind: type[ProviderError]) -> None:
    provider, made = chain([fails(kind("no"))], [says("Hello.")])
    events = await ask(provider, compaction=None)
    assert (events[-1].status, events[-1].text) == ("completed", "Hello.")
    assert [e.turn.model for e in events if hasattr(e, "turn")] == ["m1"]
    assert [request.model for p in made for request in p.requests] == ["m0", "m1"]
    assert not [e for e in events if isinstance(e, StepReset)]


@pytest.mark.parametrize("kind", [BadRequest, AuthFailed, ContentRefused])
async def test_mistakes_are_not_hidden_by_another_model(kind: type[ProviderError]) -> None:
    provider, made = chain([fails(kind("no"))], [says("Hello.")])
    events = await ask(provider)
    assert (events[-1].status, events[-1].error_code) == ("failed", kind.code)
    assert made[1].requests == []


async def test_model_is_not_changed_once_something_was_shown() -> None:
    provider, made = chain([fails(ProviderUnavailable("cut"), after="Hel")], [says("Hello.")])
    events = await ask(provider)
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel"]
    assert events[-1].error_code == "provider_unavailable"
    assert made[1].requests == []


async def test_who_answered_is_asked_first_in_the_next_turn() -> None:
    provider, made = chain([fails(RateLimited("no"))], [calls(call("add", a=1, b=2)), says("3")])
    events = await ask(provider)
    assert events[-1].text == "3"
    assert [len(p.requests) for p in made] == [1, 2]


async def test_all_are_asked_again_when_the_loop_retries() -> None:
    provider, made = chain([fails(RateLimited("no")), says("back")], [fails(RateLimited("no"))])
    events = await ask(provider, limits=Limits(retry_min_s=0, retry_max_s=0))
    assert events[-1].text == "back"
    assert [len(p.requests) for p in made] == [2, 1]


async def test_tokens_of_a_failed_attempt_are_counted_with_the_answer() -> None:
    paid = ProviderUnavailable("late")
    paid.usage = Usage(input_total=100, output_total=7, requests=1)
    provider, _ = chain([fails(paid)], [says("Hello.")])
    events = await ask(provider)
    assert events[-1].usage == Usage(110, 0, 0, 12, 0, 2)


async def test_fallback_is_priced_as_the_model_that_answered() -> None:
    first = ScriptedProvider([fails(RateLimited("no"))], name="openai")
    second = ScriptedProvider([says("x", usage=Usage(input_total=1_000_000, requests=1))], name="anthropic")
    provider = FallbackProvider([(first, "gpt-5-nano"), (second, "claude-sonnet-5")])
    events = await ask(provider, model="gpt-5-nano")
    assert events[-1].data["cost_usd"] == pytest.approx(2.0)


async def test_history_is_rendered_anew_for_the_other_provider() -> None:
    one = Recorder(OPENAI.encode(Script(calls=[Call("call_a")], reasoning="Hm.")))
    openai = OPENAI.provider(one, account="acct")
    wanted = OPENAI.request()
    turn = None
    async for event in openai.stream(wanted):
        turn = getattr(event, "turn", turn)
    assert isinstance(turn, Turn)
    down = ScriptedProvider([fails(RateLimited("no"))])
    two = Recorder(ANTHROPIC.encode(Script(text=["5 %"])))
    provider = FallbackProvider([(down, OPENAI.model), (ANTHROPIC.provider(two), ANTHROPIC.model)])
    history = (UserMessage("Duty?"), turn, ToolResult("call_a", SEARCH.name, "5 %"))
    async for _ in provider.stream(OPENAI.request(*history)):
        pass
    await provider.aclose()
    await openai.aclose()
    assert turn.native is not None
    assert "encrypted_content" not in json.dumps(two.body)
    blocks = [block["type"] for message in two.body["messages"] for block in message["content"]]
    assert blocks == ["text", "tool_use", "tool_result"]


async def test_every_adapter_is_closed_once() -> None:
    provider, made = chain([], [])
    await provider.aclose()
    assert all(p.closed for p in made)
    with pytest.raises(ConfigurationError):
        FallbackProvider([])


# --- response cache --------------------------------------------------------------------------------------------------


async def test_same_question_is_asked_once_and_costs_nothing_the_second_time() -> None:
    inner = ScriptedProvider([says("4"), says("other")])
    provider = CachedProvider(inner, MemoryCache())
    first = await generate(provider=provider, model="m", prompt="2+2?")
    second = await generate(provider=provider, model="m", prompt="2+2?")
    other = await generate(provider=provider, model="m", prompt="2+2?", options={"temperature": 1})
    assert (first.text, second.text, other.text) == ("4", "4", "other")
    assert first.usage.requests == 1
    assert second.usage == Usage()
    assert len(inner.requests) == 2


async def test_requests_with_searches_of_the_provider_are_not_cached() -> None:
    """What the web says changes, and an answer without tools of ours must not stand in for one that searched."""
    wire = ANTHROPIC
    body = wire.encode(Script(text=["Hi"]))
    recorder = Recorder(body, body, body, body)
    cache = MemoryCache()
    provider = CachedProvider(wire.provider(recorder), cache)
    for server_tools in ((), (WebSearch(),), (WebSearch(),), ()):
        request = wire.request(tools=(), server_tools=server_tools)
        texts = [event.text async for event in provider.stream(request) if isinstance(event, TextDelta)]
        assert texts == ["Hi"]
    await provider.aclose()
    assert len(recorder.requests) == 3, "only the last, which asks what the first did, came out of the cache"


async def test_requests_with_tools_and_unusable_answers_are_not_cached() -> None:
    inner = ScriptedProvider([says("a"), says("b"), says("c", stop="length"), says("d")])
    provider = CachedProvider(inner, MemoryCache())
    assert [(await ask(provider))[-1].text for _ in range(2)] == ["a", "b"]
    texts = [(await generate(provider=provider, model="m", prompt="x")).text for _ in range(3)]
    assert texts == ["c", "d", "d"]


async def test_scopes_do_not_share_answers_and_old_ones_expire() -> None:
    now = 0.0
    cache = MemoryCache(2, clock=lambda: now)
    inner = ScriptedProvider([says(str(n)) for n in range(9)])
    one = CachedProvider(inner, cache, ttl_s=10, scope="tenant 1")
    two = CachedProvider(inner, cache, ttl_s=10, scope="tenant 2")

    async def text(provider: CachedProvider, prompt: str = "x") -> str:
        return (await generate(provider=provider, model="m", prompt=prompt)).text

    assert [await text(one), await text(two), await text(one)] == ["0", "1", "0"]
    now = 10.0
    assert await text(one) == "2"
    assert [await text(one, "y"), await text(one, "z")] == ["3", "4"]
    assert await text(one) == "5"  # two entries at most: the oldest went
    cache.clear()
    assert await text(one) == "6"


# --- tool intent -----------------------------------------------------------------------------------------------------

SENT: list[str] = []


@tool(side_effects=True, needs_approval=True)
def send(to: str) -> str:
    """Send.

    Args:
        to: whom.
    """
    SENT.append(to)
    return f"sent to {to}"


async def test_calls_are_planned_without_running_and_the_chosen_ones_run() -> None:
    SENT.clear()
    toolset = Toolset([send, add])
    script = [
        says(
            "I will.",
            call("send", to="ann"),
            call("send", to="bob"),
            call("send"),
            call("nope"),
            call("add", a=1, b=2),
        )
    ]
    intent = await calls_plan(
        provider=ScriptedProvider(script), model="m", history=[UserMessage("Go")], toolset=toolset
    )
    assert SENT == []
    assert [bool(planned.problem) for planned in intent.calls] == [False, False, True, True, False]
    intent = Intent.from_json(json.loads(json.dumps(intent.to_json())))
    results = await calls_run(intent, toolset, chosen={"call_1", "call_3", "call_4", "call_5"})
    assert SENT == ["ann"]
    assert [result.error_code for result in results] == [
        "",
        "rejected",
        "invalid_arguments",
        "unknown_tool",
        "",
    ]
    dialogue = await converse([says("done")], send, add, history=[UserMessage("Go"), intent.turn, *results])
    assert dialogue.end.text == "done"


async def test_nothing_of_a_cut_turn_runs() -> None:
    SENT.clear()
    toolset = Toolset([send])
    intent = await calls_plan(
        provider=ScriptedProvider([calls(call("send", to="ann"), stop="length")]),
        model="m",
        history=[UserMessage("Go")],
        toolset=toolset,
    )
    (result,) = await calls_run(intent, toolset)
    assert (result.error_code, SENT) == ("truncated", [])


async def test_external_calls_stay_open_and_mocks_run_in_mock_mode() -> None:
    outside = Tool("ask", "Ask.", {"type": "object", "properties": {}}, lambda: "", external=True)
    toolset = Toolset([outside])
    intent = await calls_plan(
        provider=ScriptedProvider([calls(call("ask"))]),
        model="m",
        history=[UserMessage("Go")],
        toolset=toolset,
    )
    (result,) = await calls_run(intent, toolset)
    assert result.error_code == "pending"
    (result,) = await calls_run(intent, toolset, mock_tools=True)
    assert result.payload["mock"] is True


async def test_provider_error_is_raised_when_no_plan_can_be_had() -> None:
    with pytest.raises(ProviderError) as caught:
        await calls_plan(
            provider=ScriptedProvider([fails(AuthFailed("wrong key"))]),
            model="m",
            history=[UserMessage("Go")],
            toolset=Toolset([add]),
        )
    assert (caught.value.code, caught.value.retryable) == ("auth_failed", False)


def test_user_messages_that_follow_each_other_are_joined() -> None:
    turn = Turn("p", "m", "x")
    history: list[ModelMessage] = [
        UserMessage("a"),
        UserMessage(" "),
        UserMessage("b"),
        UserMessage("n", notice=True),
        turn,
        UserMessage("c"),
    ]
    assert history_merge(history) == [
        UserMessage("a\n\nb"),
        UserMessage("n", notice=True),
        turn,
        UserMessage("c"),
    ]
