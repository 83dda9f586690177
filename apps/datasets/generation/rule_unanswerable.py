"""Questions that a document does not answer though it is about their subject. Pure, deterministic; English.

Each is one that people ask of things of this kind: of an office who heads it, of a program what it costs. What is neither
an office nor a work, a program or a paper, such as a setting or a state of a machine, is not asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.datasets.generation.rule_claims import Claim, is_vague
from toolloop.best_sentences import content_terms


@dataclass(frozen=True, slots=True)
class Absent:
    """What people ask of things of a kind.

    Attributes:
        kind: words for such things.
        there: what a passage has that may answer it.
    """

    kind: re.Pattern[str]
    question: str
    there: re.Pattern[str]


def _kind(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words.split())})$", re.IGNORECASE)


def _there(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BODY = _kind(
    """agency authority board bureau center centre committee commission company corporation council department division
    institute institution library office organization organisation school service team unit association foundation group
    administration hospital university laboratory"""
)
_WORK = _kind(
    """program programme project initiative campaign study trial survey pilot course training workshop conference
    audit review assessment mission"""
)
_PROGRAM = _kind("software tool app application platform portal database dashboard")
_BOOK = _kind("guide guidelines handbook manual report brochure booklet")
_PAPER = _kind("plan policy guide guidelines handbook manual report strategy charter brochure booklet")
_ABSENT = (
    Absent(
        _BODY,
        "How many people work for {subject}?",
        _there(
            r"\b\d[\d,]* (?:[\w-]+ ){0,3}(?:people|persons|staff|employees|members|workers|ftes?)\b|\b(?:headcount|workforce|staffing)\b"
        ),
    ),
    Absent(
        _BODY,
        "In which year was {subject} founded?",
        _there(r"\b(?:founded|established|created|formed|inception|set up)\b"),
    ),
    Absent(
        _BODY,
        "What is the telephone number of {subject}?",
        _there(r"\d{3}[-. )]+\d{3,4}|\b(?:tele)?phone\b|\bcall us\b"),
    ),
    Absent(
        _WORK,
        "How much does {subject} cost in total?",
        _there(r"[$€£¥]|\b(?:costs?|prices?|fees?|paid|budgets?|funds|funding|million|dollars)\b"),
    ),
    Absent(
        _PROGRAM,
        "How much does a licence for {subject} cost?",
        _there(
            r"[$€£¥]|\b(?:costs?|prices?|pricing|fees?|licen[cs]es?|free of charge|subscriptions?|open source)\b"
        ),
    ),
    Absent(
        _PROGRAM,
        "In which programming language is {subject} written?",
        _there(r"\b(?:python|java|javascript|typescript|ruby|rust|golang|c\+\+|php|written in|go|node)\b"),
    ),
    Absent(
        _PAPER,
        "Into which languages has {subject} been translated?",
        _there(r"\blanguages?\b|\btranslat|\bSpanish\b|\bFrench\b|\bChinese\b"),
    ),
    Absent(
        _BOOK,
        "How many pages does {subject} have?",
        _there(r"\b\d+ pages?\b|\bpage (?:count|limit)\b"),
    ),
)
_TO_HEAD = re.compile(
    r" (?:of|in|for|to|with|on|from|by|at|under|within|between|about|into|as|against|via|through)\b|[(,]"
)
MOST_NAME_WORDS = 9


def subject_asked(claim: Claim) -> str:
    """Return the name that a question of what is absent can be about; "" where the claim is about no such thing."""
    name = claim.subject
    is_name = bool(name) and not claim.told and not is_vague(name) and len(name.split()) <= MOST_NAME_WORDS
    has_name = re.search(r"(?:^|[ (])(?!The |An? |Each |Any |Every |All )[A-Z]", name) is not None
    is_told = len(content_terms(name)) > 1  # Which department the Department is, the document around it says.
    is_one = re.match(r"the |.*[’']s ", name) is not None and " and " not in name
    return name if is_name and has_name and is_told and is_one else ""


def absent_of(claim: Claim, texts: Sequence[str]) -> str:
    """Return a question about the subject of a claim that none of the texts seems to answer; "" where there is none.

    Args:
        texts: those that name the subject; all of them are looked at.
    """
    subject = subject_asked(claim)
    head = _TO_HEAD.split(subject, maxsplit=1)[0] if subject else ""
    fitting = [
        one.question
        for one in _ABSENT
        if head.rpartition(" ")[2][:1].isupper()
        and one.kind.search(head)
        and not any(one.there.search(text) for text in texts)
    ]
    return fitting[sum(map(ord, subject)) % len(fitting)].format(subject=subject) if fitting else ""
