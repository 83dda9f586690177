"""The process that imports everything once and is forked into what `up` starts (Linux; see ``config.forking``).

Two processes that import the same three thousand modules pay for them twice, at each start and in memory for as long as
they run. Forked from one, they share the pages that nobody writes to. What must not be open or running in the moment of a
fork is checked before the first one: threads (a fork copies their locks, not them) and connections to the database.

It imports while the embedded database is still being made or started, so only what is forked from it asks for its address.
What sets up needs the models alone: it is forked as soon as these and the database are there, and the rest is imported
beside it.

Started by ``manage.py up`` as ``python -m config.zygote <descriptor>``, with a socket of type SOCK_SEQPACKET. Each message
is a JSON object. To it come ``{"argv": [...], "mark": "..."}`` together with the descriptor to which the new process
writes; from it ``{"started": pid, "mark": "..."}`` and ``{"ended": pid, "code": as subprocess.Popen.returncode}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from basics.processes import die_with_parent
from config.processes import MARK

POOL = "DJANGO_DB_POOL"
_IMPORTED = (
    "jobs.management.commands.worker",
    "django_q.cluster",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.main",
    "uvicorn.protocols.http.auto",
    # Each is a tenth of a second at most, after which what sets up may be forked.
    "apps.collections.urls",
    "apps.conversations.urls",
    "apps.datasets.urls",
    "apps.tools.urls",
    "apps.evaluations.urls",
    "config.urls",
    "config.asgi",
)
_EARLY = "prepare"
"""The command that may be forked before all is imported: it ends soon, so nobody misses the memory it doesn't share."""
_SERVER = ["-m", "uvicorn"]
_TITLE = "groundwork "
_ADDRESS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


class CannotFork(Exception):
    """A fork of this process would not be safe; the message says why."""


def main(descriptor: int) -> Sequence[str]:
    """Import, then fork a process for each message; return only in such a process, with the command that it is to be.

    Raises:
        CannotFork: something runs or is open that a fork would break.
        SystemExit: the supervisor has closed the channel.
    """
    # Its threads would be running at each fork. Matrices here are small, and the machine's cores are shared.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    forks = _Forks(socket.socket(fileno=descriptor))
    try:
        for _ in imports():
            if command := forks.early():
                return command
        refuse_unsafe()
    except Exception:
        forks.outlive()
        raise
    # What is old here is never garbage, and the pages stay shared only while no collector walks them.
    gc.freeze()
    gc.disable()
    return forks.all()


