"""Run services as child processes: prefixed logs, restarts with back-off, and an end that leaves nothing behind.

Each service is the leader of its own session, so that Ctrl-C in the terminal reaches the supervisor only and the stop has
an order. Three nets keep a killed service from leaving children: the kernel tells it when the supervisor dies
(``die_with_parent``); what is left of its group is ended by its mark before it is started again; and the next supervisor
ends what carries the mark of the last one. No Django here: the supervisor starts in a tenth of a second and stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO

from basics.processes import die_with_parent
from config import processes

_COLOURS = {"db": 36, "setup": 35, "web": 32, "worker": 33, "up": 1}
_BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_MARK_LENGTH = 14
_STABLE_S = 10.0
"""A service that lived this long is forgiven its earlier crashes."""


class Forked(Protocol):
    """A process that was forked for a service, with as much of the interface of ``subprocess.Popen`` as that needs."""

    stdout: BinaryIO
    is_refused: bool

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class Forks(Protocol):
    """What forks processes for services; see ``config.forking``."""

    def fork(self, argv: Sequence[str], mark: str) -> Forked | None: ...


class Output:
    """Lines of all services on one stream, each after the name of who said it."""

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        self._stream = stream
        self._colour = stream.isatty() and not os.environ.get("NO_COLOR") if colour is None else colour
        self.is_broken = False

    def line(self, name: str, text: str) -> None:
        """Write one line; a reader that went away (``| head``) is remembered, not an error of the service."""
        prefix = f"{name:<6} |"
        if self._colour:
            prefix = f"\033[{_COLOURS.get(name, 0)}m{prefix}\033[0m"
        self.plain(f"{prefix} {text}")

    def plain(self, text: str) -> None:
        """Write text as it is."""
        try:
            print(text, file=self._stream, flush=True)
        except (BrokenPipeError, ValueError):
            self.is_broken = True


@dataclass
class Service:
    """One child process and how it is kept alive.

    Args:
        name: prefix of its log lines.
        argv: command.
        environment: its whole environment; the mark is added.
        mark: mark of the group; this service adds its name and a number.
        output: where its lines go.
        grace_s: seconds between SIGTERM and SIGKILL.
        zygote: what it is forked from where that is possible, None for a process of its own.
        pass_fds: descriptors that a process of its own inherits.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    mark: str
    output: Output
    grace_s: float
    zygote: Forks | None = None
    pass_fds: Sequence[int] = ()
    crashes: int = 0
    restart_at: float | None = None
    starts: int = 0
    _process: subprocess.Popen[bytes] | Forked | None = field(default=None, init=False)
    _started_at: float = field(default=0.0, init=False)
    _rest: bytes = field(default=b"", init=False)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process. Must be called from the main thread, to which its life is tied."""
        self.starts += 1
        self._rest = b""
        self.restart_at = None
        self._started_at = time.monotonic()
        self._process = (self.zygote and self.zygote.fork(self.argv, self._own_mark)) or subprocess.Popen(
            list(self.argv),
            env={**self.environment, processes.MARK: self._own_mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self.pass_fds,
            preexec_fn=die_with_parent(signal.SIGTERM, os.getpid()),
        )
        assert self._process.stdout is not None  # noqa: S101 - said to mypy
        descriptor = self._process.stdout.fileno()
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read, self._process)

    def poll(self) -> int | None:
        """Return the exit code once the process has ended (then it counts as not started), else None."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None:
            is_refused = getattr(self._process, "is_refused", False)
            self._close(self._process)
            self._process = None
            processes.end(processes.marked(self._own_mark), grace_s=0)
            if is_refused:
                self.start()
                return None
        return code

    def plan_restart(self, code: int) -> float:
        """Note a crash; return after how many seconds the service starts again."""
        if time.monotonic() - self._started_at > _STABLE_S:
            self.crashes = 0
        delay = _BACKOFF_S[min(self.crashes, len(_BACKOFF_S) - 1)]
        self.crashes += 1
        self.restart_at = time.monotonic() + delay
        self.output.line("up", f"{self.name} ended ({describe_exit(code)}); starting it again in {delay:g} s")
        return delay

    async def stop(self, hurry: Callable[[], bool]) -> None:
        """End the process: SIGTERM, then SIGKILL to all of its group after the grace (at once when ``hurry()``)."""
        self.restart_at = None
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        deadline = time.monotonic() + self.grace_s
        while self.poll() is None and self._process is not None:
            if hurry() or time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
            else:
                await asyncio.sleep(0.02)

    def end_now(self, *, patience_s: float = 0.0) -> int:
        """Kill the process and all of its group; return the exit code, 0 if it was not started.

        Args:
            patience_s: how long it may take to end by itself before.
        """
        if self._process is None:
            return 0
        if patience_s and isinstance(self._process, subprocess.Popen):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        return self.poll() or 0

    @property
    def _own_mark(self) -> str:
        # All of one length: a forked process writes its own over the zygote's.
        return f"{self.mark}/{self.name}/{self.starts:0{_MARK_LENGTH - len(self.name)}d}"

    def _read(self, process: subprocess.Popen[bytes] | Forked) -> None:
        assert process.stdout is not None  # noqa: S101 - said to mypy
        try:
            data = os.read(process.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(process)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.output.line(self.name, line.decode("utf-8", "replace").rstrip("\r"))

    def _close(self, process: subprocess.Popen[bytes] | Forked) -> None:
        """Write out what the process said last and give the pipe back."""
        if process.stdout is None or process.stdout.closed:
            return
        asyncio.get_running_loop().remove_reader(process.stdout.fileno())
        with contextlib.suppress(BlockingIOError):
            while data := os.read(process.stdout.fileno(), 65536):
                self._rest += data
        process.stdout.close()
        for line in self._rest.splitlines():
            self.output.line(self.name, line.decode("utf-8", "replace"))
        self._rest = b""


class LogFollower:
    """Show what appears in a log file, as far as a filter lets it."""

    def __init__(self, path: Path, name: str, output: Output, wanted: Callable[[str], bool]) -> None:
        self._path = path
        self._name = name
        self._output = output
        self._wanted = wanted
        self._offset = path.stat().st_size if path.exists() else 0

    def poll(self) -> None:
        """Write the lines added since the last call."""
        try:
            size = self._path.stat().st_size
            if size < self._offset:  # rotated
                self._offset = 0
            if size == self._offset:
                return
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            if self._wanted(line):
                self._output.line(self._name, line)


def describe_exit(code: int) -> str:
    """Say an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


async def http_get(
    address: str, port: int, path: str, *, host: str, timeout_s: float = 2.0
) -> tuple[int, str]:
    """Return status and body of a GET on a server of ours; (0, reason) when it does not answer.

    ``host`` is the Host header: a name the server answers to, which its address need not be.
    """
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
                raw = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return 0, str(error) or "no answer"
    head, _, body = raw.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if not status or not status[0].isdigit():
        return 0, "no HTTP answer"
    return int(status[0]), body.decode("utf-8", "replace")


def stdout() -> Output:
    """Return the output on this process's standard output."""
    return Output(sys.stdout)
