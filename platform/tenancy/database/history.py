"""Databases from before the migrations were made anew.

Up to then the tables of an app came from a chain of migrations. Now they come from its ``0001_initial``, which ends in
the same tables, so that such a database needs a new list of what was applied and nothing else.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import transaction
from django.db.migrations.recorder import MigrationRecorder

LAST = {
    "batches": "0001_batches",
    "budgets": "0001_initial",
    "collections": "0017_installed_embedders",
    "conversations": "0011_what_answers_were_compared_with",
    "datasets": "0008_deaths_of_items",
    "evaluations": "0007_experiments_by_batch",
    "jobs": "0003_deaths_and_failures",
    "runs": "0012_reads_of_files",
    "tenancy": "0009_outgoing_hosts",
    "tools": "0007_tool_vectors",
    "webhooks": "0003_budget_events",
}
"""What each app's chain ended with."""
_MARK = ("tenancy", "0002_model_entries_and_endpoints")
"""All databases of the chain have it, and none since."""
INITIAL = "0001_initial"


def adopt(connection: Any) -> bool:
    """Write into a database of the chain that the new first migrations were applied, and forget the chain.

    Args:
        connection: to the database, as the role that owns the tables.

    Returns:
        False where the database is empty or was made since; nothing was done then.

    Raises:
        CommandError: the end of the chain was not applied, and this code does not have it any more.
    """
    if not adoptable(connection):
        return False
    recorder = MigrationRecorder(connection)
    applied = set(recorder.applied_migrations())
    with transaction.atomic(using=connection.alias):
        recorder.migration_qs.filter(app__in=LAST).exclude(name=INITIAL).delete()
        for app in LAST:
            if (app, INITIAL) not in applied:
                recorder.record_applied(app, INITIAL)
    return True


def adoptable(connection: Any) -> bool:
    """Tell whether ``adopt`` would do anything; changes nothing.

    Args:
        connection: to the database.

    Raises:
        CommandError: as of ``adopt``.
    """
    applied = set(MigrationRecorder(connection).applied_migrations())
    if _MARK not in applied:
        return False
    missing = sorted(f"{app}.{name}" for app, name in LAST.items() if (app, name) not in applied)
    if missing:
        raise CommandError(
            f"This database was left by an old version of Groundwork that did not reach {missing[0]}. Start the last "
            "version before the migrations were reset (commit 1e77bd5) on it once, then this one."
        )
    return True
