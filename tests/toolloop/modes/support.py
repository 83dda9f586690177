"""What the tests of modes share: a search, a journal to resume from, and a run driven to its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.toolloop.helpers import Dialogue, Recorder, loop_values
from toolloop.events import Event
from toolloop.loop import run_loop
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage, message_from_json
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.scripted import ScriptedProvider
from toolloop.tokens import Usage
from toolloop.tools import Tool, ToolError, ToolOutput, Toolset, tool

PASSAGE = "Raw hides carry a duty of 5 percent. Leather gloves carry a duty of 14 percent."
PAST: tuple[ModelMessage, ...] = (
    UserMessage("What is the duty on raw hides?"),
    Turn("scripted", "script-1", text="It is 5 percent [c7]."),
)
Wrap = Callable[[ScriptedProvider], Provider]


@tool
async def search_documents(query: str) -> ToolOutput:
    """Search the documents.

    Args:
        query: what to look for.
    """
    rows = [{"id": "c7", "document": "Tariff", "page": 1, "headings": [], "text": PASSAGE}]
    return ToolOutput(json.dumps({"results": rows, "note": ""}), {"query": query})


@tool
async def check_tariffs(code: str) -> str:
    """Look up the tariff of a code.

    Args:
        code: an HTS code.
    """
    if code == "bad":
        raise ToolError("there is no such code")
    return f"{code}: 14 percent"


async def drive(
    script: Any,
    wrap: Wrap,
    *tools: Tool,
    history: Sequence[ModelMessage] = (UserMessage("What is the duty on gloves?"),),
    **settings: Any,
) -> Dialogue:
    """Run a script through a mode to its end."""
    inner = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
    provider = wrap(inner)
    events: list[Event] = [
        event
        async for event in run_loop(
            *loop_values(
                model="script-1",
                system="Be brief.",
                history=history,
                toolset=Toolset(tools or (search_documents,)),
                provider=provider,
                **settings,
            )
        )
    ]
    await provider.aclose()
    assert inner.closed
    return Dialogue(inner, events)


def said(request: ModelRequest) -> str:
    """Return the text of a request's last message."""
    last = request.messages[-1]
    return last.content if isinstance(last, ToolResult) else last.text


async def resumes_everywhere(
    answer: Callable[[ModelRequest], Any], wrap: Wrap, *tools: Tool, history: Sequence[ModelMessage]
) -> None:
    """Kill a run behind every turn, before and after its calls, and compare what comes of it."""
    journal = Recorder()
    whole = await drive(ScriptedProvider(answer), wrap, *tools, history=history, journal=journal)
    calls = [(c.name, c.arguments) for turn in journal.turns for c in turn.tool_calls]
    for kept in range(1, len(journal.turns)):
        for with_results in (False, True):
            messages = list(history)
            for index, turn in enumerate(journal.turns[:kept]):
                messages.append(message_from_json(json.loads(json.dumps(turn.to_json()))))
                if with_results or index < kept - 1:
                    messages += [journal.results[c.id] for c in turn.tool_calls]
            again = Recorder()
            resumed = await drive(
                ScriptedProvider(answer),
                wrap,
                *tools,
                history=messages,
                journal=again,
                first_step=kept,
                usage=sum((t.usage for t in journal.turns[:kept]), Usage()),
            )
            assert resumed.end.text == whole.end.text
            assert resumed.end.usage == whole.end.usage
            turns = [*journal.turns[:kept], *again.turns]
            assert [(c.name, c.arguments) for t in turns for c in t.tool_calls] == calls
