"""BEIR for retrieval, as a ZIP: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``.

Layout: github.com/beir-cellar/beir. The corpus of an export is the passages that its rows rest on; their documents and
places stand in ``metadata``, which other readers skip, so that labels can be anchored again after another chunking.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from apps.datasets.formats.archive import ArchiveWriter, archive_open, member_open, members
from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.formats.lines import dump, lines, read_object
from apps.datasets.record import Record, Split, from_values
from basics.errors import Invalid

_FILES = {Split.TRAIN: "train", Split.VALIDATION: "dev", Split.TEST: "test", "": "unsplit"}
_SPLITS = {name: split for split, name in _FILES.items()} | {"validation": Split.VALIDATION}
MAX_LABELS = 2_000_000
_KEPT = ("answer", "expected", "type", "difficulty", "language")


class Beir:
    """Queries, passages and which passage answers which query."""

    name = "beir"
    title = "BEIR"
    purpose = "Evaluation of retrieval: questions, passages and labels. Rows without a source are left out."
    suffix = ".zip"
    media_type = "application/zip"
    is_export = True

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the archive; it holds a short key of each passage and each split's name, and no texts."""
        archive = ArchiveWriter()
        yield from archive.member("queries.jsonl", _queries(rows))
        yield from archive.member("corpus.jsonl", _corpus(rows))
        splits = {record.split for record in rows() if record.sources}
        for split, name in _FILES.items():
            if split in splits:
                yield from archive.member(f"qrels/{name}.tsv", _labels(rows, split))
        yield archive.close()

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each query that has a label, in the order of the queries."""
        with archive_open(path) as archive:
            labels = _read_labels(archive)
            wanted = {passage for found in labels.values() for _, passage in found[1]}
            passages = _read_corpus(archive, wanted)
            with member_open(archive, _one(archive, "queries.jsonl")) as file:
                for number, line in lines(file):
                    if isinstance(line, RowError):
                        yield replace(line, part="queries.jsonl")
                        continue
                    row = read_object(number, line, lambda v: _record(v, labels, passages), "queries.jsonl")  # fmt: skip
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
                id=_id(record, number), question=record.question, sources=tuple(seen.values()), split=record.split, **kept
            )  # fmt: skip


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


def _corpus(rows: Rows) -> Iterator[bytes]:
    written: set[str] = set()
    for _, record in _numbered(rows):
        for source in record.sources:
            if source.key in written:
                continue
            written.add(source.key)
            meta = asdict(source)
            text = meta.pop("quote")
            yield dump({"_id": source.key, "title": source.document, "text": text, "metadata": meta}) + b"\n"  # fmt: skip


def _labels(rows: Rows, split: str) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for name, record in _numbered(rows):
        if record.split == split:
            for key in dict.fromkeys(source.key for source in record.sources):
                yield f"{name}\t{key}\t1\n".encode()


def _one(archive: ZipFile, name: str) -> str:
    found = [path for path in members(archive, name) if path.split("/")[-1] == name]
    if len(found) != 1:
        raise Invalid("file_unreadable", f"A BEIR archive has one file {name}; this one has {len(found)}.")  # fmt: skip
    return found[0]


def _read_labels(archive: ZipFile) -> dict[str, tuple[str, list[tuple[int, str]]]]:
    """Return query -> (split, labels with a score above 0)."""
    found: dict[str, tuple[str, list[tuple[int, str]]]] = {}
    count = 0
    for path in members(archive, ".tsv"):
        split = _SPLITS.get(path.split("/")[-1].removesuffix(".tsv").lower(), "")
        with member_open(archive, path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
            for line in csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
                if len(line) < 3 or not line[2].strip().lstrip("-").isdigit():
                    continue
                count += 1
                if count > MAX_LABELS:
                    raise Invalid("file_too_large", f"The labels are more than {MAX_LABELS:,}. Take one split.")  # fmt: skip
                if int(line[2]) > 0:
                    found.setdefault(line[0], (split, []))[1].append((int(line[2]), line[1]))
    return found


def _read_corpus(archive: ZipFile, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Return the passages that have a label, as values of a source."""
    found: dict[str, dict[str, Any]] = {}
    with member_open(archive, _one(archive, "corpus.jsonl")) as file:
        for number, line in lines(file):
            try:
                passage = json.loads(line) if isinstance(line, bytes) else {}
                name = str(passage.get("_id"))
                if name not in wanted:
                    continue
                meta = passage.get("metadata") or {}
                found[name] = {"document": passage.get("title") or name, "quote": passage["text"]} | (
                    {key: meta[key] for key in _PLACE if key in meta}
                )  # fmt: skip
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise Invalid("file_unreadable", f"Line {number} of corpus.jsonl is no passage: {error}.") from error  # fmt: skip
    return found


_PLACE = ("document", "collection", "document_id", "chunk_id", "start", "end", "page", "license", "url")  # fmt: skip


def _record(
    values: Mapping[str, Any],
    labels: Mapping[str, tuple[str, list[tuple[int, str]]]],
    passages: Mapping[str, dict[str, Any]],
) -> Record:
    name = str(values["_id"])
    split, found = labels.get(name, ("", []))
    missing = [key for _, key in found if key not in passages]
    if missing:
        raise Invalid("row_invalid", f"The passage “{missing[0][:60]}” of a label is not in the corpus.")  # fmt: skip
    meta = values.get("metadata") or {}
    kept = {key: meta[key] for key in _KEPT if isinstance(meta.get(key), str)}
    sources = [passages[key] for _, key in found]
    if not sources:
        return Record(question=str(values["text"]), id=name)
    return from_values({"id": name, "question": values["text"], "split": split, "sources": sources, **kept})  # fmt: skip
