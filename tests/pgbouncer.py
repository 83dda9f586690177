"""A real PgBouncer in front of the test database: many connections of ours share few of the server's."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

from basics.processes import die_with_parent
from tests.servers import database_url, free_port, wait_for

SERVER_CONNECTIONS = 4


def needed() -> str:
    """Return the program's path; skips the test where it is not installed (CI installs it)."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is not installed")
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    return program


@contextlib.contextmanager
def pooled(folder: Path, mode: str = "transaction") -> Iterator[str]:
    """Run a pooler on loopback; yields the URL of the test database through it.

    Args:
        folder: for its files; made if need be.
        mode: ``transaction`` or ``session``.
    """
    program, port, to = needed(), free_port(), urlsplit(database_url())
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for above in (folder, *folder.parents):  # it refuses to run as root, and must reach its files as nobody
        with contextlib.suppress(PermissionError):
            above.chmod(above.stat().st_mode | 0o011)
    secret = f" password={unquote(to.password)}" if to.password else ""
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={to.hostname} port={to.port} user={to.username}{secret}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\ndefault_pool_size = {SERVER_CONNECTIONS if mode == 'transaction' else 20}\n"
        "max_client_conn = 500\nlog_connections = 0\nlog_disconnections = 0\nserver_check_query =\n",
        encoding="utf-8",
    )
    config.chmod(0o644)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *user, str(config)],
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
        )
    url = f"postgresql://{to.username}:unused@127.0.0.1:{port}{to.path}"
    try:
        wait_for(lambda: _answers(url, process), "PgBouncer")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "PgBouncer ended"
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
