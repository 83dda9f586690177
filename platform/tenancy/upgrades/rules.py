"""What ``make check`` asks of every migration: the code of the version before works on, and nobody waits for long.

An upgrade first migrates, then replaces servers one by one, so that for a while old code works on the new schema. A
migration therefore only adds (expand); what is removed goes one release after the last code that used it (contract), in
a migration that says so::

    class Migration(migrations.Migration):
        contract = "Nothing has read webhook.note since release 1.4."

A step that breaks a rule for a good reason has that reason in the migration, by the name that the check gives it::

        explained = {"RunSQL UPDATE jobs_job": "At most a few hundred rows are ever open."}

The first migration of each app makes new tables and isn't asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tenancy.upgrades.effects import Effect, Mark
from tenancy.upgrades.reading import Reader

_ROOT = Path(__file__).resolve().parents[3]
_INITIAL = "0001_initial"


@dataclass(frozen=True, slots=True)
class Breach:
    """A step that breaks a rule, or a mark that lets nothing through.

    Args:
        migration: ``webhooks.0003_note``.
        step: as ``explained`` would name it.
        problem: who suffers, and why.
        instead: what to do.
    """

    migration: str
    step: str
    problem: str
    instead: str

    def __str__(self) -> str:
        return f"{self.migration}, {self.step}: {self.problem}. {self.instead}"


def own_labels() -> set[str]:
    """Return the labels of the apps that are ours: their migrations are written and checked here."""
    rooms = (_ROOT / "platform", _ROOT / "apps")
    return {a.label for a in apps.get_app_configs() if any(Path(a.path).is_relative_to(r) for r in rooms)}


def effects_of(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[Effect]]:
    """Return what migrations of this code do, in the order in which they run.

    Args:
        wanted: app and name of each.
    """
    loader = MigrationLoader(None)
    kept, found, state = set(wanted), {}, ProjectState()
    for key in loader.graph._generate_plan(loader.graph.leaf_nodes(), at_end=True):
        migration = loader.graph.nodes[key]
        if key in kept:
            found[key] = Reader(migration, state).read()
        else:
            for operation in migration.operations:
                operation.state_forwards(migration.app_label, state)
    return found


def breaches() -> list[Breach]:
    """Return what is wrong with the migrations of our apps after the first of each."""
    loader = MigrationLoader(None)
    ours = own_labels()
    keys = [key for key in loader.disk_migrations if key[0] in ours and key[1] != _INITIAL]
    return [
        breach
        for key, effects in effects_of(keys).items()
        for breach in judged(loader.disk_migrations[key], effects)
    ]


def judged(migration: Migration, effects: list[Effect]) -> list[Breach]:
    """Return the breaches of one migration: what no mark lets through, and marks that let nothing through.

    Args:
        migration: its ``contract`` and ``explained`` are read.
        effects: what it does.
    """
    name = f"{migration.app_label}.{migration.name}"
    contract = str(getattr(migration, "contract", ""))
    explained: dict[str, str] = getattr(migration, "explained", {})
    found = []
    for effect in effects:
        is_marked = effect.mark is Mark.CONTRACT and contract
        if effect.problem and not is_marked and effect.step not in explained:
            found.append(Breach(name, effect.step, effect.problem, effect.instead))
    wrong = {e.step for e in effects if e.problem}
    for step, reason in explained.items():
        if step not in wrong:
            found.append(
                Breach(name, step, "`explained` names it, but nothing is wrong with it", "Remove it.")
            )
        elif len(reason.split()) < 4:
            found.append(Breach(name, step, "`explained` gives no reason", "Say why no one is hurt."))
    if contract and not any(e.mark is Mark.CONTRACT and e.problem for e in effects):
        found.append(Breach(name, "contract", "the migration removes nothing", "Remove the mark."))
    elif contract and len(contract.split()) < 4:
        found.append(
            Breach(name, "contract", "it doesn't say since when no code uses this", "Name the release.")
        )
    return found
