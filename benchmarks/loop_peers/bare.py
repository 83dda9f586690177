"""The least a program can do: an httpx2 client, json, and lines of an event stream read by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from _worker import MODELS, QUESTION, SYSTEM, TOOL_NAME, TOOL_SCHEMA, TOOL_TEXT, Conversation, add, serve

Call = tuple[str, str, dict[str, Any]]  # id, name, arguments
Items = list[dict[str, Any]]


class Wire:
    """One wire format: the body of a request, and text, calls and echo of an answer."""

    path = ""
    history = ""  # the field of the body that grows

    def __init__(self, model: str, *, streamed: bool) -> None:
        self.model, self.streamed = model, streamed

    def body(self, system: str) -> dict[str, Any]:
        raise NotImplementedError

    def plain(self, answer: dict[str, Any]) -> tuple[str, list[Call], Items]:
        raise NotImplementedError

    async def fold(self, events: AsyncIterator[dict[str, Any]]) -> tuple[str, list[Call], Items]:
        raise NotImplementedError

    def results(self, done: list[tuple[Call, str]]) -> Items:
        raise NotImplementedError


class Responses(Wire):
    path, history = "/v1/responses", "input"

    def body(self, system: str) -> dict[str, Any]:
        tool = {"type": "function", "name": TOOL_NAME, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}
        return {
            "model": self.model,
            "instructions": system,
            "input": [{"role": "user", "content": QUESTION}],
            "tools": [{**tool, "strict": True}],
            "store": False,
            "stream": self.streamed,
        }

    def plain(self, answer: dict[str, Any]) -> tuple[str, list[Call], Items]:
        items = answer["output"]
        calls = [
            (i["call_id"], i["name"], json.loads(i["arguments"]))
            for i in items
            if i["type"] == "function_call"
        ]
        parts = [part["text"] for i in items if i["type"] == "message" for part in i["content"]]
        return "".join(parts), calls, items

    async def fold(self, events: AsyncIterator[dict[str, Any]]) -> tuple[str, list[Call], Items]:
        text, whole = "", {}
        async for event in events:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.completed":
                whole = event["response"]
        _, calls, items = self.plain(whole)
        return text, calls, items

    def results(self, done: list[tuple[Call, str]]) -> Items:
        return [{"type": "function_call_output", "call_id": call[0], "output": text} for call, text in done]


class Chat(Wire):
    path, history = "/v1/chat/completions", "messages"

    def body(self, system: str) -> dict[str, Any]:
        function = {"name": TOOL_NAME, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}
        body: dict[str, Any] = {
            "model": self.model,
            "tools": [{"type": "function", "function": function}],
            "stream": self.streamed,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}],
        }
        if self.streamed:
            body["stream_options"] = {"include_usage": True}
        return body

    def plain(self, answer: dict[str, Any]) -> tuple[str, list[Call], Items]:
        message = answer["choices"][0]["message"]
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        ]
        return message["content"] or "", calls, [message]

    async def fold(self, events: AsyncIterator[dict[str, Any]]) -> tuple[str, list[Call], Items]:
        text, calls = "", dict[int, dict[str, Any]]()
        async for event in events:
            if not event["choices"]:
                continue
            delta = event["choices"][0]["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls", ()):
                if "id" in piece:
                    calls[piece["index"]] = {key: piece[key] for key in ("id", "type", "function")}
                else:
                    calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = list(calls.values())
        return self.plain({"choices": [{"message": message}]})

    def results(self, done: list[tuple[Call, str]]) -> Items:
        return [{"role": "tool", "tool_call_id": call[0], "content": text} for call, text in done]


class Anthropic(Wire):
    path, history = "/v1/messages", "messages"

    def body(self, system: str) -> dict[str, Any]:
        tool = {"name": TOOL_NAME, "description": TOOL_TEXT, "input_schema": TOOL_SCHEMA}
        return {
            "model": self.model,
            "max_tokens": 4096,
            "system": system,
            "tools": [tool],
            "stream": self.streamed,
            "messages": [{"role": "user", "content": QUESTION}],
        }

    def plain(self, answer: dict[str, Any]) -> tuple[str, list[Call], Items]:
        blocks = answer["content"]
        calls = [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        text = "".join(b["text"] for b in blocks if b["type"] == "text")
        return text, calls, [{"role": "assistant", "content": blocks}]

    async def fold(self, events: AsyncIterator[dict[str, Any]]) -> tuple[str, list[Call], Items]:
        blocks: Items = []
        raw = ""
        async for event in events:
            kind = event["type"]
            if kind == "content_block_start":
                blocks.append(event["content_block"])
                raw = ""
            elif kind == "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    blocks[-1]["text"] += delta["text"]
                else:
                    raw += delta["partial_json"]
            elif kind == "content_block_stop" and raw:
                blocks[-1]["input"] = json.loads(raw)
        return self.plain({"content": blocks})

    def results(self, done: list[tuple[Call, str]]) -> Items:
        blocks = [{"type": "tool_result", "tool_use_id": call[0], "content": text} for call, text in done]
        return [{"role": "user", "content": blocks}]


class Gemini(Wire):
    history = "contents"

    def __init__(self, model: str, *, streamed: bool) -> None:
        super().__init__(model, streamed=streamed)
        method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
        self.path = f"/v1/models/{model}:{method}"

    def body(self, system: str) -> dict[str, Any]:
        tool = {"name": TOOL_NAME, "description": TOOL_TEXT, "parametersJsonSchema": TOOL_SCHEMA}
        return {
            "systemInstruction": {"parts": [{"text": system}]},
            "tools": [{"functionDeclarations": [tool]}],
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
        }

    def plain(self, answer: dict[str, Any]) -> tuple[str, list[Call], Items]:
        content = answer["candidates"][0]["content"]
        found = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        calls = [(call["id"], call["name"], call["args"]) for call in found]
        return "".join(part.get("text", "") for part in content["parts"]), calls, [content]

    async def fold(self, events: AsyncIterator[dict[str, Any]]) -> tuple[str, list[Call], Items]:
        parts: Items = []
        async for event in events:
            parts += event["candidates"][0]["content"]["parts"]
        return self.plain({"candidates": [{"content": {"role": "model", "parts": parts}}]})

    def results(self, done: list[tuple[Call, str]]) -> Items:
        parts = [
            {"functionResponse": {"id": call[0], "name": call[1], "response": {"output": text}}}
            for call, text in done
        ]
        return [{"role": "user", "parts": parts}]


WIRES: dict[str, type[Wire]] = {
    "responses": Responses,
    "chat": Chat,
    "anthropic": Anthropic,
    "gemini": Gemini,
}


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[6:])


async def opener(protocol: str, streamed: bool, url: str) -> Conversation:
    wire = WIRES[protocol](MODELS[protocol], streamed=streamed)
    client = httpx2.AsyncClient(timeout=60)
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    target = url + wire.path

    async def ask(body: dict[str, Any]) -> tuple[str, list[Call], Items]:
        data = json.dumps(body).encode()
        if not streamed:
            response = await client.post(target, content=data, headers=headers)
            return wire.plain(response.raise_for_status().json())
        async with client.stream("POST", target, content=data, headers=headers) as response:
            return await wire.fold(_events(response.raise_for_status()))

    async def converse(scenario: str) -> tuple[str, int]:
        body = wire.body(SYSTEM.format(scenario))
        made = 0
        while True:
            text, calls, echo = await ask(body)
            if not calls:
                return text, made
            made += len(calls)
            body[wire.history] += echo
            body[wire.history] += wire.results([(call, str(add(**call[2]))) for call in calls])

    return converse


if __name__ == "__main__":
    serve(opener, ("httpx2",))
