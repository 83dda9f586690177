"""What providers cache: a prefix that stays the same from turn to turn, marks where they are needed, and its price."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.toolloop.helpers import loop_values
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    WIRES,
    XAI,
    Recorder,
    Wire,
    play,
)
from toolloop.compaction import Compaction
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.providers.profiles import Profile, profile_for
from toolloop.tokens import Usage
from toolloop.tools import Toolset, tool

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
LONG = "word " * 1_000


@tool
def search_documents(query: str) -> str:
    """Search the documents.

    Args:
        query: what for.
    """
    return f"{query}: {LONG}"


def turns(wire: Wire, count: int) -> list[bytes]:
    calls = [
        wire.encode(Script(reasoning="Hm.", calls=[Call(f"call_{i}", raw=f'{{"query": "q{i}"}}')]))
        for i in range(count)
    ]
    return [*calls, wire.encode(Script(text=["done"]))]


async def run(
    wire: Wire, bodies: Sequence[bytes], **settings: Any
) -> tuple[RunFinished, list[dict[str, Any]]]:
    recorder = Recorder(*bodies)
    provider = wire.provider(recorder)
    given: dict[str, Any] = {"history": [UserMessage("Compare the duties.")], **settings}
    stream = run_loop(
        *loop_values(
            model=wire.model,
            system="Be brief.",
            toolset=Toolset([search_documents]),
            cache_key="t:1",
            provider=provider,
            **given,
        )
    )
    events = [event async for event in stream]
    await provider.aclose()
    assert isinstance(events[-1], RunFinished)
    return events[-1], [json.loads(request.content) for request in recorder.requests]


def unmarked(value: Any) -> Any:
    """Return a body without marks, which are no part of what is cached."""
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def head(body: dict[str, Any]) -> str:
    """Return everything that stands before the conversation."""
    moving = {"messages", "input", "contents", "max_tokens", "max_output_tokens"}
    return json.dumps(unmarked({k: v for k, v in body.items() if k not in moving}))


def conversation(body: dict[str, Any]) -> list[str]:
    messages = next(body[key] for key in ("input", "messages", "contents") if key in body)
    return [json.dumps(unmarked(message)) for message in messages]


def grows(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Tell whether a request begins with all of the one before it, byte for byte."""
    past = conversation(before)
    return conversation(after)[: len(past)] == past


@every_wire
async def test_each_request_begins_with_the_one_before_it_over_five_turns(wire: Wire) -> None:
    end, bodies = await run(wire, turns(wire, 5))
    assert end.status == "completed"
    assert len(bodies) == 6
    assert len({head(body) for body in bodies}) == 1
    assert all(grows(before, after) for before, after in itertools.pairwise(bodies))


@every_wire
async def test_prefix_changes_only_where_the_history_is_compacted(wire: Wire) -> None:
    """Room for about six results: two of nine turns must compact, and no other one may move what is cached."""
    profile = replace(profile_for(wire.name, wire.model), context_window=16_000, max_output_tokens=2_000)
    bodies = [
        wire.encode(Script(calls=[Call(f"call_{i}", raw=f'{{"query": "q{i}"}}')], usage=False))
        for i in range(9)
    ]
    end, sent = await run(
        wire,
        [*bodies, wire.encode(Script(text=["done"], usage=False))],
        profile=profile,
        compaction=Compaction(keep_turns=2),
    )
    assert end.status == "completed"
    assert len({head(body) for body in sent}) == 1
    moved = [not grows(before, after) for before, after in itertools.pairwise(sent)]
    assert 1 <= sum(moved) <= 2
    # Calls and results stay together wherever it was cut.
    assert all(len(wire.call_names(body)) == len(wire.results(body)) for body in sent)
    assert conversation(sent[-1])[0] == conversation(sent[0])[0]


# --- marks -----------------------------------------------------------------------------------------------------------


