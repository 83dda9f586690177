"""Machines that share no disk, the bucket behind a door that can be shut, and who asks them: for share_nothing.py."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

END_S = 600.0
ENDED = {"ready", "failed", "cancelled", "completed", "blocked"}


class Door:
    """A bucket's server behind a door that can be shut."""

    def __init__(self, port: int) -> None:
        self._to, self._is_open = port, threading.Event()
        self._is_open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._through: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Refuse every connection, and end those that are open."""
        self._is_open.clear()
        for side in list(self._through):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        """Let connections through again."""
        self._is_open.set()

    def _accept(self) -> None:
        while True:
            outside, _ = self._listener.accept()
            if not self._is_open.is_set():
                outside.close()
                continue
            inside = socket.create_connection(("127.0.0.1", self._to))
            self._through |= {outside, inside}
            for one, other in ((outside, inside), (inside, outside)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self._through -= {one, other}


class Machines:
    """Two web servers and two workers, each with a data directory of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        from apps.collections.embedders.minilm import prepare_model
        from tests.servers import Stack

        self.homes, self.stacks = [], []
        for number in range(4):
            home = folder / f"machine-{number}"
            home.mkdir(mode=0o700)
            if number:
                shutil.copytree(self.homes[0], home, dirs_exist_ok=True)  # the embedder's model is built once
            else:
                prepare_model(home)
            logs = folder / f"logs-{number}"
            logs.mkdir()
            self.homes.append(home)
            self.stacks.append(
                Stack(
                    logs,
                    DATABASE_URL=os.environ["DATABASE_URL"],
                    DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
                    GROUNDWORK_DATA_DIR=str(home),
                    GROUNDWORK_FILES_URL=url,
                    GROUNDWORK_JOB_LEASE_S="5",
                )
            )
        self.webs, self.workers = self.stacks[:2], self.stacks[2:]
        for number in range(4):
            self.begin(number)
        for web in self.webs:
            web._await_web()

    def begin(self, number: int) -> None:
        """Start a machine's process."""
        stack = self.stacks[number]
        if number < 2:
            stack._begin_web()
        else:
            stack._begin_worker()

    def kill(self, number: int) -> None:
        """Kill a machine's processes at once, and start it again."""
        stack = self.stacks[number]
        process = stack.web if number < 2 else stack.worker
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.begin(number)

    def stop(self) -> None:
        """End all."""
        for stack in self.stacks:
            stack.stop()


class Client:
    """A person's key and session, at either web server."""

    def __init__(self, machines: Machines, workspace: Any) -> None:
        self.machines, self.own = machines, workspace

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        *,
        web: int = 0,
    ) -> tuple[int, bytes]:
        """Send a request; status 0 where nobody answers."""
        from tests.concurrency.rest import Rest

        is_api = path.startswith("/api/")
        rest = Rest(
            self.machines.webs[web % 2].port, *((self.own.key, "") if is_api else ("", self.own.session))
        )
        try:
            answer = rest.call(method, path, body, kind)
        except OSError:
            return 0, b""
        return answer.status, answer.content

    def post(self, path: str, value: Any, *, web: int = 0) -> tuple[int, Any]:
        """Send JSON."""
        status, text = self.ask("POST", path, json.dumps(value).encode(), web=web)
        return status, json.loads(text) if text.startswith((b"{", b"[")) else text

    def get(self, path: str, *, web: int = 0) -> Any:
        """Return JSON, None for anything but a success."""
        status, text = self.ask("GET", path, web=web)
        return json.loads(text) if status == 200 else None

    def send(self, path: str, name: str, data: bytes, *, web: int = 0, **fields: str) -> tuple[int, Any]:
        """Send a file."""
        from tests.concurrency.rest import Rest

        rest = Rest(self.machines.webs[web % 2].port, self.own.key)
        try:
            answer = rest.file(path, name, data, **fields)
        except OSError:
            return 0, b""
        return answer.status, answer.json if answer.json is not None else answer.content

    def wait(self, path: str, ended: set[str], *, web: int = 0) -> Any:
        """Return what is at a path once its status is one of these."""
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            found = self.get(path, web=web)
            if found is not None and found["status"] in ended:
                return found
            time.sleep(0.2)
        return {"status": "never ended"}


@contextlib.contextmanager
def served() -> Iterator[tuple[Door, Any]]:
    """Run the bucket's server behind its door."""
    from tests.bucket import Bucket, serving

    with serving() as endpoint:
        door = Door(int(endpoint.rpartition(":")[2]))
        yield door, Bucket(f"http://127.0.0.1:{door.port}")
