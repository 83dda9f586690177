"""Scores, figures and authors of evaluations in words, for pages."""

from __future__ import annotations

import math
from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from basics.texts import number_told

_LEAST_CENTS = 0.01


def money_told(usd: float) -> str:
    """Return an amount with two digits that count: cents below a dollar."""
    if not usd:
        return number_told(0, sign="$")
    cents = usd * 100
    if usd >= 1:
        return number_told(usd, 2, "$")
    if cents < _LEAST_CENTS:
        return _("< %(cents)s ct") % {"cents": number_told(_LEAST_CENTS, 2)}
    return _("%(cents)s ct") % {"cents": number_told(cents, max(0, 1 - math.floor(math.log10(cents))))}


def time_told(milliseconds: float) -> str:
    """Return a time in milliseconds below a second, in seconds above."""
    is_short = milliseconds < 1_000
    return f"{number_told(milliseconds)} ms" if is_short else f"{number_told(milliseconds / 1000, 1)} s"


def author_told(author: str, people: Mapping[int, str] | None = None) -> str:
    """Return who gave a score, from what scores keep of their author (``Scorer.author``).

    Args:
        people: names of persons by id.
    """
    kind, _colon, rest = author.partition(":")
    if kind == "jury":
        return _("Jury: %(judges)s") % {"judges": "; ".join(author_told(one) for one in rest.split("+"))}
    if kind == "lexical":
        return _("Word count, %(rubric)s") % {"rubric": _version_told(rest)}
    if kind == "judge":
        what, _colon, model = rest.partition(":")
        return f"{model}, {_version_told(what)}"
    if kind == "person":
        number = rest.partition("#")[0]
        return (people or {}).get(int(number) if number.isdecimal() else 0, _("A person"))
    return _("Rule, %(rule)s") % {"rule": _version_told(author)}


def _version_told(text: str) -> str:
    name, _at, version = text.partition("@")
    name = name.replace("_", " ")
    return _("%(name)s, version %(version)s") % {"name": name, "version": version} if version else name


_WRITTEN = {"f1": "F1", "mrr": "MRR", "map": "MAP", "ndcg": "nDCG", "json": "JSON", "ast": "AST"}
_SCORES = frozenset(
    {
        gettext_noop("Accuracy"),
        gettext_noop("Answer relevancy"),
        gettext_noop("Attack resisted"),
        gettext_noop("Citation precision"),
        gettext_noop("Citation recall"),
        gettext_noop("Clarity"),
        gettext_noop("Codes"),
        gettext_noop("Completeness"),
        gettext_noop("Context precision"),
        gettext_noop("Context recall"),
        gettext_noop("Control answered"),
        gettext_noop("Exact"),
        gettext_noop("Faithfulness"),
        gettext_noop("Forbidden tools"),
        gettext_noop("JSON schema"),
        gettext_noop("Loop ends"),
        gettext_noop("Noise robustness"),
        gettext_noop("Numeric"),
        gettext_noop("Overall"),
        gettext_noop("Precision"),
        gettext_noop("Reasoning"),
        gettext_noop("Recall"),
        gettext_noop("Regex"),
        gettext_noop("Relevance"),
        gettext_noop("Specificity"),
        gettext_noop("Token F1"),
        gettext_noop("Tool calls"),
    }
)
"""The scores that we give ourselves; those of a team's own rubrics are called as the team wrote them."""


def label(name: str) -> str:
    """Return a score's name for people, abbreviations as the field writes them."""
    if not name.islower():
        return name
    head, at, k = name.replace("rouge_l", "ROUGE-L").partition("@")
    words = [_WRITTEN.get(word, word) for word in head.split("_")]
    first = words[0].capitalize() if words[0].islower() else words[0]
    text = " ".join([first, *words[1:]])
    return (_(text) if text in _SCORES else text) + at + k
