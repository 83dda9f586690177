"""What each provider would send for a script, and where its requests keep calls and results: from the documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    id: str
    name: str = "search_documents"
    raw: str = '{"query": "duty"}'


@dataclass(frozen=True)
class Script:
    """What the model answers: deltas of text, reasoning and calls, and how it ends ("" = the stream is cut)."""

    text: Sequence[str] = ()
    reasoning: str = ""
    calls: Sequence[Call] = ()
    stop: str = "end"
    usage: bool = True


def sse(*events: dict[str, Any], named: bool = False, done: bool = False) -> bytes:
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event)}\n\n")
    if done:
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


# --- Responses API ---------------------------------------------------------------------------------------------------


def responses_body(script: Script) -> bytes:
    output: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1"}}]

    def add(item: dict[str, Any], *deltas: dict[str, Any]) -> None:
        index = len(output)
        output.append(item)
        bare = {k: v for k, v in item.items() if k not in {"content", "arguments"}}
        events.append({"type": "response.output_item.added", "output_index": index, "item": bare})
        events.extend({"output_index": index, **delta} for delta in deltas)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})

    if script.reasoning:
        summary = [{"type": "summary_text", "text": script.reasoning}]
        add(
            {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gA+/=="},
            {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": script.reasoning},
        )
    if script.text:
        refusal = script.stop == "refusal"
        kind = "refusal" if refusal else "output_text"
        part = {"type": kind, ("refusal" if refusal else "text"): "".join(script.text)}
        add(
            {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]},
            *({"type": f"response.{kind}.delta", "delta": piece} for piece in script.text),
        )
    for call in script.calls:
        add(
            {
                "id": f"fc_{call.id}",
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.raw,
            },
            *(
                {"type": "response.function_call_arguments.delta", "delta": piece}
                for piece in (call.raw[:5], call.raw[5:])
                if piece
            ),
        )
    response: dict[str, Any] = {"id": "resp_1", "status": "completed", "output": output}
    if script.usage:
        response["usage"] = {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5},
        }
    if script.stop == "length":
        response |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if script.stop == "filter":
        response |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    if script.stop:
        events.append({"type": f"response.{response['status']}", "response": response})
    return sse(*events, named=True)


def responses_results(body: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [
        (item["call_id"], item["output"].removeprefix("Error: "), item["output"][:6] == "Error:")
        for item in body["input"]
        if item.get("type") == "function_call_output"
    ]


def responses_calls(body: dict[str, Any]) -> list[str]:
    return [i["name"] for i in body["input"] if i.get("type") == "function_call"]


def openai_error(status: int, word: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": word, "code": word}}


# --- chat completions ------------------------------------------------------------------------------------------------


def chat_body(script: Script) -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "chatcmpl-1", "choices": [choice], "usage": None}

    events = [chunk({"role": "assistant", "content": None})]
    if script.reasoning:
        events.append(chunk({"reasoning_content": script.reasoning}))
    key = "refusal" if script.stop == "refusal" else "content"
    events += [chunk({key: piece}) for piece in script.text]
    for index, call in enumerate(script.calls):
        function = {"name": call.name, "arguments": call.raw[:5]}
        events.append(chunk({"tool_calls": [{"index": index, "id": call.id, "function": function}]}))
        rest = {"index": index, "function": {"arguments": call.raw[5:]}}
        events.append(chunk({"tool_calls": [rest]}))
    reasons = {"length": "length", "filter": "content_filter"}
    if script.stop:
        reason = reasons.get(script.stop, "tool_calls" if script.calls else "stop")
        events.append(chunk({}, reason))
    if script.usage and script.stop:
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
        events.append({"id": "chatcmpl-1", "choices": [], "usage": usage})
    return sse(*events, done=bool(script.stop))


def chat_results(body: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [
        (m["tool_call_id"], m["content"].removeprefix("Error: "), m["content"][:6] == "Error:")
        for m in body["messages"]
        if m["role"] == "tool"
    ]


def chat_calls(body: dict[str, Any]) -> list[str]:
    return [c["function"]["name"] for m in body["messages"] for c in m.get("tool_calls", ())]


# --- Anthropic -------------------------------------------------------------------------------------------------------


def anthropic_body(script: Script) -> bytes:
    usage = {"input_tokens": 53, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7}
    start: dict[str, Any] = {"id": "msg_1", "role": "assistant", "content": []}
    if script.usage:
        start["usage"] = {**usage, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    index = 0

    def block(start_block: dict[str, Any], *deltas: dict[str, Any]) -> None:
        nonlocal index
        events.append({"type": "content_block_start", "index": index, "content_block": start_block})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
        index += 1

    if script.reasoning:
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": script.reasoning},
            {"type": "signature_delta", "signature": "Eq+/sig=="},
        )
        block({"type": "redacted_thinking", "data": "R+d/=="})
    if script.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in script.text]
        block({"type": "text", "text": ""}, *deltas)
    for call in script.calls:
        block(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            *(
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ("", call.raw[:5], call.raw[5:])
            ),
        )
    reasons = {"length": "max_tokens", "refusal": "refusal", "pause": "pause_turn"}
    reasons |= {"context": "model_context_window_exceeded"}
    if script.stop:
        reason = reasons.get(script.stop, "tool_use" if script.calls else "end_turn")
        details = {"category": "cyber", "explanation": "no"} if reason == "refusal" else None
        end: dict[str, Any] = {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_details": details},
        }
        if script.usage:
            counts = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}}
            end["usage"] = {**counts, "cache_read_input_tokens": None}
        events += [end, {"type": "message_stop"}]
    return sse(*events, named=True)


def anthropic_results(body: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [
        (b["tool_use_id"], b["content"], b.get("is_error", False))
        for m in body["messages"]
        for b in m["content"]
        if b["type"] == "tool_result"
    ]


def anthropic_calls(body: dict[str, Any]) -> list[str]:
    return [b["name"] for m in body["messages"] for b in m["content"] if b["type"] == "tool_use"]


def anthropic_error(status: int, word: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": word, "message": message}}


# --- Gemini ----------------------------------------------------------------------------------------------------------


def google_body(script: Script) -> bytes:
    def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": list(parts)}
        return {"candidates": [{"content": content, "index": 0, **more}], "responseId": "g1"}

    events = []
    if script.reasoning:
        events.append(chunk({"text": script.reasoning, "thought": True}))
    events += [chunk({"text": piece}) for piece in script.text]
    for index, call in enumerate(script.calls):
        function: dict[str, Any] = {"name": call.name}
        if call.id:
            function["id"] = call.id
        if call.raw:
            function["args"] = json.loads(call.raw)
        part: dict[str, Any] = {"functionCall": function}
        if script.reasoning and index == 0:
            part["thoughtSignature"] = "CiQ+/sig=="
        events.append(chunk(part))
    reasons = {"length": "MAX_TOKENS", "filter": "SAFETY"}
    if script.stop:
        last: dict[str, Any] = {
            "candidates": [{"finishReason": reasons.get(script.stop, "STOP"), "index": 0}]
        }
        if script.usage:
            last["usageMetadata"] = {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 40,
                "candidatesTokenCount": 15,
                "thoughtsTokenCount": 5,
            }
        events.append(last)
    return sse(*events)


def google_results(body: dict[str, Any]) -> list[tuple[str, str, bool]]:
    found = []
    for content in body["contents"]:
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                inner = response["response"]
                is_error = "error" in inner
                found.append((response.get("id", ""), inner["error" if is_error else "output"], is_error))
    return found


def google_calls(body: dict[str, Any]) -> list[str]:
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [part["functionCall"]["name"] for part in parts if "functionCall" in part]


def google_error(status: int, word: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": word}}


# --- the same answers in one piece, as batches give them -------------------------------------------------------------


def events_of(stream: bytes) -> list[dict[str, Any]]:
    return [
        json.loads(line.removeprefix("data: "))
        for line in stream.decode().splitlines()
        if line.startswith("data: {")
    ]


def responses_whole(script: Script) -> dict[str, Any]:
    whole: dict[str, Any] = events_of(responses_body(script))[-1]["response"]
    return whole


def anthropic_whole(script: Script) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for event in events_of(anthropic_body(script)):
        if event["type"] == "message_start":
            message = {**event["message"], "type": "message", "content": []}
        elif event["type"] == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][-1], event["delta"]
            for name in ("text", "thinking", "signature"):
                if delta["type"] == f"{name}_delta":
                    block[name] += delta[name]
            if delta["type"] == "input_json_delta":
                block["raw"] = block.get("raw", "") + delta["partial_json"]
        elif event["type"] == "message_delta":
            message |= event["delta"]
            counts = {k: v for k, v in event.get("usage", {}).items() if v is not None}
            message["usage"] = {**message.get("usage", {}), **counts}
    for block in message["content"]:
        if raw := block.pop("raw", ""):
            block["input"] = json.loads(raw)
    return message


def google_whole(script: Script) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    candidate: dict[str, Any] = {}
    for event in events_of(google_body(script)):
        whole |= event
        given = event["candidates"][0]
        for part in given.get("content", {}).get("parts", ()):
            is_text = set(part) <= {"text", "thought"}
            if is_text and parts and set(parts[-1]) == set(part):
                parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
        candidate |= given
    candidate["content"] = {"role": "model", "parts": parts}
    return {**whole, "candidates": [candidate]}
