"""A program that speaks MCP over its standard streams, and breaks one rule; the first argument says which."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

MODE = sys.argv[1]
TOOL = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}


def send(message: Any) -> None:
    text = message if isinstance(message, str) else json.dumps(message)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(message: dict[str, Any], result: Any) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def call(message: dict[str, Any]) -> None:
    if MODE == "huge":
        block = "x" * 1_000_000
        head = json.dumps({"jsonrpc": "2.0", "id": message["id"]})[:-1]
        sys.stdout.write(head + ', "result": {"content": [{"type": "text", "text": "')
        for _ in range(100):
            sys.stdout.write(block)
        send('"}]}}')
    elif MODE == "flood":
        while True:
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif MODE == "garbage":
        while True:
            send("this is no JSON-RPC")
    elif MODE == "broken":
        send({"jsonrpc": "2.0", "id": message["id"], "result": 5, "error": "both"})
    elif MODE == "deep":
        send(f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": ' + "[" * 200_000)
    elif MODE == "hang":
        time.sleep(600)
    elif MODE == "stderr":
        for _ in range(2_000):
            sys.stderr.write("noise " * 200 + "\n")
        sys.stderr.flush()
        answer(message, {"content": [{"type": "text", "text": "quiet"}]})
    else:
        answer(message, {"content": [{"type": "text", "text": "ok"}]})


def main() -> None:
    if MODE == "silent":
        time.sleep(600)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE in ("stubborn", "family"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(sys.argv[2], "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
    if MODE == "greeting":
        send("Welcome to my server!")
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            answer(
                message,
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "hostile", "version": "1"},
                },
            )
        elif method == "tools/list":
            answer(message, {"tools": [TOOL]})
        elif method == "tools/call":
            call(message)
        elif "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            send({"jsonrpc": "2.0", "id": message["id"], "error": error})
    if MODE == "stubborn":
        time.sleep(600)


main()
