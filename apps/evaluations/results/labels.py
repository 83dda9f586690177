"""Scores, figures and authors of evaluations in words, for pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_LEAST_CENTS = 0.01


def money_told(usd: float) -> str:
    """Return an amount with two digits that count: cents below a dollar."""
    if not usd:
        return "$0"
    cents = usd * 100
    if usd >= 1:
        return f"${usd:,.2f}"
    return f"{cents:.2g} ct" if cents >= _LEAST_CENTS else f"< {_LEAST_CENTS:g} ct"


def time_told(milliseconds: float) -> str:
    """Return a time in milliseconds below a second, in seconds above."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1_000 else f"{milliseconds / 1000:.1f} s"


def author_told(author: str, people: Mapping[int, str] | None = None) -> str:
    """Return who gave a score, from what scores keep of their author (``Scorer.author``).

    Args:
        people: names of persons by id.
    """
    kind, _, rest = author.partition(":")
    if kind == "jury":
        return f"Jury: {'; '.join(author_told(one) for one in rest.split('+'))}"
    if kind == "lexical":
        return f"Word count, {_version_told(rest)}"
    if kind == "judge":
        what, _, model = rest.partition(":")
        return f"{model}, {_version_told(what)}"
    if kind == "person":
        number = rest.partition("#")[0]
        return (people or {}).get(int(number), "A person") if number.isdecimal() else "A person"
    return f"Rule, {_version_told(author)}"


def _version_told(text: str) -> str:
    name, _, version = text.partition("@")
    return f"{name.replace('_', ' ')}, version {version}" if version else name.replace("_", " ")


_WRITTEN = {"f1": "F1", "mrr": "MRR", "map": "MAP", "ndcg": "nDCG", "json": "JSON", "ast": "AST"}


def label(name: str) -> str:
    """Return a score's name for people, abbreviations as the field writes them."""
    if not name.islower():
        return name
    head, at, k = name.replace("rouge_l", "ROUGE-L").partition("@")
    words = [_WRITTEN.get(word, word) for word in head.split("_")]
    first = words[0].capitalize() if words[0].islower() else words[0]
    return " ".join([first, *words[1:]]) + at + k
