"""A folder as ChromaDB 1.x keeps it, made without that package: its SQLite tables, and vectors in its queue."""

from __future__ import annotations

import json
import pickle
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

COLLECTION = "5c6f9d1e-0000-4000-8000-000000000001"
_SCHEMA = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT NOT NULL);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT NOT NULL);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL,
  seq_id BLOB NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (segment_id, embedding_id));
CREATE TABLE embedding_metadata (id INTEGER, key TEXT NOT NULL, string_value TEXT, int_value INTEGER,
  float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
CREATE TABLE embeddings_queue (seq_id INTEGER PRIMARY KEY, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  operation INTEGER NOT NULL, topic TEXT NOT NULL, id TEXT NOT NULL, vector BLOB, encoding TEXT, metadata TEXT);
"""


def make_chroma(
    folder: Path, chunks: list[dict[str, Any]], *, name: str = "handbook", indexed: int = 0
) -> Path:
    """Write a folder with one collection.

    Args:
        folder: is made.
        chunks: each with ``id``, ``text``, ``metadata`` (lists and objects become JSON, as people store them in Chroma)
            and ``vector``.
        name: of the collection.
        indexed: how many of the first chunks have their vectors in the index's file, and no longer in the queue.
    """
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database, database:
        database.executescript(_SCHEMA)
        database.execute("INSERT INTO collections VALUES (?, ?, 0, 'd')", [COLLECTION, name])
        for scope in ("METADATA", "VECTOR"):
            segment = [f"segment-{scope.lower()}", "urn:chroma:segment", scope, COLLECTION]
            database.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", segment)
        for number, chunk in enumerate(chunks, 1):
            database.execute(
                "INSERT INTO embeddings (id, segment_id, embedding_id, seq_id) VALUES (?, 'segment-metadata', ?, ?)",
                [number, chunk["id"], number],
            )
            for key, value in {"chroma:document": chunk["text"], **chunk["metadata"]}.items():
                database.execute(
                    "INSERT INTO embedding_metadata VALUES (?, ?, ?, ?, ?, ?)",
                    [number, key, *_columns(value)],
                )
            if number <= indexed:
                continue
            vector = np.asarray(chunk["vector"], dtype="<f4").tobytes()
            database.execute(
                "INSERT INTO embeddings_queue (operation, topic, id, vector, encoding) VALUES (0, ?, ?, ?, 'FLOAT32')",
                [f"persistent://default/default/{COLLECTION}", chunk["id"], vector],
            )
    if indexed:
        make_hnsw(folder / "segment-vector", chunks[:indexed])
    return folder


def make_hnsw(folder: Path, chunks: list[dict[str, Any]]) -> None:
    """Write an index as hnswlib keeps it on disk: per element its links of level 0, its vector and its label.

    The elements do not stand in the order of their labels, as after updates; label 99 is one that was deleted.
    """
    folder.mkdir()
    labels = {chunk["id"]: number for number, chunk in enumerate(chunks, 1)}
    links = b"\x01\x00\x00\x00" * 33  # 32 links and their number
    size = len(np.asarray(chunks[0]["vector"])) * 4
    elements = [
        (links + np.asarray(chunk["vector"], "<f4").tobytes(), labels[chunk["id"]])
        for chunk in reversed(chunks)
    ] + [(links + bytes(size), 99)]
    data = b"".join(body + label.to_bytes(8, "little") for body, label in elements)
    width = len(links) + size + 8
    header = struct.pack("<i6Qi", 1, 0, 1000, len(elements), width, len(links) + size, len(links), 0)
    (folder / "header.bin").write_bytes(header + bytes(40))
    (folder / "data_level0.bin").write_bytes(data)
    facts = {"dimensionality": size // 4, "id_to_label": labels}
    (folder / "index_metadata.pickle").write_bytes(pickle.dumps(facts))


def _columns(value: Any) -> tuple[Any, Any, Any, Any]:
    if isinstance(value, bool):
        return None, None, None, int(value)
    if isinstance(value, int):
        return None, value, None, None
    if isinstance(value, float):
        return None, None, value, None
    return value if isinstance(value, str) else json.dumps(value), None, None, None
