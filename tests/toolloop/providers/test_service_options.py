"""Service tiers and cache lifetimes on the wires: exact fields, what an answer says was used, and what that costs.

Answers are shaped as in https://platform.openai.com/docs/api-reference/responses/object,
https://platform.claude.com/docs/en/api/service-tiers, https://ai.google.dev/gemini-api/docs/priority-inference and
https://docs.x.ai/developers/advanced-api-usage/priority-processing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.toolloop.helpers import loop_values
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    XAI,
    Recorder,
    Wire,
    answer,
    play,
    stored,
)
from toolloop.errors import UnsupportedFeature
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.metering import UsageEvent
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import profile_for
from toolloop.providers.registry import make_provider
from toolloop.reservations import CostEstimate, Reservation
from toolloop.service import FLEX_SECONDS
from toolloop.tools import Toolset

KNOWS_ALL = {"service_tiers": ("flex", "priority")}


def served(wire: Wire, word: str) -> bytes:
    """Return an answer of two words that says in which tier it was served."""
    lines = wire.encode(Script(text=["It is", " four."])).decode().split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("data: {"):
            continue
        event = json.loads(line.removeprefix("data: "))
        if wire in (OPENAI, XAI) and "response" in event:
            # As in the documents: what was asked for is told first, what was used at the end.
            event["response"]["service_tier"] = word if "status" in event["response"] else "auto"
        elif wire is COMPATIBLE:
            event["service_tier"] = word
        elif wire is ANTHROPIC and event["type"] == "message_start":
            event["message"]["usage"]["service_tier"] = word
        elif wire is GOOGLE and "usageMetadata" in event:
            event["usageMetadata"]["serviceTier"] = word
        lines[number] = f"data: {json.dumps(event)}"
    return "\n".join(lines).encode()


async def asked(wire: Wire, options: dict[str, Any], *, model: str = "", **settings: Any) -> dict[str, Any]:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    request = wire.request(model=model or wire.model, options=options)
    await play(wire.provider(recorder, **settings), request)
    return recorder.body


@pytest.mark.parametrize(
    ("wire", "settings", "model", "tier", "field"),
    [
        (OPENAI, {}, "", "standard", {"service_tier": "default"}),
        (OPENAI, {}, "", "flex", {"service_tier": "flex"}),
        (OPENAI, {}, "gpt-4o", "priority", {"service_tier": "priority"}),
        (XAI, {}, "grok-4.5", "standard", {"service_tier": "default"}),
        (XAI, {}, "grok-4.5", "priority", {"service_tier": "priority"}),
        (ANTHROPIC, {}, "", "standard", {"service_tier": "standard_only"}),
        (ANTHROPIC, {}, "", "priority", {"service_tier": "auto"}),
        (GOOGLE, {}, "", "standard", {"serviceTier": "standard"}),
        (GOOGLE, {}, "", "flex", {"serviceTier": "flex"}),
        (GOOGLE, {}, "", "priority", {"serviceTier": "priority"}),
        (COMPATIBLE, KNOWS_ALL, "", "flex", {"service_tier": "flex"}),
        (COMPATIBLE, KNOWS_ALL, "", "standard", {"service_tier": "default"}),
        (COMPATIBLE, {}, "", "standard", {}),
    ],
)
async def test_a_tier_is_one_more_field_and_nothing_else(
    wire: Wire, settings: dict[str, Any], model: str, tier: str, field: dict[str, Any]
) -> None:
    plain = await asked(wire, {}, model=model, **settings)
    told = await asked(wire, {"service_tier": tier}, model=model, **settings)
    assert told == {**plain, **field}
    assert not {"service_tier", "serviceTier"} & set(plain)


@pytest.mark.parametrize(
    ("wire", "model", "options", "words"),
    [
        (ANTHROPIC, "", {"service_tier": "flex"}, "It has: standard, priority"),
        (XAI, "grok-4.5", {"service_tier": "flex"}, "It has: standard, priority"),
        (OPENAI, "gpt-4.1", {"service_tier": "flex"}, "It has: standard, priority"),
        (OPENAI, "gpt-5-pro", {"service_tier": "priority"}, "It has: standard."),
        (OPENAI, "an-own-model", {"service_tier": "flex"}, "It has: standard."),
        (COMPATIBLE, "", {"service_tier": "flex"}, "It has: standard."),
        (OPENAI, "", {"service_tier": "fast"}, "Choose one of: standard, flex, priority"),
        (GOOGLE, "", {"service_tier": 3}, "Choose one of: standard, flex, priority"),
        (ANTHROPIC, "", {"cache_ttl": "12h"}, "It has: 5m, 1h"),
        (ANTHROPIC, "", {"cache_ttl": "2h"}, "Choose one of: 5m, 30m, 1h, 12h, 24h"),
        (OPENAI, "gpt-4o", {"cache_ttl": "24h"}, "Leave the setting out"),
        (OPENAI, "gpt-6-luna", {"cache_ttl": "24h"}, "It has: 30m, 12h"),
        (GOOGLE, "", {"cache_ttl": "1h"}, "Leave the setting out"),
        (COMPATIBLE, "", {"cache_ttl": "1h"}, "Leave the setting out"),
        (XAI, "grok-4.5", {"background": True}, "cannot answer in the background"),
        (ANTHROPIC, "", {"background": True}, "cannot answer in the background"),
        (GOOGLE, "", {"background": True}, "cannot answer in the background"),
        (COMPATIBLE, "", {"background": True}, "cannot answer in the background"),
        (OPENAI, "", {"background": "yes"}, "true or false"),
    ],
)
async def test_what_a_model_does_not_have_is_refused_before_anything_is_sent(
    wire: Wire, model: str, options: dict[str, Any], words: str
) -> None:
    recorder = Recorder()
    with pytest.raises(UnsupportedFeature) as refused:
        await play(wire.provider(recorder), wire.request(model=model or wire.model, options=options))
    assert words in refused.value.message
    assert recorder.requests == []


async def test_the_extractive_model_refuses_too() -> None:
    provider = make_provider("extractive")
    request = ModelRequest("extractive", "", [UserMessage("x")], options={"service_tier": "flex"})
    with pytest.raises(UnsupportedFeature, match="no service tier"):
        await play(provider, request)


@pytest.mark.parametrize(
    ("wire", "word", "tier"),
    [
        (OPENAI, "default", "standard"),
        (OPENAI, "flex", "flex"),
        (OPENAI, "fast", "priority"),
        (OPENAI, "ultrafast", "ultrafast"),
        (XAI, "priority", "priority"),
        (COMPATIBLE, "flex", "flex"),
        (ANTHROPIC, "standard", "standard"),
        (ANTHROPIC, "priority", "priority"),
        (GOOGLE, "STANDARD", "standard"),
        (GOOGLE, "flex", "flex"),
    ],
)
async def test_a_turn_says_in_which_tier_it_was_served(wire: Wire, word: str, tier: str) -> None:
    _, turn = await play(wire.provider(Recorder(served(wire, word))), wire.request())
    assert turn.service_tier == tier
    assert stored(turn) == turn


async def test_a_turn_says_nothing_where_the_provider_says_nothing() -> None:
    for wire in (OPENAI, ANTHROPIC, GOOGLE, COMPATIBLE):
        _, turn = await play(wire.provider(Recorder(wire.encode(Script(text=["x"])))), wire.request())
        assert turn.service_tier == ""
        assert "service_tier" not in turn.to_json()


class Till:
    """Reservations that grant everything and keep the estimates."""

    def __init__(self) -> None:
        self.quotes: list[CostEstimate] = []

    async def reserve(self, quote: CostEstimate) -> Reservation:
        self.quotes.append(quote)
        return Reservation(hold=len(self.quotes))


async def run(
    wire: Wire, handler: Callable[[httpx2.Request], httpx2.Response], **given: Any
) -> tuple[RunFinished, list[UsageEvent], Till]:
    used: list[UsageEvent] = []
    till = Till()
    provider = wire.provider(handler)
    settings: dict[str, Any] = {
        "limits": Limits(max_seconds=None, max_output_tokens=1_000, retry_min_s=0.001),
        **given,
    }
    stream = run_loop(
        *loop_values(
            model=wire.model,
            system="",
            history=[UserMessage("What is two and two?")],
            toolset=Toolset(),
            provider=provider,
            on_usage=used.append,
            reservations=till,
            **settings,
        )
    )
    events = [event async for event in stream]
    await provider.aclose()
    assert isinstance(events[-1], RunFinished)
    return events[-1], used, till


@pytest.mark.parametrize(
    ("want", "word", "tier", "reserved", "charged"),
    [
        ("", "default", "standard", 1.0, 1.0),
        ("flex", "flex", "flex", 0.5, 0.5),
        # The account's own settings may make it another than was asked for: what was used counts.
        ("flex", "default", "standard", 0.5, 1.0),
        ("priority", "default", "standard", 2.0, 1.0),
        ("priority", "priority", "priority", 2.0, 2.0),
        # A provider that says nothing is priced by the dearer of what was asked for and the usual price.
        ("priority", "auto", "priority", 2.0, 2.0),
        ("flex", "auto", "", 0.5, 1.0),
    ],
)
async def test_money_is_held_by_the_tier_asked_for_and_settled_by_the_one_used(
    want: str, word: str, tier: str, reserved: float, charged: float
) -> None:
    end, used, till = await run(OPENAI, Recorder(served(OPENAI, word)), options={"service_tier": want})
    assert end.status == "completed"
    [event] = used
    plain = profile_for("openai", "gpt-5").cost_usd(event.usage)
    assert plain
    assert event.service_tier == event.to_json()["service_tier"] == tier
    assert event.cost_usd == end.data["cost_usd"] == pytest.approx(plain * charged)
    [quote] = till.quotes
    assert quote.output_usd == pytest.approx(10.0e-6 * reserved)


async def test_flex_is_asked_again_when_it_has_no_room_and_may_take_its_time() -> None:
    """https://developers.openai.com/api/docs/guides/flex-processing: 429 with the error "Resource Unavailable", unbilled."""
    busy = {"error": {"message": "Resource Unavailable", "type": "resource_unavailable"}}
    recorder = Recorder(httpx2.Response(429, json=busy), answer(served(OPENAI, "flex")))
    end, used, till = await run(OPENAI, recorder, options={"service_tier": "flex"})
    assert (end.status, end.text) == ("completed", "It is four.")
    assert len(recorder.requests) == 2
    assert [event.service_tier for event in used] == ["flex"]
    waits = [request.extensions["timeout"]["read"] for request in recorder.requests]
    assert waits == [pytest.approx(FLEX_SECONDS, abs=5)] * 2
    assert till.quotes[0].seconds == FLEX_SECONDS
    usual = Recorder(served(OPENAI, "default"))
    await run(OPENAI, usual)
    assert usual.requests[0].extensions["timeout"]["read"] == pytest.approx(600, abs=5)


