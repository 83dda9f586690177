"""A real streaming replica of a database of its own, both run by the bundled PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connection, connections

from basics.processes import die_with_parent
from config import env
from config.embedded import EmbeddedPostgres
from config.embedded.account import SYSTEM_DIR, choose_account, popen_user, programs
from config.embedded.cluster import environment
from tenancy.database import replica
from tests.servers import free_port, wait_for

_STREAMS: dict[str, str | float] = {
    "wal_level": "replica",
    "max_wal_senders": 5,
    "wal_keep_size": "256MB",
    "synchronous_commit": "on",
}


class Standby:
    """A streaming replica: can be paused, killed and started again, and knows which statements it was sent."""

    def __init__(self, primary: EmbeddedPostgres, folder: Path) -> None:
        self.primary = primary
        self.port = free_port()
        self.url = primary.url.replace(f":{primary.port}/", f":{self.port}/")
        self._superuser_url = primary.superuser_url.replace(f":{primary.port}/", f":{self.port}/")
        self._account = choose_account(primary.pgdata)
        self._programs = programs(self._account, SYSTEM_DIR)
        self._files, self._log = folder / "standby", folder / "standby.log"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(mode=0o711)
        if self._account:
            os.chown(folder, self._account.uid, self._account.gid)

    def copy(self) -> None:
        """Make the replica's files from the running primary."""
        self._run(
            "pg_basebackup",
            *("-d", self.primary.superuser_url, "-D", str(self._files)),
            *("-R", "-X", "stream", "--checkpoint=fast", "--no-sync"),
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", str(self._files), "-p", str(self.port), "-c", "log_statement=all"),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment(),
                preexec_fn=die_with_parent(signal.SIGQUIT, os.getpid()),
                **popen_user(self._account),
            )
        wait_for(self._answers, "the replica")

    def kill(self) -> None:
        """End it at once, with all who are connected."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def restart_if_dead(self) -> None:
        """Start it where a test has killed it."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def pause(self) -> None:
        """Replay nothing from now on."""
        with self._superuser() as line:
            line.execute("SELECT pg_wal_replay_pause()")
            wait_for(lambda: _one(line, "SELECT pg_get_wal_replay_pause_state()") == "paused", "the pause")

    def resume(self) -> None:
        """Replay again, and wait until all is replayed that the primary has now."""
        with self._superuser() as line:
            line.execute("SELECT pg_wal_replay_resume()")
        self.caught_up()

    def caught_up(self) -> None:
        """Wait until all is replayed that the primary has now."""
        with psycopg.connect(self.primary.superuser_url, autocommit=True) as line:
            target = _one(line, "SELECT pg_current_wal_lsn()::text")
        with self._superuser() as line:
            query = f"SELECT pg_last_wal_replay_lsn() >= '{target}'"
            wait_for(lambda: _one(line, query), "the replica to catch up")

    def statements(self, words: str) -> int:
        """Return how many statements with these words it has ever run; one that is prepared counts when it is executed."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        # Of a prepared one PREPARE is logged as a statement, and each EXECUTE with a second line that has its text.
        return sum(words in line and not ("statement: " in line and "; PREPARE " in line) for line in lines)

    def _superuser(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._superuser_url, autocommit=True)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            cwd="/",
            env=environment(),
            **popen_user(self._account),
        )


def _one(line: psycopg.Connection[Any], query: str) -> Any:
    row = line.execute(query).fetchone()
    assert row is not None
    return row[0]


@contextlib.contextmanager
def replicated() -> Iterator[Standby]:
    """Point Django in this process at a migrated database of its own with a replica; yields the replica, which runs."""
    folder = Path(tempfile.mkdtemp(prefix="groundwork-test-"))
    folder.chmod(0o711)
    primary = EmbeddedPostgres(folder / "var", durable=False, die_with_parent=True, settings=_STREAMS)
    primary.start()
    before = deepcopy(connection.settings_dict)
    standby = None
    try:
        with (primary.pgdata / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host replication all 127.0.0.1/32 scram-sha-256\n")
        with psycopg.connect(primary.superuser_url, autocommit=True) as line:
            line.execute("SELECT pg_reload_conf()")
        _point_at(env.database_settings(primary.url, pool=False))
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        call_command("createcachetable", verbosity=0)
        standby = Standby(primary, folder / "replica")
        standby.copy()
        standby.start()
        chosen = {**deepcopy(connection.settings_dict), **env.replica_settings(standby.url, pool=False)}
        connections.settings[replica.REPLICA] = chosen
        yield standby
    finally:
        replica.watch.forget()
        if replica.REPLICA in connections.settings:
            connections[replica.REPLICA].close()
            del connections[replica.REPLICA]
            del connections.settings[replica.REPLICA]
        _point_at(before)
        if standby is not None:
            standby.kill()
        primary.stop(force=True)
        shutil.rmtree(folder)


def _point_at(chosen: dict[str, Any]) -> None:
    connection.close()
    connection.settings_dict.update({k: chosen[k] for k in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})
