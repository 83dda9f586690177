"""Reads of the history of a collection's files, and differences; what is or was limited to others stays hidden."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from django.db.models import Count, QuerySet

from apps.collections.files.selectors import file_content
from apps.collections.models import Collection, Document, FileBatch, FileBlob, FileRevision
from apps.collections.tree.rules import FileRules
from apps.collections.tree.store import is_storable
from apps.collections.tree.text import FileText, file_text
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor

MAX_DIFF_LINES = 20_000


def batch_list(*, actor: Actor, collection: Collection, path: str = "") -> QuerySet[FileBatch]:
    """Return the changes of a collection's files, newest first, with ``file_count``; those of one path if given."""
    actor.require("collection.read")
    rows = (
        FileBatch.objects.visible_to(actor)
        .filter(collection=collection)
        .select_related("user", "run")
        .annotate(file_count=Count("revisions"))
        .order_by("-pk")
    )
    if path and not is_storable(path):
        rows = rows.none()
    elif path:
        rows = rows.filter(
            pk__in=FileRevision.objects.filter(collection=collection, path=path).values("batch_id")
        )
    result: QuerySet[FileBatch] = rows
    return result


def batch_get(*, actor: Actor, collection: Collection, pk: int) -> FileBatch:
    """Return one change. Raises Missing."""
    found: FileBatch | None = batch_list(actor=actor, collection=collection).filter(pk=pk).first()
    if found is None:
        raise Missing("change")
    return found


def revision_list(
    *, actor: Actor, collection: Collection, batches: Iterable[FileBatch]
) -> list[FileRevision]:
    """Return the revisions of these batches, without files that are or were limited to others, with blobs' sizes."""
    actor.require("collection.read")
    rows = list(
        FileRevision.objects.visible_to(actor)
        .filter(collection=collection, batch__in=list(batches))
        .select_related("before", "after", "batch")
        .defer("before__content", "after__content")
        .order_by("pk")
    )
    rules = FileRules.of(collection.file_rules)
    paths = {row.path for row in rows}
    now = (
        Document.objects.filter(tenant_id=actor.tenant_id, collection=collection, path__in=paths)
        .current()
        .filter(is_restricted=True)
    )
    restricted = set(now.values_list("path", flat=True))
    visible: set[str] = set()
    if restricted:
        visible = set(
            Document.objects.visible_to(actor)
            .filter(collection=collection, path__in=restricted, is_restricted=True)
            .current()
            .values_list("path", flat=True)
        )
    return [row for row in rows if rules.shows(row.path) and _is_open(row, restricted, visible, actor)]


def _is_open(row: FileRevision, restricted: set[str], visible: set[str], actor: Actor) -> bool:
    if row.path in restricted:
        return row.path in visible
    return not row.is_restricted or actor.kind == "system"


def revision_get(*, actor: Actor, collection: Collection, pk: int) -> FileRevision:
    """Return one revision. Raises Missing."""
    row = FileRevision.objects.visible_to(actor).filter(collection=collection, pk=pk).first()
    shown = revision_list(actor=actor, collection=collection, batches=[row.batch]) if row else []
    for one in shown:
        if one.pk == pk:
            return one
    raise Missing("revision")


def blob_text(blob: FileBlob | None) -> FileText | None:
    """Return the text of a blob, empty for none, None when it is no text."""
    return FileText("", "utf-8") if blob is None else file_text(bytes(blob.content))


def text_diff(
    before: FileText | None, after: FileText | None, *, old: str, new: str, context: int = 3
) -> str:
    """Return a unified diff of two texts.

    Raises:
        Invalid: ``file_binary``, or ``file_too_large`` beyond 20,000 lines.
    """
    if before is None or after is None:
        raise Invalid("file_binary", _("One of the two isn't text, so they can't be compared line by line."))
    lines = before.lines, after.lines
    if max(map(len, lines)) > MAX_DIFF_LINES:
        raise Invalid(
            "file_too_large",
            _("Texts of more than %(max_diff_lines)s lines are not compared.")
            % {"max_diff_lines": MAX_DIFF_LINES},
        )
    rows = difflib.unified_diff(*lines, fromfile=old, tofile=new, lineterm="", n=context)
    return "\n".join(rows)


def diff_files(*, actor: Actor, collection: Collection, path: str, other: str) -> str:
    """Return the unified diff from one file to another.

    Raises:
        Missing, Invalid: as ``file_content`` and ``text_diff``.
    """
    texts = [
        file_text(file_content(actor=actor, collection=collection, path=one)[1]) for one in (path, other)
    ]
    return text_diff(texts[0], texts[1], old=path, new=other)


def diff_revisions(*, actor: Actor, collection: Collection, pk: int, other: int | None = None) -> str:
    """Return what a revision changed, or the difference from its result to that of another revision.

    Raises:
        Missing, Invalid: as ``revision_get`` and ``text_diff``.
    """
    row = revision_get(actor=actor, collection=collection, pk=pk)
    if other is None:
        return text_diff(blob_text(row.before), blob_text(row.after), old=row.path, new=row.path)
    second = revision_get(actor=actor, collection=collection, pk=other)
    return text_diff(blob_text(row.after), blob_text(second.after), old=row.path, new=second.path)
