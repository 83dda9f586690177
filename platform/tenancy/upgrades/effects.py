"""What one step of a migration does to a table that is in use: its lock, its work, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Lock(StrEnum):
    """Locks of PostgreSQL on a table (its manual, "Explicit Locking"), as ALTER TABLE and CREATE INDEX take them."""

    NONE = ""
    SHARE_UPDATE_EXCLUSIVE = "SHARE UPDATE EXCLUSIVE"
    SHARE = "SHARE"
    SHARE_ROW_EXCLUSIVE = "SHARE ROW EXCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    ACCESS_EXCLUSIVE = "ACCESS EXCLUSIVE"
    ROWS = "ROW EXCLUSIVE"


STOPS = {
    Lock.NONE: "stops nothing",
    Lock.SHARE_UPDATE_EXCLUSIVE: "reads and writes continue",
    Lock.SHARE: "writes wait",
    Lock.SHARE_ROW_EXCLUSIVE: "writes wait",
    Lock.EXCLUSIVE: "writes wait",
    Lock.ACCESS_EXCLUSIVE: "reads and writes wait",
    Lock.ROWS: "writes of the same rows wait",
}
"""What the lock means for those who work meanwhile."""


class Work(StrEnum):
    """How much of a table a step touches."""

    CATALOG = "catalog"
    """Its description only: done at once, whatever the size."""
    READ = "read"
    """Every row is read once."""
    INDEX = "index"
    """Every row is read, and an index is written."""
    REWRITE = "rewrite"
    """Every row and every index is written again; the old and the new table need disk at the same time."""
    DATA = "data"
    """Rows are changed by a statement or by Python: how many, only the migration knows."""


class Mark(StrEnum):
    """What lets a step through that would be refused."""

    CONTRACT = "contract"
    """The migration says, in ``contract``, since when no code uses what it removes."""
    EXPLAINED = "explained"
    """The migration gives a reason in ``explained``, by the step's name."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One step and what it does.

    Args:
        step: its name, as ``explained`` of the migration names it: ``AddField webhook.note``.
        table: the table it locks; "" for none.
        lock: the strongest lock it takes there.
        work: what it does under that lock.
        is_new: the table was made by the same migration, so that no one uses it.
        problem: why a server of the version before, or its users, would suffer; "" for a step that is fine.
        instead: what to write in place of it.
        mark: what lets it through all the same.
    """

    step: str
    table: str = ""
    lock: Lock = Lock.NONE
    work: Work = Work.CATALOG
    is_new: bool = False
    problem: str = ""
    instead: str = ""
    mark: Mark = Mark.EXPLAINED
