"""What a format of datasets is: it writes records as bytes, reads them back, and says what it can keep of them. Pure.

Formats for training and for other programs keep less than a record has. Each therefore says what reading its own export
gives (``expected``), and ``validate`` compares an export with that, record by record, so that an export that lost
something else is never handed out. Nothing here holds more than a few records at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from apps.datasets.records.record import FIELDS, Record, to_values
from basics.errors import Invalid
from basics.texts import gettext as _

Rows = Callable[[], Iterator[Record]]
"""Starts over each time it is called: formats of several files go through the rows once for each."""
EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class RowError:
    """A row of a file that cannot be read.

    Attributes:
        row: its number, from 1; in a file of lines, the line.
        message: what is wrong with it.
        text: the beginning of the row as it stands in the file.
        part: the file inside an archive.
    """

    row: int
    message: str
    text: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What an export says of its dataset.

    Attributes:
        manifest: hash of the version's manifest; "" for rows that are in no version.
        licenses: licence of the sources to the number of rows that rest on one; "" is an unknown one.
        splits, types, languages: number of rows by each.
        statistics: ``lengths``, ``scores`` and ``duplicates`` of the whole version, as its manifest has them.
        coverage: document, its passages, and those of them that rows rest on; most without a question first.
    """

    name: str
    version: str = ""
    description: str = ""
    manifest: str = ""
    rows: int = 0
    licenses: Mapping[str, int] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    coverage: tuple[tuple[str, int, int], ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """A format of datasets; ``apps.datasets.formats`` lists them."""

    @property
    def name(self) -> str:
        """The name in addresses and requests."""

    @property
    def title(self) -> str:
        """The name for people, in English; marked, so that pages can translate it."""

    @property
    def purpose(self) -> str:
        """One sentence, as ``title``: what it is good for and what it leaves out."""

    @property
    def suffix(self) -> str:
        """The end of a file's name, with its dot."""

    @property
    def media_type(self) -> str:
        """The type that a download is served as."""

    @property
    def is_export(self) -> bool:
        """Whether it is offered for exports; some are only read."""

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the file in pieces."""

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of a file, and in the place of each that cannot be read, why.

        Raises:
            Invalid: the file is no file of this format.
        """

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield what reading an export of these rows gives: each as far as the format keeps it, in its order."""


class ReadOnly:
    """The half of a format that is only read: it refuses to be written."""

    title = ""
    is_export = False

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Refuse: the format is only read."""
        raise self._refusal()

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Refuse: the format is only read."""
        raise self._refusal()

    def _refusal(self) -> Invalid:
        return Invalid(
            "format_read_only",
            _("%(title)s can only be imported. Choose another format for the export.")
            % {"title": self.title},
        )


@dataclass(frozen=True, slots=True)
class Validation:
    """What reading an export back gave.

    Attributes:
        rows: records in the file that equal what they should be.
        left_out: rows that the format has no place for, such as those without a second answer in preference pairs.
        problems: the first differences and unreadable rows, in words.
        failed: how many there are.
    """

    rows: int
    left_out: int
    failed: int = 0
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Tell whether the export is what it should be."""
        return not self.failed


def validate(form: Format, path: Path, rows: Rows) -> Validation:
    """Return how an export compares with its rows; both are read side by side, in constant memory.

    Raises:
        Invalid: the file is no file of this format.
    """
    good = failed = 0
    problems: list[str] = []
    for number, (found, wanted) in enumerate(zip_longest(form.read(path), form.expected(rows)), start=1):
        if found == wanted:
            good += 1
            continue
        failed += 1
        if len(problems) < EXAMPLES:
            problems.append(_difference(number, found, wanted))
    total = sum(1 for _ in rows())
    return Validation(good, total - good - failed, failed, tuple(problems))


def _difference(number: int, found: Record | RowError | None, wanted: Record | None) -> str:
    if found is None:
        return _("Row %(row)s is missing.") % {"row": number}
    if isinstance(found, RowError):
        return _("Row %(row)s can't be read: %(problem)s") % {"row": number, "problem": found.message}
    if wanted is None:
        return _("Row %(row)s shouldn't be in the file.") % {"row": number}
    one, other = to_values(found), to_values(wanted)
    names = ", ".join(name for name in FIELDS if one[name] != other[name])
    return _("Row %(row)s comes back with different values: %(fields)s.") % {"row": number, "fields": names}
