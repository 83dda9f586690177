"""Quick: condense, one search, the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.toolloop.modes.support import (
    PAST,
    check_tariffs,
    drive,
    resumes_everywhere,
    said,
    search_documents,
)
from toolloop.errors import ProviderUnavailable
from toolloop.events import RunFinished, TextDelta, ToolFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ToolResult, Turn, UserMessage
from toolloop.metering import UsageEvent
from toolloop.modes import QuickProvider
from toolloop.providers.base import ModelRequest
from toolloop.providers.extractive import ExtractiveProvider
from toolloop.providers.scripted import ScriptedProvider, fails, hangs, says
from toolloop.tokens import Usage
from toolloop.tools import Toolset

FOLLOW_UP = (*PAST, UserMessage("And on gloves?"))


async def test_first_question_takes_one_model_call_and_one_search() -> None:
    used: list[UsageEvent] = []
    dialogue = await drive(
        [says(["Gloves: ", "14 percent [c7]."], expect="14 percent")], QuickProvider, on_usage=used.append
    )
    assert dialogue.end.text == "Gloves: 14 percent [c7]."
    assert [e.text for e in dialogue.of(TextDelta)] == ["Gloves: ", "14 percent [c7]."]
    (search,) = dialogue.of(ToolFinished)
    assert search.call.arguments == {"query": "What is the duty on gloves?"}
    (asked,) = dialogue.provider.requests
    assert asked.tool_choice == "none"
    assert [spec.name for spec in asked.tools] == ["search_documents"]
    assert dialogue.end.usage.requests == 1
    assert len(used) == 1
    assert dialogue.end.data["notes"] == []


async def test_follow_up_is_condensed_from_earlier_turns_alone() -> None:
    dialogue = await drive(
        [
            says('"What is the duty on leather gloves?"', usage=Usage(50, 0, 0, 9, 0, 1)),
            says("14 percent [c7]."),
        ],
        QuickProvider,
        history=FOLLOW_UP,
    )
    condense, answer = dialogue.provider.requests
    assert condense.tools == ()
    assert "What is the duty on raw hides?" in said(condense)
    assert "It is 5 percent" in said(condense)
    assert said(condense).endswith("Last question: And on gloves?")
    assert PASSAGE_WORDS not in said(condense)
    (search,) = dialogue.of(ToolFinished)
    assert search.call.arguments == {"query": "What is the duty on leather gloves?"}
    assert [m for m in answer.messages if isinstance(m, ToolResult)]
    assert dialogue.end.text == "14 percent [c7]."  # The rewritten question is no part of it.
    assert dialogue.end.usage == Usage(60, 0, 0, 14, 0, 2)


PASSAGE_WORDS = "Leather gloves carry"


async def test_question_is_searched_as_it_stands_when_rewriting_gives_nothing() -> None:
    for useless in (says(""), says("x" * 3_000), says("What is", stop="length")):
        dialogue = await drive([useless, says("14.")], QuickProvider, history=FOLLOW_UP)
        (search,) = dialogue.of(ToolFinished)
        assert search.call.arguments == {"query": "And on gloves?"}


async def test_model_answers_at_once_without_the_search_tool() -> None:
    dialogue = await drive([says("I cannot search.")], QuickProvider, check_tariffs)
    assert dialogue.end.text == "I cannot search."
    assert not dialogue.of(ToolFinished)


async def test_failures_of_either_call_are_tried_again_and_counted() -> None:
    lost = ProviderUnavailable("overloaded")
    lost.usage = Usage(5, 0, 0, 1, 0, 1)
    dialogue = await drive(
        [fails(lost), says("The duty on gloves?"), fails(lost), says("14.")],
        QuickProvider,
        history=FOLLOW_UP,
        limits=Limits(retry_min_s=0.0, retry_max_s=0.0),
    )
    assert (dialogue.end.status, dialogue.end.text) == ("completed", "14.")
    assert dialogue.end.usage.requests == 4
    assert len(dialogue.of(ToolFinished)) == 1


async def test_stop_ends_the_stream_of_the_rewriting_call() -> None:
    begun, stop = asyncio.Event(), asyncio.Event()

    def silent(_: ModelRequest) -> Any:
        begun.set()
        return hangs()

    inner = ScriptedProvider(silent)

    async def run() -> Any:
        async for event in run_loop(
            LoopInput(model="script-1", system="", history=FOLLOW_UP, toolset=Toolset([search_documents])),
            LoopServices(provider=QuickProvider(inner), stop=stop),
        ):
            last = event
        return last

    task = asyncio.create_task(run())
    await begun.wait()
    stop.set()
    assert (await task).status == "stopped"
    assert inner.open_streams == 0


async def test_resume_repeats_nothing_behind_any_turn() -> None:
    def answer(request: ModelRequest) -> Any:
        if not request.tools:
            return says("What is the duty on leather gloves?")
        return says("14 percent [c7].")

    await resumes_everywhere(answer, QuickProvider, search_documents, history=FOLLOW_UP)


async def test_mode_works_without_a_language_model() -> None:
    inner = ExtractiveProvider()
    events = [
        event
        async for event in run_loop(
            LoopInput(model="extractive", system="", history=FOLLOW_UP, toolset=Toolset([search_documents])),
            LoopServices(provider=QuickProvider(inner, no_model=True)),
        )
    ]
    (search,) = [e for e in events if isinstance(e, ToolFinished)]
    assert search.call.arguments == {"query": "What is the duty on raw hides? And on gloves?"}
    assert isinstance(events[-1], RunFinished)
    assert "[c7]" in events[-1].text
    turns = [e for e in events if isinstance(getattr(e, "turn", None), Turn)]
    assert len(turns) == 2