async def test_a_limit_of_cost_counts_the_tier() -> None:
    """What is left of it pays for half as much output at twice the price."""
    bodies = []
    for tier in ("standard", "priority"):
        recorder = Recorder(served(OPENAI, tier))
        limits = Limits(max_seconds=None, max_cost_usd=0.1)
        await run(OPENAI, recorder, options={"service_tier": tier}, limits=limits)
        bodies.append(recorder.body["max_output_tokens"])
    assert bodies[1] < bodies[0] / 1.9


@pytest.mark.parametrize(
    ("wire", "model", "ttl", "fields"),
    [
        (OPENAI, "gpt-6-luna", "12h", {"prompt_cache_options": {"ttl": "12h"}}),
        (OPENAI, "gpt-5.6-sol", "30m", {"prompt_cache_options": {"ttl": "30m"}}),
        (OPENAI, "gpt-5.1", "24h", {"prompt_cache_retention": "24h"}),
    ],
)
async def test_openai_keeps_a_prompt_for_longer_by_one_more_field(
    wire: Wire, model: str, ttl: str, fields: dict[str, Any]
) -> None:
    plain = await asked(wire, {}, model=model)
    assert await asked(wire, {"cache_ttl": ttl}, model=model) == {**plain, **fields}


async def test_anthropic_keeps_all_that_is_marked_for_the_same_time() -> None:
    body = await asked(ANTHROPIC, {"cache_ttl": "1h"})
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert body["tools"][-1]["cache_control"] == mark
    assert body["system"][-1]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert json.dumps(body).count('"cache_control"') == 3


