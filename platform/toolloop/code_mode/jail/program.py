"""Run one program: inside its own process, after all rights are gone. Imports the standard library only, and its neighbours."""

from __future__ import annotations

import ast
import asyncio
import builtins
import io
import json
import operator
import os
import random
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from toolloop.code_mode.jail import rules
from toolloop.code_mode.jail.channel import Channel
from toolloop.code_mode.values import NotJson, ValueTooLarge, value_plain

NAME = "<program>"
_CHUNK = 8192
_MOST_READINGS = 2000  # of the clock that are kept for a program that is run again.
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


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
        self._spent = 0.0

    # The time it may compute

    def timer_set(self) -> None:
        left = max(0.01, self.order["run_s"] - time.process_time())
        signal.setitimer(signal.ITIMER_PROF, min(self.order["turn_s"], left))

    def timer_stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def late(self, _: int, frame: Any) -> None:
        """Tell the host where the program was when its time was over, and end."""
        self.flush()
        self._tell("late", line_of(frame))
        os._exit(0)

    # Messages

    def _tell(self, *frame: Any) -> None:
        self.channel.send(*frame)

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
            text = (
                f"{name}() takes JSON values (str, int, float, bool, None, list, dict), not {error}"
            )
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
        named = {id(tool): name for name, tool in self.tools.items()}
        if len(specs) == 1 and isinstance(specs[0], list):
            specs = tuple(specs[0])
        calls: list[Any] = []
        for spec in specs[: self.order["most_calls"] + 1]:
            try:
                calls.append(self._plain(_spec(spec, named)))
            except NotJson as error:
                calls.append(f"parallel() takes tools and JSON values, not {error}")
            except ValueTooLarge:
                calls.append("parallel(): the arguments are too large; pass a smaller part")
        return _given(self._ask("parallel", calls, line_of(sys._getframe(1))))

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


class _Loop(asyncio.BaseEventLoop):
    """An event loop whose only source of events is the host."""

    host: Host

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._skipped = 0.0  # Of waits that a program which is run again need not repeat.

    def time(self) -> float:
        return _monotonic() + self._skipped

    def select(self, timeout: float | None) -> list[Any]:
        host = self.host
        if timeout is not None and timeout <= 0:
            frame = host.channel.receive(block=False) if host.waiting else None
            if frame is not None:
                host.settle(frame)
            return []
        frame = host.wait(timeout)
        if frame[0] == "answers":
            host.settle(frame)
        elif frame[0] == "skip" and timeout is not None:
            self._skipped += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        return None

    def _write_to_self(self) -> None:
        return None


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()


_real_time, _monotonic = time.time, time.monotonic


def run(channel: Channel, order: dict[str, Any]) -> NoReturn:
    """Run the program of an order, tell the host how it ended, and end this process."""
    host = Host(channel, order)
    _Loop.host = host
    sys.stdout, sys.stderr = host.out["stdout"], host.out["stderr"]
    namespace = _namespace(host)
    _clocks(host)
    random.seed(order["seed"])
    asyncio.set_event_loop_policy(_Policy())
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, host.late)
    host.timer_set()
    sys.setrecursionlimit(order["depth"] + 12)  # The frames below the program's own.
    reserve = bytearray(4 * 1024 * 1024)
    value, error = _attempt(order["source"], namespace, reserve)
    host.timer_stop()
    sys.setrecursionlimit(order["depth"] + 500)
    if error is not None:
        _finish(host, ["error", *_described(error)])
    host.timer_set()  # Reading the value may run code of the program's own.
    plain, error = _attempt_value(host, value, reserve)
    host.timer_stop()
    if error is not None:
        _finish(host, ["error", *_described(error)])
    _finish(host, ["end", plain])


# Where memory ends, CPython 3.11 loops for ever in a frame that handles an exception beyond its 256th instruction: it needs an
# integer then, and only small ones exist already. So these two are short, and first of all give memory back.


def _attempt(source: str, namespace: dict[str, Any], reserve: bytearray) -> tuple[Any, Any]:
    try:
        return _execute(source, namespace), None
    except BaseException as error:  # noqa: BLE001 - whatever a program raises, its host is told
        reserve.clear()
        return None, error


