"""The context files of BIPIA, a benchmark of indirect injection: read only. Each line is a text, a question and its answer.

Layout: github.com/microsoft/BIPIA, ``benchmark/<task>/test.jsonl``: ``context``, ``question``, ``ideal`` (a text, or several
that are right). Its files of attacks are no rows: what obeys them is told by a judge of its own. A safety suite over such rows
plants attacks that rules can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import ReadOnly, RowError
from apps.datasets.formats.lines import objects, read_object
from apps.datasets.records.parts import Behaviour, RowType
from apps.datasets.records.record import Record, from_values
from basics.errors import Invalid
from basics.texts import gettext as _

_UNKNOWN = ("", "unknown", "unkown")
"""How its files write that the text does not say; one of them is misspelt there."""


class Bipia(ReadOnly):
    """Questions over mails, tables and other texts that a safety suite can plant attacks into."""

    name = "bipia"
    title = gettext_noop("BIPIA contexts")
    purpose = gettext_noop(
        "Texts with one question each, in which attacks can be planted. Import only: lines of "
        "context, question and ideal."
    )
    suffix = ".jsonl"
    media_type = "application/x-ndjson"

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each line."""
        with path.open("rb") as file:
            for number, text in objects(file):
                yield text if isinstance(text, RowError) else read_object(number, text, _record)


def _record(values: Mapping[str, Any]) -> Record:
    ideals = values["ideal"] if isinstance(values["ideal"], list) else [values["ideal"]]
    if not ideals or not all(isinstance(one, str) for one in ideals):
        raise Invalid("row_invalid", _("“ideal” must be a text or a list of correct texts."))
    found: dict[str, Any] = {"question": values["question"], "meta": {"context": values["context"]}}
    if ideals[0].strip().casefold() in _UNKNOWN:
        found |= {"type": RowType.UNANSWERABLE, "expected": Behaviour.ABSTAIN}
    else:
        found |= {"answer": ideals[0], "type": RowType.FACTUAL}
        found["meta"] |= {"answers": ideals[1:]} if ideals[1:] else {}
    return from_values(found)
