"""Does a workspace notice how many others there are? The same requests against 10 and against 10,000 workspaces.

Two databases on one server: the first with a few workspaces that the product itself filled (documents with passages, vectors
and terms, conversations, members, keys), the second a copy of it in which the rows of one workspace are copied until there
are as many as wanted. Each has a web server and a worker of its own; requests go to both in turns, so that whatever else the
machine does falls on both. Prints a table and writes results/tenants.json: medians and 95th percentiles of pages, searches
and the wait of jobs for a worker, and their ratios.

    python benchmarks/tenants.py [--tenants 10000] [--rounds 40]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._common import write_result
from benchmarks._stack import database, load, percentile

FEW, DOCUMENTS, A_ROUND = 10, 1, 20
STEP = 10_000_000
"""Distance of the ids of two copies."""
END_S = 300.0


def main() -> int:
    """Fill, copy, measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=40, help=f"of {A_ROUND} requests of each kind")
    args = parser.parse_args()
    load_before = load()
    with (
        database() as superuser,
        tempfile.TemporaryDirectory(prefix="groundwork-tenants-") as name,
        ExitStack() as stack,
    ):
        result = _run(args, Path(name), superuser, stack)
    result |= {"load_before": load_before, "load_after": load()}
    for key, value in result.items():
        print(f"{key:24} {value}")
    print(write_result("tenants", result))
    return 0 if result["worst_ratio"] <= 1.2 else 1


def _run(args: argparse.Namespace, folder: Path, superuser: str, stack: ExitStack) -> dict[str, Any]:
    from django.db import connection

    from tests.many_tenants import workspaces_make

    workspaces = workspaces_make(FEW)
    few = _machine(folder, "few", os.environ["DATABASE_URL"], stack)
    for own in workspaces:
        _fill(few, own)
    few.stop()
    connection.close()
    url = os.environ["DATABASE_URL"]
    many_url = f"{url}_many"
    _copy(url, many_url, superuser, args.tenants, stack)
    machines = {
        "few": _machine(folder, "few-again", url, stack),
        "many": _machine(folder, "many", many_url, stack),
    }
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in machines}
    for round_number in range(args.rounds + 1):
        order = list(machines) if round_number % 2 else list(reversed(machines))
        for name in order:
            for kind, values in _visited(machines[name], workspaces).items():
                if round_number:  # the first one warms caches up
                    seconds[name].setdefault(kind, []).extend(values)
    figures: dict[str, Any] = {"tenants": args.tenants, "requests_of_each_kind": args.rounds * A_ROUND}
    ratios = []
    for kind in seconds["few"]:
        one, two = (seconds[name][kind] for name in ("few", "many"))
        ratio = round(percentile(two, 0.95) / percentile(one, 0.95), 2)
        ratios.append(ratio)
        figures[kind] = {
            "ms_few": [round(1000 * percentile(one, share), 1) for share in (0.5, 0.95)],
            "ms_many": [round(1000 * percentile(two, share), 1) for share in (0.5, 0.95)],
            "ratio_p50": round(percentile(two, 0.5) / percentile(one, 0.5), 2),
            "ratio_p95": ratio,
        }
    figures["worst_ratio"] = max(ratios)
    return figures


def _machine(folder: Path, name: str, url: str, stack: ExitStack) -> Any:
    from tests.servers import Stack

    logs = folder / name
    logs.mkdir()
    (folder / "data").mkdir(exist_ok=True, mode=0o700)
    machine = Stack(
        logs,
        DATABASE_URL=url,
        DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
        GROUNDWORK_DATA_DIR=str(folder / "data"),
        GROUNDWORK_RATE_PER_MINUTE="0",
        GROUNDWORK_TENANT_RATE_PER_MINUTE="0",
    )
    stack.callback(machine.stop)
    machine.start()
    return machine


