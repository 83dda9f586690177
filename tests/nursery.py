"""Web servers and workers for tests without their imports: one process imports the product, and is forked for each.

A start of its own costs each of them three seconds of processor time, before it has done anything. Here the first one of
a pytest process pays for it, and all that come after with the same settings, those that are started again after a kill
too, are there at once. They are what ``manage.py up`` starts (see ``config.zygote``): a fork in a session of its own, with
its output in a log. Linux only; elsewhere, and in benchmarks, ``tests.servers`` starts each on its own.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from basics.processes import die_with_parent

_PREFIX = "GROUNDWORK_"
LATE_SETTINGS = tuple(
    _PREFIX + name
    for name in ("DEFAULT_MODEL", "DRAIN_SECONDS", "FETCH_NETWORKS", "JOB_LEASE_S", "METRICS_TOKEN")
)
"""Variables of settings that nothing reads before the product runs; each setting has the name behind the prefix."""
PROCESSES = "GROUNDWORK_WORKERS"
LATE = (
    *LATE_SETTINGS,
    PROCESSES,
    *("GROUNDWORK_COMPATIBLE_BASE_URL", "GROUNDWORK_COMPATIBLE_MODELS", "GROUNDWORK_WORKER_HEALTH_PORT"),
)
"""Variables that a process gets after its fork: those that differ in these alone are forked from one."""
WEB, WORKER = "web", "worker"


class Forked:
    """A process that a nursery forked, as far as tests need it: with the interface of ``subprocess.Popen``.

    Attributes:
        pid: its process id, and that of its session and group.
    """

    def __init__(self, pid: int, handle: int) -> None:
        """Take over a descriptor of pidfd_open(2), which stays true when another process gets the number."""
        self.pid = pid
        self._handle = handle

    def __del__(self) -> None:
        os.close(self._handle)

    def poll(self) -> int | None:
        """Return None while it runs, 0 once it has ended, however that was."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended.

        Args:
            timeout: in seconds; None waits as long as it takes.

        Raises:
            subprocess.TimeoutExpired: it has not.
        """
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        # The kernel is about to forget it, and with it its group.
        with contextlib.suppress(ProcessLookupError):
            while True:
                signal.pidfd_send_signal(self._handle, 0)
                time.sleep(0.001)
        return 0

    def send_signal(self, signum: int) -> None:
        """Send it a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signum)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that has imported the product, and makes others like it."""

    def __init__(self, env: Mapping[str, str], root: Path) -> None:
        """Start it; it imports while its caller goes on.

        Args:
            env: its whole environment.
            root: of the code that runs.
        """
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.nursery", str(theirs.fileno())],
                env={**env, "PYTHONPATH": f"{root}{os.pathsep}{root / 'platform'}"},
                cwd=root,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
            )
        self._forked: list[Forked] = []

    def fork(self, kind: str, log: Path | None, env: Mapping[str, str], port: int = 0) -> Forked:
        """Start a process.

        Args:
            kind: ``WEB`` or ``WORKER``.
            log: where its output is written, behind what is there; None writes it to standard error.
            env: its variables among ``LATE``.
            port: of the web server, or of the worker's probes: 0 has none.

        Raises:
            AssertionError: the nursery has ended; standard error says why.
        """
        message = json.dumps({"kind": kind, "env": dict(env), "port": port}).encode()
        handles: list[int] = []
        with contextlib.ExitStack() as opened, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            output = opened.enter_context(log.open("ab")).fileno() if log else 2
            socket.send_fds(self._channel, [message], [output])
            said, handles, _, _ = socket.recv_fds(self._channel, 100, 1)
        assert handles, "the process that imports the product for tests has ended"
        forked = Forked(int(said), handles[0])
        self._forked.append(forked)
        return forked

    def is_idle(self) -> bool:
        """Tell whether nothing that it forked runs any more."""
        return all(one.poll() is not None for one in self._forked)

    def end(self) -> None:
        """End it, and whatever it forked."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


_open: dict[tuple[object, ...], Nursery] = {}


def can_fork() -> bool:
    """Tell whether this is a test run, on a system that can do this."""
    return hasattr(os, "pidfd_open") and "TEST_RUN_PID" in os.environ  # tests.processes.RUN


def late(env: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a process gets after its fork."""
    return {name: env[name] for name in LATE if name in env}


def nursery(env: Mapping[str, str], root: Path) -> Nursery:
    """Return the process for these settings; of the others one stays, for most tests have the settings of one.

    The rest end when nothing runs that they forked.
    """
    own = {name: value for name, value in env.items() if name not in LATE and name != "PYTEST_CURRENT_TEST"}
    key = (root, *sorted(own.items()))
    if key not in _open:
        idle = [one for one, that in _open.items() if that.is_idle()]
        for other in idle[:-1]:
            _open.pop(other).end()
    # The one that was used last stands last.
    _open[key] = _open.pop(key) if key in _open else Nursery(own, root)
    return _open[key]


def end_all() -> None:
    """End all nurseries of this process, with whatever they forked: no test runs any more."""
    while _open:
        _open.popitem()[1].end()


def _serve(channel: socket.socket) -> dict[str, Any]:
    """Import, then fork a process for each message; return only in such a process, with what it is to be."""
    # Its threads would run at each fork (config.zygote).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from config import zygote

    zygote.import_all()
    tie = die_with_parent(signal.SIGKILL, os.getpid())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is forgotten at once
    gc.freeze()
    gc.disable()
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 65536, 1)
        if not message:
            sys.exit(0)
        threads = len(os.listdir("/proc/self/task"))
        assert threads == 1, (
            f"{threads} threads run after the imports: a fork would copy their locks and not them"
        )
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            os.setsid()
            for number in (1, 2):
                os.dup2(descriptors[0], number)
            os.close(descriptors[0])
            if tie:
                tie()
            gc.enable()
            return dict(json.loads(message))
        os.close(descriptors[0])
        handle = os.pidfd_open(pid)
        socket.send_fds(channel, [str(pid).encode()], [handle])
        os.close(handle)


def _become(kind: str, env: Mapping[str, str], port: int) -> None:
    """Do what the web server or the worker does."""
    from config import zygote

    os.environ.update(env)
    _settings_read(env)
    zygote._title_set(f"groundwork {kind}")
    if kind == WEB:
        import uvicorn

        # Streams that are open would hold every end up for longer.
        from config import asgi
        from tests import delays

        app = delays.late_web(asgi.application) if delays.is_on() else asgi.application
        uvicorn.run(app, port=port, timeout_graceful_shutdown=0.5, log_level="warning")  # type: ignore[arg-type]
        return
    from django.core.management import execute_from_command_line

    zygote._pool_leave()
    from tests import delays

    if delays.is_on():
        delays.late_worker()
    sys.argv = ["manage.py", "worker", "--health-port", str(port), "--skip-checks"]  # import_all has checked
    if PROCESSES in env:
        sys.argv += ["--processes", env[PROCESSES]]
    execute_from_command_line(sys.argv)


def _settings_read(given: Mapping[str, str]) -> None:
    """Give the settings of ``LATE_SETTINGS`` the values that they would have had at the import."""
    from django.conf import settings

    from config import env

    for variable in LATE_SETTINGS:
        if variable in given:
            setattr(settings, variable.removeprefix(_PREFIX), env.get(variable))


if __name__ == "__main__":
    _become(**_serve(socket.socket(fileno=int(sys.argv[1]))))
