"""Models without tools: a planner decides in words, an executor fills in parameters, the loop notices nothing."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

from tests.toolloop.helpers import Dialogue, Recorder, add, loop_values
from tests.walked import each
from toolloop.errors import ProviderUnavailable
from toolloop.events import StepReset, TextDelta, ToolCallStarted, TurnFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage, message_from_json
from toolloop.planner_executor import Mode, PlannerExecutor
from toolloop.planner_prompts import AnswerReader
from toolloop.providers.base import ModelRequest
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn, fails, says
from toolloop.tools import Tool, Toolset, tool

MODES: tuple[Mode, ...] = ("native", "json_schema", "manual")


@tool
def ping() -> str:
    """Ping."""
    return "pong"


def plan(*steps: tuple[str, str], answer: str = "", **settings: Any) -> ScriptedTurn:
    calls = [{"tool": name, "task": task} for name, task in steps]
    return says(json.dumps({"calls": calls, "answer": answer}), **settings)


async def converse(
    planner: list[ScriptedTurn],
    executor: list[ScriptedTurn],
    *tools: Tool,
    mode: Mode = "native",
    history: list[ModelMessage] | None = None,
    retries: dict[str, int] | None = None,
    **settings: Any,
) -> tuple[Dialogue, ScriptedProvider]:
    thinking, filling = ScriptedProvider(planner), ScriptedProvider(executor)
    provider = PlannerExecutor(
        thinking, executor=filling, executor_model="small", mode=mode, **(retries or {})
    )
    events = [
        event
        async for event in run_loop(
            *loop_values(
                model="big",
                system="Be brief.",
                history=history or [UserMessage("What is 2 and 3?")],
                toolset=Toolset(tools or (add, ping)),
                provider=provider,
                **settings,
            )
        )
    ]
    await provider.aclose()
    assert thinking.closed
    assert filling.closed
    return Dialogue(thinking, events), filling


@pytest.mark.parametrize("mode", MODES)
async def test_plan_is_carried_out_and_the_answer_streamed(mode: Mode) -> None:
    answer = ['{"calls": [], "ans', 'wer": "It is', " \\u00fcber", ' 5."}']
    dialogue, executor = await converse(
        [plan(("add", "add 2 and 3")), says(answer)], [says('{"a": 2, "b": 3}')], mode=mode
    )
    assert dialogue.end.status == "completed"
    assert dialogue.end.text == "It is über 5."
    assert [e.text for e in dialogue.of(TextDelta)] == ["It is", " über", " 5."]
    assert [e.name for e in dialogue.of(ToolCallStarted)] == ["add"]
    assert dialogue.end.usage.requests == 3
    for request in (*dialogue.provider.requests, *executor.requests):
        assert request.tools == ()
        assert all(isinstance(m, UserMessage | Turn) for m in request.messages)
        assert not any(isinstance(m, Turn) and m.tool_calls for m in request.messages)
    asked = executor.requests[0]
    assert asked.model == "small"
    told = asked.messages[0]
    assert isinstance(told, UserMessage)
    assert "add 2 and 3" in told.text
    assert "What is 2 and 3?" in told.text
    results = dialogue.provider.requests[1].messages[-1]
    assert isinstance(results, UserMessage)
    assert results.text == "[Result of add]\n5"


async def test_modes_differ_in_how_the_form_is_asked_for() -> None:
    requests: dict[str, ModelRequest] = {}
    for mode in MODES:
        dialogue, executor = await converse(
            [plan(("add", "x")), plan(answer="5")], [says('{"a": 2, "b": 3}')], mode=mode
        )
        requests[mode] = dialogue.provider.requests[0]
        schema = executor.requests[0].response_schema
        assert (schema is None) == (mode == "manual")
        if schema is not None:
            assert schema.strict is (mode == "native")
    native, hinted, manual = (requests[mode] for mode in MODES)
    assert native.response_schema is not None
    step = native.response_schema.schema["properties"]["calls"]["items"]
    assert step["properties"]["tool"]["enum"] == ["add", "ping"]
    assert "JSON Schema" not in native.system
    assert hinted.response_schema is not None
    assert "JSON Schema" in hinted.system
    assert manual.response_schema is None
    assert "JSON Schema" in manual.system


async def test_fences_and_chatter_are_forgiven_in_manual_mode() -> None:
    dialogue, _ = await converse(
        [
            says('Let me think.\n```json\n{"calls": [{"tool": "add", "task": "2+3",}], "answer": ""}\n```'),
            says('Sure:\n```json\n{"calls": [], "answer": "5"}\n```'),
        ],
        [says('The parameters are:\n```\n{"a": 2, "b": 3,}\n```\nGood luck')],
        mode="manual",
    )
    assert dialogue.end.text == "5"
    assert dialogue.end.tools["add"]["errors"] == 0


async def test_tool_without_parameters_needs_no_executor() -> None:
    dialogue, executor = await converse([plan(("ping", "go")), plan(answer="ok")], [])
    assert dialogue.end.text == "ok"
    assert executor.requests == []


async def test_executor_corrects_itself_when_its_arguments_do_not_fit() -> None:
    dialogue, executor = await converse(
        [plan(("add", "2 and 3")), plan(answer="5")],
        [says('{"a": "two", "b": 3}'), says('{"a": 2, "b": 3}', expect="expected integer")],
    )
    assert dialogue.end.text == "5"
    assert len(executor.requests) == 2


async def test_planner_is_told_when_the_executor_fails_and_plans_again() -> None:
    dialogue, executor = await converse(
        [
            plan(("add", "something")),
            plan(("add", "2 and 3"), expect="no parameters could be made"),
            plan(answer="5"),
        ],
        [says("I cannot"), says("no idea"), says('{"a": 2, "b": 3}')],
        retries={"executor_retries": 1},
    )
    assert dialogue.end.text == "5"
    assert len(executor.requests) == 3
    assert dialogue.end.usage.requests == 6
    assert len(dialogue.of(TurnFinished)) == 2


async def test_unknown_tool_is_refused_before_parameters_are_paid_for() -> None:
    dialogue, executor = await converse(
        [
            plan(("rm_rf", "all"), ("add", "1 and 1")),
            plan(answer="I cannot do that.", expect="there is no tool 'rm_rf'"),
        ],
        [],
        mode="manual",
    )
    assert dialogue.end.text == "I cannot do that."
    assert executor.requests == []
    assert dialogue.end.tools == {}


async def test_loop_refuses_the_tool_when_the_planner_insists() -> None:
    insisting = [plan(("rm_rf", "all"))] * 3
    dialogue, _ = await converse([*insisting, plan(answer="ok")], [], mode="manual")
    assert dialogue.end.text == "ok"
    shown = dialogue.provider.requests[-1].messages[-1]
    assert isinstance(shown, UserMessage)
    assert "[Error of rm_rf]" in shown.text


async def test_model_can_repair_when_parameters_could_never_be_made() -> None:
    dialogue, _ = await converse(
        [plan(("add", "x")), plan(answer="sorry", expect="[Error of add]")],
        [says("no")],
        retries={"executor_retries": 0, "planner_retries": 0},
    )
    assert dialogue.end.text == "sorry"


CALL = '{"calls": [{"tool": "add", "task": "2 and 3"}], "answer": ""}'
ANSWER = '{"calls": [], "answer": "It is 5."}'
NO_PLANS = {
    "prose": "First I will use add on 2 and 3, then I will answer.",
    "numbered": "1. add(2, 3)\n2. Tell the user.",
    "prose with braces": "I would call add with {a} and {b}.",
    "half JSON": '{"calls": [{"tool": "add", "task": "2 an',
    "half an answer": '{"calls": [], "answer": "It is',
    "half in a fence": '```json\n{"calls": [{"tool": "add"',
    "fenced prose": "```\nadd 2 and 3\n```",
    "a list": '[{"tool": "add", "task": "2 and 3"}]',
    "a string": '"add 2 and 3"',
    "another form": '{"tool": "add", "arguments": {"a": 2, "b": 3}}',
    "no task": '{"calls": [{"tool": "add"}], "answer": ""}',
    "calls are text": '{"calls": "add 2 and 3", "answer": ""}',
    "nothing": "",
    "neither": '{"calls": [], "answer": " "}',
    "an answer, then calls": f"{ANSWER}\n{CALL}",
    "an answer, then calls in a fence": f"{ANSWER}\n```json\n{CALL}\n```",
    "two answers": f'{ANSWER}{{"calls": [], "answer": "It is 6."}}',
    "a plan within the answer": json.dumps({"calls": [], "answer": CALL}),
    "a plan among words within the answer": json.dumps(
        {"calls": [], "answer": f"My plan is:\n```json\n{CALL}\n```"}
    ),
    "python": "add(a=2, b=3)",
    "xml": "<tool_call><name>add</name></tool_call>",
}


@each("text, mode", product(NO_PLANS.values(), MODES))
async def test_what_is_no_plan_is_asked_for_again_and_never_the_answer(text: str, mode: Mode) -> None:
    script = [says(list(text)), says(CALL, expect="This cannot be used"), says(ANSWER)]
    dialogue, _ = await converse(script, [says('{"a": 2, "b": 3}')], mode=mode)
    assert (dialogue.end.status, dialogue.end.text) == ("completed", "It is 5.")
    assert dialogue.end.tools["add"]["calls"] == 1
    assert shown_in_the_end(dialogue) == "It is 5."
    assert dialogue.end.usage.requests == 4


@each("text", NO_PLANS.values())
async def test_what_is_never_a_plan_is_refused_with_its_reason(text: str) -> None:
    dialogue, executor = await converse([says(text)] * 3, [], mode="manual")
    end = dialogue.end
    assert (end.status, end.error_code, end.text) == ("failed", "malformed_response", "")
    assert "no plan that can be used in 3 attempts" in end.error_message
    assert not end.retryable
    assert end.usage.requests == len(dialogue.provider.requests) == 3
    assert executor.requests == []
    assert end.tools == {}


def shown_in_the_end(dialogue: Dialogue) -> str:
    """Return the text that a reader of the events has before them after the last one."""
    steps: dict[int, str] = {}
    for event in dialogue.events:
        if isinstance(event, TextDelta):
            steps[event.step] = steps.get(event.step, "") + event.text
        elif isinstance(event, StepReset):
            steps[event.step] = ""
    return "".join(steps.values())


async def test_plans_behind_the_first_that_makes_calls_are_left_out() -> None:
    dialogue, _ = await converse(
        [says(f"{CALL}\n{ANSWER}"), says(ANSWER)], [says('{"a": 2, "b": 3}')], mode="manual"
    )
    assert dialogue.end.text == "It is 5."
    assert dialogue.end.tools["add"]["calls"] == 1
    assert len(dialogue.provider.requests) == 2


@pytest.mark.parametrize("text", [f"{ANSWER}{ANSWER}", f"{ANSWER} Done.", ANSWER[:-1] + "]"])
async def test_answer_is_taken_when_nothing_else_could_be_meant(text: str) -> None:
    dialogue, _ = await converse([says(text)], [], mode="manual")
    assert dialogue.end.text == "It is 5."


LATE_PLANS = {"bare": CALL, "fenced": f"```json\n{CALL}\n```", "among words": f"Let me see. {CALL}"}


@pytest.mark.parametrize("text", LATE_PLANS.values(), ids=LATE_PLANS)
async def test_plan_in_place_of_the_last_answer_is_asked_for_again(text: str) -> None:
    dialogue, _ = await converse(
        [plan(("ping", "go")), says(list(text)), says("All I know is pong.", expect="in words")],
        [],
        limits=Limits(max_steps=1),
    )
    assert dialogue.end.text == shown_in_the_end(dialogue) == "All I know is pong."
    assert dialogue.end.usage.requests == 3


async def test_last_answer_in_the_form_of_a_plan_is_unwrapped() -> None:
    dialogue, _ = await converse([plan(("ping", "go")), plan(answer="pong")], [], limits=Limits(max_steps=1))
    assert dialogue.end.text == shown_in_the_end(dialogue) == "pong"


async def test_run_fails_when_the_last_answer_is_always_a_plan() -> None:
    dialogue, _ = await converse([plan(("ping", "go")), *[says(CALL)] * 3], [], limits=Limits(max_steps=1))
    assert (dialogue.end.status, dialogue.end.text) == ("failed", "")
    assert dialogue.end.error_code == "malformed_response"
    assert dialogue.end.usage.requests == 4


async def test_unusable_plan_is_a_failure_and_its_tokens_are_counted() -> None:
    dialogue, _ = await converse([says('{"calls": [')] * 3, [], mode="manual", limits=Limits(max_retries=0))
    assert (dialogue.end.status, dialogue.end.error_code) == ("failed", "malformed_response")
    assert dialogue.end.usage.requests == 3


async def test_tokens_of_a_plan_are_counted_when_the_executor_is_unreachable() -> None:
    dialogue, _ = await converse(
        [plan(("add", "x"))], [fails(ProviderUnavailable("down"))], limits=Limits(max_retries=0)
    )
    assert dialogue.end.error_code == "provider_unavailable"
    assert dialogue.end.usage.requests == 1


async def test_streamed_answer_is_void_when_the_planner_breaks_off() -> None:
    dialogue, _ = await converse(
        [fails(ProviderUnavailable("cut"), after='{"calls": [], "answer": "It'), plan(answer="It is 5")],
        [],
        limits=Limits(retry_min_s=0, retry_max_s=0),
    )
    assert len(dialogue.of(StepReset)) == 1
    assert dialogue.end.text == "It is 5"


async def test_truncated_plan_runs_nothing_and_truncated_answer_stays() -> None:
    dialogue, executor = await converse(
        [says('{"calls": [{"tool": "add", "task": "2 and', stop="length")], []
    )
    assert (dialogue.end.stop, dialogue.end.tools) == ("length", {})
    assert executor.requests == []
    dialogue, _ = await converse([says('{"calls": [], "answer": "It is', stop="length")], [])
    assert (dialogue.end.stop, dialogue.end.text) == ("length", "It is")


async def test_last_answer_is_asked_for_in_words_when_a_limit_is_met() -> None:
    dialogue, _ = await converse(
        [plan(("ping", "go")), says("All I know is pong.")], [], limits=Limits(max_steps=1)
    )
    assert dialogue.end.limit == "max_steps"
    assert dialogue.end.text == "All I know is pong."
    final = dialogue.provider.requests[-1]
    assert final.response_schema is None
    assert "[Used ping with {}]" in next(m.text for m in final.messages if isinstance(m, Turn))


async def test_planner_sees_its_own_words_after_a_reload() -> None:
    journal = Recorder()
    first, _ = await converse(
        [plan(("add", "the task in words")), plan(answer="5")], [says('{"a": 2, "b": 3}')], journal=journal
    )
    assert first.end.text == "5"
    call_id = journal.turns[0].tool_calls[0].id
    history = [
        UserMessage("What is 2 and 3?"),
        *(
            message_from_json(json.loads(json.dumps(m.to_json())))
            for m in (journal.turns[0], journal.results[call_id])
        ),
    ]
    second, _ = await converse([plan(answer="again 5")], [], history=history, first_step=1)
    turn = second.provider.requests[0].messages[1]
    assert isinstance(turn, Turn)
    assert "the task in words" in turn.text
    assert second.end.text == "again 5"


async def test_approval_works_over_it() -> None:
    guarded = Tool("add", "Add.", add.parameters, add.function, needs_approval=True)
    journal = Recorder()
    first, _ = await converse([plan(("add", "x"))], [says('{"a": 2, "b": 3}')], guarded, journal=journal)
    assert first.end.status == "parked"
    pending = first.end.pending[0]
    second, _ = await converse(
        [plan(answer="done", expect="[Result of add]\n5")],
        [],
        guarded,
        history=[UserMessage("What is 2 and 3?"), *journal.turns],
        first_step=1,
        decisions={pending.call.id: pending.approve()},
    )
    assert second.end.text == "done"


def test_history_of_a_real_tool_model_is_understood() -> None:
    from toolloop.messages import ToolCall
    from toolloop.planner_prompts import plain_history

    turn = Turn(
        "openai",
        "gpt",
        "Let me see.",
        tool_calls=(ToolCall("c", "add", {"a": 1}, '{"a": 1}'),),
        native=[{"type": "reasoning"}],
        account="k",
    )
    result = ToolResult("c", "add", "boom", is_error=True)
    plain = plain_history([UserMessage("x"), turn, result], as_plans=True)
    assert [type(m) for m in plain] == [UserMessage, Turn, UserMessage]
    written = plain[1]
    assert isinstance(written, Turn)
    assert written.native is None
    assert json.loads(written.text)["calls"] == [{"tool": "add", "task": 'with {"a": 1}'}]


@each("seed", range(20))
def test_answer_is_read_the_same_however_it_is_cut(seed: int) -> None:
    chosen = random.Random(seed)
    alphabet = ['"', "\\", "\n", "é", "😀", "}", "a", " ", "\t", "\\n", "{", "\u2028"]
    answer = "".join(chosen.choice(alphabet) for _ in range(60))
    text = json.dumps({"calls": [], "answer": answer}, ensure_ascii=chosen.random() < 0.5)
    reader, given, at = AnswerReader(), "", 0
    while at < len(text):
        size = chosen.randint(1, 4)
        given += reader.feed(text[at : at + size])
        at += size
    assert given == reader.text == answer
    given.encode()


def test_nothing_is_streamed_of_a_plan_with_calls() -> None:
    reader = AnswerReader()
    text = json.dumps({"calls": [{"tool": "a", "task": '"answer": "no"'}], "answer": "no"})
    assert "".join(reader.feed(c) for c in text) == ""
    assert reader.text == ""
