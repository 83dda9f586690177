"""Which passages of documents reached which answers, for whom: taken from the results of calls, read by auditors.

A tool that hands passages to the model names them in its payload, ``{"results": [{"chunk_id": 5, "document_id": 2,
"document": "Tariff.pdf", "version": 1, "collection": "Duties", ...}]}``; citations rest on the same rows. A tool that
hands on lines of files names their documents in the same way, without a chunk, under ``documents``.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from django.db.models import QuerySet

from audit.reads import documents_note
from runs.models import ChunkRead
from tenancy.actors import Actor
from toolloop.storable import text_storable

_NAME, _COLLECTION, _TOOL = 255, 120, 100


def reads_of(tool: str, payload: object) -> list[dict[str, Any]]:
    """Return the columns of ``ChunkRead`` for the passages in a call's payload; nothing for other payloads."""
    found: dict[tuple[int | None, int], dict[str, Any]] = {}
    for name in ("results", "documents"):
        rows = payload.get(name) if isinstance(payload, dict) else None
        for row in rows if isinstance(rows, list) else ():
            read = _read_of(tool, row, is_whole=name == "documents")
            if read is not None:
                found[read["chunk_id"], read["document_id"] if name == "documents" else 0] = read
    documents_note(read["document_id"] for read in found.values())
    return list(found.values())


def _read_of(tool: str, row: object, *, is_whole: bool) -> dict[str, Any] | None:
    if not isinstance(row, dict):
        return None
    chunk, document, version = row.get("chunk_id"), row.get("document_id"), row.get("version")
    if not (is_whole or _is_id(chunk)) or not _is_id(document):
        return None
    return {
        "chunk_id": None if is_whole else chunk,
        "document_id": document,
        "document_name": text_storable(str(row.get("document", "")))[:_NAME],
        "version": version if _is_id(version, 2**31) else None,
        "collection_name": text_storable(str(row.get("collection", "")))[:_COLLECTION],
        "tool": text_storable(tool)[:_TOOL],
    }


def _is_id(value: object, below: int = 2**63) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < below


def reads_list(
    *,
    actor: Actor,
    document: int | None = None,
    chunk: int | None = None,
    who: int | None = None,
    run: int | None = None,
) -> QuerySet[ChunkRead]:
    """Return which passages reached which answers, the newest first: everybody's with ``audit.read``, else one's own.

    Args:
        document, chunk, who, run: ids that narrow it.

    Raises:
        Denied: without the right ``run.read``.
    """
    actor.require("run.read")
    rows: QuerySet[ChunkRead] = ChunkRead.objects.visible_to(actor)
    if not actor.can("audit.read"):
        rows = rows.none() if actor.user_id is None else rows.filter(user_id=actor.user_id)
    wanted = {"document_id": document, "chunk_id": chunk, "user_id": who, "run_id": run}
    return rows.filter(**{k: v for k, v in wanted.items() if v is not None}).order_by("-pk")
