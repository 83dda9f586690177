"""Collections of a ChromaDB folder on disk: chunks, their metadata and links, one prepared document per source file.

Read straight from the SQLite database that Chroma keeps (schema of 0.4 to 1.5), without the chromadb package and without
running anything that the folder holds. Runs in the limited child process.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from apps.collections.ingestion.sources.base import (
    Budget,
    EntryFailure,
    Problem,
    Reason,
    SourceFailure,
    SourceLimits,
    safe_path,
    shown,
)
from apps.collections.ingestion.sources.chroma_vectors import collection_vectors
from apps.collections.ingestion.sources.prepared import PreparedChunk, PreparedDocument, prepared_dump
from basics.texts import gettext as _
from basics.texts import kept

Send = Callable[[Mapping[str, Any], bytes], None]
DATABASE = "chroma.sqlite3"
_TABLES = ("collections", "segments", "embeddings", "embedding_metadata")
_DOCUMENT = "chroma:document"
_SOURCES = (
    "source_file",
    "source",
    "file_path",
    "filepath",
    "file",
    "filename",
    "file_name",
    "path",
    "document",
    "document_name",
    "doc_id",
    "document_id",
    "url",
)
_ORDERS = ("chunk_index", "index", "chunk_number", "chunk", "start_index", "position")
_HEADERS = ("headers", "headings", "header_path", "header", "section")
_HEADER_LEVELS = tuple(f"{word}{level}" for level in range(1, 7) for word in ("Header ", "header_", "h"))
_POINT_TEXT = ("point", "summary_point", "summary", "text", "content", "sentence")
_MAX_STEPS = 2_000_000_000  # of SQLite's machine: a query that somebody has made endless ends


def chroma_read(request: Mapping[str, Any], send: Send) -> None:
    """Send every source document of a Chroma collection as a prepared bundle.

    Args:
        request: ``path`` of the folder; ``collection``, its name ("" when there is one only); ``source_key``, the metadata
            field that names the source file ("" to look for the usual ones); ``model``, the embedding model of the vectors,
            which come along only when it is given; ``source_limits``, the fields of ``SourceLimits``.
        send: takes frames: ``{"entry": path}`` with the bundle, or ``{"problem": [...]}``.

    Raises:
        SourceFailure: there is no such collection, or the folder is damaged.
    """
    folder = Path(request["path"])
    budget = Budget(SourceLimits(**request["source_limits"]))
    try:
        with closing(_connect(folder)) as database:
            _send_all(database, folder, request, budget, send)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise SourceFailure(
            "chroma_damaged",
            _("The Chroma database cannot be read (%(error)s).") % {"error": shown(str(error))[:100]},
        ) from error


def _send_all(
    database: sqlite3.Connection, folder: Path, request: Mapping[str, Any], budget: Budget, send: Send
) -> None:
    collection, name = _collection(database, str(request["collection"]))
    grouped = _documents(database, collection, name, str(request["source_key"]), budget, send)
    vectors = collection_vectors(database, folder, collection) if request["model"] else {}
    for source, rows in sorted(grouped.items()):
        path = safe_path(source.split("://", 1)[-1].lstrip("/"))
        if isinstance(path, Problem):
            _tell(send, Problem(path.path, path.reason, path.message, len(rows)))
            continue
        chunks = [_Row(database, pk, embedding_id) for _, pk, embedding_id in sorted(rows)]
        empty = [row for row in chunks if not row.text.strip()]
        if empty:
            message = _(
                "A passage has no text (Chroma can store vectors only), so there is nothing to search."
            )
            _tell(send, Problem(path, Reason.NO_TEXT, message, len(empty)))
        chunks = [row for row in chunks if row.text.strip()]
        if not chunks:
            continue
        data = prepared_dump(_prepared(chunks, path, str(request["model"]), vectors))
        try:
            budget.take(len(data), len(data))
        except EntryFailure as failure:
            _tell(send, Problem(path, failure.reason, failure.message))
            continue
        send({"entry": path, "chunks": len(chunks)}, data)


def _tell(send: Send, problem: Problem) -> None:
    send({"problem": [problem.path, problem.reason, kept(problem.message), problem.count]}, b"")


def _connect(folder: Path) -> sqlite3.Connection:
    """Open the database for reading only; what a stranger's schema may want to run is switched off."""
    file = folder / DATABASE
    if not file.is_file() or file.is_symlink():
        raise SourceFailure(
            "not_a_chroma_folder",
            _("There is no %(database)s in this folder. Choose the folder in which Chroma stores its data.")
            % {"database": DATABASE},
        )
    journal = folder / f"{DATABASE}-wal"
    if journal.is_file() and journal.stat().st_size:
        # Its newest rows are in the journal; reading that needs to write beside it, so that happens on a copy.
        shutil.copyfile(file, DATABASE)
        shutil.copyfile(journal, f"{DATABASE}-wal")
        address = f"file:{DATABASE}"
    else:
        address = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(address, uri=True)
    for statement in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "mmap_size = 0"):
        database.execute(f"PRAGMA {statement}")
    steps = iter(range(_MAX_STEPS // 100_000))
    database.set_progress_handler(lambda: next(steps, None) is None, 100_000)
    kinds = dict(database.execute("SELECT name, type FROM sqlite_master"))
    if any(kinds.get(table) != "table" for table in _TABLES):
        raise SourceFailure(
            "chroma_damaged", _("The database doesn't have the tables of a Chroma collection.")
        )
    return database


def _collection(database: sqlite3.Connection, wanted: str) -> tuple[str, str]:
    rows = [
        (str(pk), str(name))
        for pk, name in database.execute("SELECT id, name FROM collections ORDER BY name")
    ]
    found = [row for row in rows if row[1] == wanted] if wanted else rows
    if len(found) == 1:
        return found[0]
    names = ", ".join(shown(name) for _, name in rows[:20]) or "none"
    raise SourceFailure(
        "chroma_collection_missing",
        _("Name one collection of this Chroma folder in the option “chroma_collection”. It has: %(names)s.")
        % {"names": names},
        data={"collections": [shown(name) for _, name in rows[:100]]},
    )


def _documents(
    database: sqlite3.Connection, collection: str, name: str, source_key: str, budget: Budget, send: Send
) -> dict[str, list[tuple[float, int, str]]]:
    """Return for each source (order in it, row, id) of its chunks."""
    keys = (source_key,) if source_key else _SOURCES
    grouped: dict[str, list[tuple[float, int, str]]] = {}
    seen: set[str] = set()
    rows = database.execute(
        "SELECT e.id, e.embedding_id FROM embeddings e JOIN segments s ON s.id = e.segment_id "
        "WHERE s.collection = ? AND s.scope = 'METADATA' ORDER BY e.id",
        [collection],
    )
    for pk, embedding_id in rows:
        budget.count()
        if str(embedding_id) in seen:
            _tell(send, Problem(shown(str(embedding_id)), Reason.DUPLICATE, _("Two passages have this id.")))
            continue
        seen.add(str(embedding_id))
        facts = _metadata(database, pk, (*keys, *_ORDERS))
        source = next((str(facts[key]) for key in keys if str(facts.get(key) or "").strip()), name)
        order = next((float(facts[key]) for key in _ORDERS if _is_number(facts.get(key))), float(pk))
        grouped.setdefault(source, []).append((order, int(pk), str(embedding_id)))
    return grouped


def _is_number(value: object) -> bool:
    try:
        return float(value) == float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _metadata(database: sqlite3.Connection, pk: int, keys: Sequence[str] | None = None) -> dict[str, Any]:
    rows = database.execute(
        "SELECT key, string_value, int_value, float_value, bool_value FROM embedding_metadata "
        "WHERE id = ? AND (? OR key IN (SELECT value FROM json_each(?))) ORDER BY key",
        [pk, keys is None, json.dumps(list(keys or ()))],
    )
    found: dict[str, Any] = {}
    for key, text, whole, number, flag in rows:
        value = text if text is not None else whole if whole is not None else number
        found[str(key)] = bool(flag) if value is None and flag is not None else value
    return found


class _Row:
    """One chunk of the collection."""

    def __init__(self, database: sqlite3.Connection, pk: int, embedding_id: str) -> None:
        facts = _metadata(database, pk)
        self.id = embedding_id
        # PostgreSQL stores no zero characters.
        self.text = str(facts.pop(_DOCUMENT, None) or "").replace("\x00", "")
        self.facts = {key: _clean(_unpacked(value)) for key, value in facts.items()}


def _unpacked(value: Any) -> Any:
    """Return what a metadata text encodes, where it is JSON (Chroma itself keeps flat values only)."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _clean(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if depth > 12:
        return "…"
    if isinstance(value, dict):
        return {str(_clean(str(k))): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def _prepared(rows: list[_Row], path: str, model: str, vectors: Mapping[str, Any]) -> PreparedDocument:
    by_id = {row.id: place for place, row in enumerate(rows)}
    by_index = {
        int(row.facts[key]): place
        for key in reversed(_ORDERS[:3])
        for place, row in enumerate(rows)
        if _is_number(row.facts.get(key))
    }
    links: list[tuple[int, int, str, str]] = []
    lost = 0
    for place, row in enumerate(rows):
        for told in _links(list(row.facts.values())):
            target = by_id.get(str(told.get("chunk_id")))
            if target is None and "chunk_id" not in told and _is_number(told.get("chunk_index")):
                target = by_index.get(int(float(told["chunk_index"])))
            if target is None or target == place:
                lost += 1
                continue
            relation = str(told.get("relation") or "related").strip()
            links.append((place, target, relation, str(told.get("common_topic") or "").strip()))
    found = [vectors.get(row.id) for row in rows]
    warnings: list[str] = []
    if lost:
        warnings.append(
            _("%(lost)s links lead to no other chunk of this document; they are kept in the metadata only.")
            % {"lost": lost}
        )
    has_all = bool(model) and all(vector is not None for vector in found)
    if model and not has_all:
        missing = sum(1 for vector in found if vector is None)
        warnings.append(
            _(
                "Chroma has no vector for %(missing)s chunks, so all passages of the document are "
                "embedded again."
            )
            % {"missing": missing}
        )
    return PreparedDocument(
        chunks=tuple(
            PreparedChunk(row.text, _headings(row.facts), {"id": row.id} | row.facts, _points(row.facts))
            for row in rows
        ),
        links=tuple(dict.fromkeys(links)),
        model=model if has_all else "",
        vectors=found if has_all else None,
        warnings=tuple(warnings),
        title=os.path.basename(path),
    )


def _links(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every object inside a value that names another chunk and how it is related."""
    if depth > 8:
        return
    if isinstance(value, dict):
        names_chunk = "chunk_id" in value or "chunk_index" in value
        if names_chunk and ("relation" in value or "common_topic" in value):
            yield value
        for inner in value.values():
            yield from _links(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _links(inner, depth + 1)


def _headings(facts: Mapping[str, Any]) -> tuple[str, ...]:
    for key in _HEADERS:
        value = facts.get(key)
        if isinstance(value, dict):
            return tuple(str(text) for _, text in sorted(value.items()) if str(text).strip())
        if isinstance(value, list):
            texts = [
                item.get("text") or item.get("title") if isinstance(item, dict) else item for item in value
            ]
            return tuple(str(text) for text in texts if text)
        if isinstance(value, str) and value.strip():
            return tuple(part.strip() for part in value.split(" > ") if part.strip())
    return tuple(str(facts[key]) for key in _HEADER_LEVELS if str(facts.get(key) or "").strip())


def _points(facts: Mapping[str, Any]) -> tuple[str, ...]:
    for key, value in facts.items():
        if "point" not in key.lower() and "summar" not in key.lower():
            continue
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, list)), [value])
        items = value if isinstance(value, list) else [value]
        texts = [
            next((item[name] for name in _POINT_TEXT if isinstance(item.get(name), str)), "")
            if isinstance(item, dict)
            else item
            for item in items
        ]
        said = tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())
        if said:
            return said
    return ()
