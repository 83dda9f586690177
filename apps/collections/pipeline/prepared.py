"""Chunks that came with a document, in the stages of its ingestion: taken over where others are made."""

from __future__ import annotations

from collections.abc import Sequence

from apps.collections.index.spaces import vectors_insert
from apps.collections.ingestion.sources.prepared import (
    PREPARED,
    PreparedDocument,
    normalised,
    prepared_links,
    prepared_load,
    vectors_fit,
)
from apps.collections.models import Chunk, Document, DocumentSource, EmbeddingSpace, LinkOrigin
from apps.collections.pipeline.summaries import links_insert, points_update
from blobs.leases import lease


def prepared_of(document: Document) -> PreparedDocument | None:
    """Return the chunks that a document came with, None when its original is to be read like any other.

    Raises:
        ReadFailure: they are damaged.
    """
    if document.source != DocumentSource.CHROMA or document.media_type != PREPARED:
        return None
    with lease(document.file) as path:
        return prepared_load(path)


def came_with_write(row: Document) -> None:
    """Add the links and points that came with the chunks, labelled as a model's, in the caller's transaction."""
    prepared = prepared_of(row)
    if prepared is None:
        return
    chunks = list(Chunk.objects.filter(document=row).order_by("index"))
    if len(chunks) != len(prepared.chunks):
        return
    links_insert(row, chunks, prepared_links(prepared), made_by=LinkOrigin.MODEL)
    points_update(
        (
            (chunk.pk, list(came.key_points))
            for chunk, came in zip(chunks, prepared.chunks, strict=True)
            if came.key_points
        ),
        made_by=LinkOrigin.MODEL,
    )


def came_vectors(row: Document, space: EmbeddingSpace) -> PreparedDocument | None:
    """Return the document as it came when its vectors are of this space, None when they must be made."""
    prepared = prepared_of(row)
    if prepared is None or not vectors_fit(prepared, model=space.model, dimensions=space.dimensions):
        return None
    return prepared


def came_vectors_insert(prepared: PreparedDocument, space: EmbeddingSpace, chunks: Sequence[Chunk]) -> int:
    """Take over the vectors of chunks, in the caller's transaction; edited chunks are left to the embedder.

    Returns:
        How many were new.
    """
    texts = [came.text for came in prepared.chunks]
    same = [chunk for chunk in chunks if chunk.index < len(texts) and chunk.text == texts[chunk.index]]
    return vectors_insert(space, same, normalised(prepared.vectors, [chunk.index for chunk in same]))
