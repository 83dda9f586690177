"""Changes by hand to single chunks: another text, left out of search, and back again; each with its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.collections.index import terms
from apps.collections.index.codes import code_kinds
from apps.collections.index.postings import postings_note_edit
from apps.collections.index.spaces import vectors_make, vectors_replace
from apps.collections.models import Chunk, ChunkRevision, Collection, Document, DocumentStatus, LinkOrigin
from apps.collections.pipeline.summaries import points_by_rule
from apps.collections.storage.job_locks import collection_lock, document_lock
from apps.collections.storage.rows import chunk_embedded_text, chunk_indexed_text
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from jobs.notify import notify
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_CHUNK_CHARS = 8000
_MAX_NOTE = 255


@dataclass(frozen=True, slots=True)
class _Made:
    """What another text needs, made before any lock is taken."""

    text: str
    vectors: dict[int, Any]
    points: list[str]


def chunk_edit(*, tenant: Tenant, actor: Actor, chunk: Chunk, text: str, note: str = "") -> Chunk:
    """Give a chunk another text: from the commit on it is found by the new one and not by the old one.

    Vectors, term weights, identifiers, statistics and rule-made key points change with it in one transaction. Its
    place in the document, and so where a citation points, stays. Reading the document again makes its chunks anew.

    Args:
        text: 1 to 8000 characters.
        note: why, for the history.

    Raises:
        Invalid: ``chunk_invalid``.
        DomainError: the embedder cannot answer; nothing has changed.
        Conflict: ``document_retired``, ``document_busy`` or ``space_changed``.
        Missing: it was deleted, or the actor may not see it.
    """
    return _change(tenant, actor, chunk, {"text": _text(text)}, note, "chunk.edit")


def chunk_disable(
    *, tenant: Tenant, actor: Actor, chunk: Chunk, is_disabled: bool = True, note: str = ""
) -> Chunk:
    """Leave a chunk out of every search, or take it in again.

    Raises:
        Conflict: ``document_retired`` or ``document_busy``.
        Missing: it was deleted, or the actor may not see it.
    """
    action = "chunk.disable" if is_disabled else "chunk.enable"
    return _change(tenant, actor, chunk, {"is_disabled": is_disabled}, note, action)


def chunk_restore(*, tenant: Tenant, actor: Actor, revision: ChunkRevision, note: str = "") -> Chunk:
    """Put a chunk back to what it was before a change; that is a change of its own, and can be taken back too.

    Raises:
        Invalid, DomainError, Conflict, Missing: as ``chunk_edit``.
    """
    chunk = Chunk.objects.filter(tenant=tenant, pk=revision.chunk_id).first()
    if chunk is None:
        raise Missing("chunk")
    note = note or f"Back to before change {revision.pk}"
    return _change(tenant, actor, chunk, dict(revision.before), note, "chunk.restore")


def _change(
    tenant: Tenant, actor: Actor, chunk: Chunk, wanted: dict[str, Any], note: str, action: str
) -> Chunk:
    actor.require("document.write")
    seen = Chunk.objects.visible_to(actor).select_related(
        "collection__space", "collection__tenant", "document"
    )
    fresh: Chunk | None = seen.filter(pk=chunk.pk).first()
    if fresh is None:
        raise Missing("chunk")
    note = _note(note)
    # The embedder may take seconds or be down: it is asked before anything is locked or changed.
    made = _make(actor, fresh, wanted["text"]) if wanted.get("text", fresh.text) != fresh.text else None
    with transaction.atomic():
        collection = collection_lock(tenant, fresh.collection_id)
        document = document_lock(tenant, Document(pk=fresh.document_id, collection_id=collection.pk))
        # Against references too: a batch of vectors made of the old text cannot slip in behind us.
        row: Chunk | None = Chunk.objects.select_for_update().filter(pk=fresh.pk).first()
        if row is None:
            raise Missing("chunk")
        _check_document(document)
        before = {"text": row.text, "is_disabled": row.is_disabled}
        after = {**before, **{k: v for k, v in wanted.items() if k in before}}
        if after == before:
            return row
        if after["text"] != before["text"]:
            if made is None:
                raise _changed_meanwhile()
            _rewrite(collection, document, row, made)
        row.is_disabled = after["is_disabled"]
        row.save()
        ChunkRevision.objects.create(
            tenant=tenant,
            chunk=row,
            document=document,
            before=before,
            after=after,
            user_id=actor.user_id,
            note=note,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action=action,
            object=row,
            object_name=f"{document.path}, passage {row.index + 1}",
            data={"document": document.pk, "note": note},
        )
        notify(tenant.pk, f"collection:{collection.pk}", document.pk)
    return row


def _make(actor: Actor, chunk: Chunk, text: str) -> _Made:
    draft = Chunk(
        pk=chunk.pk,
        index=chunk.index,
        kind=chunk.kind,
        text=text,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        headings=chunk.headings,
        metadata=chunk.metadata,
        is_edited=text != _original(chunk),
    )
    return _Made(
        text,
        vectors_make(actor, chunk.collection, chunk_embedded_text(draft, chunk.document.cover)),
        points_by_rule([draft])[0],
    )


def _rewrite(collection: Collection, document: Document, row: Chunk, made: _Made) -> None:
    row.is_edited = made.text != _original(row)
    row.text = made.text
    if not vectors_replace(collection, row, made.vectors):
        raise Conflict(
            "space_changed",
            _(
                "The collection has since started or finished switching to another embedding model. Save again."
            ),
        )
    # Under the lock of the document, as an upgrade of its terms or an indexing of its codes anew would be: what comes last
    # knows their forms.
    tokens = terms.chunk_tokenise(
        row.pk, chunk_indexed_text(row), document.lexical_form, document.cover, code_kinds(row.tenant_id)
    )
    terms.chunk_reindex(collection=collection, document_id=row.document_id, chunk=tokens)
    postings_note_edit(collection=collection, chunk_id=row.pk)
    # A model's points are about the old text; until it is asked again, the rules speak, and it is labelled so.
    row.key_points, row.points_by = made.points, LinkOrigin.RULE


def _original(chunk: Chunk) -> str:
    """Return the text that the chunk had when it was made."""
    first = ChunkRevision.objects.filter(chunk_id=chunk.pk).order_by("pk").first()
    return chunk.text if first is None else str(first.before["text"])


def _check_document(document: Document) -> None:
    if document.live_to is not None:
        raise Conflict(
            "document_retired", _("This passage belongs to an earlier version, which can't be changed.")
        )
    if document.status != DocumentStatus.READY:
        raise Conflict(
            "document_busy", _("The document is still being read. Wait until it is ready, then change it.")
        )


def _changed_meanwhile() -> Conflict:
    return Conflict(
        "chunk_changed", _("Someone else has changed this passage in the meantime. Check it and save again.")
    )


def _text(text: str) -> str:
    clean = text.replace("\r\n", "\n").strip()
    if not clean or len(clean) > MAX_CHUNK_CHARS or "\x00" in clean:
        problem = _("Enter 1 to %(most)s characters, or exclude the passage from search.") % {
            "most": MAX_CHUNK_CHARS
        }
        raise Invalid("chunk_invalid", problem, data={"fields": {"text": [problem]}})
    return clean


def _note(note: str) -> str:
    clean = " ".join(note.replace("\x00", " ").split())
    if len(clean) > _MAX_NOTE:
        problem = _("At most %(most)s characters.") % {"most": _MAX_NOTE}
        raise Invalid("chunk_invalid", problem, data={"fields": {"note": [problem]}})
    return clean
