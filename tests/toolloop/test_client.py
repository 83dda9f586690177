"""The client for plain Python: what comes back, what is raised, and that it only composes what there is."""

from __future__ import annotations

import asyncio
import json

import pydantic
import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import add, broken
from toolloop.client import Client
from toolloop.errors import BadRequest, ConfigurationError, ProviderUnavailable
from toolloop.events import RunFinished, StepReset, TextDelta, ToolFinished
from toolloop.generation import Generation, RunFailed
from toolloop.limits import Limits
from toolloop.messages import ToolResult, Turn, UserMessage
from toolloop.metering import UsageEvent
from toolloop.providers.base import ModelRequest
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.response_cache import MemoryCache
from toolloop.tokens import Usage
from toolloop.tools import ToolContext, ToolOutput, tool
from toolloop.tools.catalog import Catalog
from toolloop.tools.session import ToolSession


class Verdict(pydantic.BaseModel):
    grade: int = pydantic.Field(ge=1, le=5)


@tool(group="shop.stock", side_effects=True, needs_approval=True, mock=lambda sku, count: "mocked")
def order(sku: str, count: int) -> ToolOutput:
    """Order an article.

    Args:
        sku: article number.
        count: how many.
    """
    return ToolOutput(f"ordered {count} of {sku}", {"sku": sku, "count": count})


def scripted(script, *tools, **settings) -> Client:
    return Client("script-1", tools=tools, provider=ScriptedProvider(script), **settings)


def asked(client: Client) -> list[ModelRequest]:
    provider = client._connect["provider"]
    assert isinstance(provider, ScriptedProvider)
    return provider.requests


async def test_generation_holds_answer_payloads_messages_and_figures():
    client = scripted(
        [calls(call("add", a=1, b=2), call("broken"), call("add", a=3, b=4)), says("3 and 7.")],
        add,
        broken,
        system="Be brief.",
    )
    made = await client.generate("Add.")
    assert (made.text, made.status, made.limit, made.stop) == ("3 and 7.", "completed", "", "end")
    assert [p.payload for p in made.payloads] == [3, 7]
    assert [type(m) for m in made.messages] == [UserMessage, Turn, *[ToolResult] * 3, Turn]
    assert [m.name for m in made.messages if isinstance(m, ToolResult)] == ["add", "broken", "add"]
    assert (made.usage.requests, made.steps) == (2, 2)
    assert made.tools["add"]["calls"] == 2
    assert asked(client)[0].system == "Be brief."
    assert Generation.from_json(json.loads(json.dumps(made.to_json()))) == made


async def test_results_keep_call_order_when_calls_end_in_another_order():
    @tool
    async def slow(seconds: float) -> dict[str, float]:
        """Wait."""
        await asyncio.sleep(seconds)
        return {"waited": seconds}

    made = await scripted(
        [calls(call("slow", seconds=0.05), call("slow", seconds=0.0)), says("ok")], slow
    ).generate("Wait.")
    results = [m for m in made.messages if isinstance(m, ToolResult)]
    assert [r.call_id for r in results] == ["call_1", "call_2"]
    assert [p.payload["waited"] for p in made.payloads] == [0.05, 0.0]


async def test_plain_functions_become_tools_and_get_the_context():
    def whose(ctx: ToolContext) -> str:
        """Tell whose turn it is."""
        return f"{ctx.data['tenant']}/{ctx.data['user']}"

    client = scripted([calls(call("whose")), says("ok")], whose, context={"tenant": "acme"})
    made = await client.generate("Whose?", context={"user": "ann"})
    assert [m.content for m in made.messages if isinstance(m, ToolResult)] == ["acme/ann"]


async def test_conversation_goes_on_with_the_messages_of_the_last_generation():
    client = scripted([says("Hello Ann."), says("Ann.", expect="my name")])
    first = await client.generate("I am Ann.")
    second = await client.generate("What is my name?", history=first.messages)
    assert [m.text for m in second.messages if not isinstance(m, ToolResult)] == [
        "I am Ann.",
        "Hello Ann.",
        "What is my name?",
        "Ann.",
    ]
    assert (second.steps, second.usage.requests) == (1, 1)


async def test_stream_yields_the_events_of_the_loop_and_then_the_same_generation():
    script = [calls(call("add", a=1, b=2)), says(["It ", "is ", "3."])]
    async with scripted(script, add).stream("Add.") as stream:
        with pytest.raises(RuntimeError, match="to its end"):
            _ = stream.generation
        events = [event async for event in stream]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "It is 3."
    assert sum(isinstance(e, ToolFinished) for e in events) == 1
    assert isinstance(events[-1], RunFinished)
    plain = await scripted(script, add).generate("Add.")
    assert (stream.generation.text, stream.generation.messages) == (plain.text, plain.messages)


