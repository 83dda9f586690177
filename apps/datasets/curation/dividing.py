"""Divide the rows of a dataset into splits: try it, do it, take it back. ``curation_jobs`` runs it.

Before a row moves, a file beside the check says which rows move from where to where. So a division that is run again after a
crash knows how things stood, and what it has moved can be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from apps.datasets.checks.looking import BATCH, LISTED, WorkContext, records_read
from apps.datasets.checks.splits import SplitItem, divide, document_key, gathered, leaks, split_item
from apps.datasets.models import DatasetCheck, DatasetRow
from apps.datasets.records.columns import record_columns, record_of
from apps.datasets.records.parts import Split
from apps.datasets.rows import files
from apps.datasets.rows.selectors import RowFilter, row_list
from blobs import services as blobs
from tenancy.actors import system_actor

LEAKS_LISTED = 20


@dataclass(slots=True)
class _Rows:
    """The rows as they are.

    Attributes:
        splits: row to split. names: of the documents, by their keys.
    """

    items: list[SplitItem] = field(default_factory=list)
    splits: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """A row that goes from one split into another."""

    row: str
    before: str
    after: str


def splits_run(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    """Divide all rows anew, put chosen ones into a split with those that share a document with them, or take that back.

    A trial says what would come of it, and moves nothing.
    """
    rows = _Rows()
    for record in records_read(ctx, check):
        rows.items.append(split_item(record))
        rows.splits[record.id] = str(record.split)
        rows.names.update((document_key(source), source.document) for source in record.sources)
    is_trial = bool(check.options.get("is_trial"))
    begun = {} if is_trial else {move.row: move.before for move in moves_kept(check)}
    before = rows.splits | {pk: split for pk, split in begun.items() if pk in rows.splits}
    wanted, more = _wanted(check, rows, before)
    moves = [Move(pk, before[pk], split) for pk, split in wanted.items() if before[pk] != split]
    if moves and not begun and not is_trial:
        moves_keep(check, moves, hold=ctx.hold)
    left = _move(ctx, check, wanted, is_trial=is_trial)
    after = before | {name: split for name, split in wanted.items() if name not in left}
    found = leaks((after[item.id], item.documents) for item in rows.items)
    return {
        "rows": len(rows.items),
        "counts": dict(Counter(after.values())),
        "splits": _sizes(rows.items, before, after),
        "moved": sum(before[pk] != after[pk] for pk in before),
        "left": len(left),
        "documents": len(rows.names),
        "leaks": len(found),
        "leaking": [
            {"document": rows.names[key], "splits": sorted(splits)}
            for key, splits in sorted(found.items())[:LEAKS_LISTED]
        ],
        "empty": [
            name
            for name, share in check.options.get("shares", {}).items()
            if share and name not in after.values()
        ],
        "is_trial": is_trial,
        **more,
    }


def moves_keep(check: DatasetCheck, moves: Sequence[Move], *, hold: Callable[[], None]) -> None:
    """Keep what a division is about to move.

    Args:
        hold: makes sure, in a transaction, that this worker still has the job.
    """
    key = files.written_key(check, "splits")
    written = files.dataset_file_write(check.tenant_id, key, _lines(moves))
    try:
        with transaction.atomic():
            hold()
            check.options = check.options | {"moves": key}
            check.save(update_fields=["options"])
            blobs.name(written, key)
    finally:
        written.discard()


def moves_kept(check: DatasetCheck) -> Iterator[Move]:
    """Yield what a division has moved or was about to, none when it has kept nothing."""
    if not is_kept(check):
        return
    with files.dataset_file(check.options["moves"]) as path, path.open(encoding="utf-8") as file:
        for line in file:
            yield Move(*line.rstrip("\n").split("\t"))


def is_kept(check: DatasetCheck) -> bool:
    """Tell whether it is known what a division has moved, so that it can be taken back."""
    return bool(check.options.get("moves"))


def _lines(moves: Sequence[Move]) -> Iterator[bytes]:
    for move in moves:
        yield f"{move.row}\t{move.before}\t{move.after}\n".encode()


def _wanted(
    check: DatasetCheck, rows: _Rows, before: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the split of each row that may move, and what else is to be told."""
    options = check.options
    if "undo" in options:
        return _undone(check, before)
    if "into" not in options:
        return divide(rows.items, options["shares"], int(options["seed"])), {}
    chosen = _chosen(check) & set(before)
    together = gathered(rows.items, chosen)
    along = [i for i in together if i.id not in chosen and before[i.id] != options["into"]]
    return {item.id: str(options["into"]) for item in together}, {
        "chosen": len(chosen),
        "along": len(along),
        "rows_along": _along(along[:LISTED], together, chosen, before, rows.names),
    }


