"""A running product for benchmarks: a database of its own, web server, worker, and a model server that costs nothing.

Import it before anything of Django: it chooses the database.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]


@contextlib.contextmanager
def database(*, is_migrated: bool = True) -> Iterator[str]:
    """Make an empty database for this process, on the server of DATABASE_URL or on an embedded one.

    Yields the URL of the server's superuser, or DATABASE_URL where the server is not an embedded one.

    Args:
        is_migrated: whether it gets the schema of this code.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-benchmark-"))
        os.environ.setdefault("GROUNDWORK_DATA_DIR", folder)
        os.environ.setdefault("GROUNDWORK_SECRET_KEY", "benchmark" * 8)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
        url = superuser_url = os.environ.get("DATABASE_URL", "")
        if not url:
            from config.embedded import EmbeddedPostgres

            server = EmbeddedPostgres(Path(folder) / "database")
            server.start()
            stack.callback(server.stop)
            url, superuser_url = server.url, server.superuser_url
        name = f"groundwork_benchmark_{os.getpid()}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        stack.callback(_drop, url, name)
        os.environ["DATABASE_URL"] = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        stack.callback(connections.close_all)
        if is_migrated:
            call_command("migrate", verbosity=0)
        yield superuser_url


def _drop(url: str, name: str) -> None:
    from tests.databases import database_drop

    with psycopg.connect(url, autocommit=True) as connection:
        database_drop(connection, name)


@contextlib.contextmanager
def model_server() -> Iterator[str]:
    """Run the fake model server in a process of its own; yields its base URL."""
    from tests.servers import free_port

    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fake_provider", "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(5)


@contextlib.contextmanager
def product(models: str, **env: str) -> Iterator[tuple]:
    """Run web server and worker with these fake models, which this process knows too; yields (Stack, log folder)."""
    from tests.servers import Stack

    with tempfile.TemporaryDirectory(prefix="groundwork-logs-") as logs, model_server() as url:
        os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"] = url
        os.environ["GROUNDWORK_COMPATIBLE_MODELS"] = models
        stack = Stack(
            Path(logs),
            DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
            DATABASE_URL=os.environ["DATABASE_URL"],
            GROUNDWORK_JOB_LEASE_S="30",
            **{"MALLOC_ARENA_MAX": "2", **env},  # as config.up and the image have it
        )
        try:
            stack.start_web()
            stack.start_worker()
            yield stack, Path(logs)
        except BaseException:
            for log in sorted(Path(logs).glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            stack.stop()


def load() -> list[float]:
    """Return the load averages of 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
