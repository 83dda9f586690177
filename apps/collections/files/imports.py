"""Many files at once into a collection's tree: folders, archives, repositories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from apps.collections.files.changes import FileChange, files_change
from apps.collections.models import Collection, DocumentSource, FileBatch, Import
from apps.collections.tree.paths import path_parts
from apps.collections.tree.rules import FileRules
from basics.errors import DomainError, TryAgain
from tenancy.actors import Actor
from tenancy.models import Tenant

BATCH_FILES = 100
BATCH_BYTES = 32_000_000


@dataclass
class FilesImported:
    """What came of an import.

    Attributes:
        batches: the batches written, oldest first.
        seen: entries looked at.
        skipped: path and reason of each entry that was left out.
    """

    batches: list[FileBatch] = field(default_factory=list)
    seen: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


def files_import(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    entries: Iterable[tuple[str, bytes]],
    note: str = "",
    source: DocumentSource = DocumentSource.ARCHIVE,
    batch: Import | None = None,
) -> FilesImported:
    """Write many files: each becomes a document where search can read it, and is a file of the tree in any case.

    What is there with the same bytes stays. A hundred files are one batch, so an import that is killed leaves whole
    batches, and running it again goes on. A ``.git`` is left out: a repository's history comes by an import job
    (``import_history``), which verifies it.

    Args:
        entries: path and bytes, read one after the other; at most one batch of them is in memory.
        note: for the history.

    Returns:
        What was written and what was left out; one bad entry does not end the others.

    Raises:
        Denied: the actor may not write documents.
    """
    actor.require("document.write")
    result = FilesImported()
    rules = FileRules.of(collection.file_rules)
    for changes in _batched(tenant, collection, rules, entries, result):
        try:
            _write(tenant, actor, collection, changes, note, source, batch, result)
        except TryAgain:
            raise
        except DomainError:
            for change in changes:  # one of them is the reason: find it, keep the others
                try:
                    _write(tenant, actor, collection, [change], note, source, batch, result)
                except TryAgain:
                    raise
                except DomainError as error:
                    result.skipped.append((change.path, error.message))
    return result


def _write(
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    changes: list[FileChange],
    note: str,
    source: DocumentSource,
    batch: Import | None,
    result: FilesImported,
) -> None:
    written = files_change(
        tenant=tenant,
        actor=actor,
        collection=collection,
        changes=changes,
        action=FileBatch.Action.WRITE,
        note=note,
        source=source,
        of_import=batch,
    )
    if written is not None:
        result.batches.append(written)


def _batched(
    tenant: Tenant,
    collection: Collection,
    rules: FileRules,
    entries: Iterable[tuple[str, bytes]],
    result: FilesImported,
) -> Iterator[list[FileChange]]:
    waiting: dict[str, FileChange] = {}
    size = 0
    for path, content in entries:
        result.seen += 1
        try:
            clean = "/".join(path_parts(path))
            rules.check_write(clean, 0)
        except (DomainError, OSError) as error:
            result.skipped.append((path, str(error)))
            continue
        waiting[clean] = FileChange(clean, content)
        size += len(content)
        if len(waiting) >= BATCH_FILES or size >= BATCH_BYTES:
            yield list(waiting.values())
            waiting, size = {}, 0
    if waiting:
        yield list(waiting.values())
