"""SQuAD 1.1 and 2.0: read only. Each answer becomes a source whose place is its characters in the paragraph.

Layout: rajpurkar.github.io/SQuAD-explorer. A question that cannot be answered expects an abstention.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import ReadOnly, RowError
from apps.datasets.records.parts import Behaviour, RowType
from apps.datasets.records.record import Record, from_values
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

MAX_FILE = 1 << 27
"""The file is one nested object and is read whole; the largest original has 42 million bytes."""


class Squad(ReadOnly):
    """Questions over paragraphs, with the stretch that answers them."""

    name = "squad"
    title = "SQuAD"
    purpose = gettext_noop("Questions about paragraphs with the passage that answers them. Import only.")
    suffix = ".json"
    media_type = "application/json"

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each question."""
        if path.stat().st_size > MAX_FILE:
            raise Invalid(
                "file_too_large",
                _("A SQuAD file has at most %(max_file)s bytes. Divide it by articles.")
                % {"max_file": number_told(MAX_FILE)},
            )
        try:
            found = json.loads(path.read_bytes())
            articles = found["data"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Invalid("file_unreadable", _("The file isn't SQuAD: it has no “data” list.")) from error
        for number, (title, paragraph, asked) in enumerate(_questions(articles), start=1):
            try:
                yield _record(title, paragraph, asked)
            except Invalid as error:
                yield RowError(number, error.message, str(asked)[:200])
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                yield RowError(
                    number, _("The field %(name)s is missing.") % {"name": error}, str(asked)[:200]
                )


def _questions(articles: Any) -> Iterator[tuple[str, Any, Any]]:
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    yield str(article.get("title", "")), paragraph, asked
    except (KeyError, TypeError, AttributeError) as error:
        raise Invalid(
            "file_unreadable", _("The file isn't SQuAD: an article lacks %(error)s.") % {"error": error}
        ) from error


def _record(title: str, paragraph: Mapping[str, Any], asked: Mapping[str, Any]) -> Record:
    context = paragraph["context"]
    answers = asked.get("answers") or []
    values: dict[str, Any] = {"id": str(asked.get("id", "")), "question": asked["question"]}
    if asked.get("is_impossible") or not answers:
        values |= {"type": RowType.UNANSWERABLE, "expected": Behaviour.ABSTAIN}
        return from_values(values)
    best = answers[0]
    start = best["answer_start"]
    if context[start : start + len(best["text"])] != best["text"]:
        raise Invalid("row_invalid", _("The answer isn't at the stated place in the paragraph."))
    variants = sorted({answer["text"] for answer in answers} - {best["text"]})
    values |= {
        "answer": best["text"],
        "type": RowType.FACTUAL,
        "sources": [
            {"document": title, "quote": best["text"], "start": start, "end": start + len(best["text"])}
        ],
        "meta": {"context": context, **({"answers": variants} if variants else {})},
    }
    return from_values(values)
