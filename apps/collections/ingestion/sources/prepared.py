"""Documents that come with their chunks: the bundle that is kept as their original, and what the pipeline reads of it.

The form is JSON, ours alone: made by an import from chunks found elsewhere, kept like any other original, so that hashing,
versions, retry and re-indexing work as for every document.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from apps.collections.ingestion.linking import REVERSE, Link
from apps.collections.ingestion.types import ChunkDraft, ChunkKind, ExtractedDocument, PageText, ReadFailure
from basics.texts import gettext as _

PREPARED = "application/vnd.groundwork.chunks+json"
_FORMAT = "groundwork-chunks/1"
_SEPARATOR = "\n\n"
_PAGE_CHARS = 20_000
_BACK = "linked_from"
_KINDS: dict[str, ChunkKind] = {
    "function": "function",
    "method": "function",
    "class": "class",
    "file": "file",
    "module": "file",
    "table": "table",
}


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk as it came.

    Attributes:
        text: kept as it is.
        headings: from the outermost to the innermost.
        metadata: everything else that came with it, JSON-serialisable.
        key_points: what it says, in sentences.
    """

    text: str
    headings: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    key_points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document with its chunks.

    Attributes:
        chunks: in order.
        links: between them, by their places: (source, target, relation, common topic).
        model: whose ``vectors`` these are, "" without any.
        vectors: one per chunk, None without any.
        warnings: sentences for the owner.
    """

    chunks: tuple[PreparedChunk, ...]
    links: tuple[tuple[int, int, str, str], ...] = ()
    model: str = ""
    vectors: Any = None
    warnings: tuple[str, ...] = ()
    title: str = ""

    def spans(self) -> list[tuple[int, int]]:
        """Return where each chunk stands in the document's text."""
        spans: list[tuple[int, int]] = []
        position = 0
        for chunk in self.chunks:
            spans.append((position, position + len(chunk.text)))
            position += len(chunk.text) + len(_SEPARATOR)
        return spans


def prepared_dump(prepared: PreparedDocument) -> bytes:
    """Return the bundle's bytes; equal documents give equal bytes."""
    vectors = None
    if prepared.vectors is not None:
        matrix = np.asarray(prepared.vectors, dtype="<f4")
        data = base64.b64encode(matrix.tobytes()).decode()
        vectors = {"model": prepared.model, "dimensions": int(matrix.shape[1]), "data": data}
    body = {
        "format": _FORMAT,
        "title": prepared.title,
        "chunks": [
            {
                "text": chunk.text,
                "headings": list(chunk.headings),
                "metadata": dict(chunk.metadata),
                "key_points": list(chunk.key_points),
            }
            for chunk in prepared.chunks
        ],
        "links": [list(link) for link in prepared.links],
        "vectors": vectors,
        "warnings": list(prepared.warnings),
    }
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def prepared_load(path: Path) -> PreparedDocument:
    """Read a bundle. Raises ReadFailure when it is none."""
    try:
        body = json.loads(path.read_bytes())
        if body["format"] != _FORMAT:
            raise ValueError(body["format"])
        model, vectors = "", None
        if body["vectors"] is not None:
            model = str(body["vectors"]["model"])
            flat = np.frombuffer(base64.b64decode(body["vectors"]["data"]), dtype="<f4")
            vectors = flat.reshape(len(body["chunks"]), int(body["vectors"]["dimensions"]))
        return PreparedDocument(
            chunks=tuple(
                PreparedChunk(
                    str(item["text"]), tuple(item["headings"]), item["metadata"], tuple(item["key_points"])
                )
                for item in body["chunks"]
            ),
            links=tuple((int(a), int(b), str(c), str(d)) for a, b, c, d in body["links"]),
            model=model,
            vectors=vectors,
            warnings=tuple(body["warnings"]),
            title=str(body["title"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ReadFailure(
            "corrupt_file", _("The kept chunks of this document are damaged. Import its source again.")
        ) from error


def prepared_extracted(prepared: PreparedDocument) -> ExtractedDocument:
    """Return the document's text: its chunks in order with a blank line between them, in parts of some pages' length."""
    parts: list[str] = []
    gathered: list[str] = []
    size = 0
    last = len(prepared.chunks) - 1
    for place, chunk in enumerate(prepared.chunks):
        piece = chunk.text + (_SEPARATOR if place < last else "")
        gathered.append(piece)
        size += len(piece)
        if size >= _PAGE_CHARS or place == last:
            parts.append("".join(gathered))
            gathered, size = [], 0
    return ExtractedDocument(
        media_type=PREPARED,
        pages=tuple(PageText(number, text) for number, text in enumerate(parts, 1)),
        is_paged=False,
        title=prepared.title,
        warnings=prepared.warnings,
    )


def prepared_drafts(prepared: PreparedDocument, extracted: ExtractedDocument) -> list[ChunkDraft]:
    """Return the chunks as they came, each an exact slice of the text."""
    drafts: list[ChunkDraft] = []
    for index, (chunk, (start, end)) in enumerate(zip(prepared.chunks, prepared.spans(), strict=True)):
        drafts.append(
            ChunkDraft(
                index=index,
                text=chunk.text,
                char_start=start,
                char_end=end,
                page_start=extracted.page_at(start).number,
                page_end=extracted.page_at(max(start, end - 1)).number,
                headings=chunk.headings,
                kind=_kind(chunk.metadata),
                metadata={"imported": dict(chunk.metadata)} | _source_index(chunk.metadata),
            )
        )
    return drafts


def _kind(metadata: Mapping[str, Any]) -> ChunkKind:
    """Return the kind that a chunk said it is of, by its ``chunk_type``; text where it says nothing that is known here."""
    said = str(metadata.get("chunk_type", "")).strip().lower()
    return _KINDS.get(said, "doc")


def _source_index(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Return the ``chunk_index`` of the source, where it is a whole number a column could hold."""
    said = metadata.get("chunk_index")
    if isinstance(said, float) and said.is_integer():
        said = int(said)
    if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said < 2**31:
        return {}
    return {"source_index": said}


def prepared_links(prepared: PreparedDocument) -> list[Link]:
    """Return the links that came with the chunks, each with the one that runs back, where that did not come too."""
    count = len(prepared.chunks)
    given = [
        Link(source, target, relation[:40] or "related", topic[:200])
        for source, target, relation, topic in prepared.links
        if 0 <= source < count and 0 <= target < count and source != target
    ]
    pairs = {(link.source, link.target) for link in given}
    back = [
        Link(link.target, link.source, REVERSE.get(link.relation, _BACK), link.common_topic)
        for link in given
        if (link.target, link.source) not in pairs
    ]
    return [*given, *back]


def vectors_fit(prepared: PreparedDocument, *, model: str, dimensions: int) -> bool:
    """Tell whether the vectors that came are of a space's model and form."""
    return (
        prepared.vectors is not None
        and prepared.model == model
        and prepared.vectors.shape == (len(prepared.chunks), dimensions)
        and bool(np.isfinite(prepared.vectors).all())
    )


def normalised(vectors: Any, places: Sequence[int]) -> Any:
    """Return some of the vectors at length one, as the spaces here have them."""
    chosen = np.asarray(vectors, dtype=np.float32)[list(places)]
    lengths = np.linalg.norm(chosen, axis=1, keepdims=True)
    return chosen / np.where(lengths == 0, 1, lengths)
