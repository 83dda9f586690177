"""What rules ask, planned for a whole job: the sentences of its passages that a template fits, each asked once.

Most of what stands in real documents has no sentence for a template, and what has one is asked once in a job, whatever the
type. So the questions are made before the rows are: the best first, those of types that few sentences suit before the
others. What finds no question is not made, and the job says that it is missing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apps.datasets.generation.corpus import CorpusPassage, passages_read
from apps.datasets.generation.plan import Candidate, Slot
from apps.datasets.generation.rule_claims import Claim, claims_of
from apps.datasets.generation.rule_pairs import bare_subject, kind_of
from apps.datasets.generation.rule_questions import Made, about_subject, made_of, pair_of, question_make
from apps.datasets.models import Difficulty, QuestionType
from tenancy.actors import Actor
from toolloop.best_sentences import content_terms

MOST_READ, BATCH = 3000, 500
"""Passages looked at: whoever starts a job waits for it."""
SPARES = 2
"""Further questions for each wanted row, for those that the filter or the judge drops."""
MOST_ABOUT_ONE = 6
"""Passages about a subject: of one that stands everywhere, such as the company itself, two facts have nothing in common."""
MOST_COMPARED = 40
"""Claims of a kind of which two are compared."""
MOST_OF_A_TABLE = 3
"""Rows of a column of a document: the next ones would ask the same of another line."""
ALIKE = 0.75
"""Share of words from which two questions are one with another word in it."""
MADE = "made"
"""Key of an item's data that keeps what was planned for it."""
_PAIRS = (QuestionType.COMPARISON, QuestionType.MULTI_HOP)
_SCARCE = (
    QuestionType.CONTRADICTORY,
    QuestionType.CODE,
    QuestionType.COMPARISON,
    QuestionType.MULTI_HOP,
    QuestionType.UNANSWERABLE,
    QuestionType.HOW_TO,
    QuestionType.ADVERSARIAL,
    QuestionType.MULTI_TURN,
    QuestionType.INJECTED,
    QuestionType.FACTUAL,
)
"""Types in the order in which they choose: nearly every passage has a plain fact."""
_LEVELS = (Difficulty.EASY.value, Difficulty.MEDIUM.value, Difficulty.HARD.value)

