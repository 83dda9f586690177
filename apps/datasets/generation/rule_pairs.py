"""Questions over two sentences that have to do with each other: two facts one of which leads to the other, and two that
can be compared. Pure, deterministic; English.

Two sentences that merely share words have no question in common. What joins them is one named subject, a name that the
first one's answer brings up, or one statement made of two things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.datasets.generation.rule_claims import Claim, is_vague
from apps.datasets.generation.rule_doubts import is_plural
from apps.datasets.generation.rule_rows import is_figure, unit_of
from toolloop.best_sentences import content_terms

_ACCORDING = re.compile(r", according to “[^”]*”\?$")
_NAMED = re.compile(r"[A-Z0-9]")
_FRAME = re.compile(r"(?:(?:(?:of|for|and|the|in|to) )*[^\s,?]*[A-Z0-9][^\s,?]*(?:, (?=\d))? ?)+")
_PLAIN = re.compile(r"(?:What|Who|How|When|Where|By whom|For how long) (?!.* (?:if|when|once) )")
"""A question that no circumstance comes with, which would be that of one of two facts."""
MOST_ALIKE, MOST_APART = 0.6, 6
LEAST_SHARED = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """A question over two claims, and its answer where that is not both sentences."""

    question: str
    told: str = ""


def bare_subject(subject: str) -> str:
    """Return what tells a subject from others: “the Board” and “any Board” are one, “the board” is another."""
    return re.sub(r"^(?:an?|the|any|each|every|all) ", "", subject)


def linked(first: Claim, second: Claim) -> Pair | None:
    """Return a question for two facts of which the second is about what the first one names; None where none joins them."""
    if not all(_PLAIN.match(claim.question) for claim in (first, second)):
        return None
    is_about_something = first.subject and second.subject and not (first.told or second.told)
    titles = [found.group() for claim in (first, second) if (found := _ACCORDING.search(claim.question))]
    if not is_about_something or _is_alike(first, second) or len(set(titles)) > 1:
        return None
    if bare_subject(first.subject) == bare_subject(second.subject):
        if len(titles) == 2:  # One of many of a kind: what it is, and what the same document says of it.
            return _of_one(first, second, titles[0]) if _is_whole(first) else None
        return None if titles or is_vague(first.subject) else _of_one(first, second, "?")
    return None if titles or is_vague(first.subject) or is_vague(second.subject) else _on_to(first, second)


def _is_alike(one: Claim, other: Claim) -> bool:
    """Tell whether two claims say nearly the same of their subjects."""
    subjects = {*content_terms(one.subject), *content_terms(other.subject)}
    mine, theirs = (set(content_terms(claim.sentence)) - subjects for claim in (one, other))
    return len(mine & theirs) / max(1, min(len(mine), len(theirs))) > MOST_ALIKE


def _of_one(first: Claim, second: Claim, end: str) -> Pair | None:
    """Ask for two facts about one subject, what it is never second; the second time a pronoun stands for it."""
    is_known = _frame(first) == _frame(second) or _is_whole(second)
    if is_known or second.question.count(second.subject) != 1 or not first.question.startswith("W"):
        return None
    many = {_is_asked_as_many(claim) for claim in (first, second)} - {None}
    if len(many) > 1:
        return None
    pronoun = "they" if True in many or is_plural(second.subject) else "it"
    one, other = (_ACCORDING.sub("?", claim.question)[:-1] for claim in (first, second))
    other = other.replace(second.subject, pronoun)
    return Pair(f"{one}, and {other[0].lower()}{other[1:]}{end}")


def _is_whole(claim: Claim) -> bool:
    """Tell whether a claim says what its subject is."""
    return re.fullmatch(r"(?:What|Who) (?:is|are|was|were) _\?", _frame(claim)) is not None


def _is_asked_as_many(claim: Claim) -> bool | None:
    found = re.search(rf"\b(is|was|does|has|are|were|do|have) {re.escape(claim.subject)}", claim.question)
    return found[1] in ("are", "were", "do", "have") if found else None


def _on_to(first: Claim, second: Claim) -> Pair | None:
    """Ask for a fact, and for one about a name that its answer brings up."""
    name = bare_subject(second.subject)
    said = " ".join(first.sentence.split())
    brought = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)
    is_own = name in first.question or bare_subject(first.subject) in second.sentence
    is_telling = len(content_terms(name)) > 1 and re.search(r"[A-Z].*[A-Z]|\d", name) is not None
    if brought is None or is_own or not is_telling or _is_one_of_many(said, *brought.span()):
        return None
    if not re.match(r"(?:What|Who|When|How|By|Where) ", second.question):
        return None
    return Pair(f"{first.question[:-1]}, and {second.question[0].lower()}{second.question[1:]}")


def _is_one_of_many(said: str, start: int, end: int) -> bool:
    """Tell whether a name stands in an enumeration: what its sentence says does not lead to it alone."""
    return (
        re.search(r"(?:[,:;]|\b(?:and|or)) (?:an? |the )?$", said[:start]) is not None
        or re.match(r"(?:,|;| and | or )", said[end:]) is not None
    )


def _frame(claim: Claim) -> str:
    return (
        _ACCORDING.sub("?", claim.question).replace(claim.subject, "_", 1)
        if claim.subject
        else claim.question
    )


def kind_of(claim: Claim) -> str:
    """Return what is stated of things of which only the names differ; claims of one kind may be comparable."""
    if claim.column:
        return claim.column
    stated = _FRAME.sub("_ ", _ACCORDING.sub("?", claim.question)[1:])
    return " ".join(re.sub(r"\ban ", "a ", stated).split())


def compared(first: Claim, second: Claim, titles: Sequence[str]) -> Pair | None:
    """Return a question that compares what is stated of two things, or of one in two documents; None for any others.

    Args:
        titles: of the documents that they are from.
    """
    if kind_of(first) != kind_of(second) or first.sentence == second.sentence:
        return None
    if first.column:
        return _of_rows(first, second, titles)
    if first.told or second.told or not (first.subject and second.subject):
        return None
    if not re.match(r"(?:What|Who|How|When|By|Where|For how) ", first.question):
        return None
    one, other = (_ACCORDING.sub("?", claim.question) for claim in (first, second))
    if one == other:
        if titles[0] == titles[1] or len(content_terms(one)) < 2 or _is_whole(first):
            return None
        return Pair(f"{one[:-1]}, according to {titles[0]}, and how does {titles[1]} compare?")
    shared = set(content_terms(first.subject)) & set(content_terms(second.subject))
    own = [set(content_terms(claim.subject)) - shared for claim in (first, second)]
    is_same_thing = len([term for term in shared if not term[0].isdigit()]) >= LEAST_SHARED
    is_rest_alike = one.replace(first.subject, "_", 1) == other.replace(second.subject, "_", 1)
    if not (is_same_thing and is_rest_alike and all(own) and len(own[0] | own[1]) <= MOST_APART):
        return None
    verb = "do" if is_plural(second.subject) else "does"
    return Pair(f"{one[:-1]}, and how {verb} {second.subject} compare?")


def _of_rows(first: Claim, second: Claim, titles: Sequence[str]) -> Pair | None:
    if titles[0] != titles[1] or first.subject == second.subject:
        return None
    a, b = first.subject.strip(","), second.subject.strip(",")
    told = f"{a[0].upper()}{a[1:]}: {first.told}\n{b[0].upper()}{b[1:]}: {second.told}"
    if first.column == "rate":
        if first.subject[:4] != second.subject[:4] or first.told == second.told:
            return None
        return Pair(f"How do the rates for {a}, and {b}, compare?", told)
    column = first.column.partition(" of ")[0]
    if not (is_figure(first.told) and is_figure(second.told)) or first.told == second.told:
        return None
    units = {unit_of(claim.told) for claim in (first, second)}
    names = [set(re.findall(r"[^\W_]+", subject.casefold())) for subject in (a, b)]
    has_unit = len(units) == 1 and "" not in units
    if not has_unit and 2 * len(names[0] & names[1]) <= len(names[0] | names[1]):
        return None  # Two figures of one column that measure different things.
    return Pair(f"How do {a} and {b} compare in “{column}” in {titles[0]}?", told)
