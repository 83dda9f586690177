"""Start, find and stop the embedded PostgreSQL of one data directory."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from basics.processes import die_with_parent
from config import processes
from config.embedded import cluster, state
from config.embedded.account import SYSTEM_DIR, Account, choose_account, choose_pgdata, popen_user, programs
from config.embedded.errors import EmbeddedPostgresError
from config.embedded.ports import free_port, is_free
from config.embedded.state import State

_LOG_LIMIT = 10_000_000
_READY_S = 60.0


class EmbeddedPostgres:
    """One PostgreSQL server on one data directory, shared by every process that uses the directory.

    Args:
        data_dir: folder of the project's data; the server's files lie in ``postgres/``, its log in
            ``logs/postgres.log``, port and passwords in ``run/postgres.json`` (mode 0600).
        port: TCP port on 127.0.0.1; None keeps the recorded one, or takes a free one.
        durable: False gives up crash safety for speed (fsync off): for tests only.
        die_with_parent: the server is stopped by the kernel when the starting process dies, even by SIGKILL (Linux).
        settings: more PostgreSQL settings, over those of ``cluster.settings``.
        system_dir: where root puts what the database's user cannot reach inside the project (see ``account``).

    ``start`` attaches when the server runs already. ``stop`` stops it only when nobody else uses it.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        durable: bool = True,
        die_with_parent: bool = False,
        settings: Mapping[str, str | float] | None = None,
        system_dir: Path = SYSTEM_DIR,
    ) -> None:
        self.data_dir = Path(os.path.realpath(data_dir))
        self.process: subprocess.Popen[bytes] | None = None
        self._wanted_port = port
        self._durable = durable
        self._die_with_parent = die_with_parent
        self._settings = dict(settings or {})
        self._system_dir = system_dir
        self._user_lock: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The connection URL of the owner role (not a superuser), database ``groundwork``."""
        return self._state().url()

    @property
    def superuser_url(self) -> str:
        """The connection URL of the superuser: for backups and repairs, never for the application."""
        return self._state().url(superuser=True)

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1."""
        return self._state().port

    @property
    def pgdata(self) -> Path:
        """Where the database files lie."""
        return Path(self._state().pgdata)

    @property
    def log_path(self) -> Path:
        """The server's log."""
        return self.data_dir / "logs" / "postgres.log"

    def is_running(self) -> bool:
        """Say whether a server process lives on the data directory (it may still be starting or stopping)."""
        return (self.data_dir / "run").is_dir() and state.is_alive(self.data_dir)

    def is_ready(self) -> bool:
        """Say whether the server answers: a real connection with our password, never a pid file."""
        known = state.load(self.data_dir)
        return known is not None and _connect_problem(known.url()) is None

    def start(self) -> None:
        """Start the server, or attach to the one that runs, and return when it answers.

        Raises:
            EmbeddedPostgresError: it cannot be started; the message has the reason and the end of the log.
        """
        try:
            self._make_folders()
            if self._user_lock is None:
                self._user_lock = state.join_users(self.data_dir)
        except PermissionError as error:
            raise EmbeddedPostgresError(
                f"This user can't use {self.data_dir} ({error.strerror}: {error.filename}). Run as its owner, or choose "
                "another folder with GROUNDWORK_DATA_DIR."
            ) from error
        try:
            with state.start_lock(self.data_dir):
                if not self._attach():
                    self._start()
        except BaseException:
            self._leave()
            raise

    def stop(self, *, force: bool = False) -> bool:
        """Leave the server, and stop it when no other process uses it (or ``force``); say whether it is stopped."""
        self._leave()
        if not (self.data_dir / "run").is_dir():
            return True
        with state.start_lock(self.data_dir):
            if not force and state.has_users(self.data_dir):
                return False
            self._shut_down()
        return True

    def reap(self) -> int | None:
        """Return the exit code of the server we started once it has ended (and spare it being a zombie)."""
        return self.process.poll() if self.process else None

    # -- attaching ------------------------------------------------------------------------------------------------

    def _attach(self) -> bool:
        """Wait for a running server to answer; False when there is none, or it went away while we waited."""
        deadline = time.monotonic() + _READY_S
        while state.is_alive(self.data_dir):
            known = state.load(self.data_dir)
            problem = _connect_problem(known.url()) if known else "the state file is missing"
            if problem is None:
                return True
            pgdata = self._locate()
            if not processes.postgres_on(pgdata):
                time.sleep(0.1)  # it may be ending this very moment
                if state.is_alive(self.data_dir) and not processes.postgres_on(pgdata):
                    raise EmbeddedPostgresError(
                        f"A Postgres that isn't visible from here (in another container?) is running on "
                        f"{pgdata}. Stop it there, "
                        "or choose another folder with GROUNDWORK_DATA_DIR."
                    )
            elif known is None or cluster.is_refusal(problem):
                # Ours, but nobody knows its password or port any more: start it anew with fresh ones.
                self._shut_down()
                return False
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"The running server doesn't respond: {problem}\n{self._log_tail()}"
                )
            time.sleep(0.05)
        return False

    # -- starting -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        pgdata = self._locate()
        account = choose_account(pgdata)
        bin_dir = programs(account, self._system_dir)
        known = state.load(self.data_dir)
        if not (pgdata / "PG_VERSION").exists():
            if pgdata.is_relative_to(self._system_dir):
                self._system_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
                self._system_dir.chmod(0o755)  # whatever the umask: the database's user passes through
            known = self._new_state(pgdata, known)
            cluster.create(bin_dir, pgdata, account, known, durable=self._durable)
        self._clear_stale_pid_file(pgdata)
        if known is None or known.pgdata != str(pgdata):
            known = self._new_credentials(bin_dir, pgdata, account, known)
        for attempt in range(2):
            known = self._launch(bin_dir, pgdata, account, known)
            problem = _connect_problem(known.url())
            if problem is None:
                return
            self._shut_down()
            if attempt or not cluster.is_refusal(problem):
                raise EmbeddedPostgresError(
                    f"Postgres started but refuses the connection: {problem}\n{self._log_tail()}"
                )
            # A database restored from elsewhere, or a state file older than it: its passwords are not ours.
            known = self._new_credentials(bin_dir, pgdata, account, known)

    def _new_credentials(
        self, bin_dir: Path, pgdata: Path, account: Account | None, known: State | None
    ) -> State:
        """Give the roles new passwords, and make role, database and extension where they are missing."""
        new = self._new_state(pgdata, known)
        cluster.provision(bin_dir, pgdata, account, new)
        return new

    def _new_state(self, pgdata: Path, known: State | None) -> State:
        """Return what is recorded now: new passwords."""
        new = State(
            pgdata=str(pgdata),
            port=known.port if known else 0,
            password=secrets.token_urlsafe(24),
            superuser_password=secrets.token_urlsafe(24),
        )
        # Recorded first: a crash in between leaves passwords that do not fit, which the next start repairs.
        state.save(self.data_dir, new)
        return new

    def _launch(self, bin_dir: Path, pgdata: Path, account: Account | None, known: State) -> State:
        """Start the postmaster on a free port and wait until it answers; return the state with that port."""
        taken: set[int] = set()
        deadline = time.monotonic() + _READY_S
        while True:
            port = self._choose_port(known.port, taken)
            cluster.configure(pgdata, account, port, durable=self._durable, extra=self._settings)
            known = replace(known, port=port)
            state.save(self.data_dir, known)
            tail = self._run_until_ready(bin_dir, pgdata, account, known, deadline)
            if tail is None:
                return known
            if time.monotonic() < deadline:
                if "could not bind" in tail:  # somebody was faster
                    taken.add(port)
                    continue
                if "shared memory block" in tail:  # backends of a killed postmaster are still leaving
                    time.sleep(0.2)
                    continue
            raise EmbeddedPostgresError(f"Postgres doesn't start. The end of its log:\n{tail}")

    def _run_until_ready(
        self, bin_dir: Path, pgdata: Path, account: Account | None, known: State, deadline: float
    ) -> str | None:
        """Run the postmaster; None when it answers (a refusal is an answer), else the end of its log."""
        lock = state.take_alive_lock(self.data_dir)
        if lock is None:
            raise EmbeddedPostgresError(f"Another server was started on {pgdata} at the same time.")
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_LIMIT:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        try:
            with self.log_path.open("ab") as log:
                offset = log.tell()
                self.process = subprocess.Popen(
                    [str(bin_dir / "postgres"), "-D", str(pgdata)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=cluster.environment(),
                    pass_fds=[lock],
                    start_new_session=True,
                    # SIGINT is Postgres' fast shutdown.
                    preexec_fn=die_with_parent(signal.SIGINT, os.getpid()) if self._die_with_parent else None,
                    **popen_user(account),
                )
        finally:
            os.close(lock)
        while (problem := _connect_problem(known.url())) and not cluster.is_refusal(problem):
            if self.process.poll() is not None:
                return self._log_tail(offset)
            if time.monotonic() > deadline:
                self._shut_down()
                return self._log_tail(offset)
            time.sleep(0.02)
        return None

    def _choose_port(self, recorded: int, taken: set[int]) -> int:
        if self._wanted_port is not None:
            if self._wanted_port in taken or not is_free(self._wanted_port):
                raise EmbeddedPostgresError(
                    f"Port {self._wanted_port} on 127.0.0.1 is in use. Choose another port for the "
                    f"database, or none."
                )
            return self._wanted_port
        if recorded and recorded not in taken and is_free(recorded):
            return recorded
        return free_port(seed=os.fsencode(self.data_dir), avoid=taken)

    def _clear_stale_pid_file(self, pgdata: Path) -> None:
        """Remove a pid file whose server is gone; Postgres itself would believe a reused pid or a zombie."""
        # Without our lock: either a set-up step whose starter was killed and that is ending by itself, or somebody ran
        # the binary by hand.
        running = processes.wait_gone(processes.postgres_on(pgdata), 5.0)
        if running:
            raise EmbeddedPostgresError(
                f"A Postgres that Groundwork did not start (pid {running[0].pid}) is running on {pgdata}. "
                f"Stop it first."
            )
        (pgdata / "postmaster.pid").unlink(missing_ok=True)

    # -- stopping -------------------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Stop the server: fast, then immediate (it recovers at the next start), then by SIGKILL."""
        if not state.is_alive(self.data_dir):
            self.reap()
            return
        pgdata = self._locate()
        for signum, patience in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            running = processes.postgres_on(pgdata)
            for process in running if signum == signal.SIGKILL else running[:1]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signum)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                self.reap()
                if not state.is_alive(self.data_dir):
                    return
                time.sleep(0.02)
        raise EmbeddedPostgresError(f"The server on {pgdata} doesn't stop:\n{self._log_tail()}")

    def _leave(self) -> None:
        if self._user_lock is not None:
            os.close(self._user_lock)
            self._user_lock = None

    # -- small things ---------------------------------------------------------------------------------------------

    def _make_folders(self) -> None:
        root = os.geteuid() == 0
        # Root's database user must be able to pass through; nobody can list.
        if not self.data_dir.exists():
            self.data_dir.mkdir(parents=True)
            self.data_dir.chmod(0o711 if root else 0o700)
        for name in ("run", "logs"):
            (self.data_dir / name).mkdir(exist_ok=True)
            (self.data_dir / name).chmod(0o700)

    def _state(self) -> State:
        known = state.load(self.data_dir)
        if known is None:
            raise EmbeddedPostgresError(f"No embedded database was ever started in {self.data_dir}.")
        return known

    def _locate(self) -> Path:
        known = state.load(self.data_dir)
        return choose_pgdata(self.data_dir, known.pgdata if known else None, self._system_dir)

    def _log_tail(self, offset: int | None = None) -> str:
        """Return the log's last 4 kB, or what was written after ``offset`` bytes."""
        if not self.log_path.exists():
            return "(no log)"
        with self.log_path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(size - 4096, 0, offset or 0))
            return log.read().decode("utf-8", "replace").strip()


def remove(data_dir: Path) -> None:
    """Delete the embedded database of a data directory for good. The server must be stopped.

    Raises:
        EmbeddedPostgresError: a server runs on it.
    """
    data_dir = Path(os.path.realpath(data_dir))
    if not (data_dir / "run").is_dir():
        return
    with state.start_lock(data_dir):
        if state.is_alive(data_dir):
            raise EmbeddedPostgresError("The database is running. Stop it first (manage.py pg stop).")
        known = state.load(data_dir)
        pgdata = Path(known.pgdata) if known else data_dir / "postgres"
        if (pgdata / "PG_VERSION").exists():
            shutil.rmtree(pgdata)
        state.state_path(data_dir).unlink(missing_ok=True)


def _connect_problem(url: str) -> str | None:
    """Return None when a connection can be made, else what the server or the socket said."""
    import psycopg  # takes half of the imports of `manage.py up`, and can be had while the server starts

    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError as error:
        return str(error)
    return None