def _fill(machine: Any, own: Any) -> None:
    """Give a workspace documents that are read and a conversation that is answered."""
    from apps.collections.index.embedding import space_default
    from apps.collections.models import Collection
    from tenancy.scope import platform_scope
    from tests.concurrency.rest import Rest

    with platform_scope():
        row = Collection.objects.select_related("tenant").get(pk=own.collection)
        row.space = space_default(tenant=row.tenant)
        row.save()
    rest = Rest(machine.port, own.key)
    for number in range(DOCUMENTS):
        lines = (f"Lamp {own.slug}-{number}-{line} costs {line} euros at two percent." for line in range(120))
        answer = rest.upload(own.collection, f"lamps-{number}.md", "\n\n".join(lines).encode())
        document = answer.json.get("document", answer.json)["id"]
        _waited(lambda document=document: rest.get(f"/api/v1/documents/{document}").json["status"] == "ready")
    _asked(rest)


def _asked(rest: Any) -> None:
    talk = rest.post("/api/v1/conversations", {"title": "Lamps"}).json["id"]
    body = {"text": "What does a lamp cost?", "model": "extractive"}
    run = rest.post(f"/api/v1/conversations/{talk}/turns", body).json["run_id"]
    if "event: end" not in rest.get(f"/api/v1/runs/{run}/events").text:
        raise RuntimeError("the answer did not end")


def _waited(condition: Any) -> None:
    until = time.monotonic() + END_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("a document was never read")
        time.sleep(0.1)


def _visited(machine: Any, workspaces: list[Any]) -> dict[str, list[float]]:
    """Send a round of requests; returns their seconds, and those that jobs waited for a worker."""
    from tests.concurrency.rest import Rest
    from tests.many_tenants import send

    found: dict[str, list[float]] = {
        "collections page": [], "chat page": [], "search": [], "turn's wait": [], "document's wait": []
    }  # fmt: skip

    def timed(kind: str, ask: Any) -> None:
        began = time.perf_counter()
        status, text = ask()
        found[kind].append(time.perf_counter() - began)
        if status != 200:
            raise RuntimeError(f"{kind}: {status} {text[:300]}")

    before = _last_job(machine)
    for number in range(A_ROUND):
        own = workspaces[number % len(workspaces)]
        body = {"query": f"What does lamp {own.slug}-{number} cost?", "collections": [own.collection]}
        for kind, path in (("collections page", "collections/"), ("chat page", "chat/")):
            timed(
                kind,
                lambda own=own, path=path: send(
                    machine.port, own, "GET", f"/t/{own.slug}/{path}", cookie=True
                ),
            )
        timed("search", lambda own=own, body=body: send(machine.port, own, "POST", "/api/v1/search", body))
        rest = Rest(machine.port, own.key)
        _asked(rest)
        name = f"{time.time_ns()}.md"
        answer = rest.upload(own.collection, name, f"# Lamp {name}\n\nNew.\n".encode())
        document = answer.json.get("document", answer.json)["id"]
        _waited(
            lambda rest=rest, document=document: (
                rest.get(f"/api/v1/documents/{document}").json["status"] == "ready"
            )
        )
    for kind, lane in (("turn's wait", "loop"), ("document's wait", "cpu")):
        found[kind] = _waits(machine, before, lane)
    return found


def _rows(machine: Any, query: str, *values: Any) -> list[Any]:
    import psycopg

    from tenancy.database.base import PLATFORM_ROLE

    with psycopg.connect(machine.env["DATABASE_URL"]) as line:
        line.execute("SELECT set_config('role', %s, false)", [PLATFORM_ROLE])
        return line.execute(query, values).fetchall()


def _last_job(machine: Any) -> int:
    return int(_rows(machine, "SELECT coalesce(max(id), 0) FROM jobs_job WHERE id < %s", STEP)[0][0])


def _waits(machine: Any, after: int, lane: str) -> list[float]:
    query = """
        SELECT extract(epoch FROM started_at - created_at) FROM jobs_job
        WHERE id > %s AND id < %s AND lane = %s AND started_at IS NOT NULL AND run_after <= created_at
    """
    return [float(value) for (value,) in _rows(machine, query, after, STEP, lane)]


