"""The agent: its steps, its memories, its plain and async forms, and models without tool calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool as lc_tool

from tests.toolloop.helpers import add, broken
from toolloop.client import Client
from toolloop.errors import ConfigurationError, RateLimited
from toolloop.interop.memory import BufferMemory, WindowMemory
from toolloop.interop.react import REACT_SYSTEM, AgentError, AgentStep, ReActAgent
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn, call, says
from toolloop.tools import Tool, ToolOutput


def agent(*script: ScriptedTurn, tools: Any = (add,), **settings: Any) -> ReActAgent:
    return ReActAgent(ScriptedProvider(script), "script-1", tools, **settings)


def histories(made: ReActAgent) -> list[list[ModelMessage]]:
    provider = made._provider
    assert isinstance(provider, ScriptedProvider)
    return [list(request.messages) for request in provider.requests]


async def test_thought_action_input_and_observation_of_each_step() -> None:
    made = agent(
        says("First the sum.", call("add", a=2, b=3)),
        says("", call("add", a=5, b=5), call("nothing"), reasoning="Now twice that."),
        says("It is 10."),
    )
    answer = await made.ainvoke({"input": "Twice 2 + 3?"})
    assert (answer["input"], answer["output"]) == ("Twice 2 + 3?", "It is 10.")
    assert (answer["status"], answer["limit"], answer["pending"]) == ("completed", "", ())
    assert answer["usage"].requests == 3
    steps = {
        (step.input and step.input.get("a")) or step.action: step for step in answer["intermediate_steps"]
    }
    first = steps[2]
    assert first == AgentStep("First the sum.", "add", {"a": 2, "b": 3}, "5", False, 5, first.call_id)
    assert (steps[5].thought, steps[5].observation) == ("Now twice that.", "10")
    assert steps["nothing"].is_error
    assert "There is no tool 'nothing'" in str(steps["nothing"].observation)


async def test_failures_are_observations_and_hide_what_they_should() -> None:
    made = agent(says("", call("broken")), says("It failed."), tools=[broken])
    (step,) = (await made.ainvoke("Try"))["intermediate_steps"]
    assert step.is_error
    assert "hunter2" not in step.observation


async def test_tools_may_be_functions_and_langchain_tools() -> None:
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    @lc_tool
    def shout(text: str) -> str:
        """Shout a text."""
        return text.upper()

    made = agent(says("", call("double", n=4), call("shout", text="a")), says("ok"), tools=[double, shout])
    steps = (await made.ainvoke("Go"))["intermediate_steps"]
    assert {step.observation for step in steps} == {"8", "A"}


async def test_the_buffer_remembers_questions_calls_and_answers() -> None:
    memory = BufferMemory()
    made = agent(says("", call("add", a=1, b=1)), says("2"), says("I said 2."), memory=memory)
    await made.ainvoke("1 + 1?")
    await made.ainvoke("What did you say?")
    kinds = [type(message).__name__ for message in histories(made)[-1]]
    assert kinds == ["UserMessage", "Turn", "ToolResult", "Turn", "UserMessage"]
    again = BufferMemory.from_json(json.loads(json.dumps(memory.to_json())))
    assert again.load() == memory.load()
    memory.clear()
    assert memory.load() == []


async def test_a_conversation_goes_on_after_it_was_stored() -> None:
    first = agent(says("Hello Ann."))
    await first.ainvoke("I am Ann.")
    assert isinstance(first.memory, BufferMemory)
    stored = json.dumps(first.memory.to_json())
    second = agent(says("Ann."), memory=BufferMemory.from_json(json.loads(stored)))
    assert (await second.ainvoke("Who am I?"))["output"] == "Ann."
    assert isinstance(histories(second)[0][0], UserMessage)
    assert len(histories(second)[0]) == 3


async def test_the_window_forgets_whole_exchanges() -> None:
    memory = WindowMemory(2)
    turns = [turn for n in range(4) for turn in (says("", call("add", a=n, b=n)), says(str(2 * n)))]
    made = agent(*turns, memory=memory)
    for n in range(4):
        await made.ainvoke(f"{n} + {n}?")
    loaded = memory.load()
    assert [m.text for m in loaded if isinstance(m, UserMessage)] == ["2 + 2?", "3 + 3?"]
    assert len(loaded) == 8
    again = WindowMemory.from_json(json.loads(json.dumps(memory.to_json())))
    assert (again.k, again.load()) == (2, loaded)
    with pytest.raises(ConfigurationError, match="at least 1"):
        WindowMemory(0)


def exchange(calls: int, notice: bool) -> Iterator[ModelMessage]:
    yield UserMessage("q")
    for n in range(calls):
        yield Turn("p", "m", native=[{"x": n}], tool_calls=(ToolCall(f"c{n}", "t", {}),))
        yield ToolResult(f"c{n}", "t", "r")
        if notice:
            yield UserMessage("[again]", notice=True)
    yield Turn("p", "m", text="a")


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8))
def test_no_window_ever_splits_a_call_from_its_result(k: int, shapes: list[tuple[int, bool]]) -> None:
    memory = WindowMemory(k)
    for calls, notice in shapes:
        memory.save(list(exchange(calls, notice)))
        loaded = memory.load()
        asked = [c.id for m in loaded if isinstance(m, Turn) for c in m.tool_calls]
        answered = [m.call_id for m in loaded if isinstance(m, ToolResult)]
        assert asked == answered
        assert isinstance(loaded[0], UserMessage)
        assert not loaded[0].notice
    assert sum(isinstance(m, UserMessage) and not m.notice for m in memory.load()) == min(k, len(shapes))
    if len(shapes) > k:
        # Signed turns are refused behind another beginning.
        assert all(m.native is None for m in memory.load() if isinstance(m, Turn))


async def test_streaming_tells_actions_then_steps_then_the_answer() -> None:
    made = agent(says(["Let me ", "add."], call("add", a=1, b=2)), says("3"))
    chunks = [chunk async for chunk in made.astream("1 + 2?", text=True)]
    assert [next(iter(chunk)) for chunk in chunks] == ["text", "text", "actions", "steps", "text", "input"]
    (action,), (step,) = chunks[2]["actions"], chunks[3]["steps"]
    assert (action.thought, action.observation, step.observation) == ("Let me add.", None, "3")
    assert chunks[-1]["output"] == "3"
    assert chunks[-1]["intermediate_steps"] == [step]


def test_plain_code_can_invoke_again_and_stream() -> None:
    made = agent(says("", call("add", a=1, b=2)), says("3"), says("", call("add", a=2, b=2)), says("4"))
    assert made.invoke("1 + 2?")["output"] == "3"
    chunks = list(made.stream("2 + 2?"))
    assert [next(iter(chunk)) for chunk in chunks] == ["actions", "steps", "input"]
    made.close()


def test_a_stream_left_early_lets_the_next_question_in() -> None:
    made = agent(says("", call("add", a=1, b=2)), says("never"), says("hello"))
    for chunk in made.stream("1 + 2?"):
        assert "actions" in chunk
        break
    answer = made.invoke("Hello?")
    assert answer["status"] == "completed"
    assert isinstance(made.memory, BufferMemory)
    assert [m.text for m in made.memory.load() if isinstance(m, UserMessage)] == ["Hello?"]


async def test_one_question_at_a_time() -> None:
    made = agent(says("slow", delay_s=0.2), says("second"))
    first = asyncio.create_task(made.ainvoke("a"))
    await asyncio.sleep(0.05)
    with pytest.raises(ConfigurationError, match="one at a time"):
        await made.ainvoke("b")
    assert (await first)["output"] == "slow"


async def test_a_failed_run_raises_and_is_not_remembered() -> None:
    failing = says("", error=RateLimited("Too many."))
    made = agent(failing, says("hello"), limits=Limits(max_retries=0))
    with pytest.raises(AgentError, match="Too many") as caught:
        await made.ainvoke("a")
    assert (caught.value.error_code, caught.value.retryable) == ("rate_limited", True)
    assert (await made.ainvoke("b"))["output"] == "hello"
    assert len(histories(made)[-1]) == 1
    for bad in ({}, {"input": 5}):
        with pytest.raises(ConfigurationError, match="under 'input'"):
            await made.ainvoke(bad)


async def test_limits_end_with_an_answer() -> None:
    turns = [says("", call("add", a=n, b=n)) for n in range(2)]
    made = agent(*turns, says("Enough."), limits=Limits(max_steps=2))
    answer = await made.ainvoke("Add forever")
    assert (answer["output"], answer["limit"]) == ("Enough.", "max_steps")
    assert len(answer["intermediate_steps"]) == 2


async def test_an_approval_parks_the_question_and_resume_goes_on() -> None:
    paid: list[int] = []

    def pay(amount: int) -> ToolOutput:
        paid.append(amount)
        return ToolOutput("Paid.", {"amount": amount})

    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    guarded = Tool("pay", "Pay.", schema, pay, side_effects=True, needs_approval=True)
    made = agent(
        says("I add and pay.", call("add", a=1, b=1), call("pay", amount=500)),
        says("All done."),
        tools=[add, guarded],
    )
    answer = await made.ainvoke("Pay")
    assert (answer["status"], paid) == ("parked", [])
    assert [step.action for step in answer["intermediate_steps"]] == ["add"]
    (pending,) = answer["pending"]
    with pytest.raises(ConfigurationError, match="call resume first"):
        await made.ainvoke("Something else")
    answer = await made.aresume({pending.call.id: pending.approve({"amount": 5})})
    assert (answer["output"], paid) == ("All done.", [5])
    assert [step.action for step in answer["intermediate_steps"]] == ["add", "pay"]
    kinds = [type(m).__name__ for m in made.memory.load()]
    assert kinds == ["UserMessage", "Turn", "ToolResult", "ToolResult", "Turn"]
    with pytest.raises(ConfigurationError, match="no question is waiting"):
        await made.aresume({})


async def test_a_model_without_tool_calls_plans_in_words() -> None:
    plan = {"calls": [{"tool": "add", "task": "add 2 and 3"}], "answer": ""}
    made = agent(
        says(f"Sure!\n```json\n{json.dumps(plan)}\n```"),
        says('{"a": 2, "b": 3}'),
        says(json.dumps({"calls": [], "answer": "It is 5."})),
        planner="manual",
    )
    answer = await made.ainvoke("2 + 3?")
    assert answer["output"] == "It is 5."
    (step,) = answer["intermediate_steps"]
    assert (step.action, step.input, step.observation) == ("add", {"a": 2, "b": 3}, "5")


async def test_a_client_brings_its_model_its_tools_and_its_prompt() -> None:
    guarded = Tool("pay", "Pay.", {"type": "object"}, lambda: "Paid.", needs_approval=True)
    provider = ScriptedProvider(
        [says("I pay.", call("add", a=1, b=1), call("pay")), says("Done."), says("I paid.")]
    )
    client = Client("script-1", tools=[add, guarded], system="Be brief.", provider=provider)
    made = ReActAgent(client, memory=WindowMemory(3))
    answer = await made.ainvoke("Pay")
    assert answer["status"] == "parked"
    (pending,) = answer["pending"]
    answer = await made.aresume({pending.call.id: pending.approve()})
    assert (answer["output"], answer["usage"].requests) == ("Done.", 2)
    assert [step.observation for step in answer["intermediate_steps"]] == ["2", "Paid."]
    await made.ainvoke("What did you do?")
    assert [type(m).__name__ for m in provider.requests[-1].messages] == [
        "UserMessage",
        "Turn",
        "ToolResult",
        "ToolResult",
        "Turn",
        "UserMessage",
    ]
    assert provider.requests[-1].system == "Be brief."
    for settings in ({"model": "m"}, {"tools": [add]}, {"planner": "manual"}):
        with pytest.raises(ConfigurationError, match="come from the client"):
            ReActAgent(client, **settings)
    with pytest.raises(ConfigurationError, match="the model to use"):
        ReActAgent(provider)


async def test_the_system_prompt_asks_for_thoughts_and_can_be_replaced() -> None:
    made = agent(says("a"))
    await made.ainvoke("q")
    assert isinstance(made._provider, ScriptedProvider)
    assert made._provider.requests[0].system == REACT_SYSTEM
    other = agent(says("a"), system="Be brief.")
    await other.ainvoke("q")
    assert isinstance(other._provider, ScriptedProvider)
    assert other._provider.requests[0].system == "Be brief."
