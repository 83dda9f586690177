"""A model server that answers at once: four wire formats, prebuilt bytes, no parsing beyond a search for marks.

Run: python _server.py; prints its port. A system prompt with `SCENARIO=seq` gets ten calls, one after another, then the
answer; `SCENARIO=par` ten calls in one turn; any other gets the answer at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, cast

CALLS = 10
ANSWER = (
    "The sum is fifty-five, because every number on the list was added to the one before it, step by step."
)
USAGE = (400, 20)  # input and output tokens of every answer
_MARKS = {
    "responses": (b'"function_call_output"',),
    "chat": (b'"tool_call_id"',),
    "anthropic": (b'"tool_result"',),
    "gemini": (b'"functionResponse"', b'"function_response"'),
}
Event = tuple[str, dict[str, Any]]
Calls = list[tuple[str, str]]  # id, arguments


def _turn_id(calls: Calls) -> str:
    """Tell the turns of a conversation apart: LangChain takes two messages of one id for one message."""
    return calls[0][0] if calls else "answer"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _words(text: str) -> list[str]:
    return [word if not number else f" {word}" for number, word in enumerate(text.split())]


class Responses:
    """OpenAI's Responses API."""

    def plain(self, calls: Calls) -> dict[str, Any]:
        output: list[dict[str, Any]] = [
            {
                "type": "function_call",
                "id": f"fc_{call_id}",
                "call_id": call_id,
                "name": "add",
                "arguments": arguments,
                "status": "completed",
            }
            for call_id, arguments in calls
        ]
        if not calls:
            part = {"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": []}
            output = [
                {
                    "type": "message",
                    "id": "msg_answer",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            ]
        tokens = {
            "input_tokens": USAGE[0],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": USAGE[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(USAGE),
        }
        return {
            "id": f"resp_{_turn_id(calls)}",
            "object": "response",
            "created_at": 1_800_000_000,
            "status": "completed",
            "model": "gpt-5.4-mini",
            "output": output,
            "usage": tokens,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "store": False,
        }

    def events(self, calls: Calls) -> list[Event]:
        whole = self.plain(calls)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for place, item in enumerate(whole["output"]):
            events += self._item(place, item)
        events.append({"type": "response.completed", "response": whole})
        return [(event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events)]

    def _item(self, place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
        at = {"output_index": place, "item_id": item["id"]}
        added = {"type": "response.output_item.added", "output_index": place}
        done = {"type": "response.output_item.done", "output_index": place, "item": item}
        if item["type"] == "function_call":
            kind = "response.function_call_arguments"
            deltas = [
                {"type": f"{kind}.delta", **at, "delta": piece} for piece in _pieces(item["arguments"], 4)
            ]
            end = {"type": f"{kind}.done", **at, "name": "add", "arguments": item["arguments"]}
            return [{**added, "item": {**item, "arguments": "", "status": "in_progress"}}, *deltas, end, done]
        part, at = item["content"][0], {**at, "content_index": 0}
        empty = {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        deltas = [
            {"type": "response.output_text.delta", **at, "delta": word, "logprobs": []}
            for word in _words(ANSWER)
        ]
        ends = [
            {"type": "response.output_text.done", **at, "text": ANSWER, "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
            done,
        ]
        return [{**added, "item": {**item, "content": [], "status": "in_progress"}}, empty, *deltas, *ends]


class Chat:
    """OpenAI's chat completions, as local servers speak it."""

    head = {"created": 1_800_000_000, "model": "local-model"}
    tokens = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}

    def plain(self, calls: Calls) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None if calls else ANSWER}
        if calls:
            message["tool_calls"] = [self._call(call_id, arguments) for call_id, arguments in calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {
            "id": f"chatcmpl-{_turn_id(calls)}",
            **self.head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self.tokens,
        }

    def events(self, calls: Calls) -> list[Event]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if calls else ""}]
        for index, (call_id, arguments) in enumerate(calls):
            deltas.append({"tool_calls": [{"index": index, **self._call(call_id, "")}]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in _pieces(arguments, 4)
            ]
        if not calls:
            deltas += [{"content": word} for word in _words(ANSWER)]
        chunks = [self._chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        reason = "tool_calls" if calls else "stop"
        chunks.append(self._chunk([{"index": 0, "delta": {}, "finish_reason": reason}]))
        chunks.append({**self._chunk([]), "usage": self.tokens})
        return [("", {"id": f"chatcmpl-{_turn_id(calls)}", **chunk}) for chunk in chunks]

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self.head, "object": "chat.completion.chunk", "choices": choices}

    @staticmethod
    def _call(call_id: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "add", "arguments": arguments}}


class Anthropic:
    """Anthropic's Messages API."""

    tokens = {
        "input_tokens": USAGE[0],
        "output_tokens": USAGE[1],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }

    def plain(self, calls: Calls) -> dict[str, Any]:
        content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": call_id, "name": "add", "input": json.loads(arguments)}
            for call_id, arguments in calls
        ]
        return {
            "id": f"msg_{_turn_id(calls)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": content or [{"type": "text", "text": ANSWER}],
            "stop_sequence": None,
            "stop_reason": "tool_use" if calls else "end_turn",
            "usage": self.tokens,
        }

    def events(self, calls: Calls) -> list[Event]:
        whole = self.plain(calls)
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(whole["content"]):
            start = {"type": "content_block_start", "index": index}
            if block["type"] == "tool_use":
                events.append({**start, "content_block": {**block, "input": {}}})
                deltas = [
                    {"type": "input_json_delta", "partial_json": piece}
                    for piece in _pieces(calls[index][1], 4)
                ]
            else:
                events.append({**start, "content_block": {**block, "text": ""}})
                deltas = [{"type": "text_delta", "text": word} for word in _words(ANSWER)]
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events += [{"type": "message_delta", "delta": end, "usage": self.tokens}, {"type": "message_stop"}]
        return [(event["type"], event) for event in events]


