"""A Hugging Face dataset folder as a ZIP: ``README.md`` with its card, and one Parquet file for each split.

Layout: huggingface.co/docs/hub/datasets-manual-configuration and datasets-cards. ``load_dataset("parquet", ...)`` of the
unpacked folder, or the folder itself, gives the splits with typed columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from django.utils.translation import gettext_noop

from apps.datasets.formats.archive import ArchiveWriter, archive_open, member_open, members
from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.formats.parquet import read_table, table_pieces
from apps.datasets.records.parts import Split
from apps.datasets.records.record import Record
from basics.errors import Invalid
from basics.texts import gettext as _

# The library sorts splits; rows without one have a name of their own because every file needs one.
_SPLITS = {Split.TEST: "test", Split.TRAIN: "train", "": "unsplit", Split.VALIDATION: "validation"}
BAR, LISTED = 20, 30
"""Of the map of passages: signs of a full bar, and documents that are named."""
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class HuggingFace:
    """A folder that ``datasets`` loads, with the licences of the sources on its card."""

    name = "huggingface"
    title = gettext_noop("Hugging Face folder")
    purpose = gettext_noop(
        "Everything a row has, as a folder with dataset card, splits and the licences of the sources."
    )
    suffix = ".zip"
    media_type = "application/zip"
    is_export = True

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the archive: a file for each split that has rows, then the card."""
        archive = ArchiveWriter()
        present: list[str] = []
        for split, name in _SPLITS.items():
            records = (record for record in rows() if record.split == split)
            first = next(records, None)
            if first is None:
                continue
            present.append(name)
            pieces = table_pieces(chain([first], records), card)
            yield from archive.member(_path(name), pieces)
        yield from archive.member("README.md", iter([card_text(card, present).encode()]))
        yield archive.close()

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of every Parquet file in the archive."""
        with archive_open(path) as archive:
            names = members(archive, ".parquet")
            if not names and "README.md" not in archive.namelist():
                raise Invalid("file_unreadable", _("The archive has no Parquet file, so it has no rows."))
            for name in names:
                with member_open(archive, name) as file:
                    yield from read_table(file, part=name)

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield every record as it is, one split after the other."""
        for split in _SPLITS:
            yield from (record for record in rows() if record.split == split)


def _path(split: str) -> str:
    return f"data/{split}-00000-of-00001.parquet"


def card_text(card: Card, splits: list[str]) -> str:
    """Return the dataset card: metadata the Hub reads, then what the dataset is and what its sources are licensed as."""
    known = sorted(name for name in card.licenses if name)
    meta: dict[str, Any] = {
        "pretty_name": card.name,
        "license": known[0].lower() if len(card.licenses) == 1 and known else "other",
        "language": sorted(name for name in card.languages if name) or None,
        "task_categories": ["question-answering"],
        "size_categories": [next((text for most, text in _SIZES if card.rows < most), "1M<n<10M")],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": name, "path": _path(name)} for name in splits],
            }
        ],
    }
    if meta["license"] == "other":
        meta["license_name"] = "licences-of-sources"
    head = yaml.safe_dump(
        {name: value for name, value in meta.items() if value is not None},
        sort_keys=False,
        allow_unicode=True,
    )
    parts = [f"---\n{head}---\n\n# {_line(card.name)}\n"]
    if card.description:
        parts.append(f"{card.description}\n")
    version = f"Version {_line(card.version)}, " if card.version else ""
    manifest = f" Manifest (SHA-256): `{card.manifest}`." if card.manifest else ""
    parts.append(f"{version}{card.rows:,} rows.{manifest}\n")
    parts += [
        _table("Splits", "Split", {name or "unsplit": count for name, count in card.splits.items()}),
        _table("Types of questions", "Type", {name or "unknown": n for name, n in card.types.items()}),
        _table(
            "Licences of the sources", "Licence", {name or "unknown": n for name, n in card.licenses.items()}
        ),
        _lengths(card.statistics.get("lengths")),
        _scores(card.statistics.get("scores")),
        _duplicates(card.statistics.get("duplicates")),
        _coverage(card),
    ]
    if "" in card.licenses:
        parts.append("For sources with an unknown licence, ask the dataset's owner before you share rows.\n")
    parts.append(
        "Columns `input`, `arguments`, `parameters` and `meta` hold JSON as text. Places of sources (`start`, `end`) are "
        "characters of the document's text.\n"
    )
    return "\n".join(part for part in parts if part)


def _table(title: str, head: str, counts: dict[str, int]) -> str:
    if not counts:
        return ""
    lines = [f"| {_line(name)} | {count:,} |" for name, count in sorted(counts.items())]
    return "\n".join([f"## {title}", "", f"| {head} | Rows |", "|---|---|", *lines, ""])


def _lengths(lengths: Mapping[str, list[int]] | None) -> str:
    if not lengths:
        return ""
    rows = [
        f"| {name.capitalize()} | {' | '.join(f'{n:,}' for n in found)} |" for name, found in lengths.items()
    ]
    head = [
        "## Lengths in characters",
        "",
        "| Text | Least | 5 % | Median | 95 % | Most |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _scores(scores: Mapping[str, Mapping[str, Any]] | None) -> str:
    if not scores:
        return ""
    rows = [
        f"| {_line(name)} | {'none' if found['mean'] is None else format(found['mean'], '.2f')} | "
        f"{' | '.join(f'{n:,}' for n in found['levels'])} | {found['unscored']:,} |"
        for name, found in scores.items()
    ]
    head = [
        "## Scores",
        "",
        "| Score | Mean | Level 1 | 2 | 3 | 4 | 5 | Unscored |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _duplicates(found: Mapping[str, Any] | None) -> str:
    if not found:
        return "## Duplicates\n\nNot checked.\n"
    told = ", ".join(f"{n:,} {name}" for name, n in found["counts"].items()) or "none"
    return f"## Duplicates\n\nFound on {found['checked_at'][:10]}: {told}.\n"


def _coverage(card: Card) -> str:
    """Return which passages of the documents rows rest on, as a table with bars."""
    if not card.coverage:
        return ""
    chunks = sum(all_ for _, all_, _ in card.coverage)
    asked = sum(with_ for _, _, with_ in card.coverage)
    lines = [
        f"| {_line(name)} | {'█' * (filled := round(BAR * with_ / all_))}{'░' * (BAR - filled)} | {with_:,} of {all_:,} |"
        for name, all_, with_ in card.coverage[:LISTED]
    ]
    more = len(card.coverage) - len(lines)
    left = [f"\n{more:,} more documents with fewer passages that have no question."] if more else []
    told = (
        f"{asked:,} of {chunks:,} passages of the collections have a question ({100 * asked / chunks:.0f} %)."
    )
    head = ["## Coverage", "", told, "", "| Document | | Passages with a question |", "|---|---|---|"]
    return "\n".join([*head, *lines, *left, ""])


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
