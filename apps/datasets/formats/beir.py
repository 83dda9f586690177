"""BEIR for retrieval, as a ZIP: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``.

Layout: github.com/beir-cellar/beir. The corpus of an export is the passages that its rows rest on; their documents and
places stand in ``metadata``, which other readers skip, so that labels can be anchored again after another chunking.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.utils.translation import gettext_noop

from apps.datasets.formats.archive import ArchiveWriter, archive_open, member_open, members
from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.formats.lines import dump, lines, read_object
from apps.datasets.records.parts import Split
from apps.datasets.records.record import Record, from_values
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

_FILES = {Split.TRAIN: "train", Split.VALIDATION: "dev", Split.TEST: "test", "": "unsplit"}
_SPLITS = {name: split for split, name in _FILES.items()} | {"validation": Split.VALIDATION}
MAX_LABELS = 2_000_000
_SCORE = re.compile(r"-?[0-9]{1,9}")
_KEPT = ("answer", "expected", "type", "difficulty", "language")


class Beir:
    """Queries, passages and which passage answers which query."""

    name = "beir"
    title = "BEIR"
    purpose = gettext_noop(
        "Evaluation of retrieval: questions, passages and labels. Rows without a source are left out."
    )
    suffix = ".zip"
    media_type = "application/zip"
    is_export = True

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the archive; which passages are in it already is kept on disk."""
        archive = ArchiveWriter()
        yield from archive.member("queries.jsonl", _queries(rows))
        with _kept() as kept:
            yield from archive.member("corpus.jsonl", _corpus(rows, kept))
        splits = {record.split for record in rows() if record.sources}
        for split, name in _FILES.items():
            if split in splits:
                yield from archive.member(f"qrels/{name}.tsv", _labels(rows, split))
        yield archive.close()

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each query that has a label, in the order of the queries; the others wait on disk."""
        with archive_open(path) as archive, _kept() as kept:
            _read_labels(archive, kept)
            _read_corpus(archive, kept)
            with member_open(archive, _one(archive, "queries.jsonl")) as file:
                for number, line in lines(file):
                    if isinstance(line, RowError):
                        yield replace(line, part="queries.jsonl")
                        continue
                    row = read_object(number, line, lambda v: _record(v, kept), "queries.jsonl")
                    if isinstance(row, RowError) or row.sources:
                        yield row

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield question, sources and the few facts that the metadata of a query keeps."""
        number = 0
        for record in rows():
            if not record.sources:
                continue
            number += 1
            seen = {source.key: source for source in record.sources}
            kept = {name: getattr(record, name) for name in _KEPT}
            yield Record(
                id=_id(record, number),
                question=record.question,
                sources=tuple(seen.values()),
                split=record.split,
                **kept,
            )


def _id(record: Record, number: int) -> str:
    return record.id or f"q{number}"


def _numbered(rows: Rows) -> Iterator[tuple[str, Record]]:
    with_sources = (record for record in rows() if record.sources)
    for number, record in enumerate(with_sources, start=1):
        yield _id(record, number), record


def _queries(rows: Rows) -> Iterator[bytes]:
    for name, record in _numbered(rows):
        meta = {key: str(getattr(record, key)) for key in _KEPT}
        yield dump({"_id": name, "text": record.question, "metadata": meta}) + b"\n"


def _corpus(rows: Rows, kept: sqlite3.Connection) -> Iterator[bytes]:
    for _number, record in _numbered(rows):
        for source in record.sources:
            new = kept.execute("INSERT OR IGNORE INTO passages VALUES (?, NULL)", [_key(source.key)])
            if not new.rowcount:
                continue
            meta = asdict(source)
            text = meta.pop("quote")
            yield dump({"_id": source.key, "title": source.document, "text": text, "metadata": meta}) + b"\n"


def _labels(rows: Rows, split: str) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for name, record in _numbered(rows):
        if record.split == split:
            for key in dict.fromkeys(source.key for source in record.sources):
                yield f"{name}\t{key}\t1\n".encode()


