"""Run the reader child under limits of time, processor and memory; whatever happens to it is a typed failure."""

from __future__ import annotations

import errno
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from apps.collections.ingestion.frames import FrameBuffer
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.texts import Told, gettext_noop
from basics.texts import gettext as _

_POLL_SECONDS = 0.05
_TICK_SECONDS = 0.5
_ROOT = Path(__file__).resolve().parents[3]
_STDERR_KEPT = 2000
_CHILD_MODULE = "apps.collections.ingestion.child"

_OUT_OF_MEMORY = gettext_noop(
    "Reading this file was stopped because it needs more than %(mb)s MB of memory. Split it or raise the limit."
)
_KILLED = gettext_noop(
    "The reader of this file was stopped by the system, probably because the machine ran out of "
    "memory. Try again; if it happens again, split the file."
)
_TIMED_OUT = gettext_noop(
    "Reading this file took more than %(seconds).0f seconds and was stopped. Split it or raise the limit."
)
_CRASHED = gettext_noop(
    "The reader crashed on this file (%(how)s). The file may be damaged: export it again and upload "
    "the new one."
)


def run_child(
    request: Mapping[str, Any],
    limits: ReaderLimits,
    *,
    on_tick: Callable[[], None] | None = None,
    is_renewed: bool = False,
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Start the child, yield its frames as they come, and see it dead before returning.

    Args:
        request: ``action`` and its arguments, JSON-serialisable.
        limits: its wall time, processor time and memory.
        on_tick: called at least every half second while waiting; what it raises stops the child and comes out here.
        is_renewed: each frame gives the child its wall time anew: the limit is for one page of many.

    Raises:
        ReadFailure: what the reader said, or ``timed_out``, ``out_of_memory``, ``crashed``.
        OSError: there is no space left for temporary files; that is not the file's fault.
    """
    with tempfile.TemporaryDirectory(prefix="reader-") as folder, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", _CHILD_MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        try:
            _send_request(process, request, limits)
            yield from _frames(process, limits, on_tick, is_renewed)
            _judge_exit(process, limits, errors)
        finally:
            _kill(process)


def _environment(folder: str) -> dict[str, str]:
    """Give the child what Python needs and nothing else: no keys, no database address."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "platform"))),
        "PYTHONIOENCODING": "utf-8",
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def _send_request(process: subprocess.Popen[bytes], request: Mapping[str, Any], limits: ReaderLimits) -> None:
    body = {**request, "limits": asdict(limits), "parent_pid": os.getpid()}
    stdin = process.stdin
    if stdin is None:
        raise RuntimeError("The reader process was started without a standard input.")
    try:
        with stdin:
            stdin.write(json.dumps(body).encode() + b"\n")
    except BrokenPipeError:
        return  # it is dead already; its exit status tells why


def _frames(
    process: subprocess.Popen[bytes],
    limits: ReaderLimits,
    on_tick: Callable[[], None] | None,
    is_renewed: bool,
) -> Iterator[tuple[dict[str, Any], bytes]]:
    stdout = process.stdout
    if stdout is None:
        raise RuntimeError("The reader process was started without a standard output.")
    buffer = FrameBuffer()
    deadline = time.monotonic() + limits.wall_seconds
    next_tick = time.monotonic() + _TICK_SECONDS
    with closing(selectors.DefaultSelector()) as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while True:
            ready = selector.select(_POLL_SECONDS)
            now = time.monotonic()
            if now > deadline:
                raise _timed_out(limits)
            if _resident_bytes(process.pid) > limits.memory_bytes:
                raise _out_of_memory(limits)
            if on_tick is not None and now >= next_tick:
                on_tick()
                next_tick = time.monotonic() + _TICK_SECONDS
            if not ready:
                continue
            data = os.read(stdout.fileno(), 1 << 20)
            if not data:
                return
            try:
                frames = buffer.feed(data)
            except ValueError as error:
                raise ReadFailure(
                    FailureCode.CRASHED, _(_CRASHED) % {"how": _("its output could not be understood")}
                ) from error
            for header, blob in frames:
                if "failure" in header:
                    raise _failure(header, limits)
                yield header, blob
                # The consumer's own work (a database write) is not the reader's time.
                spent = time.monotonic() - now
                deadline += spent
                now = time.monotonic()
                if is_renewed:
                    deadline = now + limits.wall_seconds


def _failure(header: Mapping[str, Any], limits: ReaderLimits) -> ReadFailure:
    if header["failure"] == FailureCode.OUT_OF_MEMORY:
        return _out_of_memory(limits)
    return ReadFailure(header["failure"], Told.of(header["message"]), data=header["data"])


def _judge_exit(process: subprocess.Popen[bytes], limits: ReaderLimits, errors: IO[bytes]) -> None:
    try:
        code = process.wait(timeout=10)
    except subprocess.TimeoutExpired as error:
        raise _timed_out(limits) from error
    if code == 0:
        return
    if code == -signal.SIGXCPU:
        raise _timed_out(limits)
    errors.seek(0)
    said = errors.read()[-_STDERR_KEPT:].decode(errors="replace")
    if "MemoryError" in said or "memory allocation of" in said:
        raise _out_of_memory(limits)
    if os.strerror(errno.ENOSPC) in said or os.strerror(errno.EDQUOT) in said:
        raise OSError(errno.ENOSPC, "the reader found no space for its temporary files")
    if code == -signal.SIGKILL:
        raise ReadFailure(FailureCode.OUT_OF_MEMORY, _(_KILLED))
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    raise ReadFailure(FailureCode.CRASHED, _(_CRASHED) % {"how": how}, data={"stderr": said})


def _timed_out(limits: ReaderLimits) -> ReadFailure:
    seconds = min(limits.wall_seconds, limits.cpu_seconds)
    return ReadFailure(FailureCode.TIMED_OUT, _(_TIMED_OUT) % {"seconds": seconds})


def _out_of_memory(limits: ReaderLimits) -> ReadFailure:
    return ReadFailure(
        FailureCode.OUT_OF_MEMORY, _(_OUT_OF_MEMORY) % {"mb": limits.memory_bytes // (1024 * 1024)}
    )


def _resident_bytes(pid: int) -> int:
    """Read the child's resident memory; 0 where the system does not tell (then only the address space is limited)."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
