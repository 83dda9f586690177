"""What the usage hook is told: every billed call once, with the right price, and what happens when the hook fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.helpers import add, converse
from toolloop.errors import ConfigurationError, ProviderUnavailable
from toolloop.fallback import FallbackProvider
from toolloop.limits import Limits
from toolloop.messages import UserMessage
from toolloop.metering import UsageEvent
from toolloop.providers.profiles import Prices, Profile
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, says
from toolloop.reservations import CostEstimate, Reservation
from toolloop.response_cache import CachedProvider, MemoryCache
from toolloop.tokens import Usage

PRICED = Profile(prices=(Prices(1.0, 10.0, cached_read=0.1),))
QUICK = Limits(retry_min_s=0.001)


def billed(usage: Usage) -> ProviderUnavailable:
    error = ProviderUnavailable("cut")
    error.usage = usage
    return error


async def told(script: Any, *tools: Any, **settings: Any) -> tuple[list[UsageEvent], Any]:
    events: list[UsageEvent] = []
    settings = {"limits": QUICK, "profile": PRICED, **settings}
    dialogue = await converse(script, *tools, on_usage=events.append, **settings)
    return events, dialogue


async def test_each_model_call_is_reported_with_step_price_calls_and_attribution():
    metadata = {"tenant": "acme", "feature": "chat"}
    script = [
        calls(call("add", a=1, b=1), call("add", a=2, b=2), usage=Usage(1_000, 500, 0, 100, 0, 1)),
        says("ok", usage=Usage(2_000, 0, 0, 10, 0, 1)),
    ]
    (first, last), dialogue = await told(script, add, usage_metadata=metadata)
    assert (first.step, last.step) == (0, 1)
    assert (first.provider, first.model) == ("scripted", "script-1")
    assert (first.tool_calls, last.tool_calls) == (("add", "add"), ())
    assert first.cost_usd == pytest.approx((500 * 1 + 500 * 0.1 + 100 * 10) / 1e6)
    assert (first.metadata, last.metadata) == (metadata, metadata)
    assert first.metadata is not metadata
    assert first.usage + last.usage == dialogue.end.usage
    assert sum(e.cost_usd or 0 for e in (first, last)) == pytest.approx(dialogue.end.data["cost_usd"])
    assert all(e.seconds is not None and e.seconds >= 0 for e in (first, last))
    assert json.loads(json.dumps(first.to_json()))["usage"]["cached_read"] == 500


async def test_attempt_that_was_billed_in_vain_is_reported_as_lost():
    script = [
        fails(billed(Usage(50, 0, 0, 20, 0, 1)), after="half"),
        fails(ProviderUnavailable("nothing was billed")),
        says("ok", usage=Usage(50, 0, 0, 30, 0, 1)),
    ]
    events, dialogue = await told(script)
    assert [(e.is_lost, e.usage.output_total, e.step) for e in events] == [(True, 20, 0), (False, 30, 0)]
    assert sum(e.usage.output_total for e in events) == dialogue.end.usage.output_total


async def test_unusable_turn_is_reported_once_as_lost():
    events, dialogue = await told([says("", stop="error"), says("ok")])
    assert [e.is_lost for e in events] == [True, False]
    assert dialogue.end.usage.requests == 2


async def test_cached_answer_is_reported_as_free():
    cache = MemoryCache()
    for expected in ((False, 5), (True, 0)):
        provider = CachedProvider(ScriptedProvider([says("ok")]), cache)
        (event,), dialogue = await told(provider_as_script(provider))
        assert (event.is_cached, event.usage.output_total) == expected
    assert event.cost_usd == 0.0
    assert dialogue.end.usage == Usage()


async def test_fallback_is_reported_under_its_own_name():
    first = ScriptedProvider([fails(ProviderUnavailable("busy"))], name="first")
    second = ScriptedProvider([says("ok")], name="second")
    provider = FallbackProvider([(first, "a"), (second, "b")])
    (event,), _ = await told(provider_as_script(provider))
    assert (event.provider, event.model) == ("second", "b")


async def test_unknown_price_is_none_and_not_zero():
    (event,), _ = await told([says("ok")], profile=Profile())
    assert event.cost_usd is None


async def test_run_goes_on_and_says_so_when_the_hook_fails(caplog):
    seen: list[UsageEvent] = []

    def full(event: UsageEvent) -> None:
        seen.append(event)
        raise OSError("disk full of secrets")

    script = [calls(call("add", a=1, b=1)), says("ok")]
    dialogue = await converse(script, add, on_usage=full)
    assert (dialogue.end.status, dialogue.end.text) == ("completed", "ok")
    assert len(seen) == 2
    (note,) = dialogue.end.data["notes"]
    assert "on_usage failed 2 times (OSError)" in note
    assert "secrets" not in note
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


async def test_cancellation_from_the_hook_is_not_swallowed():
    def leave(event: UsageEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await converse([says("ok")], on_usage=leave)


async def test_coroutine_function_is_refused_because_nobody_would_await_it():
    async def hook(event: UsageEvent) -> None:
        return None

    with pytest.raises(ConfigurationError, match="plain function"):
        await converse([says("ok")], on_usage=hook)


def provider_as_script(provider: Any) -> Any:
    """Let ``converse`` drive any provider: it asks only for the turns of a scripted one."""

    class Driven(ScriptedProvider):
        def __init__(self) -> None:
            super().__init__([], name=provider.name)

        stream = provider.stream

    return Driven()


async def test_resumed_run_reports_its_own_calls_only():
    history = [UserMessage("Hello")]
    events, dialogue = await told(
        [says("ok", usage=Usage(7, 0, 0, 1, 0, 1))], history=history, usage=Usage(100, 0, 0, 9, 0, 3)
    )
    assert [e.usage.input_total for e in events] == [7]
    assert dialogue.end.usage.requests == 4


class Till:
    """Reservations that know of the first call that it needs no money, and keep the estimates of the others."""

    def __init__(self) -> None:
        self.needed = [False]
        self.quotes: list[CostEstimate] = []

    def none_needed(self) -> bool:
        return bool(self.needed) and not self.needed.pop()

    async def reserve(self, quote: CostEstimate) -> Reservation:
        self.quotes.append(quote)
        return Reservation(hold=len(self.quotes))


async def test_no_money_is_asked_for_where_none_is_known_to_be_needed_and_for_that_call_alone():
    script = [
        calls(call("add", a=1, b=1), usage=Usage(50, 0, 0, 5, 0, 1)),
        says("ok", usage=Usage(60, 0, 0, 5, 0, 1)),
    ]
    till = Till()
    (first, last), dialogue = await told(script, add, reservations=till)
    assert dialogue.end.status == "completed"
    assert (first.hold, last.hold) == (None, 1)
    [quote] = till.quotes
    assert quote.input_usd > 0