Fact = tuple[Claim, CorpusPassage]


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with the passages that it is made from.

    Attributes:
        weight: how much its sentences say: the least are the easy ones.
        sentences: that no other question may be made from.
    """

    chunks: tuple[int, ...]
    made: Made
    weight: float
    sentences: tuple[str, ...] = ()


@dataclass(slots=True)
class _Asked:
    """What was asked by now in this job."""

    questions: set[str] = field(default_factory=set)
    terms: list[set[str]] = field(default_factory=list)
    sentences: set[str] = field(default_factory=set)

    def take(self, planned: Planned) -> bool:
        """Note a question, and tell whether nothing like it was asked before."""
        question, sentences = planned.made.question, planned.sentences
        terms = set(content_terms(question))
        is_new = question not in self.questions and self.sentences.isdisjoint(sentences)
        if not is_new or (not planned.made.told and any(_alike(terms, other) for other in self.terms)):
            return False
        self.questions.add(question)
        self.sentences.update(sentences)
        self.terms.append(terms)
        return True


def candidates_by_rules(
    actor: Actor,
    names: Mapping[int, str],
    slots: Sequence[Slot],
    pools: Mapping[str, Sequence[tuple[int, ...]]],
    rounds: int = 1 + SPARES,
) -> list[Candidate]:
    """Return candidates with their questions, at most ``SPARES`` more than one for each slot, first round first.

    No two ask the same, and no two of them are made from one sentence. Slots of a type for which there are too few
    questions have none.

    Args:
        names: of the collections, by id.
        pools: groups of passages by type, see ``pools_read``.
        rounds: most candidates for a slot.
    """
    among = list(dict.fromkeys(pk for groups in pools.values() for group in groups for pk in group))[
        :MOST_READ
    ]
    passages = {
        passage.chunk_id: passage
        for at in range(0, len(among), BATCH)
        for passage in passages_read(actor, among[at : at + BATCH], names)
    }
    facts = facts_of(list(passages.values()))
    asked = _Asked()
    wanted: dict[str, list[Slot]] = {kind: [slot for slot in slots if slot.type == kind] for kind in _SCARCE}
    offered = {
        kind: _offered(kind, some, facts, passages, pools.get(kind, ()))
        for kind, some in wanted.items()
        if some
    }
    chosen: dict[str, list[Planned]] = {kind: [] for kind in offered}
    for times in (
        1,
        min(SPARES, rounds - 1),
    ):  # A spare one must not be the one that another type has nothing else than.
        for kind, rest in offered.items():
            new = (planned for planned in rest if asked.take(planned))
            chosen[kind] += itertools.islice(new, times * len(wanted[kind]))
    found = [one for kind, some in chosen.items() for one in _assigned(wanted[kind], some)]
    return sorted(found, key=lambda candidate: (candidate.slot.number, candidate.round))


def facts_of(passages: Sequence[CorpusPassage]) -> list[Fact]:
    """Return what passages state, least doubtful first and documents in turn; nothing that two sentences answer differently."""
    found = [(claim, passage) for passage in passages for claim in claims_of(passage)]
    answers: dict[str, set[str]] = {}
    for claim, _ in found:
        answers.setdefault(claim.question, set()).add(" ".join((claim.told or claim.sentence).split()))
    once: dict[str, Fact] = {}
    for claim, passage in found:
        if len(answers[claim.question]) == 1:
            once.setdefault(claim.question, (claim, passage))
    turns: Counter[tuple[int, int]] = Counter()
    columns: Counter[tuple[int, str]] = Counter()
    ranked: list[tuple[int, int, Fact]] = []
    for claim, passage in once.values():
        column = (passage.document_id, claim.column)
        columns[column] += bool(claim.told)
        if claim.told and columns[column] > MOST_OF_A_TABLE:
            continue
        turns[claim.doubt, passage.document_id] += 1
        ranked.append((claim.doubt, turns[claim.doubt, passage.document_id], (claim, passage)))
    ranked.sort(key=lambda one: one[:2])
    return [fact for _, _, fact in ranked]


def _offered(
    kind: str,
    wanted: Sequence[Slot],
    facts: Sequence[Fact],
    passages: Mapping[int, CorpusPassage],
    groups: Sequence[tuple[int, ...]],
) -> Iterator[Planned]:
    """Yield questions of a type, the best first."""
    if kind in _PAIRS:
        yield from _pairs(kind, list(passages.values()), facts)
    elif kind in (QuestionType.UNANSWERABLE, QuestionType.ADVERSARIAL):
        yield from _about_subjects(kind, facts, list(passages.values()))
    elif kind in (QuestionType.CODE, QuestionType.CONTRADICTORY):
        yield from _of_groups(kind, wanted, groups, passages)
    elif kind == QuestionType.MULTI_TURN:
        first = {group[0]: group for group in reversed(groups)}
        told = {passage.chunk_id for _, passage in facts}
        begun = [
            (claim, passage, first[passage.chunk_id]) for claim, passage in facts if passage.chunk_id in first
        ]
        # A conversation goes on where the next passage has something to ask about, too.
        begun.sort(key=lambda one: not told.issuperset(one[2]) or len(one[2]) < 2)
        for claim, passage, group in begun:
            yield _of_claim(kind, claim, passage, group)
    else:
        for claim, passage in facts:
            if claim.is_how or kind != QuestionType.HOW_TO:
                yield _of_claim(kind, claim, passage, (passage.chunk_id,))


def _of_claim(kind: str, claim: Claim, passage: CorpusPassage, chunks: tuple[int, ...]) -> Planned:
    made = made_of(claim, f"rules: a question of the type {kind}, from a sentence of {passage.document}")
    return Planned(chunks, made, claim.weight, (claim.sentence,))


def _of_groups(
    kind: str,
    wanted: Sequence[Slot],
    groups: Sequence[tuple[int, ...]],
    passages: Mapping[int, CorpusPassage],
) -> Iterator[Planned]:
    for group in groups:
        if all(pk in passages for pk in group):
            made = question_make([passages[pk] for pk in group], kind, wanted[0].difficulty)
            if made is not None:
                yield Planned(group, made, float(len(made.quotes)), tuple(made.quotes))


def _about_subjects(kind: str, facts: Sequence[Fact], passages: Sequence[CorpusPassage]) -> Iterator[Planned]:
    """Yield questions that no passage which names their subject seems to answer."""
    seen: set[str] = set()
    for claim, passage in facts:
        name = bare_subject(claim.subject)
        if name and name not in seen:
            seen.add(name)
            texts = [other.text for other in passages if name in " ".join(other.text.split())]
            made = about_subject(claim, kind, passage, texts or [passage.text])
            if made is not None:
                yield Planned((passage.chunk_id,), made, claim.weight)


def _pairs(kind: str, passages: Sequence[CorpusPassage], facts: Sequence[Fact]) -> Iterator[Planned]:
    """Yield questions over two claims of two passages that have to do with each other; each claim in one of them."""
    used: set[int] = set()
    for a, b in _compared(passages) if kind == QuestionType.COMPARISON else _linked(facts):
        (first, one), (second, other) = a, b
        if one.chunk_id == other.chunk_id or id(first) in used or id(second) in used:
            continue
        pair = pair_of(kind, first, second, one, other)
        if pair is not None:
            used |= {id(first), id(second)}
            documents = " and ".join(dict.fromkeys((one.document, other.document)))
            why = f"rules: a question of the type {kind}, from a sentence each of two passages of {documents}"
            made = Made(pair.question, why, [first.sentence, second.sentence], pair.told)
            sentences = (first.sentence, second.sentence)
            yield Planned((one.chunk_id, other.chunk_id), made, first.weight + second.weight, sentences)


def _compared(passages: Sequence[CorpusPassage]) -> Iterator[tuple[Fact, Fact]]:
    """Yield claims of one kind; what two documents answer differently is what is compared, so all claims are looked at."""
    kinds: dict[str, list[Fact]] = {}
    for passage in passages:
        for claim in claims_of(passage):
            kinds.setdefault(kind_of(claim), []).append((claim, passage))
    for group in sorted(kinds.values(), key=lambda group: group[0][0].doubt):
        few = group[:MOST_COMPARED]
        yield from ((a, b) for at, a in enumerate(few) for b in few[at + 1 :])


def _linked(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Yield two claims about one subject, then two of which the first one's sentence brings the second one's subject up."""
    about: dict[str, list[Fact]] = {}
    for fact in facts:
        if name := bare_subject(fact[0].subject):
            about.setdefault(name, []).append(fact)
    named = {
        name: group for name, group in about.items() if len({p.chunk_id for _, p in group}) <= MOST_ABOUT_ONE
    }
    for group in named.values():
        yield from ((a, b) for a in group for b in group if a is not b)
    for first in facts:
        said = " ".join(first[0].sentence.split())
        for name, group in named.items():
            if name in said and name != bare_subject(first[0].subject):
                yield from ((first, second) for second in group)


def _assigned(slots: Sequence[Slot], chosen: Sequence[Planned]) -> list[Candidate]:
    """Give questions to slots round by round, those that say least to the easy ones."""
    order = sorted(slots, key=lambda slot: (_LEVELS.index(slot.difficulty), slot.number))
    found = []
    for turn in range(0, len(chosen), len(slots)):
        part = chosen[turn : turn + len(slots)]
        # Too few for all: the slots left out are spread over the levels.
        taken = [order[at * len(order) // len(part)] for at in range(len(part))]
        for slot, planned in zip(taken, sorted(part, key=lambda one: one.weight), strict=True):
            data = {MADE: planned.made._asdict()}
            found.append(Candidate(slot, turn // len(slots), planned.chunks, data))
    return found


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) / max(1, len(one | other)) >= ALIKE
