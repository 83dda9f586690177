"""The host's end of the line to one program: frames in both directions, and the time the program computes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from toolloop.code_mode.jail.channel import Frames, packed
from toolloop.code_mode.jail.zygote import Zygote
from toolloop.code_mode.limits import CodeLimits

# Where the machine is busy a second of computing takes longer; a limit is none if it may take for ever.
_BUSY = 1.5
_GRACE_S = 0.25  # After which the host ends a program that its own timer should have ended.


class Lost(Exception):
    """The program's process ended without a word, or said something that no program says."""


class Late(Exception):
    """The program has computed for longer than it may."""


class ProgramProcess:
    """A program's process, from the outside. Everything it says may be hostile.

    Args:
        zygote: what forks it.
        limits: of the program.

    Raises:
        OSError: the zygote is gone.
    """

    def __init__(self, zygote: Zygote, limits: CodeLimits) -> None:
        self._zygote, self._limits = zygote, limits
        self._socket = zygote.fork()
        # The largest thing it may say is a call's arguments, every character written as an escape.
        self._frames = Frames(limits.result_bytes * 8 + 1_000_000)
        self.pid = 0
        self._waited = 0.0  # Seconds of wall clock in which the program had the turn.

    async def greet(self) -> None:
        """Wait until the process is there. Raises Lost."""
        match await self.next():
            case ["hello", int(pid)] if pid > 1:
                self.pid = pid
            case _:
                raise Lost("no greeting")

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        if self.pid:
            self._zygote.end(self.pid)

    async def send(self, frame: Any) -> None:
        """Say something to the program. Raises Lost."""
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, packed(frame))
        except OSError as error:
            raise Lost("it does not listen") from error

    async def next(self) -> list[Any]:
        """Return what the program says next.

        Raises:
            Late: it computed for too long without a word.
            Lost: it ended, or what it says is no frame.
        """
        begun, turn = time.monotonic(), self._waited
        try:
            return await self._next(lambda: turn + time.monotonic() - begun)
        finally:
            if self.pid:
                self._waited = turn + time.monotonic() - begun

    async def _next(self, waited: Callable[[], float]) -> list[Any]:
        limits, begun, before = self._limits, self.computed(), waited()
        while True:
            try:
                frame = self._frames.take()
            except ValueError as error:
                raise Lost(str(error)) from error
            if frame is not None:
                return frame  # type: ignore[no-any-return]
            used, wall = self.computed(), waited()
            left = min(limits.run_s - used, limits.turn_s - (used - begun)) + _GRACE_S
            if self.pid:
                most = min(limits.run_s * _BUSY - wall, limits.turn_s * _BUSY - (wall - before))
                left = min(left, most + _GRACE_S)
            if left <= 0:
                raise Late
            try:
                async with asyncio.timeout(left + 0.01):
                    data = await asyncio.get_running_loop().sock_recv(self._socket, 262_144)
            except TimeoutError:
                continue
            except OSError as error:
                raise Lost(str(error)) from error
            if not data:
                raise Late if self.is_out_of_time else Lost("it ended without a word")
            self._frames.add(data)

    @property
    def is_out_of_time(self) -> bool:
        """Whether it has computed for as long as it may."""
        return self.computed() >= self._limits.run_s

    def computed(self) -> float:
        """Return the seconds the process has computed: that others keep the machine busy is not its fault."""
        with contextlib.suppress(OSError):
            # The kernel's number of the clock of another process, as clock_getcpuclockid(3) makes it.
            return time.clock_gettime((~self.pid) << 3 | 2) if self.pid else 0.0
        return 0.0
