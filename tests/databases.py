"""Test databases: copies of one template, which is built when the schema changes and kept between runs.

A copy takes Postgres a fraction of a second; migrating costs each process seconds. The template's name carries a digest
of all that says how a database looks: migrations and models of every installed app, recorded SQL, the code that raises
the walls, and the libraries that read them. It gets that name only when it is whole, so a build that was killed is
built again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tenancy.database.base import as_login_role
from tests.processes import RUN

ROOT = Path(__file__).resolve().parent.parent
_TEMPLATE = "groundwork_template_"
_KEPT = 4
"""Templates of other schemas that stay: several checkouts share a server, and branches are changed to and fro."""
_LOCK = 7_205_759
"""Advisory lock: one process builds a template, the others wait for it."""
_APART = 1_000_000
_LIBRARIES = ("django", "psycopg", "pgvector", "django-allauth", "django-q2")
_ELSEWHERE = re.compile(rb"register_function\(|post_migrate|CREATE OR REPLACE FUNCTION")
"""What else makes things in a new database, wherever it stands."""
_made: list[str] = []


def schema_digest() -> str:
    """Return what changes whenever a new database would look different."""
    digest = hashlib.sha256()
    for name in _LIBRARIES:
        digest.update(f"{name}=={importlib.metadata.version(name)}\n".encode())
    for file in _schema_files():
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _schema_files() -> list[Path]:
    found: set[Path] = set()
    for config in apps.get_app_configs():
        top = Path(config.path)
        if not top.is_relative_to(ROOT) or ".venv" in top.relative_to(ROOT).parts:
            continue  # a library's: its version stands for it
        found.update(top.glob("migrations/*.py"))
        found.update(top.glob("models.py"))
        found.update(top.glob("models/**/*.py"))
        found.update(top.glob("**/*.sql"))
        found.update(file for file in top.glob("**/*.py") if _ELSEWHERE.search(file.read_bytes()))
    found.update((ROOT / "platform" / "tenancy").glob("*.py"))
    found.update((ROOT / "platform" / "tenancy" / "database").glob("*"))
    return sorted(file for file in found if file.is_file())


def server_prepare(url: str, superuser_url: str) -> None:
    """Let a password be proved by one round of hashing, not by 4,096, and the sweep delete rows without asking their keys.

    Each of the thousands of connections pays for the first, each test that commits for the second.

    Args:
        url: of the server's owner role, whose password stays what it is.
        superuser_url: for reading how that password is kept.
    """
    with psycopg.connect(superuser_url, autocommit=True) as raw:
        raw.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # several runs may share the server
        owner = sql.Identifier(str(conninfo_to_dict(url)["user"]))
        raw.execute(sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}").format(owner))
        kept = raw.execute(
            "SELECT rolpassword FROM pg_authid WHERE rolname = %s", [conninfo_to_dict(url)["user"]]
        )
        row = kept.fetchone()
        if row is None or not str(row[0]).startswith("SCRAM-SHA-256$1:"):
            with psycopg.connect(url, autocommit=True) as own:
                own.execute("SET scram_iterations = 1")
                password = sql.Literal(conninfo_to_dict(url)["password"])
                own.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(password))


@contextmanager
def cloned(worker: str) -> Iterator[str]:
    """Point Django at a new copy of the template, and drop it in the end, whoever is still connected.

    Args:
        worker: what tells this process from the others of the run ("gw0"), "" when it is alone.
    """
    before = str(connection.settings_dict["NAME"])
    name = "_".join(filter(None, ("test", before, os.environ.get(RUN, ""), worker)))
    template = _TEMPLATE + schema_digest()
    with connection._nodb_cursor() as cursor:
        # One builds, the others wait; and nobody copies while another one does, which Postgres would refuse.
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            _drop_abandoned(cursor, before)
            if not _names(cursor, template):
                _build(cursor, template)
            database_drop(cursor, name)
            # The files themselves are copied: as log records it takes several times as long.
            cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    _point_at(name)
    tenants_apart()
    _made.append(name)
    try:
        yield name
    finally:
        _made.remove(name)
        _point_at(before)
        with connection._nodb_cursor() as cursor:
            database_drop(cursor, name)


def is_made() -> bool:
    """Tell whether this process has its copy: the first test that needs one makes it."""
    return bool(_made)


def tenants_apart() -> None:
    """Let this process' workspaces have numbers that no other process of the run gives.

    They share a data folder, whose files are named by these: one process would repair, or count, what is the other's.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if number := int(worker.removeprefix("gw")):
        with as_login_role(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_get_serial_sequence('tenancy_tenant', 'id')")
            cursor.execute("SELECT setval(%s, %s)", [cursor.fetchone()[0], number * _APART])


def _build(cursor: Any, template: str) -> None:
    """Migrate a new database, give it the template's name, and forget the oldest of the others."""
    unfinished = f"{template}_unfinished"
    before = str(connection.settings_dict["NAME"])
    database_drop(cursor, unfinished)
    cursor.execute(f'CREATE DATABASE "{unfinished}"')
    _point_at(unfinished)
    try:
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        call_command("createcachetable", verbosity=0)
    finally:
        _point_at(before)
    cursor.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{template}"')
    for old in _names(cursor, _TEMPLATE + "%")[:-_KEPT]:
        database_drop(cursor, old)


def _drop_abandoned(cursor: Any, before: str) -> None:
    """Drop the copies of runs that were killed: of a process that is not here, and that nobody is connected to.

    The second because a server may serve several machines, on which other processes have other pids.
    """
    cursor.execute("SELECT DISTINCT datname FROM pg_stat_activity WHERE datname IS NOT NULL")
    in_use = {row[0] for row in cursor.fetchall()}
    for name in _names(cursor, f"test_{before}_%"):
        run = name.removeprefix(f"test_{before}_").partition("_")[0]
        if name not in in_use and run.isdigit() and not psutil.pid_exists(int(run)):
            database_drop(cursor, name)


def _names(cursor: Any, pattern: str) -> list[str]:
    """Return the databases whose names are like a pattern, the oldest first."""
    cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE %s ORDER BY oid", [pattern])
    return [row[0] for row in cursor.fetchall()]


def database_drop(cursor: Any, name: str) -> None:
    """Drop a database, if there is one, with the connections that this role has to it.

    Args:
        cursor: a cursor, or a connection of psycopg, outside a transaction.
        name: of the database.
    """
    # A process that a test left connected is no reason to keep its database. Not WITH (FORCE): that is refused while
    # the server itself is at work in it (autovacuum), which a plain DROP ends and waits for.
    cursor.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND usename = current_user",
        [name],
    )
    cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


def _point_at(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