async def test_anthropic_keeps_it_for_the_usual_time_without_a_setting() -> None:
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    await play(ANTHROPIC.provider(recorder), ANTHROPIC.request(cache_key="t:1"))
    assert recorder.body["system"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_what_is_written_for_an_hour_costs_twice_the_input() -> None:
    """The split of ``usage.cache_creation`` is that of https://platform.claude.com/docs/en/build-with-claude/prompt-caching."""
    text = ANTHROPIC.encode(Script(text=["x"])).decode()
    old = '"cache_creation_input_tokens": 7'
    assert old in text
    split = (
        '"cache_creation_input_tokens": 7, "cache_creation": '
        '{"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 5}'
    )
    end, [event], till = await run(
        ANTHROPIC, Recorder(text.replace(old, split).encode()), options={"cache_ttl": "1h"}
    )
    assert (event.usage.cache_write, event.usage.cache_write_long) == (7, 5)
    prices = profile_for("anthropic", ANTHROPIC.model).prices[0]
    dollars = (
        53 * prices.input
        + 40 * (prices.cached_read or 0)
        + 2 * prices.input * 1.25
        + 5 * prices.input * 2
        + 20 * prices.output
    ) / 1e6
    assert end.data["cost_usd"] == pytest.approx(dollars)
    _, _, plain = await run(ANTHROPIC, Recorder(ANTHROPIC.encode(Script(text=["x"]))))
    assert till.quotes[0].input_usd == pytest.approx(plain.quotes[0].input_usd * 2 / 1.25)


async def test_what_openai_writes_for_half_a_day_is_told_apart() -> None:
    old, details = '"cache_write_tokens": 7', '{"ttl_30m_tokens": 3, "ttl_12h_tokens": 4}'
    text = OPENAI.encode(Script(text=["x"])).decode()
    assert old in text
    body = text.replace(old, f'{old}, "cache_write_tokens_details": {details}').encode()
    _, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert (turn.usage.cache_write, turn.usage.cache_write_long) == (7, 4)