async def test_provider_stream_is_closed_when_the_reader_leaves_early():
    provider = ScriptedProvider([hangs(after="half")])
    async with Client("m", provider=provider).stream("Hi") as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                assert provider.open_streams == 1
                break
    assert provider.open_streams == 0
    assert not provider.closed, "an adapter made elsewhere stays open"


async def test_cancelled_generation_closes_the_stream_of_the_provider():
    provider = ScriptedProvider([hangs(after="half")])
    task = asyncio.create_task(Client("m", provider=provider).generate("Hi"))
    async with asyncio.timeout(PATIENCE_S):
        while not provider.open_streams:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.open_streams == 0


async def test_structured_output_is_the_checked_value():
    made = await scripted([says('{"grade": 9}'), says('{"grade": 4}')]).generate("Grade.", output=Verdict)
    assert made.output == Verdict(grade=4)
    assert made.to_json()["output"] == {"grade": 4}
    schema = {"type": "object", "properties": {"grade": {"type": "integer"}}, "required": ["grade"]}
    made = await scripted([says('{"grade": 4}')]).generate("Grade.", output=schema)
    assert made.output == {"grade": 4}


async def test_failed_run_is_raised_with_what_there_is():
    client = scripted([calls(call("add", a=1, b=2)), fails(BadRequest("no such model"), after="As far")], add)
    with pytest.raises(RunFailed, match="no such model") as failed:
        await client.generate("Add.")
    assert (failed.value.code, failed.value.retryable) == ("bad_request", False)
    left = failed.value.generation
    assert left.text == "As far"
    assert [p.payload for p in left.payloads] == [3]
    assert left.usage.requests == 1


async def test_failed_run_goes_on_from_where_it_stood_when_its_generation_is_given_back():
    script = [calls(call("add", a=1, b=2)), fails(ProviderUnavailable("busy")), says("3", expect="3")]
    client = scripted(script, add, limits=Limits(max_retries=0))
    with pytest.raises(RunFailed) as failed:
        await client.generate("Add.")
    made = await client.generate(failed.value.generation)
    assert (made.text, made.steps, made.usage.requests) == ("3", 2, 2)
    assert sum(isinstance(m, ToolResult) for m in made.messages) == 1, "no tool ran twice"


async def test_refusal_is_raised_when_a_form_was_asked_for_and_returned_when_not():
    made = await scripted([says("I will not.", stop="refusal")]).generate("Do it.")
    assert (made.text, made.stop) == ("I will not.", "refusal")
    with pytest.raises(RunFailed, match="refusal") as failed:
        await scripted([says("I will not.", stop="refusal")]).generate("Do it.", output=Verdict)
    assert failed.value.code == "no_answer"


async def test_parked_run_goes_on_in_another_process_when_it_was_decided():
    script = [calls(call("order", sku="A", count=5), call("add", a=1, b=1))]
    parked = await scripted(script, order, add).generate("Order.")
    assert parked.status == "parked"
    (pending,) = parked.pending
    stored = json.dumps(parked.to_json())
    made = await scripted(
        [says("Done.", expect=lambda r: "ordered 2" in r.messages[2].content)], order, add
    ).generate(
        Generation.from_json(json.loads(stored)),
        decisions={pending.call.id: pending.approve({"sku": "A", "count": 2})},
    )
    assert (made.status, made.text, made.steps) == ("completed", "Done.", 2)
    assert [p.payload for p in made.payloads] == [{"sku": "A", "count": 2}]
    assert [m.call_id for m in made.messages if isinstance(m, ToolResult)] == ["call_1", "call_2"]


async def test_mocks_are_called_and_nothing_waits_for_approval_in_mock_mode():
    script = [calls(call("order", sku="A", count=5)), says("ok", expect="mocked")]
    made = await scripted(script, order).generate("Order.", mock_tools=True)
    assert made.status == "completed"


async def test_only_the_named_tools_are_shown():
    client = scripted([says("a"), says("b"), says("c")], add, broken)
    await client.generate("Hi")
    await client.generate("Hi", use_tools=["broken"])
    await client.generate("Hi", use_tools=())
    assert [[spec.name for spec in r.tools] for r in asked(client)] == [["add", "broken"], ["broken"], []]
    with pytest.raises(ConfigurationError, match="nothing_known"):
        await client.generate("Hi", use_tools=["nothing_known"])


