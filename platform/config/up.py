"""``manage.py up``: database, web server and worker of one machine as one group.

First start: database, then ``manage.py prepare`` (migrations, demo), then web and worker. What they import is imported
meanwhile. When neither the code nor the database changed since the last preparation, web and worker start at once; the
``/readyz`` of both still check the migrations.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from basics.processes import end_with_parent
from config import env, processes
from config.addresses import free_port, is_loopback, reached
from config.data_dir import data_dir_open
from config.embedded import EmbeddedPostgres, EmbeddedPostgresError
from config.embedded.ports import is_free
from config.forking import CHANNEL, Zygote
from config.healthcheck import probe_host
from config.records import read_record, try_lock, write_record
from config.supervisor import LogFollower, Output, Service, describe_exit, http_get, stdout

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_PORT = 8000
_READY_S = 180.0
_STOPPING_S = 60.0
"""How long a new group waits for one that is stopping, in addition to GROUNDWORK_DRAIN_SECONDS."""
_WORKER_GRACE_S = 25.0
"""What a worker may take to stop, in addition to GROUNDWORK_DRAIN_SECONDS."""
_TRIES_BEFORE_READY = 4
_UNPREPARED_S = 12.0
_DB_TROUBLE = re.compile(
    r"\b(WARNING|ERROR|FATAL|PANIC):(?!\s+(permission denied to analyze|terminating connection due to administrator command))"
)
"""What people are told of the database's log; not the ends of a verified backup's scratch database, which alarm and mean nothing."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What the group runs; ``{host}``, ``{port}`` and ``{health_port}`` are filled in.

    Attributes:
        worker: is waited for where it is told a ``{health_port}``.
        setup_public: in place of ``setup`` where other machines reach the web server, () for the same.
        zygote: what web and worker are forked from (``config.forking``), () to start each on its own.
    """

    setup: Sequence[str]
    web: Sequence[str]
    worker: Sequence[str]
    setup_public: Sequence[str] = ()
    zygote: Sequence[str] = ()


_MANAGE = (sys.executable, str(ROOT / "manage.py"))
GROUNDWORK = Commands(
    setup=(*_MANAGE, "prepare"),
    setup_public=(*_MANAGE, "prepare", "--public"),
    web=(
        *(sys.executable, "-m", "uvicorn", "config.asgi:application"),
        *("--host", "{host}", "--port", "{port}", "--timeout-graceful-shutdown", "3"),
        *("--no-access-log", "--no-server-header", "--log-level", "warning", "--ws", "none"),
    ),
    worker=(*_MANAGE, "worker", "--health-port", "{health_port}"),
    zygote=(sys.executable, "-m", "config.zygote", CHANNEL) if sys.platform == "linux" else (),
)


class UpError(Exception):
    """The group cannot be started; the message says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the group until Ctrl-C or SIGTERM; return the exit code."""
    parser = arguments(argparse.ArgumentParser(prog="manage.py up", description=__doc__))
    return run(parser.parse_args(argv), stdout())


def arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options of ``up`` to a parser."""
    parser.add_argument(
        "--port", type=int, help=f"port of the web server (default {DEFAULT_PORT}, or the next free one)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address of the web server (default: this machine only)"
    )
    parser.add_argument("--data-dir", type=Path, help="folder of database, files and model (default: var)")
    parser.add_argument(
        "--with-parent", action="store_true", help="stop when the process that started this one ends (Linux)"
    )
    return parser


def run(options: argparse.Namespace, output: Output, commands: Commands = GROUNDWORK) -> int:
    """Run the group with parsed options."""
    began = time.monotonic()
    if options.with_parent:
        end_with_parent(signal.SIGTERM)
    try:
        env.load_file(ROOT / ".env")
        if options.data_dir:
            os.environ["GROUNDWORK_DATA_DIR"] = str(options.data_dir.expanduser().resolve())
        env.refuse_unknown()
        env.refuse_invalid()
        data_dir = ROOT / env.get("GROUNDWORK_DATA_DIR")
        data_dir_open(data_dir)
        (data_dir / "run").mkdir(mode=0o700, exist_ok=True)
        with _only_one(data_dir):
            return asyncio.run(Up(options, data_dir, output, began, commands).run())  # noqa: TID251 - serves no request
    except (UpError, EmbeddedPostgresError, env.SettingsError) as error:
        output.line("up", str(error))
        return 1