class Gemini:
    """Google's generateContent; arguments of calls come whole."""

    def plain(self, calls: Calls) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [
            {"functionCall": {"id": call_id, "name": "add", "args": json.loads(arguments)}}
            for call_id, arguments in calls
        ]
        return self._chunk(calls, parts or [{"text": ANSWER}], "STOP")

    def events(self, calls: Calls) -> list[Event]:
        if calls:
            return [("", self.plain(calls))]
        words = _words(ANSWER)
        last = len(words) - 1
        return [
            ("", self._chunk(calls, [{"text": word}], "STOP" if n == last else ""))
            for n, word in enumerate(words)
        ]

    @staticmethod
    def _chunk(calls: Calls, parts: list[dict[str, Any]], reason: str) -> dict[str, Any]:
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        tokens = {
            "promptTokenCount": USAGE[0],
            "candidatesTokenCount": USAGE[1],
            "totalTokenCount": sum(USAGE),
        }
        return {
            "candidates": [candidate],
            "usageMetadata": tokens,
            "responseId": _turn_id(calls),
            "modelVersion": "gemini-3-flash-preview",
        }


WIRES: dict[str, Any] = {
    "responses": Responses(),
    "chat": Chat(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}


def _answer_plain(body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(data),
        data,
    )


def _answer_streamed(events: list[Event], *, done_mark: bool) -> bytes:
    frames = [
        (f"event: {name}\n" if name else "") + f"data: {json.dumps(data, separators=(',', ':'))}\n\n"
        for name, data in events
    ]
    if done_mark:
        frames.append("data: [DONE]\n\n")
    # One chunk an event, as servers that flush each of them send it.
    chunks = [b"%x\r\n%b\r\n" % (len(frame.encode()), frame.encode()) for frame in frames]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return b"".join([head, *chunks, b"0\r\n\r\n"])


def _prebuilt() -> dict[tuple[str, bool, str], bytes]:
    """Build every answer: by wire, whether streamed, and which calls it asks for ("0" to "9", "par", "" for none)."""
    turns: dict[str, Calls] = {
        str(n): [(f"call_{n:08d}", json.dumps({"a": n, "b": 1}))] for n in range(CALLS)
    }
    turns["par"] = [calls[0] for calls in turns.values()]
    turns[""] = []
    built: dict[tuple[str, bool, str], bytes] = {}
    for name, wire in WIRES.items():
        for turn, calls in turns.items():
            built[name, False, turn] = _answer_plain(wire.plain(calls))
            events = wire.events(calls)
            built[name, True, turn] = _answer_streamed(events, done_mark=name == "chat")
    return built


class Server(asyncio.Protocol):
    """One connection; requests come one at a time."""

    answers = _prebuilt()

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not isinstance: uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._transport is None:
            return
        head = bytes(self._buffer[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._transport.write(self._answer(head.split(b" ", 2)[1], body))

    def _answer(self, path: bytes, body: bytes) -> bytes:
        if b"generatecontent" in path:
            wire, streamed = "gemini", b"streamgeneratecontent" in path
        else:
            ends = {b"/responses": "responses", b"/completions": "chat", b"/messages": "anthropic"}
            wire = next(name for end, name in ends.items() if path.partition(b"?")[0].endswith(end))
            streamed = b'"stream":true' in body or b'"stream": true' in body
        scenario = body.partition(b"SCENARIO=")[2][:3]
        done = sum(body.count(mark) for mark in _MARKS[wire])
        turn = ""
        if scenario == b"seq" and done < CALLS:
            turn = str(done)
        elif scenario == b"par" and not done:
            turn = "par"
        return self.answers[wire, streamed, turn]


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        from uvloop import run
    except ModuleNotFoundError:
        from asyncio import run
    with contextlib.suppress(KeyboardInterrupt):
        run(main())