async def test_intents_are_planned_without_running_and_run_when_chosen():
    events: list[UsageEvent] = []
    client = scripted(
        [calls(call("order", sku="A", count=1), call("order", sku="B", count=2))],
        order,
        on_usage=events.append,
        usage_metadata={"feature": "plan"},
    )
    intent = await client.generate_intent("Order both.")
    assert [(p.call.arguments or {})["sku"] for p in intent.calls] == ["A", "B"]
    results = await client.execute_intents(intent, chosen=["call_2"])
    assert [(r.error_code, r.payload and r.payload.get("count")) for r in results] == [
        ("rejected", None),
        ("", 2),
    ]
    (event,) = events
    assert (event.tool_calls, event.metadata) == (("order", "order"), {"feature": "plan"})


async def test_tools_are_found_and_loaded_when_loading_is_dynamic():
    session = ToolSession()
    script = [
        calls(call("find_tools", intent="add two whole numbers")),
        calls(call("load_tools", tool_names=["add"])),
        calls(call("add", a=2, b=2)),
        says("4"),
    ]
    client = scripted(script, add, order, core_tools=[broken], dynamic_tools=True)
    made = await client.generate("2 + 2?", session=session)
    first = [spec.name for spec in asked(client)[0].tools]
    assert "broken" in first
    assert "load_tools" in first
    assert "add" not in first
    assert "add" in [spec.name for spec in asked(client)[2].tools]
    assert made.text == "4"
    assert session.active == ("add",)


async def test_what_was_loaded_is_there_again_when_a_run_goes_on_without_its_session():
    script = [
        calls(call("load_tools", tool_names=["order"])),
        calls(call("order", sku="A", count=1)),
        says("Done."),
    ]
    client = scripted(script, order, dynamic_tools=True)
    parked = await client.generate("Order.")
    (pending,) = parked.pending
    made = await client.generate(parked, decisions={pending.call.id: pending.approve()})
    assert made.text == "Done."
    assert made.payloads[-1].payload == {"sku": "A", "count": 1}


async def test_a_cheap_model_chooses_tools_when_one_is_named():
    events: list[UsageEvent] = []

    def turn(request):
        if request.model == "cheap":
            return says('{"names": ["order"]}')
        return (
            calls(call("find_tools", intent="buy"))
            if len(request.messages) == 1
            else says("ok", expect="order")
        )

    client = Client(
        "big",
        provider=ScriptedProvider(turn),
        dynamic_tools="cheap",
        catalog=Catalog([add, order]),
        on_usage=events.append,
    )
    made = await client.generate("Buy.")
    assert made.text == "ok"
    assert [event.model for event in events] == ["big", "cheap", "big"]


async def test_figures_are_kept_per_tool_and_per_group_over_runs():
    script = [calls(call("order", sku="A", count=1), call("add", a=1, b=1)), says("ok")]
    client = scripted(script * 2, order, add)
    for _ in range(2):
        await client.generate("Order.", mock_tools=True)
    assert client.figures.by_tool()["order"].calls == 2
    groups = client.figures.by_group()
    assert (groups["shop"].calls, groups["shop.stock"].calls, groups[""].calls) == (2, 2, 2)
    assert client.figures.reset()["add"].calls == 2
    assert client.figures.by_tool() == {}


async def test_answers_come_out_of_the_cache_and_are_reported_as_such():
    events: list[UsageEvent] = []
    client = scripted([says("first")], cache=MemoryCache(), on_usage=events.append)
    assert (await client.generate("Hi")).text == "first"
    again = await client.generate("Hi")
    assert (again.text, again.usage, again.cost_usd) == ("first", Usage(), 0.0)
    assert [event.is_cached for event in events] == [False, True]


async def test_nothing_asked_and_a_catalog_without_dynamic_tools_are_refused():
    with pytest.raises(ConfigurationError, match="nothing to answer"):
        await scripted([says("x")]).generate("  ")
    with pytest.raises(ConfigurationError, match="dynamic_tools"):
        Client("m", catalog=Catalog([add]))
    async with scripted([]) as client:
        with pytest.raises(ConfigurationError, match="already open"):
            await client.__aenter__()


async def test_reset_answers_stay_out_of_the_text():
    client = scripted(
        [fails(ProviderUnavailable("cut"), after="half"), says("whole")], limits=Limits(retry_min_s=0.001)
    )
    async with client.stream("Hi") as stream:
        events = [event async for event in stream]
    assert sum(isinstance(event, StepReset) for event in events) == 1
    assert stream.generation.text == "whole"


async def test_model_is_taught_its_tools_when_the_guide_is_on():
    client = scripted([says("a"), says("b")], add, system="Be brief.", guide=True)
    first = await client.generate("What is the sum of these?")
    await client.generate("Und wie ist das mit der anderen Summe?", history=first.messages)
    one, two = (request.system for request in asked(client))
    assert one.startswith("Be brief.\n\n# Using tools")
    assert "answer in English" in one
    assert "follows up" in two
    assert "answer in German" in two