def _attempt_value(host: Host, value: Any, reserve: bytearray) -> tuple[Any, Any]:
    try:
        return host.value_plain(value), None
    except BaseException as error:  # noqa: BLE001 - a class of the program's own may raise
        reserve.clear()
        return None, error


def _finish(host: Host, frame: list[Any]) -> NoReturn:
    """Send the last frame, with a mark for every half character, and end."""
    try:
        if "\\ud" in json.dumps(frame):
            raw = json.dumps(frame, ensure_ascii=False).encode(errors="replace")
            frame = json.loads(raw)
        host.flush()
        host.channel.send(*frame)
    finally:
        os._exit(0)


def _execute(source: str, namespace: dict[str, Any]) -> Any:
    tree = rules.rewritten(ast.parse(source, NAME))
    code = compile(tree, NAME, "exec", flags=_FLAGS, dont_inherit=True)
    result = eval(code, namespace)  # noqa: S307 - running programs is what this process is for
    if code.co_flags & 0x80:  # inspect.CO_COROUTINE
        asyncio.run(result)
    return namespace.get(rules.VALUE)


def _described(error: BaseException) -> tuple[str, str, int, bool]:
    """Return type, text and line of what ended the program, and whether it is the program's syntax."""
    own = [0]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == NAME:
            own.append(trace.tb_lineno)
        trace = trace.tb_next
    syntax = isinstance(error, SyntaxError) and len(own) == 1
    line = (error.lineno or 0) if isinstance(error, SyntaxError) and syntax else own[-1]
    try:
        text = error.msg if isinstance(error, SyntaxError) and syntax else str(error)
    except Exception as inner:  # noqa: BLE001 - a program's own __str__
        text = f"<its text cannot be read: {type(inner).__name__}>"
    return type(error).__name__, text[:8000], line, syntax


def _opened(value: Any) -> Any:
    """Return the attributes of an instance of a class of the program's own, the name of a function."""
    if isinstance(value, types.FunctionType | type | types.ModuleType):
        return f"<{value.__name__[:100]}>"
    if (
        type(value).__module__ == "__main__" and type(value).__flags__ & 512
    ):  # made by a class statement
        if isinstance(value, str | int | float | tuple | list | dict | set | frozenset):
            return value
        try:
            return {str(name): item for name, item in vars(value).items()}
        except TypeError:
            return f"<{type(value).__name__}>"
    return value


# What a program finds


def _namespace(host: Host) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    space = module.__dict__
    for name in ("__loader__", "__package__", "__spec__"):
        space.pop(name, None)
    host.tools = {
        name: _tool(host, name, awaited=host.order["awaits"]) for name in host.order["tools"]
    }
    space.update(host.tools)
    space.setdefault("parallel", host.parallel)
    space[rules.TEXT] = _text
    own = {name: getattr(builtins, name) for name in dir(builtins) if name not in rules.BUILTINS}
    own |= {
        "__build_class__": builtins.__build_class__,
        # Also used by the library, for what it imports late; that a program imports is checked before it runs.
        "__import__": builtins.__import__,
        "getattr": _guarded(getattr),
        "hasattr": _guarded(hasattr),
        "setattr": _guarded(setattr),
        "delattr": _guarded(delattr),
        "eval": _eval,
        "exec": _exec,
        "open": _open,
    }
    space["__builtins__"] = own
    operator.attrgetter = _attrgetter  # type: ignore[assignment,misc]
    operator.methodcaller = _methodcaller  # type: ignore[assignment,misc]
    return space


def _tool(host: Host, name: str, *, awaited: bool) -> Callable[..., Any]:
    if awaited:

        async def tool(*args: Any, **kwargs: Any) -> Any:
            return await host.call_awaited(name, args, kwargs)
    else:

        def tool(*args: Any, **kwargs: Any) -> Any:
            return host.call(name, args, kwargs)

    tool.__name__ = tool.__qualname__ = name
    tool.__module__ = "__main__"
    return tool


def _check(name: Any) -> None:
    if isinstance(name, str) and name in rules.INSIDE:
        raise AttributeError(f"{name!r} cannot be used here")


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any) -> Any:
        if len(args) > 1:
            _check(args[1])
        return function(*args)

    guarded.__name__ = guarded.__qualname__ = function.__name__
    return guarded