class Up:
    """One run of the group."""

    def __init__(
        self, options: argparse.Namespace, data_dir: Path, output: Output, began: float, commands: Commands
    ) -> None:
        self.data_dir = data_dir
        self.output = output
        self.host: str = options.host
        self._is_option = options.data_dir is not None
        self.port = choose_port(options.port, self.host, output)
        self._commands = commands
        self.mark = secrets.token_hex(8)
        self._began = began
        self._stops = 0
        self._postgres: EmbeddedPostgres | None = None
        self._db_log: LogFollower | None = None
        self._db_failures = 0
        # Behind a proxy others reach it too, although it listens on this machine alone.
        self._is_public = not is_loopback(self.host) or env.get("GROUNDWORK_TRUST_PROXY")
        environment = {
            # glibc would keep up to eight arenas of freed memory for each core: web and worker have many threads.
            "MALLOC_ARENA_MAX": "2",
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
            "PYTHONUNBUFFERED": "1",
        }

        def service(name: str, argv: Sequence[str], grace_s: float) -> Service:
            words = [_filled(word, {"host": self.host, "port": self.port}) for word in argv]
            return Service(name, words, environment, self.mark, output, grace_s)

        # Whoever finds the page knows the demo's addresses: people outside get no account that nobody has chosen.
        setup = commands.setup_public if self._is_public else commands.setup
        self.setup = service("setup", setup or commands.setup, 5.0)
        self.web = service("web", commands.web, 6.0)
        self._zygote = Zygote(commands.zygote, environment, self.mark, output) if commands.zygote else None
        drain_s: int = env.get("GROUNDWORK_DRAIN_SECONDS")
        self.worker = service("worker", commands.worker, _WORKER_GRACE_S + drain_s)
        self.web.zygote = self.worker.zygote = self._zygote
        if _serves_sources():
            self.setup.zygote = self._zygote
        self._probes = {"web": (reached(self.host), self.port)}

    @property
    def url(self) -> str:
        """Where a browser finds the web server."""
        address = reached(self.host)
        shown = f"[{address}]" if ":" in address else address
        return f"http://{shown}:{self.port}"

    async def run(self) -> int:
        """Start everything, keep it alive, and stop it in order (web, worker, database)."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(signum, self._ask_to_stop)
        try:
            self._end_leftovers()
            write_record(self._record, {"mark": self.mark, "pid": os.getpid(), "url": self.url})
            if self._zygote and (_serves_sources() or self._prepared.exists()):
                self._zygote.start()  # it imports while the database is made or starts
            self._start_database()
            if self._stops:
                return 0
            return await self._serve()
        finally:
            await self._stop_all()

    # -- starting -------------------------------------------------------------------------------------------------

    async def _serve(self) -> int:
        fingerprint = self._fingerprint()
        is_prepared = fingerprint is not None and read_record(self._prepared) == {"fingerprint": fingerprint}
        if not is_prepared:
            if self._zygote and not _serves_sources():
                self._zygote.end()  # it knows the static files of before
            self.setup.start()
            code = await self._prepared_code()
            if self._stops:
                return 0
            if code != 0:
                self.output.line("up", f"Setting up failed ({describe_exit(code)}); see above.")
                return 1
            write_record(self._prepared, {"fingerprint": fingerprint})
        self._start(self.web)
        self._start(self.worker)
        return await self._watch(is_prepared=is_prepared)

    async def _prepared_code(self) -> int:
        # Polled, like the services: asyncio would watch children from a thread on Python 3.11.
        while (code := self.setup.poll()) is None and not self._stops:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return code or 0

    def _start_database(self) -> None:
        if env.get("DATABASE_URL"):
            self.output.line("db", "external database (DATABASE_URL)")
            return
        began = time.monotonic()
        self._postgres = EmbeddedPostgres(self.data_dir, die_with_parent=True)
        self._postgres.start()
        self._db_log = LogFollower(
            self._postgres.log_path, "db", self.output, lambda line: bool(_DB_TROUBLE.search(line))
        )
        verb = "started" if self._postgres.process else "is already running"
        self.output.line(
            "db",
            f"PostgreSQL 18 {verb} on 127.0.0.1:{self._postgres.port} ({time.monotonic() - began:.1f} s)",
        )

    def _end_leftovers(self) -> None:
        """End what an earlier group, killed before it could clean up, left running."""
        earlier = read_record(self._record) or {}
        if mark := earlier.get("mark"):
            count = processes.end(processes.marked(str(mark)), grace_s=4.0)
            if count:
                self.output.line("up", f"ended {count} processes that an earlier start left behind")

    def _fingerprint(self) -> str | None:
        """Return what the last preparation depends on: the code and the very database. None: cannot be known."""
        if self._postgres is None:
            return None
        digest = hashlib.sha256(b"public" if self._is_public else b"")
        version_file = self._postgres.pgdata / "PG_VERSION"  # written once, by initdb
        files = [version_file, ROOT / "requirements" / "base.txt"]
        for folder in ("platform", "apps"):
            files += sorted((ROOT / folder).rglob("*.py"))
        for path in files:
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        digest.update(str(version_file.stat().st_ino).encode())
        return digest.hexdigest()

    # -- keeping alive --------------------------------------------------------------------------------------------

    async def _watch(self, *, is_prepared: bool) -> int:
        started = time.monotonic()
        is_ready = False
        next_probe, pause = 0.0, 0.02
        next_notice, unprepared_at = started + 15.0, started + _UNPREPARED_S
        while not self._stops and not self.output.is_broken:
            await asyncio.sleep(0.1 if is_ready else 0.02)
            now = time.monotonic()
            self._keep_database()
            for service in (self.web, self.worker):
                self._keep(service, now)
                if not is_ready and service.crashes >= _TRIES_BEFORE_READY:
                    self.output.line("up", f"{service.name} doesn't start; see its output above.")
                    return 1
            if is_ready or now < next_probe:
                continue
            if self._zygote and self._zygote.is_busy and now < next_notice:
                unprepared_at = now + _UNPREPARED_S
                continue
            status, body = await self._probe()
            if status:  # it answers, and every "not yet" is a line in its log
                pause = min(pause * 1.5, 2.0)
            next_probe = time.monotonic() + pause
            if status == 200:
                is_ready = True
                self._greet()
            elif now - started > _READY_S:
                self.output.line("up", f"Not ready after {_READY_S:g} s. {body}")
                return 1
            elif now > next_notice:
                self.output.line("up", f"waiting for {body[:500]}")
                next_notice = now + 15.0
            if is_prepared and not is_ready and now > unprepared_at:
                # The database is not what it was when it was prepared (restored, or edited by hand).
                is_prepared = False
                self._prepared.unlink(missing_ok=True)
                self.setup.start()
            if (code := self.setup.poll()) is not None:
                if code != 0:
                    self.output.line("up", f"Setting up failed ({describe_exit(code)}); see above.")
                    return 1
                write_record(self._prepared, {"fingerprint": self._fingerprint()})
        return 0

    async def _probe(self) -> tuple[int, str]:
        """Return 200 once all are ready; else the status of the first that is not, and what it said."""
        for name, (address, port) in self._probes.items():
            status, body = await http_get(address, port, "/readyz", host=probe_host())
            if status != 200:
                return status, f"/readyz of the {name}: {status or ''} {body}"
        return 200, ""

    def _start(self, service: Service) -> None:
        """Start a service; the worker with a port for its probes that is free now, which it may not be at a later start."""
        if service is self.worker and "{health_port}" in self._commands.worker:
            port: int = env.get("GROUNDWORK_WORKER_HEALTH_PORT") or free_port()
            service.argv = [_filled(word, {"health_port": port}) for word in self._commands.worker]
            self._probes["worker"] = reached(env.get("GROUNDWORK_WORKER_HEALTH_HOST")), port
        service.start()

    def _keep(self, service: Service, now: float) -> None:
        if service.restart_at is not None:
            if now >= service.restart_at:
                self._start(service)
        elif (code := service.poll()) is not None:
            service.plan_restart(code)

    def _keep_database(self) -> None:
        if self._db_log:
            self._db_log.poll()
        if self._postgres is None or self._postgres.is_running():
            return
        code = self._postgres.reap()
        said = f" ({describe_exit(code)})" if code is not None else ""
        self.output.line("up", f"the database ended{said}; starting it again")
        try:
            self._postgres.start()
        except EmbeddedPostgresError:
            self._db_failures += 1
            if self._db_failures >= _TRIES_BEFORE_READY:
                raise
        else:
            self._db_failures = 0
            self.output.line("db", f"PostgreSQL 18 started on 127.0.0.1:{self._postgres.port}")

    def _greet(self) -> None:
        seconds = time.monotonic() - self._began
        self.output.plain(f"\nGroundwork is ready ({seconds:.1f} s):  {self.url}")
        sign_in = self.data_dir / "run" / "sign_in.txt"
        if self._is_public:
            self.output.plain(
                "Other machines can reach it, so the demo and its password are disabled.\n"
                f"If nobody has an account yet, create the operator's: {self._command('createsuperuser')}"
            )
        elif sign_in.exists():
            self.output.plain(sign_in.read_text(encoding="utf-8").rstrip())
        self.output.plain("Ctrl-C stops everything.\n")

    def _command(self, name: str) -> str:
        """Return how a command is called that finds this database, also where its folder was named as an option alone."""
        where = f"GROUNDWORK_DATA_DIR={shlex.quote(str(self.data_dir))} " if self._is_option else ""
        return f"{where}.venv/bin/python manage.py {name}"

    # -- stopping -------------------------------------------------------------------------------------------------

    def _ask_to_stop(self) -> None:
        self._stops += 1
        if self._stops == 1:
            self.output.line("up", "stopping (press again to stop immediately)")

    async def _stop_all(self) -> None:
        def hurry() -> bool:
            return self._stops > 1

        write_record(self._record, {**(read_record(self._record) or {}), "stopping": True})
        for service in (self.setup, self.web, self.worker):
            await service.stop(hurry)
        if self._zygote:
            self._zygote.end()
        processes.end(processes.marked(self.mark), grace_s=1.0)
        if self._postgres is not None and not self._postgres.stop():
            self.output.line("db", "left running: another process uses it")
        self._record.unlink(missing_ok=True)
        self.output.line("up", "stopped")

    @property
    def _record(self) -> Path:
        return self.data_dir / "run" / "up.json"

    @property
    def _prepared(self) -> Path:
        return self.data_dir / "run" / "prepared.json"


def _serves_sources() -> bool:
    """Whether static files are served from where they are. Else what imports before they are collected knows none."""
    return os.environ.get("DJANGO_SETTINGS_MODULE") == "config.settings.dev"


def _filled(word: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def choose_port(wanted: int | None, host: str, output: Output) -> int:
    """Return the port of the web server.

    Raises:
        UpError: the wanted port is taken (an explicit wish is not overruled), or none near the default is free.
    """
    if wanted is not None:
        if not is_free(wanted, host):
            raise UpError(f"Port {wanted} on {host} is in use. Choose another one with --port.")
        return wanted
    for port in range(DEFAULT_PORT, DEFAULT_PORT + 50):
        if is_free(port, host):
            if port != DEFAULT_PORT:
                output.line("up", f"port {DEFAULT_PORT} is in use; using {port}")
            return port
    raise UpError(
        f"No free port from {DEFAULT_PORT} to {DEFAULT_PORT + 49} on {host}. Choose one with --port."
    )


@contextlib.contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Hold the right to be the one group of a data directory."""
    descriptor = os.open(data_dir / "run" / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + _STOPPING_S + env.get("GROUNDWORK_DRAIN_SECONDS")
        while not try_lock(descriptor):
            running = read_record(data_dir / "run" / "up.json") or {}
            if running.get("stopping") and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise UpError(
                f"Groundwork is already running on {data_dir}: {running.get('url', 'it is starting')} "
                f"(pid {running.get('pid', '?')}). Stop it with Ctrl-C there, or use another folder (--data-dir)."
            )
        yield
    finally:
        os.close(descriptor)