def _copy(url: str, many_url: str, superuser: str, tenants: int, stack: ExitStack) -> None:
    """Copy a database, and in it the rows of its first workspace until there are as many as wanted."""
    import psycopg
    from psycopg import sql

    source, target = (sql.Identifier(one.rpartition("/")[2]) for one in (url, many_url))
    server = superuser.rpartition("/")[0]

    def admin(statement: Any) -> None:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as line:
            line.execute(statement)

    owner = sql.Identifier(urlsplit(url).username or "")
    admin(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(target, source, owner))
    stack.callback(admin, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(target))
    with psycopg.connect(f"{server}/{many_url.rpartition('/')[2]}") as line:
        # No walls, triggers or keys are asked: what is copied was written through them.
        line.execute("SET row_security = off")
        line.execute("SET session_replication_role = replica")
        first = line.execute("SELECT min(id) FROM tenancy_tenant").fetchone()[0]
        tables = _tables(line)
        began = time.monotonic()
        for table, columns in tables.items():
            where = {
                "tenancy_tenant": sql.SQL("id = {}"),
                "tenancy_user": sql.SQL(
                    "id IN (SELECT user_id FROM tenancy_membership WHERE tenant_id = {})"
                ),
            }.get(table, sql.SQL("tenant_id = {}"))
            line.execute(
                sql.SQL(
                    "INSERT INTO {} ({}) SELECT {} FROM {}, generate_series(1, {}) copy_number WHERE {}"
                ).format(
                    sql.Identifier(table),
                    sql.SQL(", ").join(map(sql.Identifier, columns)),
                    sql.SQL(", ").join(sql.SQL(value) for value in columns.values()),
                    sql.Identifier(table),
                    tenants - FEW,
                    where.format(first),
                )
            )
        line.commit()
        line.autocommit = True
        line.execute("VACUUM ANALYZE")
        rows = line.execute("SELECT count(*) FROM collections_chunk").fetchone()[0]
        print(
            f"copied to {tenants} workspaces, {rows} passages, in {time.monotonic() - began:.0f} s",
            flush=True,
        )


def _tables(line: Any) -> dict[str, dict[str, str]]:
    """Return the tables whose rows are copied: each column, and what a copy's value is."""
    copied = {
        name
        for (name,) in line.execute(
            """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
               WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
               AND NOT a.attisdropped"""
        )
    } | {"tenancy_tenant", "tenancy_user"}
    found: dict[str, dict[str, str]] = {}
    for table in sorted(copied):
        ids = {name for name, of in _references(line, table) if of in copied} | {"tenant_id"}
        unique = _unique_alone(line, table, ids | {"id"})
        columns = {}
        for name, kind, length in line.execute(
            """SELECT a.attname, t.typname, CASE WHEN a.atttypmod > 4 THEN a.atttypmod - 4 END FROM pg_attribute a
               JOIN pg_type t ON t.oid = a.atttypid
               WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''""",
            [f'public."{table}"'],
        ).fetchall():
            columns[name] = _value(
                name, kind, length, is_id=name in ids or name == "id", is_unique=name in unique
            )
        found[table] = columns
    return found


def _value(name: str, kind: str, length: int | None, *, is_id: bool, is_unique: bool) -> str:
    quoted = f'"{name}"'
    if kind == "int8" and (is_id or is_unique):
        return f"{quoted} + copy_number * {STEP}::bigint"
    if kind in {"int2", "int4"} and is_unique:
        return f"{quoted} + copy_number"
    if not is_unique:
        return quoted
    if kind == "uuid":
        return "gen_random_uuid()"
    if kind == "bytea":
        return f"decode(md5({quoted}::text || copy_number), 'hex')"
    return f"left(md5({quoted}::text || copy_number) || md5(copy_number::text), {length or 64})"


def _references(line: Any, table: str) -> list[tuple[str, str]]:
    """Return (column, table it refers to) of a table's foreign keys."""
    return list(
        line.execute(
            """SELECT a.attname, p.relname FROM pg_constraint c JOIN pg_class p ON p.oid = c.confrelid
               JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
               WHERE c.contype = 'f' AND c.conrelid = %s::regclass""",
            [f'public."{table}"'],
        ).fetchall()
    )


def _unique_alone(line: Any, table: str, ids: set[str]) -> set[str]:
    """Return the columns of unique indexes in which no id tells two copies apart."""
    found: set[str] = set()
    for (columns,) in line.execute(
        """SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a
           ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
           WHERE i.indrelid = %s::regclass AND i.indisunique AND NOT i.indisprimary GROUP BY i.indexrelid""",
        [f'public."{table}"'],
    ).fetchall():
        if not ids & set(columns):
            found |= set(columns)
    return found


if __name__ == "__main__":
    sys.exit(main())
