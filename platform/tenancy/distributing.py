"""Spread the tables over the machines of a Citus cluster, and look whether the walls stand on each of them.

What is run is ``tenancy.sharding.distribution``, in one transaction: all tables are distributed, or none. It can be run again
after a migration that brought tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from tenancy.database.cursors import APP_ROLE, PLATFORM_ROLE
from tenancy.sharding import distribution

SHARDS = 32
"""Into how many parts tenants' tables are cut, if nobody says otherwise; Citus's own number."""
_SETTINGS = {
    # Role and tenant are set by SET LOCAL in front of a transaction's first statement; the other machines have to hear it.
    "citus.propagate_set_commands": "local",
    # Ours touch one tenant's rows (tenancy.sharding.ROUTINES).
    "citus.enable_unsafe_triggers": "on",
}
_PLACED = """
SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid WHERE p.partmethod IN ('h', 'n')"""
_WALL = f"""SELECT relrowsecurity AND relforcerowsecurity AND (SELECT count(*) = 2 FROM pg_policy p WHERE p.polrelid = c.oid)
    AND has_table_privilege('{APP_ROLE}', c.oid, 'SELECT') AND has_table_privilege('{PLATFORM_ROLE}', c.oid, 'SELECT')
FROM pg_class c WHERE oid = '%s'::regclass"""  # noqa: S608 - both are ours


def placed(cursor: Any) -> set[str]:
    """Return the tables that are on all machines already, spread or copied; on a database with Citus only."""
    cursor.execute(_PLACED)
    return {name for (name,) in cursor.fetchall()}


def distribute(connection: Any, *, shards: int = SHARDS, say: Callable[[str], object] = print) -> None:
    """Spread tenants' tables by ``tenant_id``, and copy shared ones to every machine; in one transaction.

    Args:
        connection: of the login role, to the coordinator, with Citus.
        shards: into how many parts tenants' tables are cut.
        say: told each statement before it runs.

    Raises:
        DatabaseError: Citus refused a statement; nothing is changed then.
    """
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        database = connection.ops.quote_name(cursor.fetchone()[0])
        for role in (APP_ROLE, PLATFORM_ROLE):  # as whom the coordinator signs in on the other machines
            cursor.execute(f"ALTER ROLE {role} LOGIN")
        for name, value in _SETTINGS.items():
            cursor.execute(f"ALTER DATABASE {database} SET {name} = '{value}'")
            cursor.execute(f"SET LOCAL {name} = '{value}'")
        # References between tables on the same machines are only laid one machine after the other.
        cursor.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        cursor.execute("SELECT set_config('citus.shard_count', %s, true)", [str(shards)])
        for statement in distribution(cursor, leave=placed(cursor)):
            say(statement)
            cursor.execute(statement)


def walls_missing(cursor: Any, tables: list[str]) -> tuple[int, list[str]]:
    """Look at each part of tenants' tables on each machine, and read every table without a tenant.

    Args:
        cursor: of the login role, outside of a transaction.
        tables: those of tenants.

    Returns:
        how many parts were looked at, and what is wrong, in words.
    """
    looked, wrong = 0, []
    for table in tables:
        cursor.execute(
            "SELECT nodename, nodeport, shardid, success, result FROM run_command_on_placements(%s, %s)",
            [f'"{table}"', _WALL],
        )
        for host, port, shard, succeeded, result in cursor.fetchall():
            looked += 1
            if not succeeded or result != "t":
                wrong.append(f"{table}: part {shard} on {host}:{port} has no wall ({result})")
    return looked, wrong
