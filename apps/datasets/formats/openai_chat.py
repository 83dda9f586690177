"""OpenAI's chat format for fine-tuning, with tools: ``{"messages": [...], "tools": [...]}`` on each line.

Wire format: platform.openai.com/docs/guides/supervised-fine-tuning and the Chat Completions reference. xAI, Mistral and
most servers of open models take the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.chat import ChatLines, text_of
from apps.datasets.records.parts import ToolCall, ToolSpec, TraceMessage
from basics.errors import Invalid
from basics.texts import gettext as _

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class OpenAiChat(ChatLines):
    """Chat completions with tool calls."""

    name = "openai"
    title = gettext_noop("OpenAI chat")
    purpose = gettext_noop(
        "Fine-tuning of chat models with tool calls; also read by xAI and open servers. Sources and scores are left out."
    )

    def encode_chat(self, messages: Sequence[TraceMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """Return ``messages``, and ``tools`` where there are some."""
        values: dict[str, Any] = {"messages": [message_out(message) for message in messages]}
        if tools:
            values["tools"] = [{"type": "function", "function": tool_out(tool)} for tool in tools]
        return values

    def decode_chat(self, values: Mapping[str, Any]) -> tuple[list[TraceMessage], list[ToolSpec]]:
        """Return messages and tools; ``developer`` is read as ``system``, legacy ``functions`` as tools."""
        tools = [tool["function"] for tool in values.get("tools") or ()]
        tools += values.get("functions") or []
        return [message_in(m) for m in values["messages"]], [tool_in(t) for t in tools]


def message_out(message: TraceMessage) -> dict[str, Any]:
    """Return a message as Chat Completions has it."""
    values: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        values["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
                },
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        values["tool_call_id"] = message.tool_call_id
    return values


def message_in(values: Mapping[str, Any]) -> TraceMessage:
    """Return the message of Chat Completions' form."""
    role = values["role"]
    if role not in _ROLES:
        raise Invalid(
            "row_invalid",
            _("A message has the role “%(role)s”, which isn't one of %(roles)s.")
            % {"role": str(role)[:40], "roles": ", ".join(_ROLES)},
        )
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], arguments_in(call["function"]["arguments"]))
        for call in values.get("tool_calls") or ()
    )
    known: Any = _ROLES[role]
    return TraceMessage(known, text_of(values.get("content")), calls, values.get("tool_call_id") or "")


def arguments_in(text: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments, given as JSON text or as an object. Raises Invalid where they are no object."""
    try:
        found = json.loads(text or "{}") if isinstance(text, str) else text
    except ValueError as error:
        raise Invalid("row_invalid", _("The arguments of a tool call aren't JSON.")) from error
    if not isinstance(found, Mapping):
        raise Invalid("row_invalid", _("The arguments of a tool call aren't an object."))
    return found


def tool_out(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool's name, description and parameters."""
    parameters = dict(tool.parameters) or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def tool_in(values: Mapping[str, Any]) -> ToolSpec:
    """Return the tool of such an object."""
    return ToolSpec(values["name"], values.get("description") or "", values.get("parameters") or {})
