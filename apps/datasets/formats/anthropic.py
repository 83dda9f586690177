"""Anthropic's Messages form: ``system``, ``messages`` with content blocks, ``tools`` with ``input_schema``.

Wire format: docs.anthropic.com, Messages API and tool use. Results of tools are blocks of the user's next message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.chat import ChatLines, text_of
from apps.datasets.records.parts import ToolCall, ToolSpec, TraceMessage
from basics.errors import Invalid
from basics.texts import gettext as _


class AnthropicMessages(ChatLines):
    """Messages with blocks of text, tool use and tool results."""

    name = "anthropic"
    title = gettext_noop("Anthropic messages")
    purpose = gettext_noop(
        "Conversations as the Messages API takes them, with tool use. Sources and scores are left out."
    )

    def encode_chat(self, messages: Sequence[TraceMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """Return ``messages``, and ``system`` and ``tools`` where there are some."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            if message.role == "system":
                continue
            role = "assistant" if message.role == "assistant" else "user"
            blocks = list(_blocks(message))
            if message.role == "tool" and turns and _holds_results(turns[-1]):
                turns[-1]["content"] += blocks
            else:
                turns.append({"role": role, "content": blocks})
        values: dict[str, Any] = {"messages": turns}
        if system := "\n\n".join(m.content for m in messages if m.role == "system"):
            values["system"] = system
        if tools:
            values["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters) or {"type": "object", "properties": {}},
                }
                for tool in tools
            ]
        return values

    def decode_chat(self, values: Mapping[str, Any]) -> tuple[list[TraceMessage], list[ToolSpec]]:
        """Return messages and tools."""
        messages: list[TraceMessage] = []
        if values.get("system"):
            messages.append(TraceMessage("system", text_of(values["system"])))
        for turn in values["messages"]:
            messages += _messages(turn["role"], turn["content"])
        tools = [
            ToolSpec(tool["name"], tool.get("description") or "", tool.get("input_schema") or {})
            for tool in values.get("tools") or ()
        ]
        return messages, tools


def _blocks(message: TraceMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    blocks: list[dict[str, Any]] = []
    if message.content or not message.tool_calls:
        blocks.append({"type": "text", "text": message.content})
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]


def _holds_results(turn: Mapping[str, Any]) -> bool:
    return bool(turn["role"] == "user" and turn["content"][-1]["type"] == "tool_result")


def _messages(role: str, content: Any) -> list[TraceMessage]:
    if role not in ("user", "assistant"):
        raise Invalid(
            "row_invalid",
            _("A message has the role “%(role)s”; it must be user or assistant.") % {"role": role[:40]},
        )
    known: Any = role
    if isinstance(content, str):
        return [TraceMessage(known, content)]
    results = [block for block in content if block["type"] == "tool_result"]
    found = [
        TraceMessage("tool", text_of(block.get("content")), (), block["tool_use_id"]) for block in results
    ]
    calls = tuple(
        ToolCall(block["id"], block["name"], block["input"])
        for block in content
        if block["type"] == "tool_use"
    )
    words = [
        b for b in content if b["type"] not in ("tool_result", "tool_use", "thinking", "redacted_thinking")
    ]
    if words or calls or not results:
        found.append(TraceMessage(known, text_of(words), calls))
    return found
