"""Parse in a process of its own: a grammar is C code over somebody's file, and some inputs make it run for hours.

Measured: a million open parentheses are parsed in 0.3 s and then searched for more than ten minutes, inside one call that
cannot be interrupted. So the reader child forks once more, under a limit of processor time and memory, and whatever ends
the fork (time, memory, a crash in a grammar) leaves the file readable as plain text.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
import traceback
from typing import IO, NoReturn

from apps.collections.ingestion.code.parse import structure_of
from apps.collections.ingestion.code.types import CodeStructure, structure_from_json, structure_to_json
from basics.processes import die_with_parent
from basics.texts import gettext as _

_BASE_SECONDS = 5
_CHARS_PER_SECOND = 200_000  # a tenth of the measured speed
_LENGTH = struct.Struct(">Q")
_MEGABYTE = 1024 * 1024
_HEADROOM = 256 * _MEGABYTE  # libraries and the text itself


class ParseEnded(Exception):
    """The parse of a file was ended; the message is half a sentence that says why."""


def structure_isolated(text: str, language: str, *, memory_bytes: int) -> CodeStructure:
    """Parse a file as ``structure_of`` does, in a fork that may die.

    Args:
        text: the file's text.
        language: one of ``LANGUAGES``.
        memory_bytes: address space that the parse may take beyond what Python itself has.

    Raises:
        ParseEnded: it took too long or too much memory, or the parser broke down.
    """
    reading, writing = os.pipe()
    tie = die_with_parent(parent=os.getpid())
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        if tie is not None:
            tie()
        _serve(writing, text, language, memory_bytes)
    os.close(writing)
    answer = b""
    try:
        with os.fdopen(reading, "rb") as stream:
            answer = _received(stream)
    finally:
        if not answer:
            os.kill(pid, signal.SIGKILL)  # does nothing to a fork that ended: it is not reaped yet
        status = os.waitpid(pid, 0)[1]
    if answer:
        return structure_from_json(json.loads(answer))
    raise ParseEnded(_why(status))


def _serve(writing: int, text: str, language: str, memory_bytes: int) -> NoReturn:
    """Parse and write the answer; never returns into the code that forked."""
    code = 1
    try:
        seconds = _BASE_SECONDS + len(text) // _CHARS_PER_SECOND
        spent = int(sum(os.times()[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, spent + seconds + 1))
        if sys.platform == "linux":
            _limit_memory(memory_bytes)
        body = json.dumps(structure_to_json(structure_of(text, language))).encode()
        with os.fdopen(writing, "wb") as stream:
            stream.write(_LENGTH.pack(len(body)))
            stream.write(body)
        code = 0
    except MemoryError:
        code = 2
    except Exception:  # noqa: BLE001 - the process ends here; the sandbox keeps what it says on standard error
        traceback.print_exc()
    finally:
        os._exit(code)


def _limit_memory(memory_bytes: int) -> None:
    with open("/proc/self/statm", "rb") as stream:
        mapped = int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mapped + memory_bytes + _HEADROOM
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _received(stream: IO[bytes]) -> bytes:
    """Read one whole answer, b"" when the fork ended before it was complete."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return b""
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else b""


def _why(status: int) -> str:
    if os.WIFSIGNALED(status):
        ended_by = os.WTERMSIG(status)
        if ended_by == signal.SIGXCPU:
            return _("it takes too long")
        # A grammar that gets no memory aborts.
        return _("it needs too much memory") if ended_by == signal.SIGABRT else _("the parser broke down")
    return _("it needs too much memory") if os.WEXITSTATUS(status) == 2 else _("the parser broke down")
