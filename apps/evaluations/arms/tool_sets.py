"""Which tools an assistant has in an experiment, and what becomes of a call that would change something.

An experiment asks the same thing many times and asks nobody for an approval. So a tool with side effects is not carried out
unless its target says so: the call is recorded, and the model is told that. Whatever the target says, no tool is offered
that the policy would not offer to the experiment's person: this is asked after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from toolloop.tools import Tool, ToolContext
from toolloop.tools.tool import Verdict

ToolSet = Literal["none", "read", "all", "ask"]
"""Of the tools that are granted: none; those that change nothing; all; all, and those that change data are refused as
where a person is asked and says no."""
TOOL_SETS: tuple[ToolSet, ...] = ("none", "read", "ask", "all")
RECORDED = "The experiment has recorded this call and has not carried it out. Go on as if it were done."
_NOBODY = "a person would be asked, and in an experiment there is nobody"


def held(tool: Tool, tools: ToolSet | None, *, executes: bool) -> Tool | None:
    """Return a tool as an experiment offers it, None where it does not.

    Args:
        tools: see ``ToolSet``; None for what the assistant has.
        executes: calls that change data are carried out.
    """
    if tools == "none" or (tools == "read" and tool.side_effects):
        return None
    held_tool = replace(
        tool, permit=_unasked(tool, always=tools == "ask" and tool.side_effects), needs_approval=False
    )
    if executes or not tool.side_effects:
        return held_tool
    return replace(
        held_tool,
        function=_record,
        blocking=False,
        converters={},
        injected={},
        context_parameter="",
        external=False,
        mock=None,
    )


async def _record(**_: Any) -> str:
    return RECORDED


def _unasked(tool: Tool, *, always: bool) -> Any:
    """Return the tool's policy, with a refusal wherever somebody would be asked."""

    def permit(arguments: Mapping[str, Any], context: ToolContext) -> Verdict:
        found = Verdict("allow") if tool.permit is None else tool.permit(arguments, context)
        if found.effect == "deny":
            return found
        rule = tool.needs_approval
        asks = rule if isinstance(rule, bool) else rule(arguments, context)
        return Verdict("deny", _NOBODY, found.rule) if always or asks or found.effect == "ask" else found

    return permit
