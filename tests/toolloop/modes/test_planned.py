"""Planned: a plan, its steps, one new plan after a failure, the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.toolloop.modes.support import (
    PAST,
    check_tariffs,
    drive,
    resumes_everywhere,
    said,
    search_documents,
)
from toolloop.compaction import history_compact
from toolloop.events import (
    LimitReached,
    ReasoningDelta,
    RunFinished,
    StepReset,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ToolResult, UserMessage
from toolloop.modes import PLAN_TOOL, PlannedProvider, plan_tool
from toolloop.modes.asking import standing
from toolloop.output import Output, output_of
from toolloop.providers.base import ModelRequest
from toolloop.providers.extractive import ExtractiveProvider
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, call, calls, says
from toolloop.tools import Toolset

TOOLS = (plan_tool(), search_documents, check_tariffs)
SEARCH = {"action": "search_documents", "description": "find the code", "inputs": {}}
CHECK = {"action": "check_tariffs", "description": "find the rate", "inputs": {"code": "42"}}


def plan(*steps: dict[str, Any], reasoning: str = "Step by step.") -> ScriptedCall:
    return call(PLAN_TOOL, schema_version="1.0", reasoning=reasoning, steps=list(steps))


def made(dialogue: Any) -> list[str]:
    return [event.call.name for event in dialogue.of(ToolFinished)]


async def test_plan_is_carried_out_step_by_step_and_answered_from_all_of_it() -> None:
    dialogue = await drive(
        [
            says("I need two things.", plan(SEARCH, CHECK)),
            calls(call("search_documents", query="gloves")),
            says("Now the rate.", call("check_tariffs", code="42")),
            says(["14 ", "percent [c7]."]),
        ],
        PlannedProvider,
        *TOOLS,
        history=(*PAST, UserMessage("And on gloves?")),
    )
    assert made(dialogue) == ["plan", "search_documents", "check_tariffs"]
    assert dialogue.end.text == "14 percent [c7]."
    assert [e.text for e in dialogue.of(TextDelta)] == ["14 ", "percent [c7]."]
    assert [e.text for e in dialogue.of(ReasoningDelta)] == ["I need two things.", "Now the rate."]
    planning, first, second, answer = dialogue.provider.requests
    assert [spec.name for spec in planning.tools] == ["plan"]
    assert planning.tool_choice == "required"
    assert "- check_tariffs: Look up the tariff of a code." in said(planning)
    assert PAST[0] in planning.messages
    assert (first.tool_choice, len(first.tools)) == ("required", 3)
    assert PAST[0] in first.messages
    assert "[Step 1 of 2" in said(first)
    assert "[Step 2 of 2" in said(second)
    assert "find the rate" in said(second)
    assert answer.tool_choice == "none"
    results = [m.content for m in answer.messages if isinstance(m, ToolResult)]
    assert len(results) == 3
    assert "42: 14 percent" in results
    payload = dialogue.of(ToolFinished)[0].result.payload
    assert payload["plan"]["schema_version"] == "1.0"
    assert [s["action"] for s in payload["plan"]["steps"]] == ["search_documents", "check_tariffs"]
    assert dialogue.end.usage.requests == 4


async def test_failed_step_leads_to_one_new_plan_and_then_the_rest_is_done() -> None:
    bad = {**CHECK, "inputs": {"code": "bad"}}
    dialogue = await drive(
        [
            calls(plan(bad, SEARCH)),
            calls(call("check_tariffs", code="bad")),
            calls(plan(bad, SEARCH), expect="there is no such code"),
            calls(call("check_tariffs", code="bad")),
            calls(call("search_documents", query="gloves")),
            says("It could not be found."),
        ],
        PlannedProvider,
        *TOOLS,
    )
    assert made(dialogue) == ["plan", "check_tariffs", "plan", "check_tariffs", "search_documents"]
    assert dialogue.end.text == "It could not be found."
    # After the last plan that may be made, it is not offered any more.
    assert [len(request.tools) for request in dialogue.provider.requests] == [1, 3, 1, 2, 2, 3]


async def test_model_may_plan_anew_in_place_of_a_step() -> None:
    dialogue = await drive(
        [calls(plan(SEARCH, CHECK)), calls(plan(reasoning="It is known.")), says("14 percent.")],
        PlannedProvider,
        *TOOLS,
    )
    assert made(dialogue) == ["plan", "plan"]
    assert dialogue.end.text == "14 percent."


async def test_plan_with_a_tool_that_is_not_there_is_asked_for_again() -> None:
    dialogue = await drive(
        [
            calls(plan({**SEARCH, "action": "google"})),
            calls(plan(), expect="no tool is called google; the tools are search_documents, check_"),
            says("14 percent."),
        ],
        PlannedProvider,
        *TOOLS,
    )
    assert made(dialogue) == ["plan", "plan"]
    assert dialogue.end.text == "14 percent."


@pytest.mark.parametrize("words", ["", "Here is my plan: "])
async def test_plan_in_place_of_the_answer_is_never_the_answer(words: str) -> None:
    again = words + json.dumps({"reasoning": "More.", "steps": [CHECK]})
    dialogue = await drive(
        [calls(plan()), says(list(again)), says("14 percent.", expect="This is a plan")],
        PlannedProvider,
        *TOOLS,
    )
    assert dialogue.end.text == "14 percent."
    assert dialogue.end.usage.requests == 3
    assert [e.text for e in dialogue.of(TextDelta)][-1] == "14 percent."
    assert bool(dialogue.of(StepReset)) is bool(words)
    refused = await drive([calls(plan()), *[says(again)] * 3], PlannedProvider, *TOOLS)
    assert (refused.end.status, refused.end.text) == ("failed", "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (says("I would search."), says("Really.")),
        (calls(call(PLAN_TOOL, steps="none")), calls(ScriptedCall(PLAN_TOOL, raw="{"))),
        (calls(plan(SEARCH), stop="length"), calls(plan(*[SEARCH] * 9))),
        (calls(plan({**SEARCH, "action": "google"})), says(json.dumps({"steps": [{}]}))),
    ],
    ids=["words", "bad-arguments", "cut-and-too-long", "unknown-tool"],
)
async def test_plan_is_made_by_rule_when_the_model_gives_none(first: Any, second: Any) -> None:
    dialogue = await drive(
        [first, second, calls(call("search_documents", query="gloves")), says("14 percent.")],
        PlannedProvider,
        *TOOLS,
    )
    assert made(dialogue) == ["plan", "plan", "plan", "search_documents"]
    assert dialogue.end.text == "14 percent."
    assert "could not be used" in said(dialogue.provider.requests[1])
    written = dialogue.of(ToolFinished)[2].result.payload["plan"]
    assert "without a language model" in written["reasoning"]
    assert dialogue.end.usage.requests == 4


async def test_plan_in_words_and_steps_without_calls_are_carried_out_as_written() -> None:
    text = json.dumps({"reasoning": "r", "steps": [{**SEARCH, "inputs": {"query": "gloves"}}]})
    dialogue = await drive(
        [says(f"```json\n{text}\n```"), says("I will search."), says("14 percent.")], PlannedProvider, *TOOLS
    )
    assert made(dialogue) == ["plan", "search_documents"]
    assert dialogue.of(ToolFinished)[1].call.arguments == {"query": "gloves"}
    assert dialogue.end.text == "14 percent."


async def test_refusal_ends_the_run_with_what_was_said() -> None:
    dialogue = await drive([says("I will not.", stop="refusal")], PlannedProvider, *TOOLS)
    assert (dialogue.end.stop, dialogue.end.text, dialogue.text) == ("refusal", "I will not.", "I will not.")


async def test_limit_leads_to_the_answer_at_once() -> None:
    dialogue = await drive(
        [
            calls(plan(SEARCH, CHECK)),
            calls(call("search_documents", query="gloves")),
            says("Half of it.", expect="met its limit"),
        ],
        PlannedProvider,
        *TOOLS,
        limits=Limits(max_steps=2),
    )
    assert [e.limit for e in dialogue.of(LimitReached)] == ["max_steps"]
    assert dialogue.end.text == "Half of it."
    assert dialogue.provider.requests[-1].tool_choice == "none"


async def test_resume_repeats_nothing_behind_any_turn() -> None:
    def answer(request: ModelRequest) -> Any:
        text = said(request)
        if "Make a plan" in text:
            return calls(plan(CHECK, SEARCH) if "failed" not in text else plan(SEARCH))
        if "tool check_tariffs" in text:
            return calls(call("check_tariffs", code="bad"))
        if "[Step" in text:
            return calls(call("search_documents", query="gloves"))
        return says("14 percent.")

    await resumes_everywhere(answer, PlannedProvider, *TOOLS, history=(UserMessage("Duty on gloves?"),))


async def test_answer_follows_when_the_plan_was_left_out_of_a_long_history() -> None:
    dialogue = await drive(
        [calls(plan(SEARCH)), calls(call("search_documents", query="gloves")), says("14.")],
        PlannedProvider,
        *TOOLS,
    )
    turns = [e.turn for e in dialogue.of(TurnFinished)]
    results = [e.result for e in dialogue.of(ToolFinished)]
    history = [UserMessage("What is the duty on gloves?"), turns[0], results[0], turns[1], results[1]]
    short = (await history_compact(history, 1, keep_turns=1)).messages
    assert not any(isinstance(m, ToolResult) and m.name == PLAN_TOOL for m in short)
    inner = ScriptedProvider([says("14.")])
    tools = Toolset(TOOLS).specs()
    request = ModelRequest(model="m", system="", messages=short, tools=tools)
    events = [event async for event in PlannedProvider(inner).stream(request)]
    assert isinstance(events[-1], TurnFinished)
    assert inner.requests[0].tool_choice == "none"
    assert standing(short).question.text == "What is the duty on gloves?"


async def test_rule_makes_plan_and_calls_without_a_language_model() -> None:
    provider = PlannedProvider(ExtractiveProvider(), no_model=True)
    events = [
        event
        async for event in run_loop(
            LoopInput(
                model="extractive",
                system="",
                history=[UserMessage("What is the duty on gloves? What is it on raw hides?")],
                toolset=Toolset(TOOLS),
            ),
            LoopServices(provider=provider),
        )
    ]
    finished = [e for e in events if isinstance(e, ToolFinished)]
    assert [e.call.name for e in finished] == ["plan", "search_documents", "search_documents"]
    assert "without a language model" in finished[0].result.payload["plan"]["reasoning"]
    assert isinstance(events[-1], RunFinished)
    assert "[c7]" in events[-1].text


def answer_form(**changes: Any) -> Output:
    form = output_of(
        {
            "title": "short",
            "type": "object",
            "properties": {"answer": {"type": "string"}, "rate": {"type": "number"}},
            "required": ["answer", "rate"],
            "additionalProperties": False,
        }
    )
    return replace(form, asked_by_provider=True, **changes)


async def test_form_is_asked_for_in_the_answer_alone_and_repaired_there() -> None:
    form = answer_form()
    dialogue = await drive(
        [
            calls(plan(CHECK)),
            calls(call("check_tariffs", code="42")),
            says('{"answer": "x"}'),
            says('{"answer": "14 percent", "rate": 14}', expect="does not have the form"),
        ],
        partial(PlannedProvider, output=form),
        *TOOLS,
        output=form,
    )
    assert dialogue.end.output == {"answer": "14 percent", "rate": 14}
    forms = [request.response_schema is not None for request in dialogue.provider.requests]
    systems = ["JSON Schema" in request.system for request in dialogue.provider.requests]
    asked = [form or system for form, system in zip(forms, systems, strict=True)]
    assert asked == [False, False, True, True]


async def test_answer_that_does_not_fit_stays_as_text_when_the_form_is_not_required() -> None:
    form = answer_form(is_required=False)
    dialogue = await drive(
        [calls(plan()), says('{"answer": 1}'), says("It is 14 percent.")],
        partial(PlannedProvider, output=form),
        *TOOLS,
        output=form,
        limits=Limits(max_output_repairs=1),
    )
    assert (dialogue.end.status, dialogue.end.text) == ("completed", "It is 14 percent.")
    assert dialogue.end.output is None
    assert "no JSON" in dialogue.end.data["output_problem"]
