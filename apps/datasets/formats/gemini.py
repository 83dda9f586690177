"""Gemini's form: ``systemInstruction``, ``contents`` with parts, ``tools`` with function declarations.

Wire format: ai.google.dev/api/caching#Content and the function calling guide. Calls carry their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.chat import ChatLines
from apps.datasets.formats.openai_chat import tool_in, tool_out
from apps.datasets.records.parts import ToolCall, ToolSpec, TraceMessage
from basics.errors import Invalid
from basics.texts import gettext as _


class GeminiContents(ChatLines):
    """Contents of user and model, with function calls and responses."""

    name = "gemini"
    title = gettext_noop("Gemini contents")
    purpose = gettext_noop(
        "Conversations as the Gemini API takes them, with function calls. Sources and scores are left out."
    )

    def encode_chat(self, messages: Sequence[TraceMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """Return ``contents``, and ``systemInstruction`` and ``tools`` where there are some."""
        names: dict[str, str] = {}
        contents: list[dict[str, Any]] = []
        for message in messages:
            names.update((call.id, call.name) for call in message.tool_calls)
            if message.role == "system":
                continue
            if message.role == "tool":
                part = {
                    "functionResponse": {
                        "id": message.tool_call_id,
                        "name": names[message.tool_call_id],
                        "response": {"result": message.content},
                    }
                }
                if contents and "functionResponse" in contents[-1]["parts"][-1]:
                    contents[-1]["parts"].append(part)
                else:
                    contents.append({"role": "user", "parts": [part]})
                continue
            role = "model" if message.role == "assistant" else "user"
            contents.append({"role": role, "parts": _parts(message)})
        values: dict[str, Any] = {"contents": contents}
        if system := "\n\n".join(m.content for m in messages if m.role == "system"):
            values["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            values["tools"] = [{"functionDeclarations": [tool_out(tool) for tool in tools]}]
        return values

    def decode_chat(self, values: Mapping[str, Any]) -> tuple[list[TraceMessage], list[ToolSpec]]:
        """Return messages and tools."""
        messages: list[TraceMessage] = []
        if system := values.get("systemInstruction"):
            messages.append(TraceMessage("system", "".join(part["text"] for part in system["parts"])))
        for content in values["contents"]:
            messages += _messages(content)
        tools = [
            tool_in(declared)
            for group in values.get("tools") or ()
            for declared in group.get("functionDeclarations") or ()
        ]
        return messages, tools


def _parts(message: TraceMessage) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if message.content or not message.tool_calls:
        parts.append({"text": message.content})
    return parts + [
        {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}}
        for call in message.tool_calls
    ]


def _messages(content: Mapping[str, Any]) -> list[TraceMessage]:
    role = content.get("role", "user")
    if role not in ("user", "model", "function"):
        raise Invalid(
            "row_invalid",
            _("A content has the role “%(role)s”; it must be user or model.") % {"role": str(role)[:40]},
        )
    found: list[TraceMessage] = []
    words: list[str] = []
    calls: list[ToolCall] = []
    for part in content["parts"]:
        if "functionResponse" in part:
            answer = part["functionResponse"]
            result = answer["response"].get("result", "")
            found.append(
                TraceMessage("tool", result if isinstance(result, str) else str(result), (), answer["id"])
            )
        elif "functionCall" in part:
            call = part["functionCall"]
            calls.append(ToolCall(call["id"], call["name"], call.get("args") or {}))
        elif not part.get("thought"):
            words.append(part["text"])
    if words or calls:
        found.append(TraceMessage("assistant" if role == "model" else "user", "".join(words), tuple(calls)))
    return found
