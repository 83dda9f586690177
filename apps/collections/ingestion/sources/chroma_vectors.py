"""The vectors of a Chroma collection: from its HNSW file, and from the queue of what is not in that file yet."""

from __future__ import annotations

import pickle
import sqlite3
import struct
from pathlib import Path
from typing import Any

import numpy as np

from apps.collections.ingestion.sources.base import SourceFailure
from basics.texts import gettext as _

# hnswlib's persistent header as Chroma's fork writes it: version, then offsets and counts.
_HEADER = struct.Struct("<i6Qi")
_MAX_BYTES = 2_000_000_000
_DELETE = 3


def collection_vectors(database: sqlite3.Connection, folder: Path, collection: str) -> dict[str, Any]:
    """Return the vectors of a collection by chunk id, each a float32 array.

    Raises:
        SourceFailure: the files of its index are damaged.
    """
    found: dict[str, Any] = {}
    segments = database.execute(
        "SELECT id FROM segments WHERE collection = ? AND scope = 'VECTOR'", [collection]
    )
    for (segment,) in segments:
        index = folder / str(segment)
        # A name out of a stranger's database: one plain folder, or nothing.
        if Path(str(segment)).name == str(segment) and index.is_dir() and not index.is_symlink():
            found |= _index_vectors(index)
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "embeddings_queue" in tables:
        queue = database.execute(
            "SELECT id, operation, vector, encoding FROM embeddings_queue WHERE topic LIKE '%/' || ? ORDER BY seq_id",
            [collection],
        )
        for chunk_id, operation, blob, encoding in queue:
            if operation == _DELETE:
                found.pop(str(chunk_id), None)
            elif blob is not None and encoding == "FLOAT32" and len(blob) % 4 == 0:
                found[str(chunk_id)] = np.frombuffer(blob, dtype="<f4")
    sizes = {len(vector) for vector in found.values()}
    if len(sizes) > 1:
        raise _damaged("vectors of different lengths")
    return found


def _index_vectors(index: Path) -> dict[str, Any]:
    names, header, data = (
        index / name for name in ("index_metadata.pickle", "header.bin", "data_level0.bin")
    )
    if not (names.is_file() and header.is_file() and data.is_file()):
        return {}  # nothing was moved from the queue to the index yet
    if any(path.is_symlink() or path.stat().st_size > _MAX_BYTES for path in (names, header, data)):
        raise _damaged("a file of the index is a link, or too large")
    with names.open("rb") as stream:
        try:
            labels = _Plain(stream).load()
        except (
            pickle.UnpicklingError,
            EOFError,
            ValueError,
            IndexError,
            KeyError,
            AttributeError,
            TypeError,
        ) as error:
            raise _damaged("its list of ids") from error
    if not isinstance(labels, dict):
        labels = vars(labels)
    by_label = {label: str(chunk_id) for chunk_id, label in dict(labels.get("id_to_label") or {}).items()}
    head = header.read_bytes()
    if len(head) < _HEADER.size:
        raise _damaged("its header")
    _, _, _, count, width, label_at, vector_at, _ = _HEADER.unpack_from(head)
    raw = data.read_bytes()
    size = label_at - vector_at
    if not (
        width > 0 and 0 <= vector_at < label_at <= width - 8 and size % 4 == 0 and count * width <= len(raw)
    ):
        raise _damaged("its header")
    found: dict[str, Any] = {}
    for place in range(count):
        start = place * width
        label = int.from_bytes(raw[start + label_at : start + label_at + 8], "little")
        if label in by_label:
            found[by_label[label]] = np.frombuffer(raw, "<f4", size // 4, start + vector_at)
    return found


class _Facts:
    """Stands in for the one class that older releases of Chroma have pickled."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "PersistentData" and module.startswith("chromadb."):
            return _Facts
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a list of ids")


def _damaged(what: str) -> SourceFailure:
    return SourceFailure(
        "chroma_damaged",
        _("The vector index of the Chroma folder is damaged: %(what)s. Import without vectors.")
        % {"what": what},
    )
