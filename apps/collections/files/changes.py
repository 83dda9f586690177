"""Writes of files in a collection: every change is a batch of revisions, made, undone and redone as a whole.

One transaction holds the preconditions, the revisions with the bytes before and after, the documents that change with
them and the audit row. The folder on disk follows after the commit (see ``file_store`` for what a crash between costs).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from apps.collections.documents.services import document_delete, document_put
from apps.collections.documents.versions import document_move
from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.types import ReadFailure
from apps.collections.models import (
    Collection,
    Document,
    DocumentSource,
    FileBatch,
    FileBlob,
    FileRevision,
    Import,
)
from apps.collections.storage import originals as files
from apps.collections.storage.job_locks import active_jobs, cancel_quietly
from apps.collections.tree.paths import path_parts
from apps.collections.tree.repository_facts import repository_bytes
from apps.collections.tree.rules import FileRules, is_hidden
from apps.collections.tree.store import StoredFile, collection_tree, files_stored
from apps.collections.tree.tree import TreeRefused
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from blobs import services as blobs
from blobs.leases import warm
from blobs.stores import store
from jobs.notify import notify
from runs.models import Run
from tenancy.actors import Actor, system_actor
from tenancy.database.waiting import in_transaction
from tenancy.models import Tenant
from tenancy.services import audit_record

logger = logging.getLogger(__name__)
MAX_CHANGES = 200
_NAMED = 20
# What was there before may come back, and uploads have a limit of their own.
_SIZED = (FileBatch.Action.WRITE, FileBatch.Action.EDIT)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file's part in a batch.

    Attributes:
        path: of the file.
        content: its new bytes; None deletes it.
        expected: SHA-256 of what must be there now, "" for nothing, None for whatever is there.
        moved_from: the path it comes from with its history; ``content`` then does not count.
    """

    path: str
    content: bytes | None = None
    expected: str | None = None
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    path: str
    before: StoredFile | None
    content: bytes | None
    moved_to: str = ""
    is_arrival: bool = False


def files_change(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    changes: Sequence[FileChange],
    action: FileBatch.Action,
    note: str = "",
    run: Run | None = None,
    undoes: FileBatch | None = None,
    source: DocumentSource = DocumentSource.TOOL,
    of_import: Import | None = None,
) -> FileBatch | None:
    """Change files together or not at all, and let search follow.

    Args:
        note: why, for the history.
        run: whose tool call it is.
        undoes: the batch that this one takes back.
        source, of_import: how the documents came, where it is no file tool.

    Returns:
        The batch, None when every file was so already.

    Raises:
        Invalid: a path, size, number or quota is wrong.
        Denied: the rules of the collection forbid it.
        Conflict: ``file_stale`` when a file is not what was expected, ``path_taken``.
        Missing: a file to delete or move, or the collection, does not exist for the actor.
    """
    actor.require("document.write")
    if not 1 <= len(changes) <= MAX_CHANGES:
        raise Invalid("changes_invalid", f"Change 1 to {MAX_CHANGES} files at a time.")
    _originals_near(collection, [path for change in changes for path in (change.path, change.moved_from)])
    with transaction.atomic():
        blobs.key_lock(f"tree:{collection.pk}")  # before the locks of paths and documents
        row = Collection.objects.filter(tenant=tenant, pk=collection.pk).first()
        if row is None:
            raise Missing("collection")
        is_sized = source == DocumentSource.TOOL and action in _SIZED
        steps = _steps(actor, row, changes, is_sized=is_sized)
        if not steps:
            return None
        _quota(tenant, row, steps)
        batch: FileBatch = FileBatch.objects.create(
            tenant=tenant,
            collection=row,
            action=action,
            note=note.replace("\0", "").encode("utf-8", "replace").decode()[:255],
            user_id=actor.user_id,
            run=run,
            undoes=undoes,
        )
        _documents_free(tenant, actor, row, steps)
        for step in steps:
            _carry_out(tenant, actor, row, batch, step, source, of_import)
        audit_record(
            tenant=tenant,
            actor=actor,
            action=f"file.{action.value}",
            object=row,
            data={"batch": batch.pk, "paths": [step.path for step in steps][:_NAMED], "count": len(steps)},
        )
        notify(tenant.pk, f"collection:{row.pk}")
        transaction.on_commit(lambda: _tree_follow(tenant.pk, row.pk, steps))
    return batch


