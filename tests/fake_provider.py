"""An OpenAI-compatible model server for tests and benchmarks: `python -m tests.fake_provider --port N`.

It speaks real HTTP and server-sent events on loopback, so that adapters, retries and stops run for real. What it does is
named by the model, so that one server serves every test at once:

``fake-<options>`` with options joined by dashes: ``search`` or ``search<N>`` (first calls search_documents once or N
times, one call a turn, then answers with a citation of what it found), ``varied`` (no two calls have the same argument),
``use_<tool>`` (calls that tool instead, with the same argument), ``words<N>`` (length of the answer, default 20),
``gap<MS>`` (milliseconds between words, default 0), ``think<MS>`` (milliseconds before the first byte of each call,
default 0), ``fail<STATUS>`` (answers with this status),
``ends_<reason>`` (finish_reason of the answer, default stop), ``tier_<word>`` (service tier that it says it was served in), ``cut`` (drops the connection in mid-answer), ``held`` (waits in mid-answer until ``release`` is called), ``clock`` (each word is the time at which it was said, in seconds).

A model named in ``FakeProvider.replies`` says what the function there makes of the request, and nothing else: a text, or
a list of calls, each ``{"name", "arguments"}``, made side by side in one turn; with None its name says it after all.

``GET /log`` returns what was asked: a JSON list of {model, messages, tools (their names), closed_early, asked_at,
closed_at}.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fake_batches import FakeBatches, Sent

WORDS = (
    "The duty applies to every entry on or after the date named in the notice and stays in force "
    "until it is changed by another one so importers should keep proof of origin at hand"
).split()


class FakeProvider:
    """The server; one per event loop.

    Attributes:
        log: what was asked.
        replies: by model, what makes an answer of a request's body; it is called in the server's thread. What it
            returns may be a number: then that is the status of a refusal. A list is of calls.
        retry_after: header of refusals, "" for none.
        batches: the batch APIs of OpenAI, Anthropic and Gemini, and their single calls: ``tests.fake_batches``.
    """

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.replies: dict[str, Callable[[dict[str, Any]], str | int | list[dict[str, Any]] | None]] = {}
        self.retry_after = ""
        self.batches = FakeBatches(self.replies)
        self._is_released = False

    def release(self) -> None:
        """Let every answer that is held go on, now and until ``hold`` is called; from any thread."""
        self._is_released = True

    def hold(self) -> None:
        """Hold answers again, as a new server does; from any thread."""
        self._is_released = False

    async def serve(self, port: int = 0) -> asyncio.Server:
        """Listen on loopback; port 0 picks a free one."""
        return await asyncio.start_server(self._connection, "127.0.0.1", port, backlog=512)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Closed also when a test's own reply raises: some versions of Python leave it open, and who asked would wait on.
        with (
            contextlib.closing(writer),
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError),
        ):
            while head := await self._head(reader):
                method, path, length = head
                content = await reader.readexactly(length) if length else b""
                if self.batches.takes(path):
                    if not self._sent(writer, self.batches.answer(method, path, content)):
                        break
                    await writer.drain()
                    continue
                body = json.loads(content) if content else {}
                if method == "GET" and path == "/log":
                    self._plain(writer, 200, self.log)
                elif method == "GET" and path.endswith("/models"):
                    self._plain(writer, 200, {"object": "list", "data": [{"id": "fake-search"}]})
                elif path.endswith("/chat/completions"):
                    if not await self._complete(writer, reader, body):
                        break
                else:
                    self._plain(writer, 404, {"error": {"message": f"no {path} here"}})
                await writer.drain()

    @staticmethod
    def _sent(writer: asyncio.StreamWriter, sent: Sent | None) -> bool:
        """Write an answer of the batch APIs; False when the connection must close."""
        if sent is None:
            return False
        status, headers, content = sent
        given = {"Content-Length": str(len(content)), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + content)
        return given["Content-Length"] == str(len(content))

    @staticmethod
    async def _head(reader: asyncio.StreamReader) -> tuple[str, str, int] | None:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = raw.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        found = re.search(r"^content-length: (\d+)", raw.decode("latin-1"), re.IGNORECASE | re.MULTILINE)
        return method, path, int(found[1]) if found else 0

    @staticmethod
    def _plain(writer: asyncio.StreamWriter, status: int, data: Any, extra: str = "") -> None:
        body = json.dumps(data).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    async def _complete(
        self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, body: dict[str, Any]
    ) -> bool:
        """Answer one completion; False when the connection must close."""
        entry = {
            "model": body["model"],
            "messages": body["messages"],
            "closed_early": False,
            "tools": [tool["function"]["name"] for tool in body.get("tools") or ()],
            "asked_at": time.time(),
            "closed_at": None,
        }
        self.log.append(entry)
        reply = self.replies.get(body["model"])
        said = reply(body) if reply is not None else None
        options = [f"fail{said}"] if isinstance(said, int) else body["model"].split("-")[1:]

        def number(name: str, default: int) -> int:
            values = [o[len(name) :] for o in options if o.startswith(name)]
            return int(values[0]) if values else default

        if status := number("fail", 0):
            extra = f"Retry-After: {self.retry_after}\r\n" if self.retry_after else ""
            self._plain(writer, status, {"error": {"message": "told to fail", "type": "fake"}}, extra)
            return True
        await asyncio.sleep(number("think", 0) / 1000)
        results = [m for m in body["messages"] if m["role"] == "tool"]
        rounds = 1 if "search" in options else number("search", 0)
        wants_tool = len(results) < rounds and body.get("tools")
        tool = next((o[4:] for o in options if o.startswith("use_")), "search_documents")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        try:
            if isinstance(said, str):
                self._event(writer, body, {"role": "assistant", "content": said})
                self._event(writer, body, {}, finish="stop")
            elif isinstance(said, list):
                calls = [
                    {
                        "index": index,
                        "id": f"call_{len(self.log)}_{index}",
                        "type": "function",
                        "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])},
                    }
                    for index, c in enumerate(said)
                ]
                self._event(writer, body, {"role": "assistant", "tool_calls": calls})
                self._event(writer, body, {}, finish="tool_calls")
            elif wants_tool:
                question = [m for m in body["messages"] if m["role"] == "user"][-1]["content"]
                argument = "code" if tool == "execute_tools" else "query"
                if "varied" in options:
                    # In letters: digits would be looked up as a code.
                    question = (
                        f"{str(question)[:150]} {''.join(chr(97 + int(d)) for d in str(len(self.log)))}"
                    )
                call = {
                    "index": 0,
                    "id": f"call_{len(self.log)}",
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps({argument: str(question)[:200]})},
                }
                self._event(writer, body, {"role": "assistant", "tool_calls": [call]})
                self._event(writer, body, {}, finish="tool_calls")
            else:
                found = re.findall(
                    r'"(c\d+)"', json.dumps([r["content"] for r in results]).replace('\\"', '"')
                )
                count = number("words", 20)
                for index in range(count):
                    word = WORDS[index % len(WORDS)] + " "
                    if "clock" in options:
                        word = f"{time.time():.3f} "
                    if index == count - 1 and found:
                        word += f"[{found[0]}]."
                    self._event(writer, body, {"content": word})
                    if "cut" in options and index == count // 2:
                        await writer.drain()
                        return False
                    await writer.drain()
                    if "held" in options and index == count // 2:
                        await self._held(reader)
                    if gap := number("gap", 0):
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(gap / 1000):
                                await reader.read(1)  # nothing comes but the end: the client has gone
                                raise ConnectionResetError
                ends = (option[5:] for option in options if option.startswith("ends_"))
                self._event(writer, body, {}, finish=next(ends, "stop"))
            usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
            self._chunk(writer, {"model": body["model"], "choices": [], "usage": usage})
            self._raw(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            entry |= {"closed_early": True, "closed_at": time.time()}
            return False
        return True

    async def _held(self, reader: asyncio.StreamReader) -> None:
        """Wait for ``release``; raises ConnectionResetError when the client goes away meanwhile."""
        while not self._is_released:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await reader.read(1)
                    raise ConnectionResetError

    def _event(
        self,
        writer: asyncio.StreamWriter,
        body: dict[str, Any],
        delta: dict[str, Any],
        finish: str | None = None,
    ) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._chunk(writer, {"model": body["model"], "choices": [choice]})

    def _chunk(self, writer: asyncio.StreamWriter, data: dict[str, Any]) -> None:
        data |= {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 0}
        if tier := re.search(r"-tier_(\w+)", data["model"]):
            data["service_tier"] = tier[1]
        self._raw(writer, f"data: {json.dumps(data)}\n\n".encode())

    @staticmethod
    def _raw(writer: asyncio.StreamWriter, payload: bytes) -> None:
        writer.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")


@contextlib.contextmanager
def running() -> Iterator[tuple[str, FakeProvider]]:
    """Run the server in a thread of this process; yields its base URL (ending in /v1) and itself."""
    provider, loop = FakeProvider(), asyncio.new_event_loop()
    server = loop.run_until_complete(provider.serve())
    port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="fake-provider", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/v1", provider
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    """Take no more requests, and end those under way: none is left to be told of when the loop goes."""
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _main(port: int) -> None:
    server = await FakeProvider().serve(port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_main(parser.parse_args().port))
