"""Start services by forking a process that has imported everything, instead of a fresh Python for each (Linux).

The supervisor's side of ``config.zygote``. A service that is started so looks to it like one of ``subprocess.Popen``. The
zygote may fail at any time: those it has forked are told to end, as when their supervisor dies, and are started again by
the next zygote. One that never forked anything is not tried again: services are then started each on its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import psutil

from config import processes
from config.supervisor import Output, Service, describe_exit

CHANNEL = "{channel}"
"""Stands in the zygote's command for the number of its end of the channel."""
_GRACE_S = 2.0


class Forked:
    """A process that a zygote forks, as far as a service needs it: with the interface of ``subprocess.Popen``.

    Attributes:
        stdout: the reading end of its output.
        returncode: None until it has ended.
        is_refused: it has ended because its zygote could not be forked: a process of its own is to be started instead.
    """

    def __init__(self, zygote: Zygote, stdout: BinaryIO) -> None:
        self._zygote = zygote
        self._process: psutil.Process | None = None
        self._is_orphan = False
        self.is_refused = False
        self.stdout = stdout
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """The process id; the zygote's own while that still imports."""
        return self._process.pid if self._process else self._zygote.pid or 0

    def poll(self) -> int | None:
        """Return the exit code once the process has ended, else None."""
        self._zygote.hear()
        if (
            self.returncode is None
            and self._is_orphan
            and not (self._process and processes.is_alive(self._process))
        ):
            self.returncode = -signal.SIGTERM  # nobody is left who could say; the kernel sent it this one
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end; what was not forked yet never will be."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended; return the exit code."""
        while (code := self.poll()) is None:
            if self._is_orphan and self._process:
                processes.wait_gone([self._process], _GRACE_S)
            else:
                self._zygote.wait_for_word(_GRACE_S)
        return code

    def begun(self, pid: int) -> None:
        """Note that it was forked."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def left(self) -> None:
        """Note that its zygote has ended, which tells it to end; if it was forked at all."""
        self._is_orphan = True

    def _signal(self, signum: int) -> None:
        self._zygote.hear()
        if self.returncode is not None:
            return
        if self._process is None:
            self._zygote.end()
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # its parent has not heard of its end yet
            self._process.send_signal(signum)


@dataclass
class Zygote:
    """The process that is forked, and what it said about those forked from it.

    Args:
        argv: its command; ``CHANNEL`` in it is filled in.
        environment: its whole environment.
        mark: mark of the group.
        output: where its lines go.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    mark: str
    output: Output
    _service: Service | None = field(default=None, init=False)
    _channel: socket.socket | None = field(default=None, init=False)
    _asked: dict[str, Forked] = field(default_factory=dict, init=False)
    _running: dict[int, Forked] = field(default_factory=dict, init=False)
    _has_forked: bool = field(default=False, init=False)
    _is_unusable: bool = field(default=False, init=False)
    _starts: int = field(default=0, init=False)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._service.pid if self._service else None

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._channel is not None

    @property
    def is_busy(self) -> bool:
        """Whether a process that was asked for has not been forked yet, because it still imports."""
        return self.is_alive and bool(self._asked)

    def start(self) -> None:
        """Start it, unless it runs, or has ended before it forked anything. It imports while its caller goes on."""
        if self.is_alive or self._is_unusable:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.setblocking(False)
            argv = [word.replace(CHANNEL, str(theirs.fileno())) for word in self.argv]
            self._service = Service("zygote", argv, self.environment, self.mark, self.output, _GRACE_S)
            self._service.pass_fds = (theirs.fileno(),)
            self._service.starts = self._starts
            self._service.start()
        self._starts += 1
        self._has_forked = False
        self._asked, self._running = {}, {}
        self._channel = ours

    def fork(self, argv: Sequence[str], mark: str) -> Forked | None:
        """Have a process forked; None where that cannot be: it must be started on its own.

        Args:
            argv: the command that it is to be, one of those that ``config.zygote.run`` knows.
            mark: its mark, as long as the zygote's.
        """
        self.hear()
        self.start()
        if self._channel is None:
            return None
        reading, writing = os.pipe2(os.O_CLOEXEC)
        forked = Forked(self, os.fdopen(reading, "rb", buffering=0))
        try:
            message = json.dumps({"argv": list(argv), "mark": mark}).encode()
            socket.send_fds(self._channel, [message], [writing])
        except OSError:  # it ends just now
            forked.stdout.close()
            return None
        finally:
            os.close(writing)
        self._asked[mark] = forked
        return forked

    def hear(self) -> None:
        """Take in what the zygote has said since."""
        while self._channel is not None:
            try:
                message = self._channel.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._ended()
                return
            said = json.loads(message)
            if "started" in said:
                self._has_forked = True
                forked = self._running[said["started"]] = self._asked.pop(said["mark"])
                forked.begun(said["started"])
            else:
                self._running.pop(said["ended"]).returncode = said["code"]

    def wait_for_word(self, seconds: float) -> None:
        """Wait until the zygote says something, or so many seconds."""
        if self._channel is not None:
            select.select([self._channel], [], [], seconds)

    def end(self) -> None:
        """End it, and with it what it forked."""
        if self._channel is not None and self._service is not None:
            self._forget(self._channel)
            self._service.end_now()

    def _ended(self) -> None:
        """Take in that it ended by itself: before its first fork because something was wrong, else it was killed."""
        if self._channel is None or self._service is None:
            return
        code = self._service.end_now(patience_s=_GRACE_S)
        if self._has_forked:
            self.output.line(
                "up", f"the process that web and worker are forked from ended ({describe_exit(code)})"
            )
        else:
            self._is_unusable = True
            for forked in self._asked.values():
                forked.is_refused = True
        self._forget(self._channel)

    def _forget(self, channel: socket.socket) -> None:
        channel.close()
        self._channel = None
        for forked in (*self._asked.values(), *self._running.values()):
            forked.left()
