"""What people, programs and models do with files: write, edit, delete, move, and the rules for it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.collections.files.changes import FileChange, files_change
from apps.collections.files.edits import TextEdit, text_edit
from apps.collections.models import Collection, FileBatch
from apps.collections.storage.job_locks import collection_lock
from apps.collections.tree.paths import path_parts
from apps.collections.tree.rules import FileRules
from apps.collections.tree.store import file_bytes, files_stored
from apps.collections.tree.text import FileText, encoding_named, file_text
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


@dataclass(frozen=True, slots=True)
class FileEdit:
    """Edits of one file.

    Attributes:
        path: of the file.
        edits: see ``TextEdit``.
        expected: SHA-256 of the file as it was read; None edits whatever is there.
    """

    path: str
    edits: Sequence[TextEdit]
    expected: str | None = None


def file_write(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    path: str,
    content: bytes | str,
    expected: str | None = None,
    note: str = "",
    run: Run | None = None,
    encoding: str = "",
    may_overwrite: bool = True,
    may_make_folders: bool = True,
) -> FileBatch | None:
    """Write a whole file, new or in place of the one that is there.

    Args:
        content: text keeps the encoding and the line ends of the file that was there; a new file is UTF-8.
        expected: SHA-256 of what must be there now, "" for nothing.
        encoding: what a text is written in, whatever the file had.
        may_overwrite: without it, and without ``expected``, there must be no such file yet.
        may_make_folders: without it there must be a file in its folder already.

    Returns:
        The batch, None when the file held exactly this.

    Raises:
        Conflict: ``file_exists``, ``folder_missing``.
        DomainError: as ``files_change``; Invalid: as ``encoding_named``.
    """
    actor.require("document.write")
    if isinstance(content, str):
        content = _encoded(actor, collection, path, content, encoding)
    folder = "/".join(path_parts(path)[:-1])
    if not may_make_folders and folder and not files_stored(actor, collection.pk, folder=folder):
        raise Conflict(
            "folder_missing",
            _("There is no folder “%(folder)s” yet. Set create_directories, or choose another folder.")
            % {"folder": folder},
        )
    is_careful = expected is None and not may_overwrite
    try:
        return files_change(
            tenant=tenant,
            actor=actor,
            collection=collection,
            action=FileBatch.Action.WRITE,
            note=note,
            run=run,
            changes=[FileChange(path, content, expected="" if is_careful else expected)],
        )
    except Conflict as error:
        if not is_careful or error.code != "file_stale":
            raise
        raise Conflict(
            "file_exists",
            _(
                "“%(path)s” exists already, and nothing was written. Read it and send its sha256 as expected, set overwrite, or choose another name."
            )
            % {"path": path},
            data=error.data,
        ) from error


def files_edit(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    edits: Sequence[FileEdit],
    note: str = "",
    run: Run | None = None,
) -> FileBatch | None:
    """Edit several files, all or none. What was read and edited is what is replaced, or it is refused as stale.

    Returns:
        The batch, None when nothing became different.

    Raises:
        Invalid: an edit does not fit, or a file is no text.
        DomainError: as ``files_change``.
    """
    actor.require("document.write")
    changes = []
    for edit in edits:
        path = unicodedata.normalize("NFC", edit.path)
        stored = files_stored(actor, collection.pk, path=path).get(path)
        if stored is None or not FileRules.of(collection.file_rules).shows(path):
            raise Missing("file")
        if edit.expected is not None and edit.expected != stored.sha256:
            raise Conflict(
                "file_stale",
                _(
                    "“%(path)s” has changed since you read it. Read it again and repeat the edit on its current content."
                )
                % {"path": path},
                data={"path": path, "sha256": stored.sha256},
            )
        text = file_text(file_bytes(collection.pk, tenant.pk, stored))
        if text is None:
            raise Invalid("file_binary", _("“%(path)s” isn't text and can't be edited.") % {"path": path})
        changed = _in_form(text, text_edit(text.text, edit.edits, path=path), path)
        changes.append(FileChange(path, changed, expected=stored.sha256))
    return files_change(
        tenant=tenant,
        actor=actor,
        collection=collection,
        changes=changes,
        action=FileBatch.Action.EDIT,
        note=note,
        run=run,
    )


def file_delete(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    path: str,
    expected: str | None = None,
    note: str = "",
    run: Run | None = None,
) -> FileBatch:
    """Delete a file and its document.

    Raises:
        DomainError: as ``files_change``.
    """
    batch = files_change(
        tenant=tenant,
        actor=actor,
        collection=collection,
        action=FileBatch.Action.DELETE,
        note=note,
        run=run,
        changes=[FileChange(unicodedata.normalize("NFC", path), None, expected=expected)],
    )
    if batch is None:
        raise Missing("file")
    return batch


def file_move(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    path: str,
    to: str,
    note: str = "",
    run: Run | None = None,
) -> FileBatch:
    """Give a file another path; its document keeps its versions and who may see it.

    Raises:
        DomainError: as ``files_change``.
    """
    source = unicodedata.normalize("NFC", path)
    batch = files_change(
        tenant=tenant,
        actor=actor,
        collection=collection,
        action=FileBatch.Action.MOVE,
        note=note,
        run=run,
        changes=[FileChange(to, moved_from=source)],
    )
    if batch is None:
        raise Missing("file")
    return batch


def file_rules_update(
    *, tenant: Tenant, actor: Actor, collection: Collection, rules: Mapping[str, Any]
) -> FileRules:
    """Replace the rules of a collection's file tools.

    Args:
        rules: as ``FileRules`` has them; what is absent gets its default.

    Raises:
        Invalid: ``file_rules_invalid``.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("collection.write")
    checked = FileRules.of(rules)
    with transaction.atomic():
        row = collection_lock(tenant, collection.pk)
        row.file_rules = checked.as_json()
        row.save(update_fields=["file_rules", "updated_at"])
        audit_record(
            tenant=tenant, actor=actor, action="collection.file_rules", object=row, data=row.file_rules
        )
    return checked


def _encoded(actor: Actor, collection: Collection, path: str, text: str, encoding: str) -> bytes:
    stored = files_stored(actor, collection.pk, path=path).get(path)
    form = FileText("", "utf-8")
    if stored is not None:
        form = file_text(file_bytes(collection.pk, actor.tenant_id, stored)) or form
    if encoding:
        form = FileText("", encoding_named(encoding), newline=form.newline)
    return _in_form(form, text.replace("\r\n", "\n"), path)


def _in_form(form: FileText, text: str, path: str) -> bytes:
    try:
        return form.encoded(text)
    except UnicodeEncodeError as error:
        raise Invalid(
            "encoding_invalid",
            _(
                "“%(path)s” is in %(encoding)s, which has no %(object)r. Use other characters, or write the file again under another name."
            )
            % {"path": path, "encoding": form.encoding, "object": error.object[error.start]},
        ) from error