def _undone(check: DatasetCheck, before: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Send rows back to where a division has taken them from; who was moved since stays."""
    earlier = DatasetCheck.objects.get(dataset_id=check.dataset_id, pk=check.options["undo"])
    wanted: dict[str, str] = {}
    stayed = 0
    for move in moves_kept(earlier):
        if before.get(move.row) == move.after:
            wanted[move.row] = move.before
        else:
            stayed += 1
    return wanted, {"stayed": stayed}


def _chosen(check: DatasetCheck) -> set[str]:
    if "rows" in check.options:
        return {str(pk) for pk in check.options["rows"]}
    actor = system_actor(check.tenant_id, check.created_by_id)
    rows = row_list(actor=actor, dataset=check.dataset, only=RowFilter(**check.options["only"]))
    return {str(pk) for pk in rows.values_list("pk", flat=True).iterator()}


def _along(
    along: Sequence[SplitItem],
    together: Sequence[SplitItem],
    chosen: Set[str],
    before: Mapping[str, str],
    names: Mapping[str, str],
) -> list[dict[str, str]]:
    """Return the rows that came along, where they were, and a document that they share; first with a chosen row."""
    direct = {name for item in together if item.id in chosen for name in item.documents}
    return [
        {
            "row": item.id,
            "before": before[item.id],
            "document": names[min(item.documents, key=lambda name: (name not in direct, name))],
        }
        for item in along
    ]


def _sizes(
    items: Iterable[SplitItem], before: Mapping[str, str], after: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return for each split how many rows it had and has, and on how many documents these rest."""
    documents: dict[str, set[str]] = {}
    for item in items:
        documents.setdefault(after[item.id], set()).update(item.documents)
    was, now = Counter(before.values()), Counter(after.values())
    names = [*Split, *(("",) if was[""] or now[""] else ())]
    return [
        {"split": str(n), "before": was[n], "rows": now[n], "documents": len(documents.get(n, ()))}
        for n in names
    ]


def _move(ctx: WorkContext, check: DatasetCheck, wanted: Mapping[str, str], *, is_trial: bool) -> set[str]:
    """Write the splits; returns the rows that stay, because that split already has the same content."""
    left: set[str] = set()
    ids = [int(name) for name in wanted]
    for start in range(0, len(ids), BATCH):
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            batch = DatasetRow.objects.select_for_update().filter(
                dataset=check.dataset, pk__in=ids[start : start + BATCH]
            )
            changed = [row for row in batch if row.split != wanted[str(row.pk)]]
            new = {row.pk: replace(record_of(row), split=_split(wanted[str(row.pk)])) for row in changed}
            taken = set(
                DatasetRow.objects.filter(
                    dataset=check.dataset, content_hash__in=[r.content_hash for r in new.values()]
                ).values_list("content_hash", flat=True)
            )
            ready = []
            for row in changed:
                columns = record_columns(new[row.pk])
                if columns["content_hash"] in taken:
                    left.add(str(row.pk))
                    continue
                taken.add(columns["content_hash"])
                row.split, row.content_hash = columns["split"], columns["content_hash"]
                row.updated_at = timezone.now()
                ready.append(row)
            if not is_trial:
                DatasetRow.objects.bulk_update(ready, ["split", "content_hash", "updated_at"])
    return left


def _split(name: str) -> Split | Literal[""]:
    return Split(name) if name else ""
