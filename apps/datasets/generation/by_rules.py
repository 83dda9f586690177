"""Questions, filter, synthesis and judge without a language model: templates and shared words. Pure, deterministic.

They show the whole way of a row, and let CI prove it; what they make is labelled ``rules``. Nothing here understands a
text: the judge sees whether words are shared, not whether they are true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from apps.datasets.generation.corpus import Passage
from apps.datasets.record import Source, Step
from toolloop.sentences import content_terms, identifiers, split

AUTHOR = "rules:lexical@1"
NOT_FOUND = "The documents do not say."
_CLAIM = re.compile(
    r"^(?!(?:It|Its|They|Their|There|This|These|That|Those|He|She|His|Her|We|Our|You|Your|Such|Which|What|If|When)\b)"
    r"(?P<subject>(?:The |An? |Each |All |Any |[A-Z])[^.;:?!|]{3,90}?) "
    r"(?P<verb>is|are|was|were|includes?|means|requires?|provides?|establish(?:es)?|must|shall|may|will|has|have) "
    r"(?P<rest>[^|]{12,400})$"
)
_DOES = {"include", "mean", "require", "provide", "establish"}
_POINTS_AWAY = re.compile(
    r"\b(this|that|these|those|the above|the following) (passage|text|section|document|paragraph|table)\b"
    r"|\b(passage|document) above\b|^(it|they|he|she|this|that) ",
    re.IGNORECASE,
)
_ABSENT = (
    "annual cost of translating",
    "name of the photographer of",
    "melting point of",
    "mascot of",
    "licence number of the auditor of",
    "musical theme of",
)
_ABSTAINS = re.compile(
    r"did not find|not (?:say|tell|state|mention|contain)|no (?:passage|document)s? (?:say|tell|answer)|cannot find",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^> (?P<text>.*?) \[c(?P<id>\d+)\](?: \(page \d+\))?$", re.MULTILINE)
MOST_QUOTES = 3


def question_make(
    passages: Sequence[Passage], kind: str, difficulty: str
) -> tuple[str, str, list[str]] | None:
    """Return (question, rationale, quotes) from templates; None when the passages have no sentence to ask about."""
    claims = [claim for p in passages if (claim := _claim(p, difficulty)) is not None]
    if len(claims) < len(passages):
        return None
    subjects = [subject for subject, _, _ in claims]
    quotes = [sentence for _, _, sentence in claims]
    first, verb, _ = claims[0]
    document = passages[0].document
    plain = _asked(first, verb)
    why = f"rules: a {difficulty} question of the type {kind}, made from a sentence of {document}"
    if kind == "code":
        name = passages[0].name or first
        return f"What does `{name}` do in the code?", why, quotes
    if kind == "unanswerable":
        place = sum(map(ord, first)) % len(_ABSENT)
        return f"What is the {_ABSENT[place]} {_lowered(first)}?", why, []
    if kind == "multi_hop":
        text = f"{plain[:-1]}, and how does this relate to {_lowered(subjects[1])}?"
    elif kind == "comparison":
        other = passages[1].document
        text = (
            f"How does what {document} says about {_lowered(first)} compare with what {other} says about "
            f"{_lowered(subjects[1])}?"
        )
    elif kind == "how_to":
        text = f"What has to be done or observed with regard to {_lowered(first)}?"
    elif difficulty == "easy" or not passages[0].headings:
        text = plain
    else:
        text = f"{plain[:-1]}, in the context of {passages[0].headings[-1].strip()}?"
    return text, why, quotes


def _claim(passage: Passage, difficulty: str) -> tuple[str, str, str] | None:
    """Return (subject, verb, sentence) of the sentence that says most; harder ones have more terms and figures."""
    if passage.name:
        first = next((line for line in passage.text.splitlines() if line.strip()), "")
        return passage.name, "is", first.strip()
    found = []
    for sentence in split(passage.text):
        match = _CLAIM.match(sentence)
        if match is None or _POINTS_AWAY.search(sentence):
            continue
        terms = len(content_terms(match["subject"]))
        if not 1 <= terms <= 8:
            continue
        weight = len(identifiers(sentence)) + min(len(content_terms(sentence)), 20) / 10
        found.append((weight, match["subject"].strip(), match["verb"], sentence))
    if not found:
        return None
    found.sort(key=lambda claim: (claim[0], claim[3]), reverse=difficulty == "hard")
    _, subject, verb, sentence = found[len(found) // 2 if difficulty == "medium" else 0]
    return subject, verb, sentence


def _asked(subject: str, verb: str) -> str:
    lowered = _lowered(subject)
    if verb in ("is", "are", "was", "were"):
        return f"What {verb} {lowered}?"
    base = re.sub(r"(?<=h)es$|s$", "", verb)
    if base in _DOES:
        return f"What {'does' if base != verb else 'do'} {lowered} {base}?"
    if verb in ("has", "have"):
        return f"What {'does' if verb == 'has' else 'do'} {lowered} have?"
    return f"What {verb} {lowered} do?"


def _lowered(subject: str) -> str:
    head, _, rest = subject.partition(" ")
    is_word = head in {"The", "A", "An", "Each", "All", "Any"}
    return f"{head.lower()} {rest}" if is_word else subject


def filter_reason(question: str, passages: Sequence[Passage], kind: str, gold: int) -> str:
    """Return why a question is not to be kept, "" when these rules find nothing. Also run before a model is asked."""
    text = " ".join(question.split())
    if not 12 <= len(text) <= 600:
        return "The question is too short or too long."
    if not text.endswith("?"):
        return "It is no question."
    if _POINTS_AWAY.search(text):
        return "It does not stand on its own: it points to a text that a reader does not have."
    if not content_terms(text):
        return "It names nothing."
    if kind == "unanswerable":
        return ""
    if not gold:
        return "No words of the passages answer it."
    if kind in ("multi_hop", "comparison") and (gold < 2 or len(passages) < 2):
        return "It needs two passages, and only one answers it."
    return ""


def synthesis_make(draft: str, sources: Sequence[Source]) -> tuple[str, list[int]]:
    """Return the answer without marks, and the ids of the chunks it quotes."""
    quotes = [(m["text"], int(m["id"])) for m in _QUOTED.finditer(draft)][:MOST_QUOTES]
    known = {s.chunk_id for s in sources}
    used = [(text, pk) for text, pk in quotes if pk in known]
    if not used:
        return NOT_FOUND, []
    answer = " ".join(re.sub(r"\\(?=[^\w\s])", "", text) for text, _ in used)
    return answer, list(dict.fromkeys(pk for _, pk in used))


def repair_make(answer: str, gold: Sequence[Source], expected: str) -> tuple[str, list[int]]:
    """Return the answer with the sentences that the question was made from, and their chunks."""
    if expected == "abstain":
        return NOT_FOUND, []
    texts = dict.fromkeys(" ".join(s.quote.split()) for s in gold)
    return " ".join(texts), [s.chunk_id for s in gold if s.chunk_id is not None]


def judge_make(
    question: str, answer: str, steps: Sequence[Step], sources: Sequence[Source],
    gold: Sequence[Source], expected: str,
) -> dict[str, tuple[int, str]]:  # fmt: skip
    """Return the six levels by shared words, each with the words that show it."""
    if expected == "abstain":
        return _abstention(answer)
    said = set(content_terms(answer))
    asked = set(content_terms(question))
    known = {t for s in sources for t in content_terms(s.quote)}
    wanted = {t for s in gold for t in content_terms(s.quote)}
    found = {s.chunk_id for s in sources}
    reached = [s for s in gold if s.chunk_id in found]
    figures = identifiers(answer) | set(re.findall(r"\d[\d.,]*", answer))
    first = sources[0].quote[:200] if sources else ""
    sentences = split(answer) or [answer]
    longest = max(sentences, key=len)
    calls = [s for s in steps if s.action]
    return {
        "completeness": (_level(_share(wanted, said)), _words(wanted & said)),
        "accuracy": (_level(_share(said, known)), first),
        "relevance": (_level(0.3 + _share(asked, said | known & wanted)), _words(asked & said)),
        "clarity": (5 if len(longest) <= 300 else 4 if len(longest) <= 600 else 2, longest[:200]),
        "specificity": (5 if figures else 4 if len(said) >= 8 else 2, _words(figures or said)),
        "reasoning": (
            (5 if len(reached) == len(gold) else 3 if reached or calls else 1),
            f"{len(calls)} calls, {len(reached)} of {len(gold)} passages found",
        ),
    }


def _abstention(answer: str) -> dict[str, tuple[int, str]]:
    match = _ABSTAINS.search(answer)
    level, evidence = (5, match.group()) if match else (1, answer[:200])
    names = ("completeness", "accuracy", "relevance", "clarity", "specificity", "reasoning")
    return dict.fromkeys(names, (level, evidence))


def _share(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _level(share: float) -> int:
    return 1 + sum(share >= step for step in (0.2, 0.4, 0.6, 0.8))


def _words(terms: set[str] | Mapping[str, object]) -> str:
    return ", ".join(sorted(terms)[:12])
