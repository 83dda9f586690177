"""A client of concurrency.py: a process that asks for many people at once over REST and reads each answer's stream.

It reads one JSON line, ``{"port", "text", "people": [{"key", "conversation"}]}``, says ``ready``, begins when it is sent
another line, and prints what each has seen: seconds from the question to the server's reply, to the first event and to the
end of the stream, and the run; and the processor time of all. Raw sockets, so that a hundred readers cost little.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from typing import Any


async def person(port: int, text: str, one: dict[str, Any]) -> dict[str, Any]:
    """Ask, follow the answer to its end, and tell when what came."""
    began = time.monotonic()
    body = json.dumps({"text": text, "client_id": str(uuid.uuid4())}).encode()
    status, answer = await asked(port, one["key"], f"/api/v1/conversations/{one['conversation']}/turns", body)
    if status not in (200, 201, 202):
        raise RuntimeError(f"{status}: {answer.decode(errors='replace')[:500]}")
    run, submitted = json.loads(answer)["run_id"], time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head("GET", f"/api/v1/runs/{run}/events", one["key"]))
    first, tail = 0.0, b""
    try:
        while piece := await reader.read(65_536):
            tail = (tail + piece)[-200:]
            if not first and b"event: " in tail:
                first = time.monotonic()
            if b"event: end" in tail:
                break
        else:
            raise RuntimeError(f"the stream of run {run} ended before the run: {tail!r}")
    finally:
        writer.close()
    ended = time.monotonic()
    return {"run": run, "submit_s": submitted - began, "first_s": first - began, "end_s": ended - began}


async def asked(port: int, key: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Post JSON; return status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    writer.write(head("POST", path, key, more) + body)
    try:
        told, _, content = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if b"transfer-encoding: chunked" in told.lower():
        raise RuntimeError("a reply in chunks isn't read here")
    return int(told.split(b" ", 2)[1]), content


def head(method: str, path: str, key: str, more: str = "") -> bytes:
    """Return the head of a request."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n{more}\r\n".encode()
    )


async def everybody(given: dict[str, Any]) -> list[dict[str, Any]]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(person(given["port"], given["text"], one)) for one in given["people"]]
    return [task.result() for task in tasks]


def main() -> None:
    given = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    seen = asyncio.run(everybody(given))
    print(json.dumps({"people": seen, "cpu_s": time.process_time() - began}))


if __name__ == "__main__":
    main()