class _Forks:
    """What is asked for over the channel, and forked.

    Args:
        channel: to the supervisor.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._chosen_pool = os.environ.get(POOL)
        self._tie = die_with_parent(signal.SIGTERM, os.getpid())
        self._heard, self._told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._told)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._waiting: list[tuple[dict[str, Any], int]] = []

    def early(self) -> Sequence[str] | None:
        """Fork what need not wait for all imports; return its command in the process forked, else None."""
        while select.select([self._channel.fileno()], [], [], 0)[0]:
            wanted, output = self._next()
            if wanted["argv"][2:3] != [_EARLY]:
                self._waiting.append((wanted, output))
            elif command := self._fork(wanted, output):
                return command
        return None

    def all(self) -> Sequence[str]:
        """Fork all that is asked for, until the channel is closed; return in a process forked, with its command."""
        while True:
            while self._waiting:
                if command := self._fork(*self._waiting.pop(0)):
                    return command
            readable, _, _ = select.select([self._channel.fileno(), self._heard], [], [])
            if self._heard in readable:
                os.read(self._heard, 4096)
                self._tell_ended()
            if self._channel.fileno() in readable:
                self._waiting.append(self._next())

    def outlive(self) -> None:
        """Let what was forked come to its end, and tell it: it doesn't need what failed here."""
        with contextlib.suppress(ChildProcessError):
            while True:
                self._tell(*os.waitpid(-1, 0))

    def _next(self) -> tuple[dict[str, Any], int]:
        message, descriptors, _, _ = socket.recv_fds(self._channel, 65536, 1)
        if not message:
            sys.exit(0)
        return json.loads(message), descriptors[0]

    def _fork(self, wanted: dict[str, Any], output: int) -> Sequence[str] | None:
        refuse_unsafe()
        if pid := os.fork():
            os.close(output)
            self._channel.send(json.dumps({"started": pid, "mark": wanted["mark"]}).encode())
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for own in (self._heard, self._told, *(other for _, other in self._waiting)):
            os.close(own)
        self._channel.close()
        _become(wanted["mark"], output)
        if self._tie:
            self._tie()
        _database_find()
        if not is_server(wanted["argv"]) and self._chosen_pool is None:
            _pool_leave()
        gc.enable()
        return list(wanted["argv"])

    def _tell_ended(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._tell(*ended)

    def _tell(self, pid: int, status: int) -> None:
        self._channel.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def imports() -> Iterator[None]:
    """Import what web and worker do, pausing where a process may be forked, then check the settings as the worker would.

    Checks touch every model, and so would make a fifth of the shared pages the worker's own.

    Raises:
        CannotFork: an error was found, which is printed.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    os.environ.setdefault(POOL, "1")  # as config.asgi does; the settings are read now
    gc.disable()  # see manage.py
    import django

    django.setup()
    gc.disable()  # the last app turned it on
    yield
    for name in _IMPORTED:
        import_module(name)
        yield
    from django.core.management.base import BaseCommand, CommandError

    try:
        BaseCommand().check()
    except CommandError as error:
        raise CannotFork(str(error)) from error


def import_all() -> None:
    """Import what web and worker do, and check it; see ``imports``."""
    for _ in imports():
        pass


def is_server(argv: Sequence[str]) -> bool:
    """Tell whether a command is the web server's; else it is one of ``manage.py``."""
    return list(argv[1:3]) == _SERVER


def run(argv: Sequence[str]) -> None:
    """Do what a fresh Python with these arguments would do, without its imports."""
    if not is_server(argv):
        from django.core.management import execute_from_command_line

        checked = ["--skip-checks"] if argv[2] == "worker" else []  # done by import_all
        sys.argv = [*argv[1:], *checked]
        execute_from_command_line(sys.argv)
        return
    from uvicorn.main import main as serve

    sys.argv = ["uvicorn", *argv[3:]]
    serve(sys.argv[1:], prog_name="uvicorn")


def refuse_unsafe() -> None:
    """Make sure that this process can be forked.

    Raises:
        CannotFork: it has threads (Python's or a library's), or a connection to a database, or nobody could later
            tell by its mark what was forked from it.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise CannotFork(f"{threads} threads run after the imports")
    from django.db import connections

    if any(one.connection is not None for one in connections.all(initialized_only=True)):
        raise CannotFork("a connection to the database is open after the imports")
    _mark_place()


def _become(mark: str, output: int) -> None:
    """Leave the zygote's session, output, mark and title behind."""
    os.setsid()
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    os.environ[MARK] = mark
    address, length = _mark_place()
    written = mark.encode()
    if len(written) != length:
        raise CannotFork(f"the mark {mark} is not as long as the zygote's")
    ctypes.memmove(address, written, length)
    _title_set(_TITLE + mark.split("/")[1])


def _mark_place() -> tuple[int, int]:
    """Return address and length of this process's mark in the memory that the kernel shows as its environment.

    The kernel shows what the process was started with, and so would show the zygote's mark for each process forked from
    it. A new value of the same length is written over it: /proc/<pid>/environ in proc_pid_environ(5).
    """
    _, _, begin, end = _areas()
    if begin:
        block = b"\0" + ctypes.string_at(begin, end - begin)
        name = f"\0{MARK}=".encode()
        found = block.find(name)
        if found >= 0:
            offset = found + len(name)
            return begin + offset - 1, block.index(b"\0", offset) - offset
    raise CannotFork("the kernel does not say where its environment is")


def _title_set(title: str) -> None:
    """Have ``ps`` show a title in place of the zygote's command."""
    begin, end, _, _ = _areas()
    length = end - begin
    if length > 1:
        # Its last byte is not NUL: the kernel's sign that the title ends at the first one (proc_pid_cmdline(5)).
        written = title.encode()[: length - 2].ljust(length - 1, b"\0") + b" "
        ctypes.memmove(begin, written, length)


def _areas() -> tuple[int, int, int, int]:
    """Return where arguments and environment begin and end: fields 48 to 51 of proc_pid_stat(5), 0 where not shown."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    first, second, third, fourth = (int(field) for field in fields[45:49])
    return first, second, third, fourth


def _database_find() -> None:
    """Take the address of the embedded database into the settings; it may be another one than while they were read."""
    from django.conf import settings

    from config import env
    from config.embedded.state import read_state

    if not env.get("DATABASE_URL") and (url := read_state(settings.DATA_DIR)):
        found = env.database_settings(url, pool=False)
        settings.DATABASES["default"] |= {name: found[name] for name in _ADDRESS}


def _pool_leave() -> None:
    """Take the pool of connections, which only the web server uses, out of the settings."""
    from django.conf import settings

    from config import env

    os.environ.pop(POOL, None)
    for chosen in settings.DATABASES.values():
        env.pool_leave(chosen)


if __name__ == "__main__":
    try:
        command = main(int(sys.argv[1]))
    except CannotFork as error:
        sys.exit(f"Web server and worker are started without sharing memory: {error}.")
    run(command)
