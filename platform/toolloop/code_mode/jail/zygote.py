"""The host's side of the process that programs are forked from: one per process of ours, made when first needed."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

from toolloop.code_mode.jail.confine import filter_bytes
from toolloop.errors import ConfigurationError

_FOLDER = Path(__file__).resolve().parent
# In the order in which they import each other.
_SOURCES = {
    "toolloop.code_mode.values": _FOLDER.parent / "values.py",
    "toolloop.code_mode.jail.rules": _FOLDER / "rules.py",
    "toolloop.code_mode.jail.channel": _FOLDER / "channel.py",
    "toolloop.code_mode.jail.confine": _FOLDER / "confine.py",
    "toolloop.code_mode.jail.talk": _FOLDER / "talk.py",
    "toolloop.code_mode.jail.events": _FOLDER / "events.py",
    "toolloop.code_mode.jail.surroundings": _FOLDER / "surroundings.py",
    "toolloop.code_mode.jail.program": _FOLDER / "program.py",
    "toolloop.code_mode.jail.worker": _FOLDER / "worker.py",
}
# The user that runs programs need not be able to read our files: their text comes over the standard input.
_BOOT = """\
import json, socket, sys, types
sources = json.load(sys.stdin)
for name in ("toolloop", "toolloop.code_mode", "toolloop.code_mode.jail"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, text in sources.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
sys.modules["toolloop.code_mode.jail.worker"].main(socket.socket(fileno=int(sys.argv[1])))
"""
_START_S = 60.0


class Zygote:
    """One process that forks programs; safe to use from several threads and event loops.

    Raises:
        ConfigurationError: it does not start.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.pid = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_START_S)
        self._process = subprocess.Popen(
            [*_confined(), _python(), "-s", "-P", "-S", "-B", "-c", _BOOT, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            # The same order of sets in every run: a paused program is run again.
            env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
            cwd="/",
        )
        theirs.close()
        sources = {name: path.read_text(encoding="utf-8") for name, path in _SOURCES.items()}
        stdin, stderr = self._process.stdin, self._process.stderr
        if stdin is None or stderr is None:
            raise RuntimeError("Popen gave no pipes")
        with stderr:
            try:
                with stdin:
                    stdin.write(json.dumps(sources).encode())
                ready = self._control.recv(64)
            except OSError as error:
                ready = str(error).encode()
            if ready != b"ready":
                self.close()
                said = stderr.read()[-800:].decode(errors="replace") or repr(ready)
                raise ConfigurationError(f"The sandbox for programs does not start: {said}")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def fork(self) -> socket.socket:
        """Start a process for a program and return our end of the line to it.

        Raises:
            OSError: the process that forks is gone.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._lock:
                socket.send_fds(self._control, [b"run"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return ours

    def end(self, pid: int) -> None:
        """Kill a program's process; one that has ended is no harm."""
        with self._lock, contextlib.suppress(OSError):
            self._control.send(b"end %d" % pid)

    def close(self) -> None:
        """End it and, by the kernel, all that it forked."""
        self._control.close()
        if self.pid == os.getpid():
            self._process.kill()
            self._process.wait()


class _Held:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.zygote: Zygote | None = None
        self.free: threading.Semaphore | None = None


_held = _Held()


def _after_fork() -> None:
    # A child of ours makes its own: the parent's sockets in it are closed, the parent's process is left alone.
    global _held
    old, _held = _held, _Held()
    if old.zygote is not None:
        old.zygote._control.close()
        _parents.append(old.zygote)  # Its end would look for a process that is no child here.


_parents: list[Zygote] = []
os.register_at_fork(after_in_child=_after_fork)


def zygote_ready() -> Zygote | None:
    """Return this process's zygote when it is there; does not block."""
    zygote = _held.zygote
    return zygote if zygote is not None and zygote.alive else None


def zygote_get() -> Zygote:
    """Return this process's zygote; it is started at the first call and again when it was lost. Blocks meanwhile."""
    with _held.lock:
        if _held.zygote is None or not _held.zygote.alive:
            if _held.zygote is not None:
                _held.zygote.close()
            _held.zygote = Zygote()
        return _held.zygote


def room(processes: int) -> threading.Semaphore:
    """Return what counts the programs that run in this process; ``processes`` counts at the first call."""
    with _held.lock:
        if _held.free is None:
            _held.free = threading.Semaphore(processes)
        return _held.free


def zygote_close() -> None:
    """End the zygote, if there is one; a later program starts another."""
    with _held.lock:
        zygote, _held.zygote = _held.zygote, None
    if zygote is not None:
        zygote.close()


atexit.register(zygote_close)


def is_possible() -> bool:
    """Tell whether this machine can confine CPython: Linux, on a processor whose system calls are known."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        filter_bytes(platform.machine())
    except OSError:
        return False
    return sys.implementation.name == "cpython"


def _python() -> str:
    return os.path.realpath(sys.executable)


def _confined() -> list[str]:
    """Return the command that takes the rights of root away, where the host has them."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or not setpriv:
        return []
    nobody = [
        setpriv,
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    probe = subprocess.run(
        [*nobody, _python(), "-S", "-c", "import json"],
        capture_output=True,
        timeout=_START_S,
        check=False,
        cwd="/",
        env={},
    )
    return nobody if probe.returncode == 0 else [setpriv, "--no-new-privs"]