def _one(archive: ZipFile, name: str) -> str:
    found = [path for path in members(archive, name) if path.split("/")[-1] == name]
    if len(found) != 1:
        raise Invalid(
            "file_unreadable",
            _("A BEIR archive has one file %(name)s; this one has %(found)s.")
            % {"name": name, "found": len(found)},
        )
    return found[0]


_TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE passages (id BLOB PRIMARY KEY, data TEXT) WITHOUT ROWID;
CREATE TABLE labels (place INTEGER PRIMARY KEY, query BLOB, split TEXT, passage BLOB);
CREATE INDEX labels_query ON labels (query);
CREATE INDEX labels_passage ON labels (passage);
"""


@contextmanager
def _kept() -> Iterator[sqlite3.Connection]:
    """Open tables in a temporary file, so that memory does not grow with passages and labels; it goes at the end."""
    # A generator that nobody ends is closed by whichever thread collects it.
    with closing(sqlite3.connect("", check_same_thread=False)) as kept:
        kept.executescript(_TABLES)
        yield kept


def _key(name: str) -> bytes:
    """Return a name as the tables take it: JSON can hold half a surrogate pair, which is no text there."""
    return name.encode("utf-8", "surrogatepass")


def _read_labels(archive: ZipFile, kept: sqlite3.Connection) -> None:
    """Keep the labels with a score above 0."""
    count = 0
    for path in members(archive, ".tsv"):
        split = _SPLITS.get(path.split("/")[-1].removesuffix(".tsv").lower(), "")
        with member_open(archive, path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
            for line in csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
                if len(line) < 3 or not _SCORE.fullmatch(line[2].strip()):
                    continue
                count += 1
                if count > MAX_LABELS:
                    raise Invalid(
                        "file_too_large",
                        _("There are more than %(max_labels)s labels. Import one split at a time.")
                        % {"max_labels": number_told(MAX_LABELS)},
                    )
                if int(line[2]) > 0:
                    kept.execute(
                        "INSERT INTO labels (query, split, passage) VALUES (?, ?, ?)",
                        [_key(line[0]), str(split), _key(line[1])],
                    )


def _read_corpus(archive: ZipFile, kept: sqlite3.Connection) -> None:
    """Keep the passages that have a label, as values of a source."""
    with member_open(archive, _one(archive, "corpus.jsonl")) as file:
        for number, line in lines(file):
            try:
                passage = json.loads(line) if isinstance(line, bytes) else {}
                name = str(passage.get("_id"))
                if not kept.execute(
                    "SELECT 1 FROM labels WHERE passage = ? LIMIT 1", [_key(name)]
                ).fetchone():
                    continue
                meta = passage.get("metadata") or {}
                found = {"document": passage.get("title") or name, "quote": passage["text"]} | (
                    {key: meta[key] for key in _PLACE if key in meta}
                )
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise Invalid(
                    "file_unreadable",
                    _("Line %(number)s of corpus.jsonl isn't a passage: %(error)s.")
                    % {"number": number, "error": error},
                ) from error
            kept.execute("INSERT OR REPLACE INTO passages VALUES (?, ?)", [_key(name), json.dumps(found)])


_PLACE = ("document", "collection", "document_id", "chunk_id", "start", "end", "page", "license", "url")
_FOUND = """
SELECT l.split, l.passage, p.data FROM labels l LEFT JOIN passages p ON p.id = l.passage WHERE l.query = ? ORDER BY l.place
"""


def _record(values: Mapping[str, Any], kept: sqlite3.Connection) -> Record:
    name = str(values["_id"])
    found = kept.execute(_FOUND, [_key(name)]).fetchall()
    if not found:
        return Record(question=str(values["text"]), id=name)
    missing = [passage for _, passage, data in found if data is None]
    if missing:
        shown = missing[0].decode("utf-8", "replace")[:60]
        raise Invalid(
            "row_invalid", _("The passage “%(shown)s” of a label is not in the corpus.") % {"shown": shown}
        )
    meta = values.get("metadata") or {}
    told = {key: meta[key] for key in _KEPT if isinstance(meta.get(key), str)}
    sources = [json.loads(data) for _, _, data in found]
    return from_values(
        {"id": name, "question": values["text"], "split": found[0][0], "sources": sources, **told}
    )