def marks(body: dict[str, Any]) -> list[str]:
    found = [f"tool {tool['name']}" for tool in body["tools"] if "cache_control" in tool]
    found += ["system" for block in body["system"] if "cache_control" in block]
    for index, message in enumerate(body["messages"]):
        for place, block in enumerate(message["content"]):
            if "cache_control" in block:
                assert place == len(message["content"]) - 1
                found.append(f"{message['role']} {index}")
    return found


async def test_anthropic_marks_what_stays_and_where_the_last_request_ended() -> None:
    _, bodies = await run(ANTHROPIC, turns(ANTHROPIC, 3))
    fixed = ["tool search_documents", "system"]
    assert [marks(body) for body in bodies] == [
        [*fixed, "user 0"],
        [*fixed, "user 0", "user 2"],
        [*fixed, "user 2", "user 4"],
        [*fixed, "user 4", "user 6"],
    ]


async def test_anthropic_marks_nothing_without_a_cache_key() -> None:
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    await play(ANTHROPIC.provider(recorder), ANTHROPIC.request())
    assert b"cache_control" not in recorder.requests[0].content


async def test_anthropic_marks_never_reach_the_stored_turn() -> None:
    first = Recorder(ANTHROPIC.encode(Script(text=["x"], reasoning="Hm.")))
    _, turn = await play(ANTHROPIC.provider(first), ANTHROPIC.request())
    before = json.dumps(turn.to_json())
    second = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    history = (UserMessage("Hello"), turn, UserMessage(""), UserMessage("More?"))
    await play(ANTHROPIC.provider(second), ANTHROPIC.request(*history, cache_key="t"))
    assert json.dumps(turn.to_json()) == before
    assert marks(second.body)[-1] == "user 2"


@pytest.mark.parametrize("wire", [OPENAI, XAI], ids=str)
async def test_requests_of_one_conversation_share_a_key(wire: Wire) -> None:
    _, bodies = await run(wire, turns(wire, 2))
    keys = {body["prompt_cache_key"] for body in bodies}
    assert len(keys) == 1
    assert "t:1" not in keys


@pytest.mark.parametrize("wire", [GOOGLE, COMPATIBLE], ids=str)
async def test_nothing_about_caches_is_sent_where_they_work_by_themselves(wire: Wire) -> None:
    _, bodies = await run(wire, turns(wire, 1))
    assert "cache" not in json.dumps(bodies)


# --- what it costs ---------------------------------------------------------------------------------------------------

# 100 tokens of input, 40 of them from the cache and 7 written to it where that is told; 20 of output, reasoning included.
COSTS = [
    (OPENAI, Usage(200, 80, 14, 40, 10, 2), 2 * (53 * 1.25 + 40 * 0.125 + 7 * 1.25 + 20 * 10)),
    (XAI, Usage(200, 80, 14, 40, 10, 2), 2 * (53 * 2.0 + 40 * 0.30 + 7 * 2.0 + 20 * 6)),
    (ANTHROPIC, Usage(200, 80, 14, 40, 10, 2), 2 * (53 * 2.0 + 40 * 0.10 + 7 * 2.5 + 20 * 10)),
    (GOOGLE, Usage(200, 80, 0, 40, 10, 2), 2 * (60 * 1.5 + 40 * 0.15 + 20 * 7.5)),
    (COMPATIBLE, Usage(200, 80, 0, 40, 10, 2), None),
]


@pytest.mark.parametrize(("wire", "usage", "millionths"), COSTS, ids=str)
async def test_cached_written_and_reasoning_tokens_are_counted_and_priced(
    wire: Wire, usage: Usage, millionths: float | None
) -> None:
    end, _ = await run(wire, turns(wire, 1))
    assert end.usage == usage
    cost = end.data["cost_usd"]
    assert cost == (None if millionths is None else pytest.approx(millionths / 1e6))


def test_profiles_say_how_each_provider_caches() -> None:
    ways = {wire.name: profile_for(wire.name, wire.model).prompt_cache for wire in WIRES}
    assert ways == {
        "openai": "automatic",
        "xai": "automatic",
        "anthropic": "marked",
        "google": "automatic",
        "compatible": "none",
    }
    assert Profile().prompt_cache == "none"
