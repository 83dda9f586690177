"""Make, configure and provision the database files with Postgres' own programs, without a running server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from basics.processes import die_with_parent
from config import processes
from config.embedded.account import Account, popen_user
from config.embedded.errors import EmbeddedPostgresError
from config.embedded.state import DATABASE, HOST, SUPERUSER, USER, State

_CTYPES = ("C.UTF-8", "en_US.UTF-8", "C")
"""Character classes for full-text parsing, best first; plain C would take typographic quotes for letters."""

_HBA = "# Made by Groundwork: this machine only, with a password.\nhost all all 127.0.0.1/32 scram-sha-256\n"


def environment() -> dict[str, str]:
    """Return a clean environment: no PG* variable or locale of the caller gets through."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def create(bin_dir: Path, pgdata: Path, account: Account | None, state: State, *, durable: bool) -> None:
    """Make and provision the files beside the final place and rename, so that a kill in between leaves nothing half-made.

    What each step writes is brought to the disk once, at the end, which a disk at work makes much of a first start.

    Args:
        durable: False leaves that to the system.

    Raises:
        EmbeddedPostgresError: one of Postgres' programs failed; carries what it said.
    """
    for abandoned in pgdata.parent.glob(f"{pgdata.name}.new-*"):
        _discard(abandoned)
    scratch = pgdata.with_name(f"{pgdata.name}.new-{os.getpid()}")
    if pgdata.exists() and any(pgdata.iterdir()):
        raise EmbeddedPostgresError(
            f"{pgdata} holds files, but no PostgreSQL database. Move them away, or choose another GROUNDWORK_DATA_DIR."
        )
    problem = ""
    for ctype in _CTYPES:
        scratch.mkdir(mode=0o700)
        if account:
            os.chown(scratch, account.uid, account.gid)
        result = _ended(
            [
                str(bin_dir / "initdb"),
                "-D",
                str(scratch),
                "-U",
                SUPERUSER,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                f"--locale={ctype}",
                "--lc-messages=C",
                "--no-instructions",
                "--no-sync",
            ],
            account,
            locale=ctype,
        )
        if result.returncode == 0:
            break
        problem = (result.stderr or result.stdout).strip()
        shutil.rmtree(scratch)
    else:
        raise EmbeddedPostgresError(f"initdb failed: {problem}")
    (scratch / "pg_hba.conf").write_text(_HBA, encoding="utf-8")
    with (scratch / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(
            "\n# groundwork.conf is written at every start; local.conf is yours and wins.\n"
            "include_if_exists 'groundwork.conf'\ninclude_if_exists 'local.conf'\n"
        )
    own = scratch / "local.conf"
    own.write_text("# Own PostgreSQL settings; they win over groundwork.conf.\n", encoding="utf-8")
    if account:
        os.chown(own, account.uid, account.gid)
    role = [f"CREATE ROLE {USER}", *_roles(state)]
    # Made from template1, it has the extension.
    made = [*role, _EXTENSION, f"CREATE DATABASE {DATABASE} OWNER {USER}"]
    _single(bin_dir, scratch, account, "template1", made, durable=False)
    if durable:
        _sync(bin_dir, scratch, account)
    if pgdata.exists():
        pgdata.rmdir()
    scratch.rename(pgdata)


def _sync(bin_dir: Path, pgdata: Path, account: Account | None) -> None:
    result = _ended([str(bin_dir / "initdb"), "--sync-only", "-D", str(pgdata)], account)
    if result.returncode != 0:
        raise EmbeddedPostgresError(
            f"The new database could not be written to the disk: {result.stderr.strip()}"
        )


def _ended(
    command: list[str], account: Account | None, *, told: str | None = None, locale: str = "C"
) -> subprocess.CompletedProcess[str]:
    """Run one of Postgres' programs to its end, as the database's user; it ends with this process.

    Args:
        told: on its standard input; None leaves it this process' own.
    """
    return subprocess.run(
        command,
        input=told,
        cwd="/",
        env=environment() | {"LC_ALL": locale},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
        **popen_user(account),
    )


def _discard(scratch: Path) -> None:
    """Delete what a killed initdb left, and end the child of it that may still write there."""
    for attempt in range(50):
        processes.end(processes.postgres_on(scratch), grace_s=0)
        try:
            shutil.rmtree(scratch)
        except FileNotFoundError:
            return
        except OSError:
            if attempt == 49:
                raise
            time.sleep(0.1)


def settings(port: int, *, durable: bool) -> dict[str, str | float]:
    """Return the server's settings: sized for one small machine that also runs web and worker."""
    values: dict[str, str | float] = {
        "listen_addresses": HOST,
        "port": port,
        "unix_socket_directories": "",  # a socket's path is limited to 107 bytes, a project's is not
        # A worker process holds up to 22 (3 of its lane, 16 of blocking tools), a web process 12; an unused slot costs little.
        "max_connections": 300,
        "shared_buffers": "256MB",  # touched only as it fills
        "work_mem": "16MB",
        "maintenance_work_mem": "256MB",
        "effective_cache_size": "2GB",
        "huge_pages": "off",
        "random_page_cost": 1.1,
        "jit": "off",
        "max_worker_processes": 4,
        "max_parallel_workers": 2,
        "max_parallel_workers_per_gather": 1,
        "autovacuum_max_workers": 2,
        "autovacuum_naptime": "20s",
        "io_method": "sync",  # the data fits the page cache; spares the I/O worker processes
        # One server without replicas: no WAL beyond what crash recovery needs.
        "wal_level": "minimal",
        "max_wal_senders": 0,
        "max_logical_replication_workers": 0,
        "min_wal_size": "80MB",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "password_encryption": "scram-sha-256",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "lc_messages": "C",
        "log_checkpoints": "off",
        "log_line_prefix": "%m [%p] ",
    }
    if not durable:
        values |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return values


def configure(
    pgdata: Path, account: Account | None, port: int, *, durable: bool, extra: Mapping[str, str | float]
) -> None:
    """Write ``groundwork.conf``."""
    path = pgdata / "groundwork.conf"
    values = settings(port, durable=durable) | dict(extra)
    lines = ["# Written by Groundwork at every start. Put own settings into local.conf."]
    lines += [f"{name} = {_quote(str(value))}" for name, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if account:
        os.chown(path, account.uid, account.gid)


def provision(bin_dir: Path, pgdata: Path, account: Account | None, state: State) -> None:
    """Set the passwords, and make the owner role, its database and the extension where they are missing.

    For a database whose state file was lost: uses the single-user mode, which needs no password, as ``create`` does. The
    owner role is no superuser, as on a managed Postgres; pgvector is therefore put into ``template1``, from which test
    databases are made.

    Raises:
        EmbeddedPostgresError: Postgres did not come up; carries what it said.
    """
    missing = f"NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_quote(USER)})"
    role = [f"DO $$ BEGIN IF {missing} THEN CREATE ROLE {USER}; END IF; END $$", *_roles(state)]
    in_template = [*role, _EXTENSION]
    if f"[{DATABASE}]" not in _single(bin_dir, pgdata, account, "template1", [*in_template, _FIND]):
        _single(bin_dir, pgdata, account, "template1", [f"CREATE DATABASE {DATABASE} OWNER {USER}"])
    _single(bin_dir, pgdata, account, DATABASE, [_EXTENSION])


def _roles(state: State) -> list[str]:
    return [
        f"ALTER ROLE {SUPERUSER} PASSWORD {_quote(state.superuser_password)}",
        f"ALTER ROLE {USER} LOGIN NOSUPERUSER CREATEDB CREATEROLE PASSWORD {_quote(state.password)}",
    ]


_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
_FIND = f"SELECT '[{DATABASE}]' AS found FROM pg_database WHERE datname = '{DATABASE}'"  # noqa: S608


def is_refusal(problem: str) -> bool:
    """Say whether a connection failed for what we present (password, role, database), not for the server's health."""
    return "authentication failed" in problem or "does not exist" in problem


def _single(
    bin_dir: Path,
    pgdata: Path,
    account: Account | None,
    database: str,
    statements: list[str],
    *,
    durable: bool = True,
) -> str:
    unsynced = () if durable else ("-F",)
    result = _ended(
        [str(bin_dir / "postgres"), "--single", *unsynced, "-D", str(pgdata), database],
        account,
        told="".join(f"{statement}\n" for statement in statements),
    )
    errors = [line for line in result.stderr.splitlines() if " ERROR: " in line or "FATAL: " in line]
    if result.returncode != 0 or errors:
        raise EmbeddedPostgresError(
            "The database could not be prepared: " + ("\n".join(errors) or result.stderr.strip())
        )
    return result.stdout


def _quote(text: str) -> str:
    """Quote for SQL and for postgresql.conf alike."""
    return "'" + text.replace("'", "''") + "'"