_real_attrgetter, _real_methodcaller = operator.attrgetter, operator.methodcaller


def _attrgetter(*names: Any) -> Any:
    for name in names:
        if isinstance(name, str):
            for part in name.split("."):
                _check(part)
    return _real_attrgetter(*names)


def _methodcaller(*args: Any, **kwargs: Any) -> Any:
    if args:
        _check(args[0])
        if args[0] in ("format", "format_map"):
            raise AttributeError(f"{args[0]!r} cannot be used here")
    return _real_methodcaller(*args, **kwargs)


def _text(thing: Any) -> Any:
    """Return a thing whose ``format`` is about to be used; a text must not reach inside the interpreter."""
    if isinstance(thing, str) and "_" in thing:
        name = rules.field_inside(thing)
        if name:
            raise AttributeError(f"{name!r} cannot be used here")
    return thing


def _open(*_: Any, **__: Any) -> Any:
    raise PermissionError("There are no files here; use the tools.")


def _checked(source: Any, mode: str) -> Any:
    if isinstance(source, types.CodeType):
        raise TypeError("code objects cannot be run here")
    if isinstance(source, bytes | bytearray | memoryview):
        source = bytes(source).decode()
    if mode == "eval" and isinstance(source, str):
        source = source.lstrip(" \t")
    tree = ast.parse(source, "<string>", mode)
    for _, name in rules.inside(tree):
        raise AttributeError(f"{name!r} cannot be used here")
    for name in rules.imports_outside(tree):
        raise ImportError(f"{name} cannot be imported here")
    tree = rules._Rewriter().visit(tree)
    return compile(tree, "<string>", mode, dont_inherit=True)


def _eval(source: Any, space: Any = None, local: Any = None, /) -> Any:
    return _evaluated(source, "eval", space, local)


def _exec(source: Any, space: Any = None, local: Any = None, /) -> None:
    _evaluated(source, "exec", space, local)


def _evaluated(source: Any, mode: str, space: Any, local: Any) -> Any:
    code = _checked(source, mode)
    caller = sys._getframe(2)
    if space is None:
        space = caller.f_globals
        local = caller.f_locals if local is None else local
    else:
        space.setdefault("__builtins__", caller.f_globals["__builtins__"])
        space.setdefault(rules.TEXT, _text)
    return eval(code, space, space if local is None else local)  # noqa: S307


def _clocks(host: Host) -> None:
    """Let every clock of the day read what the host can repeat, and sleeping be the host's."""
    real_gmtime, real_localtime, real_strftime = time.gmtime, time.localtime, time.strftime
    real_ctime = time.ctime

    def with_now(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            return real(*args) if args and args[0] is not None else real(host.now())

        called.__name__ = called.__qualname__ = real.__name__
        return called

    def strftime(form: str, *args: Any) -> str:
        return real_strftime(form, *(args or (real_localtime(host.now()),)))

    def asctime(*args: Any, real: Callable[..., str] = time.asctime) -> str:
        return real(*(args or (real_localtime(host.now()),)))

    for name, function in {
        "time": host.now,
        "time_ns": lambda: int(host.now() * 1e9),
        "gmtime": with_now(real_gmtime),
        "localtime": with_now(real_localtime),
        "ctime": with_now(real_ctime),
        "strftime": strftime,
        "asctime": asctime,
        "sleep": host.sleep,
    }.items():
        setattr(time, name, function)
    rules_of_datetime(host.now)


def rules_of_datetime(now: Callable[[], float]) -> None:
    """Let ``datetime.now`` and its kin read a given clock: they are written in C and read the system's otherwise."""
    import ctypes
    import datetime
    import gc

    # A class written in C refuses new attributes; the dict behind its mappingproxy takes them.
    (attributes,) = gc.get_referents(datetime.datetime.__dict__)

    def from_now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(now(), tz)

    def from_utcnow(cls: Any) -> Any:
        return cls.utcfromtimestamp(now())

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(now())

    from_now.__name__, from_utcnow.__name__ = "now", "utcnow"
    attributes["now"] = classmethod(from_now)
    attributes["utcnow"] = classmethod(from_utcnow)
    attributes["today"] = classmethod(today)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
