"""Runs of the platform are traced when the operator asks for it, without what was said."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runs import telemetry
from runs.models import Run
from runs.services import run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.runs.support import make_run, take
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, says
from toolloop.telemetry import Telemetry
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)


@tool
async def look(word: str) -> str:
    """Look something up.

    Args:
        word: what to look up.
    """
    return f"about {word}"


@pytest.fixture
def exporter(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Where spans arrive; the global provider of a process can be set only once, so a test brings its own."""
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(
        telemetry,
        "Telemetry",
        lambda *, record_content: Telemetry(tracer_provider=provider, record_content=record_content),
    )
    telemetry.run_telemetry.cache_clear()
    yield found
    telemetry.run_telemetry.cache_clear()


async def _run(cast: Cast, lane: Executor, unstored: str = "") -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(cast.tenant.pk):
        await run_execute(
            ctx,
            await ctx.in_db(Run.objects.get, pk=run.pk),
            toolset=Toolset([look]),
            provider=ScriptedProvider([says("", call("look", word="tin")), says("Found.")]),
            system="",
            unstored=unstored,
            history=[UserMessage("my secret")],
            cache_key="conversation-7",
        )


async def test_run_model_and_tool_calls_are_traced_when_the_operator_asks(
    cast: Cast, lane_threads: Executor, exporter: InMemorySpanExporter, settings: Any
) -> None:
    settings.TELEMETRY = "metadata"
    await _run(cast, lane_threads)
    spans = exporter.get_finished_spans()
    names = sorted(str((span.attributes or {})["gen_ai.operation.name"]) for span in spans)
    assert names == ["chat", "chat", "execute_tool", "invoke_agent"]
    agent = next(span for span in spans if span.name.startswith("invoke_agent"))
    assert (agent.attributes or {})["gen_ai.conversation.id"] == "conversation-7"
    assert "my secret" not in "".join(span.to_json() for span in spans)


async def test_nothing_is_traced_unless_asked(
    cast: Cast, lane_threads: Executor, exporter: InMemorySpanExporter, settings: Any
) -> None:
    assert settings.TELEMETRY == "off"
    await _run(cast, lane_threads)
    assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize("note", ["", "likes tables"])
async def test_what_is_said_is_traced_only_where_no_note_is_read(
    cast: Cast, lane_threads: Executor, exporter: InMemorySpanExporter, settings: Any, note: str
) -> None:
    settings.TELEMETRY = "content"
    await _run(cast, lane_threads, note)
    said = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert ("my secret" in said, "likes tables" in said) == (not note, False)
    assert "invoke_agent" in said
