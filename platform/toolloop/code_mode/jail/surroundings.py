"""What a program finds around it: built-in functions with a guard, its tools, clocks that can be read a second time.

The guards are the part of ``rules.py`` that can be told only while a program runs. Imports the standard library only, and its
neighbours.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import datetime
import gc
import operator
import os
import random
import sys
import time
import types
from collections.abc import Callable, Collection
from typing import Any

from toolloop.code_mode.jail import rules
from toolloop.code_mode.jail.talk import Host


def namespace_make(host: Host) -> dict[str, Any]:
    """Return the names a program finds: its tools, and the built-in ones it may use."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    space = module.__dict__
    for name in ("__loader__", "__package__", "__spec__"):
        space.pop(name, None)
    host.tools = {name: _tool(host, name, awaited=host.order["awaits"]) for name in host.order["tools"]}
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
    # The kernel gives no random numbers here; these come out the same when a paused program is run again.
    os.urandom = random.Random(host.order["seed"] + 1).randbytes  # noqa: S311 - must be repeatable
    operator.attrgetter = _attrgetter  # type: ignore[assignment,misc]
    operator.methodcaller = _methodcaller  # type: ignore[assignment,misc]
    return space


def _tool(host: Host, name: str, *, awaited: bool) -> Callable[..., Any]:
    async def tool_awaited(*args: Any, **kwargs: Any) -> Any:
        return await host.call_awaited(name, args, kwargs)

    def tool_plain(*args: Any, **kwargs: Any) -> Any:
        return host.call(name, args, kwargs)

    tool: Callable[..., Any] = tool_awaited if awaited else tool_plain
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


def _checked(source: Any, mode: str, known: Collection[str]) -> Any:
    """Return the code of a text that a program wants to run, under the rules of programs.

    Args:
        source: the text.
        mode: "eval" or "exec".
        known: names that the program has bound itself.
    """
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
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in rules.BUILTINS and node.id not in known:
            raise NameError(f"{node.id!r} cannot be used here")
    return compile(rules.guarded(tree), "<string>", mode, dont_inherit=True)


def _eval(source: Any, space: Any = None, local: Any = None, /) -> Any:
    return _evaluated(source, "eval", space, local)


def _exec(source: Any, space: Any = None, local: Any = None, /) -> None:
    _evaluated(source, "exec", space, local)


def _evaluated(source: Any, mode: str, space: Any, local: Any) -> Any:
    caller = sys._getframe(2)
    if space is None:
        space = caller.f_globals
        local = caller.f_locals if local is None else local
    else:
        # Names that only a text may bring, and that would replace the guards.
        space["__builtins__"] = caller.f_builtins
        space.setdefault(rules.TEXT, _text)
    local = space if local is None else local
    code = _checked(source, mode, {*space, *local} - {"__builtins__"})
    return eval(code, space, local)  # noqa: S307 - its rules were checked


def clocks_set(host: Host) -> None:
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
    _datetime_set(host.now)


def _datetime_set(now: Callable[[], float]) -> None:
    """Let ``datetime.now`` and its kin read a given clock: they are written in C and read the system's otherwise."""
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
