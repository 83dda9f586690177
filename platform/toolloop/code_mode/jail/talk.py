"""The program's side of the line: its calls, its output and its waiting. Imports the standard library only, and its neighbours."""

from __future__ import annotations

import asyncio
import builtins
import io
import json
import os
import signal
import sys
import time
import types
from collections.abc import Sequence
from typing import Any

from toolloop.code_mode.jail.channel import Channel
from toolloop.code_mode.values import NotJson, ValueTooLarge, value_plain

NAME = "<program>"
_CHUNK = 8192
_MOST_READINGS = 2000  # of the clock that are kept for a program that is run again.
_real_time = time.time


class Host:
    """What the program's process knows of its host.

    Args:
        channel: the line to it.
        order: how to run the program, as the host sent it.
    """

    def __init__(self, channel: Channel, order: dict[str, Any]) -> None:
        self.channel = channel
        self.order = order
        self.readings: list[float] = list(order["clock"])
        self._read, self._told = 0, len(self.readings)
        self._calls = 0
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.out = {name: _Out(self, name) for name in ("stdout", "stderr")}
        self._sending = False
        self._late: int | None = None

    # The time it may compute

    def timer_set(self) -> None:
        left = max(0.01, self.order["run_s"] - time.process_time())
        signal.setitimer(signal.ITIMER_PROF, min(self.order["turn_s"], left))

    def timer_stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def late(self, _: int, frame: Any) -> None:
        """Tell the host where the program was when its time was over, and end."""
        if self._sending:
            self._late = line_of(frame)  # Half a frame is out: the rest first.
            return
        self.flush()
        self._tell("late", line_of(frame))
        os._exit(0)

    # Messages

    def _tell(self, *frame: Any) -> None:
        self._sending = True
        self.channel.send(*frame)
        self._sending = False
        if self._late is not None:
            self.channel.send("late", self._late)
            os._exit(0)

    def flush(self) -> None:
        for stream in self.out.values():
            stream.flush()

    def printed(self, stream: str, text: str) -> None:
        self._tell("out", stream, text)

    def _ask(self, *frame: Any) -> Any:
        """Send a frame and wait for the answer; the program computes nothing meanwhile."""
        self.flush()
        self._tell_readings()
        self._tell(*frame)
        self.timer_stop()
        try:
            return self.channel.receive()
        finally:
            self.timer_set()

    def _tell_readings(self) -> None:
        """Tell the host what the clock said since it was last told; what it sent itself it knows."""
        if self._told < len(self.readings):
            self._tell("clock", self.readings[self._told :])
            self._told = len(self.readings)

    def sleep(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            seconds = float(seconds)
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._ask("sleep", min(float(seconds), 1e9), line_of(sys._getframe(1)))

    def now(self) -> float:
        """Return the time of day; a program that is run again after a pause reads what it read the first time."""
        if self._read < len(self.readings):
            reading = self.readings[self._read]
        else:
            reading = _real_time()
            if len(self.readings) < _MOST_READINGS:
                self.readings.append(reading)
        self._read += 1
        return reading

    # Tools

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _given(self._ask("call", 0, *self._call(name, args, kwargs)))

    async def call_awaited(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._calls += 1
        number = self._calls
        frame = self._call(name, args, kwargs)
        self.flush()
        self._tell_readings()
        self._tell("call", number, *frame)
        future = asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        try:
            return _given(await future)
        finally:
            self.waiting.pop(number, None)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return name, arguments and line; in place of arguments that are no JSON, the reason as a text."""
        line = line_of(sys._getframe(2))
        try:
            plain = self._plain([list(args), kwargs])
        except NotJson as error:
            text = f"{name}() takes JSON values (str, int, float, bool, None, list, dict), not {error}"
            return [name, text, line]
        except ValueTooLarge:
            return [name, f"{name}(): the arguments are too large; pass a smaller part", line]
        return [name, plain, line]

    def _plain(self, value: Any) -> Any:
        plain = value_plain(value, nodes=self.order["nodes"], size=self.order["size"])
        try:
            json.dumps(plain, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise NotJson("a text with half a character") from None
        return plain

    def value_plain(self, value: Any) -> Any:
        """Return the value of the last expression as JSON, or as a text that says what it is."""
        size, nodes = self.order["size"], self.order["nodes"]
        try:
            return value_plain(_opened(value), nodes=nodes, size=size, loose=True)
        except ValueTooLarge:
            return f"<{type(value).__name__}, too large to show: print or return a part of it>"

    def parallel(self, *specs: Any) -> Any:
        """Make calls at the same time; functions of the program's own among them are called one after the other."""
        if len(specs) == 1 and isinstance(specs[0], list):
            specs = tuple(specs[0])
        named = {id(tool): name for name, tool in self.tools.items()}
        line = line_of(sys._getframe(1))
        own = [spec for spec in specs if _own(spec, named)]
        if own:
            return [
                _called(spec) if _own(spec, named) else self._parallel([spec], named, line)[0]
                for spec in specs
            ]
        return self._parallel(specs, named, line)

    def _parallel(self, specs: Sequence[Any], named: dict[int, str], line: int) -> Any:
        calls: list[Any] = []
        for spec in specs[: self.order["most_calls"] + 1]:
            try:
                calls.append(self._plain(_spec(spec, named)))
            except NotJson as error:
                calls.append(f"parallel() takes tools and JSON values, not {error}")
            except ValueTooLarge:
                calls.append("parallel(): the arguments are too large; pass a smaller part")
        return _given(self._ask("parallel", calls, line))

    tools: dict[str, Any]

    # The end

    def wait(self, seconds: float | None) -> list[Any]:
        """Wait until a call is answered, or for some seconds."""
        reply: list[Any] = self._ask("wait", seconds)
        return reply

    def settle(self, frame: list[Any]) -> None:
        """Give the futures of the program what the host answered."""
        for number, *answer in frame[1]:
            future = self.waiting.get(number)
            if future is not None and not future.done():
                future.set_result(["answer", *answer])


def _function(spec: Any) -> Any:
    if isinstance(spec, dict):
        return spec.get("tool")
    return spec[0] if isinstance(spec, list | tuple) and spec else spec


def _own(spec: Any, named: dict[int, str]) -> bool:
    """Tell whether a call for ``parallel`` is one of a function that is no tool."""
    return callable(_function(spec)) and id(_function(spec)) not in named


def _called(spec: Any) -> Any:
    if isinstance(spec, dict):
        return spec["tool"](*spec.get("args", ()), **spec.get("kwargs", {}))
    return spec[0](*spec[1:]) if isinstance(spec, list | tuple) else spec()


def _spec(spec: Any, named: dict[int, str]) -> Any:
    if isinstance(spec, dict):
        tool = named.get(id(spec.get("tool")), spec.get("tool"))
        return {**spec, "tool": tool} if "tool" in spec else spec
    if isinstance(spec, list | tuple) and spec:
        return [named.get(id(spec[0]), spec[0]), *spec[1:]]
    return named.get(id(spec), spec) if not callable(spec) else [named.get(id(spec), spec)]


def _given(frame: list[Any]) -> Any:
    _, value, kind, message = frame
    if kind:
        raise getattr(builtins, kind)(message)
    return value


def line_of(frame: Any) -> int:
    """Return the line of the program that a frame belongs to or was called from; 0 for none."""
    while frame is not None:
        if frame.f_code.co_filename == NAME:
            return int(frame.f_lineno or 0)
        frame = frame.f_back
    return 0


class _Out(io.TextIOBase):
    """A stream of the program's; what it holds is sent before every call, so that the order stays."""

    def __init__(self, host: Host, name: str) -> None:
        self._host, self._stream = host, name
        self._parts: list[str] = []
        self._length = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def name(self) -> str:
        return f"<{self._stream}>"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text.isascii():
            text.encode()  # As every stream of text does: half a character is no text.
        for start in range(0, len(text), 65536):
            part = text[start : start + 65536]
            self._parts.append(part)
            self._length += len(part)
            if self._length >= _CHUNK:
                self.flush()
        return len(text)

    def flush(self) -> None:
        if self._parts:
            text, self._parts, self._length = "".join(self._parts), [], 0
            self._host.printed(self._stream, text)


def _opened(value: Any) -> Any:
    """Return the attributes of an instance of a class of the program's own, the name of a function."""
    if isinstance(value, types.FunctionType | type | types.ModuleType):
        return f"<{value.__name__[:100]}>"
    if type(value).__module__ == "__main__" and type(value).__flags__ & 512:  # made by a class statement
        if isinstance(value, str | int | float | tuple | list | dict | set | frozenset):
            return value
        try:
            return {str(name): item for name, item in vars(value).items()}
        except TypeError:
            return f"<{type(value).__name__}>"
    return value