def _originals_near(collection: Collection, paths: Sequence[str]) -> None:
    """Bring the originals at these paths to this machine, before a transaction that keeps what they were."""
    if not store().is_local and not in_transaction():
        everyone = system_actor(collection.tenant_id)
        for path in filter(None, paths):
            for stored in files_stored(everyone, collection.pk, path=path).values():
                if stored.key:
                    warm(stored.key)


def _steps(
    actor: Actor, collection: Collection, changes: Sequence[FileChange], *, is_sized: bool
) -> list[_Step]:
    """Check every change against what is there, and say what is to be done."""
    rules = FileRules.of(collection.file_rules)
    steps: list[_Step] = []
    touched: set[str] = set()
    for change in changes:
        path = change.path if change.content is None and not change.moved_from else ""
        path = path or "/".join(path_parts(change.path))
        for name in {path, change.moved_from} - {""}:
            if name in touched:
                raise Invalid("changes_invalid", f"“{name}” is changed twice; put both into one edit.")
            touched.add(name)
        if change.moved_from:
            steps += _move(actor, collection, rules, change, path)
            continue
        before = _before(actor, collection, path, change.expected, is_there=change.content is None)
        if change.content is None:
            if before is None:
                if change.expected != "":
                    raise Missing("file")
                continue
            rules.check_write(path, 0)
            steps.append(_Step(path, before, None))
            continue
        rules.check_write(path, len(change.content) if is_sized else 0)
        if before is None:
            _free(collection, path)
        elif before.sha256 == hashlib.sha256(change.content).hexdigest():
            continue
        steps.append(_Step(path, before, change.content))
    arriving = {step.path for step in steps if step.before is None}
    for path in arriving:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if "/".join(parts[:depth]) in arriving:
                message = _("“%(path)s” is a file, not a folder. Choose another path.")
                raise Conflict("path_taken", message % {"path": "/".join(parts[:depth])})
    # What goes, goes last: it locks the collection, after the jobs that the others may have to end.
    return sorted(steps, key=lambda step: step.content is None and not step.moved_to)


def _move(
    actor: Actor, collection: Collection, rules: FileRules, change: FileChange, path: str
) -> list[_Step]:
    before = _before(actor, collection, change.moved_from, change.expected, is_there=True)
    if before is None:
        raise Missing("file")
    rules.check_write(before.path, 0)
    rules.check_write(path, 0)
    if _before(actor, collection, path, None) is not None:
        message = _("A file already exists at “%(path)s”. Choose another path.")
        raise Conflict("path_taken", message % {"path": path})
    _free(collection, path, but=before.path)
    content = before.content()
    return [_Step(before.path, before, None, moved_to=path), _Step(path, None, content, is_arrival=True)]


def _before(
    actor: Actor, collection: Collection, path: str, expected: str | None, *, is_there: bool = False
) -> StoredFile | None:
    """Return what is at a path now, if it is what is expected there; ``is_there``: the actor says that there is one."""
    everyone = system_actor(actor.tenant_id)
    found = files_stored(everyone, collection.pk, path=path).get(path)
    is_hidden_from_actor = (
        found is not None
        and found.is_restricted
        and path not in files_stored(actor, collection.pk, path=path)
    )
    if is_hidden_from_actor:
        if is_there:
            raise Missing("file")
        raise Conflict("path_taken", _("“%(path)s” cannot be used. Choose another path.") % {"path": path})
    now = found.sha256 if found else ""
    if expected is not None and expected != now:
        message = _(
            "“%(path)s” has changed since you read it. Read it again and repeat the change on its current content."
        )
        if not found:
            message = _("“%(path)s” was deleted after you read it. Create it again, or choose another file.")
        raise Conflict("file_stale", message % {"path": path}, data={"path": path, "sha256": now})
    return found


def _free(collection: Collection, path: str, but: str = "") -> None:
    """Refuse a new file where a folder is, or below a file."""
    everyone = system_actor(collection.tenant_id)
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    taken = [one for one in above if one != but and files_stored(everyone, collection.pk, path=one)]
    below = set(files_stored(everyone, collection.pk, folder=path)) - {but}
    if taken or below:
        name = taken[0] if taken else path
        message = _("“%(path)s” is a file. Choose another path.")
        if not taken:
            message = _("“%(path)s” is a folder. Choose another path.")
        raise Conflict("path_taken", message % {"path": name})


