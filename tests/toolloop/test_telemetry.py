"""Spans of runs, model calls and tool calls: their names, how they nest, and what they must never hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.toolloop.helpers import Recorder, add, broken, loop_values, wait
from tests.toolloop.providers.test_service_options import served
from tests.toolloop.providers.wires import ANTHROPIC, OPENAI
from tests.toolloop.providers.wires import Recorder as Answers
from toolloop.errors import ConfigurationError, ProviderUnavailable, QuotaExhausted
from toolloop.events import RunFinished, TextDelta
from toolloop.limits import Limits
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.telemetry import Telemetry, run_traced
from toolloop.tokens import Usage
from toolloop.tools import ToolContext, Toolset, tool

QUICK = Limits(retry_min_s=0.001, max_retries=2)


class Traced:
    """A run with its spans."""

    def __init__(self, *, record_content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")
        self.telemetry = Telemetry(tracer_provider=provider, record_content=record_content)

    def stream(self, script, *tools, agent_name="", conversation_id="", **settings):
        return run_traced(
            self.telemetry,
            *loop_values(
                model="script-1",
                system="Be secretive.",
                history=[UserMessage("my secret question")],
                toolset=Toolset(tools),
                provider=ScriptedProvider(script),
                **{"limits": QUICK, **settings},
            ),
            agent_name=agent_name,
            conversation_id=conversation_id,
        )

    async def run(self, script, *tools, **settings):
        return [event async for event in self.stream(script, *tools, **settings)][-1]

    @property
    def spans(self):
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, name: str):
        return [span for span in self.spans if span.name == name]


async def test_run_model_and_tool_calls_have_spans_that_nest_when_telemetry_is_on():
    traced = Traced()
    script = [
        calls(call("add", a=1, b=2), usage=Usage(100, 20, 5, 30, 10, 1)),
        says("It is 3.", usage=Usage(150, 0, 0, 8, 0, 1)),
    ]
    await traced.run(script, add, agent_name="helper", conversation_id="conv-7")
    assert [span.name for span in traced.spans] == [
        "invoke_agent helper",
        "chat script-1",
        "execute_tool add",
        "chat script-1",
    ]
    run, first, executed, last = traced.spans
    assert run.parent is None
    assert {span.parent.span_id for span in (first, executed, last)} == {run.context.span_id}
    assert (run.kind, first.kind, executed.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    assert all(span.attributes["gen_ai.conversation.id"] == "conv-7" for span in traced.spans)
    assert first.attributes["gen_ai.operation.name"] == "chat"
    assert first.attributes["gen_ai.provider.name"] == "scripted"
    assert first.attributes["gen_ai.request.model"] == "script-1"
    assert first.attributes["gen_ai.response.model"] == "script-1"
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert first.attributes["gen_ai.usage.input_tokens"] == 100
    assert first.attributes["gen_ai.usage.output_tokens"] == 30
    assert first.attributes["gen_ai.usage.cache_read.input_tokens"] == 20
    assert first.attributes["gen_ai.usage.cache_creation.input_tokens"] == 5
    assert first.attributes["gen_ai.usage.reasoning.output_tokens"] == 10
    assert first.attributes["gen_ai.response.time_to_first_chunk"] >= 0
    assert executed.attributes["gen_ai.operation.name"] == "execute_tool"
    assert executed.attributes["gen_ai.tool.name"] == "add"
    assert executed.attributes["gen_ai.tool.call.id"] == "call_1"
    assert executed.attributes["gen_ai.tool.type"] == "function"
    assert run.attributes["gen_ai.agent.name"] == "helper"
    assert run.attributes["gen_ai.usage.input_tokens"] == 250
    assert run.attributes["toolloop.status"] == "completed"
    assert all(span.status.status_code is StatusCode.UNSET for span in traced.spans)


async def test_names_agree_with_the_published_conventions():
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    traced = Traced(record_content=True)
    await traced.run([calls(call("add", a=1, b=2)), says("3")], add, agent_name="a", conversation_id="c")
    used = {key for span in traced.spans for key in span.attributes}
    assert {key for key in used if not key.startswith("toolloop.")} <= known
    assert len(used) > 20


async def test_the_tier_asked_for_and_the_one_used_are_told_by_their_published_names():
    from opentelemetry.semconv._incubating.attributes import openai_attributes as names

    for wire, word, told in ((OPENAI, "default", "default"), (ANTHROPIC, "standard", None)):
        traced = Traced()
        events = run_traced(
            traced.telemetry,
            LoopInput(
                model=wire.model,
                system="",
                history=[UserMessage("hi")],
                toolset=Toolset(),
                options={"service_tier": "priority"},
            ),
            LoopServices(provider=wire.provider(Answers(served(wire, word)))),
        )
        last = [event async for event in events][-1]
        assert isinstance(last, RunFinished)
        assert last.status == "completed"
        [chat] = traced.named(f"chat {wire.model}")
        asked = None if told is None else "priority"
        assert chat.attributes.get(names.OPENAI_REQUEST_SERVICE_TIER) == asked
        assert chat.attributes.get(names.OPENAI_RESPONSE_SERVICE_TIER) == told
        assert chat.attributes["toolloop.request.service_tier"] == "priority"
        assert chat.attributes["toolloop.response.service_tier"] == "standard"


async def test_no_content_is_in_any_span_unless_it_is_switched_on():
    script = [
        calls(call("add", a=31337, b=1)),
        calls(call("broken")),
        calls(call("nothing_known", secret=1)),
        fails(ProviderUnavailable("overloaded with secret")),
        says("a secret answer"),
    ]
    traced = Traced()
    await traced.run(script, add, broken)
    everything = " ".join(span.to_json() for span in traced.spans)
    for word in ("secret", "31337", "31338", "hunter2"):
        assert word not in everything
    assert all(not span.events for span in traced.spans)

    traced = Traced(record_content=True)
    await traced.run(script, add, broken)
    first = traced.named("chat script-1")[0].attributes
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "my secret question"}]}
    ]
    assert "secretive" in first["gen_ai.system_instructions"]
    executed = traced.named("execute_tool add")[0].attributes
    assert json.loads(executed["gen_ai.tool.call.arguments"]) == {"a": 31337, "b": 1}
    assert executed["gen_ai.tool.call.result"] == "31338"
    assert "hunter2" not in " ".join(span.to_json() for span in traced.spans)


async def test_each_attempt_has_its_span_and_its_error_type_when_calls_fail():
    traced = Traced()
    error = ProviderUnavailable("overloaded")
    error.usage = Usage(7, 0, 0, 3, 0, 1)
    end = await traced.run([fails(error, after="half"), says("whole")])
    assert end.status == "completed"
    failed, worked = traced.named("chat script-1")
    assert failed.attributes["error.type"] == "provider_unavailable"
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["gen_ai.usage.input_tokens"] == 7
    assert "error.type" not in worked.attributes

    traced = Traced()
    await traced.run([fails(QuotaExhausted("no credit"))])
    run, chat = traced.spans
    assert (run.attributes["error.type"], chat.attributes["error.type"]) == ("quota_exhausted",) * 2
    assert run.attributes["toolloop.status"] == "failed"


async def test_tool_spans_say_why_a_call_failed():
    traced = Traced()
    await traced.run([calls(call("broken"), call("add", a="x", b=1), call("none")), says("ok")], add, broken)
    types = {span.name: span.attributes.get("error.type") for span in traced.spans}
    assert types["execute_tool broken"] == "exception"
    assert types["execute_tool add"] == "invalid_arguments"
    assert types["execute_tool none"] == "unknown_tool"


async def test_calls_that_tools_make_lie_below_the_tool():
    @tool
    async def outer(ctx: ToolContext) -> str:
        """Call another."""
        return (await ctx.call("add", {"a": 1, "b": 2})).content

    traced = Traced()
    await traced.run([calls(call("outer")), says("3")], outer, add)
    (above,), (below,) = traced.named("execute_tool outer"), traced.named("execute_tool add")
    assert below.parent.span_id == above.context.span_id
    assert below.end_time <= above.end_time


async def test_parked_call_ends_its_span_without_an_error():
    @tool(external=True)
    def ask() -> str:
        """Ask a person."""
        return ""

    traced = Traced()
    end = await traced.run([calls(call("ask"))], ask)
    assert end.status == "parked"
    assert traced.named("invoke_agent")[0].attributes["toolloop.status"] == "parked"
    assert all("error.type" not in span.attributes for span in traced.spans)


async def test_no_span_stays_open_when_the_reader_goes_away():
    traced = Traced()
    stream = traced.stream([hangs(after="half")])
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    assert sorted(span.name for span in traced.spans) == ["chat script-1", "invoke_agent"]
    assert {span.attributes["error.type"] for span in traced.spans} == {"cancelled"}


async def test_run_counts_as_completed_when_its_reader_leaves_with_the_last_event():
    traced = Traced()
    stream = traced.stream([says("ok")])
    async for event in stream:
        if isinstance(event, RunFinished):
            break
    await stream.aclose()
    (run,) = traced.named("invoke_agent")
    assert run.attributes["toolloop.status"] == "completed"
    assert "error.type" not in run.attributes


async def test_error_of_the_journal_reaches_the_caller_and_ends_the_spans():
    class Full(Recorder):
        async def call_finished(self, step, call, result, duration_s):
            raise OSError("disk full of secrets")

    traced = Traced()
    with pytest.raises(OSError, match="disk full"):
        await traced.run([calls(call("wait", seconds=0)), says("ok")], wait, journal=Full())
    assert traced.named("invoke_agent")[0].attributes["error.type"] == "OSError"
    assert "secrets" not in " ".join(span.to_json() for span in traced.spans)


async def test_run_span_lies_below_the_span_of_the_application():
    traced = Traced()
    with traced.tracer.start_as_current_span("request") as request:
        await traced.run([says("ok")])
    (run,) = traced.named("invoke_agent")
    assert run.parent.span_id == request.get_span_context().span_id


async def test_nothing_is_traced_and_events_are_the_same_without_telemetry():
    def made():
        return run_traced(
            None,
            LoopInput(model="m", system="", history=[UserMessage("Hi")], toolset=Toolset()),
            LoopServices(provider=ScriptedProvider([says("ok")])),
        )

    plain = [event async for event in made()]
    assert plain[-1].text == "ok"


async def test_anthropic_sdk_makes_no_spans_of_its_own():
    pytest.importorskip("anthropic")
    import anthropic
    import httpx2

    from toolloop.providers.anthropic import AnthropicProvider
    from toolloop.providers.base import ModelRequest

    exporter = InMemorySpanExporter()
    tracer_provider = TracerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    from opentelemetry import trace

    trace.set_tracer_provider(tracer_provider)
    assert trace.get_tracer_provider() is tracer_provider, "set once only: nothing would be seen"
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        body = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        return httpx2.Response(529, json=body)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    provider = AnthropicProvider(api_key="k", http_client=client)
    request = ModelRequest("claude-sonnet-4-5", "", [UserMessage("Hi")])
    with pytest.raises(ProviderUnavailable):
        async for _ in provider.stream(request):
            pass
    await provider.aclose()
    assert seen
    assert anthropic.__version__
    assert "traceparent" not in seen[0].headers
    assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize("module", ["toolloop.telemetry", "toolloop.client"])
def test_opentelemetry_is_not_imported_until_telemetry_is_made(module):
    code = (
        f"import sys, {module}\n"
        "assert not [m for m in sys.modules if m.startswith('opentelemetry')]\n"
        "sys.modules['opentelemetry'] = None\n"
        "from toolloop.telemetry import Telemetry\n"
        "try:\n    Telemetry()\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    root = Path(__file__).resolve().parents[2] / "platform"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(root)},
        check=True,
    )
    assert done.stdout.startswith(ConfigurationError.__name__)
    assert "pip install opentelemetry-api" in done.stdout
