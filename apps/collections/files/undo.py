"""Undo, redo and restore: a batch of files taken back is a batch too, and nothing is taken back over later changes."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from apps.collections.files.changes import FileChange, files_change
from apps.collections.models import Collection, FileBatch, FileRevision
from apps.collections.tree.store import files_stored
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from blobs import services as blobs
from runs.models import Run
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant

_TURNS = (FileBatch.Action.UNDO, FileBatch.Action.REDO)


def batch_undo(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    batch: FileBatch | None = None,
    run: Run | None = None,
) -> FileBatch:
    """Take a batch back, as a whole.

    Args:
        batch: None takes the newest that stands.

    Raises:
        Conflict: ``nothing_to_undo``, ``batch_undone``, ``file_stale`` when a file was changed since, or
            ``file_was_restricted``.
        Missing: one of its files is not for the actor.
    """
    actor.require("document.write")
    with transaction.atomic():
        blobs.key_lock(f"tree:{collection.pk}")
        rows = FileBatch.objects.filter(tenant=tenant, collection=collection)
        standing = rows.filter(is_undone=False).exclude(action__in=_TURNS)
        chosen = standing.order_by("-pk").first() if batch is None else rows.filter(pk=batch.pk).first()
        if chosen is None:
            raise Conflict("nothing_to_undo", _("There is no change to undo."))
        if chosen.is_undone or chosen.action in _TURNS:
            raise Conflict("batch_undone", _("This change was already undone, or is itself an undo or redo."))
        made = _turn(tenant, actor, collection, chosen, FileBatch.Action.UNDO, run)
        chosen.is_undone = True
        chosen.save(update_fields=["is_undone"])
    return made


def batch_redo(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    batch: FileBatch | None = None,
    run: Run | None = None,
) -> FileBatch:
    """Make a batch again that was taken back.

    Args:
        batch: None takes the one that was taken back last.

    Raises:
        Conflict: ``nothing_to_redo``, ``file_stale`` or ``file_was_restricted``.
        Missing: one of its files is not for the actor.
    """
    actor.require("document.write")
    with transaction.atomic():
        blobs.key_lock(f"tree:{collection.pk}")
        undone = FileBatch.objects.filter(tenant=tenant, collection=collection, is_undone=True)
        if batch is not None:
            undone = undone.filter(pk=batch.pk)
        last = (
            FileBatch.objects.filter(tenant=tenant, action=FileBatch.Action.UNDO, undoes__in=undone)
            .order_by("-pk")
            .first()
        )
        chosen = last.undoes if last is not None else None
        if chosen is None:
            raise Conflict("nothing_to_redo", _("There is no undone change to redo."))
        made = _turn(tenant, actor, collection, chosen, FileBatch.Action.REDO, run)
        chosen.is_undone = False
        chosen.save(update_fields=["is_undone"])
    return made


def revision_restore(
    *, tenant: Tenant, actor: Actor, collection: Collection, revision: FileRevision, run: Run | None = None
) -> FileBatch | None:
    """Give a file the content it had after a revision, or none if it had none.

    Returns:
        The batch, None when the file is so already.

    Raises:
        Conflict: ``file_was_restricted``.
        Missing: the revision is not for the actor.
    """
    actor.require("document.write")
    with transaction.atomic():
        blobs.key_lock(f"tree:{collection.pk}")
        row = (
            FileRevision.objects.filter(tenant=tenant, collection=collection, pk=revision.pk)
            .select_related("after")
            .first()
        )
        if row is None:
            raise Missing("revision")
        now = _now(tenant, actor, collection, row)
        content = bytes(row.after.content) if row.after else None
        return files_change(
            tenant=tenant,
            actor=actor,
            collection=collection,
            action=FileBatch.Action.RESTORE,
            run=run,
            note=f"As of change {row.batch_id}",
            changes=[FileChange(row.path, content, expected=now)],
        )


def _turn(
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    batch: FileBatch,
    action: FileBatch.Action,
    run: Run | None,
) -> FileBatch:
    is_undo = action == FileBatch.Action.UNDO
    rows = list(batch.revisions.select_related("before", "after").order_by("pk"))
    for row in rows:
        _now(tenant, actor, collection, row)
    if batch.action == FileBatch.Action.MOVE:
        changes = _moves(rows, is_undo=is_undo)
    else:
        changes = [
            FileChange(
                row.path, bytes(wanted.content) if wanted else None, expected=there.sha256 if there else ""
            )
            for row in rows
            for there, wanted in [(row.after, row.before) if is_undo else (row.before, row.after)]
        ]
    made = files_change(
        tenant=tenant,
        actor=actor,
        collection=collection,
        changes=changes,
        action=action,
        note=f"{action.value.capitalize()} of change {batch.pk}",  # stored, so in English
        run=run,
        undoes=batch,
    )
    if made is None:
        raise Conflict("nothing_to_undo", _("Already up to date."))
    return made


def _moves(rows: Sequence[FileRevision], *, is_undo: bool) -> list[FileChange]:
    """Pair where a file left and where it arrived; they were written one after the other."""
    changes = []
    for left, arrived in zip(rows[::2], rows[1::2], strict=True):
        source, target = (arrived, left) if is_undo else (left, arrived)
        there = left.before.sha256 if left.before else ""
        changes.append(FileChange(target.path, expected=there, moved_from=source.path))
    return changes


def _now(tenant: Tenant, actor: Actor, collection: Collection, row: FileRevision) -> str:
    """Return the checksum of what is at a revision's path.

    Raises:
        Missing: the actor may not see what is or was there.
        Conflict: ``file_was_restricted`` when its content would come back without its limits.
    """
    everyone = files_stored(system_actor(tenant.pk), collection.pk, path=row.path).get(row.path)
    mine = files_stored(actor, collection.pk, path=row.path).get(row.path)
    if everyone is not None and mine is None:
        raise Missing("file")
    if row.is_restricted and (mine is None or not mine.is_restricted):
        is_moved = row.batch.action == FileBatch.Action.MOVE and mine is None
        if not is_moved:
            raise Conflict(
                "file_was_restricted",
                _(
                    "“%(path)s” was limited to some members, and that limit no longer exists. Restoring it would open it to everyone, so it can't be restored this way."
                )
                % {"path": row.path},
            )
    return mine.sha256 if mine else ""