def _quota(tenant: Tenant, collection: Collection, steps: Sequence[_Step]) -> None:
    growth = sum(len(s.content or b"") - (s.before.size if s.before else 0) for s in steps)
    count = sum((s.content is not None) - (s.before is not None) for s in steps)
    if growth <= 0 and count <= 0:
        return
    stored = files_stored(system_actor(tenant.pk), collection.pk).values()
    FileRules.of(collection.file_rules).check_quota(
        files=len(stored) + count,
        total_bytes=sum(file.size for file in stored) + repository_bytes(collection) + growth,
    )


def _documents_free(tenant: Tenant, actor: Actor, collection: Collection, steps: Sequence[_Step]) -> None:
    """End the jobs of all documents that go, before any of them locks the collection: jobs come first in that order."""
    paths = [step.path for step in steps if step.content is None and not step.moved_to]
    documents = Document.objects.filter(tenant=tenant, collection_id=collection.pk, path__in=paths)
    for job in active_jobs(tenant, documents) if paths else ():
        cancel_quietly(tenant, actor, job)


def _carry_out(
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    batch: FileBatch,
    step: _Step,
    source: DocumentSource,
    of_import: Import | None,
) -> None:
    before = step.before
    before_blob = None if before is None else _blob_of(tenant, before)
    after_blob = None if step.content is None else _blob(tenant, step.content)
    is_restricted = before is not None and before.is_restricted
    document = None
    if before is not None and before.document_id is not None:
        document = Document.objects.get(tenant=tenant, pk=before.document_id)
    is_indexed = document is not None
    if step.moved_to:
        if document is not None:
            document_move(tenant=tenant, actor=actor, document=document, path=step.moved_to)
    elif step.is_arrival:
        arrived = Document.objects.filter(tenant=tenant, collection_id=collection.pk, path=step.path).first()
        is_indexed = arrived is not None
        is_restricted = arrived is not None and arrived.is_restricted
    elif step.content is None:
        if document is not None:
            document_delete(tenant=tenant, actor=actor, document=document, with_history=False)
    else:
        is_indexed = _put(tenant, actor, collection, step, source, of_import, must=document is not None)
    FileRevision.objects.create(
        tenant=tenant,
        batch=batch,
        collection=collection,
        path=step.path,
        before=before_blob,
        after=after_blob,
        is_indexed=is_indexed,
        is_restricted=is_restricted,
    )


def _put(
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    step: _Step,
    source: DocumentSource,
    of_import: Import | None,
    *,
    must: bool,
) -> bool:
    """Make a file the newest version of its document; return whether it is one.

    What search could not read anyway (hidden, empty, a picture) becomes no document, unless it is one already.
    """
    if not must and (not step.content or is_hidden(step.path)):
        return False
    received = blobs.receive([step.content or b""], max_bytes=settings.MAX_UPLOAD_BYTES)
    try:
        if not must:
            try:
                detect(received.path, step.path, max_bytes=settings.MAX_UPLOAD_BYTES)
            except ReadFailure:
                return False
        # The revision holds the bytes: no need to wait for the store while the collection is locked.
        blobs.place_later(tenant.pk, files.file_key(tenant.pk, collection.pk, received.sha256))
        document_put(
            tenant=tenant,
            actor=actor,
            collection=collection,
            path=step.path,
            received=received,
            source=source,
            batch=of_import,
        )
    finally:
        received.discard()
    return True


def _blob_of(tenant: Tenant, file: StoredFile) -> FileBlob:
    """Return the row with a file's bytes; most are there already, and nothing is read."""
    known: FileBlob | None = FileBlob.objects.filter(tenant=tenant, sha256=file.sha256).only("pk").first()
    return known or _blob(tenant, file.content())


def _blob(tenant: Tenant, content: bytes) -> FileBlob:
    sha256 = hashlib.sha256(content).hexdigest()
    known: FileBlob | None = FileBlob.objects.filter(tenant=tenant, sha256=sha256).only("pk").first()
    if known is not None:
        return known
    blob: FileBlob = FileBlob.objects.get_or_create(
        tenant=tenant, sha256=sha256, defaults={"size": len(content), "content": content}
    )[0]
    return blob


def _tree_follow(tenant_id: int, collection_id: int, steps: Sequence[_Step]) -> None:
    """Bring the folder on disk to what was committed; what fails here is made good at the next access."""
    try:
        with collection_tree(tenant_id, collection_id) as tree:
            gone_first = sorted(steps, key=lambda step: step.content is not None)
            for step in gone_first:
                parts = step.path.split("/")
                if step.content is None:
                    tree.remove(parts)
                else:
                    tree.write(parts, step.content)
    except (OSError, TreeRefused) as error:
        logger.warning("tree of collection %s lags behind its rows: %s", collection_id, error)
