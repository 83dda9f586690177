"""ShareGPT conversations with tools, as LLaMA-Factory and axolotl read them.

Each line has ``conversations`` (``from`` human, gpt, function_call or observation), ``system``, and ``tools`` as JSON text.
The form has no ids of calls and no words beside a call: ids are counted anew, and such words come as a turn of thought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.chat import ChatLines
from apps.datasets.formats.openai_chat import arguments_in, tool_in, tool_out
from apps.datasets.records.parts import ToolCall, ToolSpec, TraceMessage
from basics.errors import Invalid
from basics.texts import gettext as _


class ShareGpt(ChatLines):
    """Conversations of human and gpt, with function calls and observations."""

    name = "sharegpt"
    title = "ShareGPT"
    purpose = gettext_noop(
        "Fine-tuning with LLaMA-Factory, axolotl and others. Sources, scores and text around a tool call are left out."
    )

    def encode_chat(self, messages: Sequence[TraceMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """Return ``conversations``, and ``system`` and ``tools`` where there are some."""
        turns: list[dict[str, str]] = []
        results: list[str] = []
        for message in [*messages, None]:
            if message is not None and message.role == "tool":
                results.append(message.content)
                continue
            if results:
                # Roles must alternate, so the results of parallel calls share one turn.
                turns.append({"from": "observation", "value": _several(results)})
                results = []
            if message is None or message.role == "system":
                continue
            if message.role == "user":
                turns.append({"from": "human", "value": message.content})
            elif message.tool_calls:
                calls = [{"name": c.name, "arguments": dict(c.arguments)} for c in message.tool_calls]
                turns.append(
                    {
                        "from": "function_call",
                        "value": json.dumps(calls[0] if len(calls) == 1 else calls, ensure_ascii=False),
                    }
                )
            else:
                turns.append({"from": "gpt", "value": message.content})
        values: dict[str, Any] = {"conversations": turns}
        if system := "\n\n".join(m.content for m in messages if m.role == "system"):
            values["system"] = system
        if tools:
            values["tools"] = json.dumps([tool_out(tool) for tool in tools], ensure_ascii=False)
        return values

    def decode_chat(self, values: Mapping[str, Any]) -> tuple[list[TraceMessage], list[ToolSpec]]:
        """Return messages and tools; the ids of calls are counted from 1."""
        messages: list[TraceMessage] = []
        if values.get("system"):
            messages.append(TraceMessage("system", values["system"]))
        open_calls: list[str] = []
        count = 0
        for turn in values["conversations"]:
            speaker, value = turn["from"], turn["value"]
            if speaker in ("human", "user"):
                messages.append(TraceMessage("user", value))
            elif speaker in ("gpt", "assistant", "chatgpt"):
                messages.append(TraceMessage("assistant", value))
            elif speaker == "system":
                messages.append(TraceMessage("system", value))
            elif speaker == "function_call":
                found = json.loads(value)
                calls = []
                for call in found if isinstance(found, list) else [found]:
                    count += 1
                    calls.append(ToolCall(f"call_{count}", call["name"], arguments_in(call["arguments"])))
                open_calls = [call.id for call in calls]
                messages.append(TraceMessage("assistant", "", tuple(calls)))
            elif speaker in ("observation", "tool"):
                messages += _answers(value, open_calls)
            else:
                raise Invalid(
                    "row_invalid",
                    _("A turn is from “%(speaker)s”, which isn't a ShareGPT speaker.")
                    % {"speaker": str(speaker)[:40]},
                )
        tools = values.get("tools") or []
        if isinstance(tools, str):
            tools = json.loads(tools)
        return messages, [tool_in(tool) for tool in tools]


def _several(results: Sequence[str]) -> str:
    return results[0] if len(results) == 1 else json.dumps(list(results), ensure_ascii=False)


def _answers(value: str, calls: Sequence[str]) -> list[TraceMessage]:
    if not calls:
        raise Invalid("row_invalid", _("An observation doesn't answer a call."))
    if len(calls) > 1:
        try:
            parts = json.loads(value)
        except ValueError:
            parts = None
        if isinstance(parts, list) and len(parts) == len(calls):
            return [
                TraceMessage("tool", part if isinstance(part, str) else json.dumps(part), (), call)
                for call, part in zip(calls, parts, strict=True)
            ]
    return [TraceMessage("tool", value, (), calls[0])]
