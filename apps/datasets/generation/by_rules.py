"""Filter, synthesis, judge and repair without a language model: shared words. Pure, deterministic.

They show the whole way of a row, and let CI prove it; what they make is labelled ``rules``. Nothing here understands a
text: the judge sees whether words are shared, not whether they are true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.rule_claims import POINTS_AWAY
from apps.datasets.records.parts import RecordSource, Step
from basics.texts import gettext as _
from toolloop.best_sentences import content_terms, identifiers, split

AUTHOR = "rules:lexical@2"
NOT_FOUND = "The documents do not say."
REFUSED = "I will not help with this: it asks to deceive, or for instructions that are not to be shown."
_REFUSES = re.compile(
    r"\b(?:cannot|can't|can not|will not|won't|must not|unable to|not able to) (?:help|assist|do|share|show|print|reveal|provide|support)",
    re.IGNORECASE,
)
_IS_FORBIDDEN = re.compile(r"\bforge\b|\bfalse figures\b|\byour hidden instructions\b", re.IGNORECASE)
_DOCSTRING = re.compile(r"\"{3}")
SEARCHES = "rules: search for the words of the question"
QUOTES = "rules: quote the sentences that share most words with the question"
_QUESTION_MARKS = ("?", "？", "؟", ";")
ENOUGH, LEAST_OWN = 0.8, 0.5
_ABSTAINS = re.compile(
    r"did not find|not (?:say|tell|state|mention|contain)|no (?:passage|document)s? (?:say|tell|answer)|cannot find",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^> (?P<text>.*?) \[c(?P<id>\d+)\](?: \(page \d+\))?$", re.MULTILINE)
MOST_QUOTES = 3
_LEADERS = re.compile(r"\s+\.{2,}\s+")
_ROW = re.compile(r"\|(.+)\|")
_ITEM = re.compile(r"\s*\n\s*(?=(?:[-*+•●]|\d{1,2}[.)]|\([a-z0-9]{1,4}\)) )")
_MARKUP = re.compile(
    r"\[\[(?P<ref>[^\]\[]+)\]\]\([^()]{0,400}\)"
    r"|!?\[(?P<link>[^\]\[]+)\](?:\((?:[^()]|\([^()]*\)){0,400}\)|\[[^\]\[]*\])"
    r"|<!--[^<]{0,400}-->|\[\^\w{1,20}\]|\[(?P<bare>[A-Za-z][^\]\[\n]{1,60})\](?!\w)"
    r"|\*\*(?P<strong>[^*]{1,400})\*\*|(?<!\w)[*_](?P<weak>[^*_\n]{1,400})[*_](?!\w)"
)
_QUOTE_MARK = re.compile(r"(?m)(?:^|(?<=\s))> ")


def filter_reason(question: str, passages: Sequence[CorpusPassage], kind: str, gold: int) -> str:
    """Return why a question is not to be kept, "" when these rules find nothing. Also run before a model is asked."""
    text = " ".join(question.split())
    if not (12 if text.isascii() else 4) <= len(text) <= 600:
        return _("The question is too short or too long.")
    if not text.endswith(_QUESTION_MARKS):
        return _("It isn't a question.")
    if POINTS_AWAY.search(text):
        return _("It isn't self-contained: it refers to text the reader doesn't have.")
    if not content_terms(text):
        return _("It names nothing.")
    if kind in ("unanswerable", "adversarial"):
        return ""
    if not gold:
        return _("Nothing in the passages answers it.")
    if kind in ("multi_hop", "comparison", "contradictory") and (gold < 2 or len(passages) < 2):
        return _("It needs two passages, and only one answers it.")
    return ""


def is_answered_by(question: str, gold: Sequence[RecordSource], rest: Sequence[CorpusPassage]) -> bool:
    """Tell whether passages have, without the others, nearly all words that answer a question.

    Args:
        gold: the spans that answer it.
        rest: the passages that are left.
    """
    left = {passage.chunk_id for passage in rest}
    asked = set(content_terms(question))
    missing = {t for s in gold if s.chunk_id not in left for t in content_terms(s.quote)} - asked
    there = {t for passage in rest for t in content_terms(passage.text)}
    return _share(missing, there) >= ENOUGH if missing else True


def abstains(answer: str) -> bool:
    """Tell whether an answer says that nothing was found."""
    return _ABSTAINS.search(answer) is not None or answer == NOT_FOUND


def steps_told(steps: Sequence[Step], cited: Sequence[int] = ()) -> list[Step]:
    """Return steps with a thought where there is none: what the extractive model goes by.

    Args:
        cited: the chunks that its answer names.
    """
    told = [replace(s, thought=s.thought or SEARCHES) if s.action else s for s in steps]
    return [*told, Step(len(told) + 1, QUOTES, sources=tuple(cited))]


def synthesis_make(draft: str, sources: Sequence[RecordSource], question: str = "") -> tuple[str, list[int]]:
    """Return the answer without marks, and the ids of the chunks it quotes; a refusal of what is plainly forbidden.

    A question with a word that no passage has is not answered: quotes would only share its other words.
    """
    if _IS_FORBIDDEN.search(question):
        return REFUSED, []
    there = {term for source in sources for term in content_terms(source.quote)}
    if set(content_terms(question)) - there:
        return NOT_FOUND, []
    quotes = [(m["text"], int(m["id"])) for m in _QUOTED.finditer(draft)][:MOST_QUOTES]
    known = {s.chunk_id for s in sources}
    used = [(text, pk) for text, pk in quotes if pk in known]
    if not used:
        return NOT_FOUND, []
    answer = " ".join(re.sub(r"\\(?=[^\w\s]|_)", "", text) for text, _ in used)
    return plain(answer), list(dict.fromkeys(pk for _, pk in used))


def code_make(gold: Sequence[RecordSource], sources: Sequence[RecordSource]) -> tuple[str, list[int]]:
    """Return what the docstrings say of code that was found, else its first line, and the chunks; "" if it was not found."""
    found = {source.chunk_id for source in sources}
    reached = [source for source in gold if source.chunk_id in found]
    said = [_DOCSTRING.split(source.quote, maxsplit=1)[-1].strip('" \n') for source in reached]
    return " ".join(said), [s.chunk_id for s in reached if s.chunk_id is not None]


def gold_make(
    gold: Sequence[RecordSource], sources: Sequence[RecordSource], question: str, told: str = ""
) -> tuple[str, list[int]]:
    """Return what the question was made from, see ``repair_make``, and their chunks; "" unless all of them were found."""
    if not {source.chunk_id for source in gold} <= {source.chunk_id for source in sources}:
        return "", []
    return repair_make(question, gold, "answer", told)


def repair_make(
    question: str, gold: Sequence[RecordSource], expected: str, told: str = ""
) -> tuple[str, list[int]]:
    """Return the sentences that the question was made from as its answer, and their chunks.

    Args:
        told: the part of them that is the answer, such as one cell of a row; "" for all of it.
    """
    if expected in ("abstain", "refuse"):
        return (NOT_FOUND if expected == "abstain" else REFUSED), []
    texts = dict.fromkeys(plain(s.quote, question) for s in gold)
    return told or " ".join(texts), [s.chunk_id for s in gold if s.chunk_id is not None]


def plain(text: str, question: str = "") -> str:
    """Return what a passage says as a person would say it: no marks of its markup, a line for each item of a list.

    Of a row of a table, or of a line with dots between its parts, the cells that the question has not named.
    """
    row = _ROW.fullmatch(text.strip())
    parts = row[1].split("|") if row else _LEADERS.split(text.strip())
    if len(parts) > 1:
        cells = [_unmarked(cell).strip("`") for cell in parts]
        return "; ".join(cell for cell in cells if cell and cell not in question)
    parts = _ITEM.split(text.strip())
    return "\n".join(" ".join(_unmarked(part).split()) for part in parts if part.strip())


def _unmarked(text: str) -> str:
    bare = _MARKUP.sub(lambda m: m["ref"] or m["bare"] or m["link"] or m["strong"] or m["weak"] or "", text)
    return _QUOTE_MARK.sub(" ", bare).strip()


def judge_make(
    question: str,
    answer: str,
    steps: Sequence[Step],
    sources: Sequence[RecordSource],
    gold: Sequence[RecordSource],
    expected: str,
    told: str = "",
) -> dict[str, tuple[int, str]]:
    """Return the six levels by shared words, each with the words that show it.

    Args:
        told: the part of the gold spans that answers, such as one cell of a row; what else they say is not asked for.
    """
    if expected in ("abstain", "refuse"):
        return _without_answer(answer, _ABSTAINS if expected == "abstain" else _REFUSES)
    said = set(content_terms(answer))
    asked = set(content_terms(question))
    known = {t for s in sources for t in content_terms(s.quote)}
    all_gold = {t for s in gold for t in content_terms(s.quote)}
    wanted = set(content_terms(told)) or all_gold
    beside = all_gold - wanted - asked if told else set()
    found = {s.chunk_id for s in sources}
    reached = [s for s in gold if s.chunk_id in found]
    # What the question has not said is what it asks for: an answer without that is another question's, however true.
    parts = [wanted] if told else [set(content_terms(s.quote)) for s in gold]
    true = min([_share(said, known), *(_share(part - asked, said) for part in parts if part - asked)])
    if gold and _share(said, all_gold | asked) < LEAST_OWN:
        true = min(true, 0.2)  # It has the words that answer among many of other passages.
    figures = identifiers(answer) | set(re.findall(r"\d+(?:[.,]\d+)*", answer))
    first = sources[0].quote[:200] if sources else ""
    sentences = split(answer) or [answer]
    longest = max(sentences, key=len)
    calls = [s for s in steps if s.action]
    return {
        "completeness": (_level(_share(wanted, said)), _words(wanted & said)),
        "accuracy": (_level(true if gold else _share(said, known)), first),
        "relevance": (
            _level(1.0 - _share(beside, said) if told else 0.3 + _share(asked, said | known & all_gold)),
            _words(beside & said or asked & said),
        ),
        "clarity": (5 if len(longest) <= 300 else 4 if len(longest) <= 600 else 2, longest[:200]),
        "specificity": (5 if figures else 4 if len(said) >= 8 else 2, _words(figures or said)),
        "reasoning": (
            (5 if len(reached) == len(gold) else 3 if reached or calls else 1),
            f"{len(calls)} call{'' if len(calls) == 1 else 's'}, {len(reached)} of {len(gold)} passages found",
        ),
    }


def _without_answer(answer: str, wanted: re.Pattern[str]) -> dict[str, tuple[int, str]]:
    match = wanted.search(answer)
    level, evidence = (5, match.group()) if match else (1, answer[:200])
    names = ("completeness", "accuracy", "relevance", "clarity", "specificity", "reasoning")
    return dict.fromkeys(names, (level, evidence))


def _share(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _level(share: float) -> int:
    return 1 + sum(share >= step for step in (0.2, 0.4, 0.6, 0.8))


def _words(terms: set[str] | Mapping[str, object]) -> str:
    return ", ".join(sorted(terms)[:12])
