"""Passages that rules can ask about come first: most of what stands in real documents has no sentence for a template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from apps.datasets.generation.corpus import passages_read
from apps.datasets.generation.plan import Slot
from apps.datasets.generation.rule_claims import claims_of
from apps.datasets.generation.rule_questions import bare_subject, question_make
from apps.datasets.models import QuestionType
from tenancy.actors import Actor

MOST_TRIED, BATCH = 500, 50
"""Groups of passages looked at for each type: whoever starts a job waits for it."""
SPARE = 2
"""Groups with a question for each wanted row, before the looking ends."""
MOST_ABOUT_ONE = 4
"""Passages about a subject: of one that stands everywhere, such as the company itself, two facts have nothing in common."""

Group = tuple[int, ...]


def askable_first(
    actor: Actor, names: Mapping[int, str], slots: Sequence[Slot], pools: Mapping[str, Sequence[Group]]
) -> dict[str, list[Group]]:
    """Return pools in another order: first those groups that have a question which none before has, then all others.

    Those with a passage that another type is made from come behind the rest of the first, so that two types seldom ask
    the same.

    Args:
        names: of the collections, by id.
        pools: groups of passages by type, see ``pools_read``.
    """
    wanted = Counter(slot.type for slot in slots)
    taken: set[int] = set()
    asked: set[str] = set()
    found = {}
    # Nearly every passage has a plain fact; the other types choose first. The order of the mapping must not matter.
    for kind in sorted(pools, key=lambda kind: (kind == QuestionType.FACTUAL, kind)):
        groups = list(pools[kind])
        if kind == QuestionType.MULTI_HOP:
            groups = [*_about_one(actor, names, pools), *groups]
        found[kind] = _ordered(actor, names, kind, groups, SPARE * wanted[kind], taken, asked)
        taken.update(pk for group in found[kind][: wanted[kind]] for pk in group)
    return found


def _about_one(actor: Actor, names: Mapping[int, str], pools: Mapping[str, Sequence[Group]]) -> list[Group]:
    """Return pairs of passages that each say something of the same subject."""
    among = list(dict.fromkeys(pk for groups in pools.values() for group in groups for pk in group))
    about: dict[str, list[int]] = {}
    for passage in passages_read(actor, among[:MOST_TRIED], names):
        for subject in {bare_subject(claim.subject) for claim in claims_of(passage)} - {""}:
            about.setdefault(subject, []).append(passage.chunk_id)
    used: set[int] = set()
    pairs: list[Group] = []
    for subject in sorted(about, key=lambda subject: (len(about[subject]), subject)):
        free = [pk for pk in about[subject] if pk not in used][:2]
        if len(free) == 2 and len(about[subject]) <= MOST_ABOUT_ONE:
            pairs.append((free[0], free[1]))
            used.update(free)
    return pairs


def _ordered(
    actor: Actor,
    names: Mapping[int, str],
    kind: str,
    groups: list[Group],
    enough: int,
    taken: Set[int],
    asked: set[str],
) -> list[Group]:
    """Return groups, those first that have a question of their own; adds those of the next rows to ``asked``."""
    first: dict[str, Group] = {}
    for at in range(0, min(len(groups), MOST_TRIED), BATCH):
        if sum(taken.isdisjoint(group) for group in first.values()) >= enough:
            break
        batch = groups[at : at + BATCH]
        rows = passages_read(actor, {pk for group in batch for pk in group}, names)
        by_id = {passage.chunk_id: passage for passage in rows}
        for group in batch:
            of = group[:1] if kind == QuestionType.MULTI_TURN else group
            passages = [by_id[pk] for pk in of if pk in by_id]
            made = question_make(passages, kind, "medium") if len(passages) == len(of) else None
            if made is not None and made[0] not in asked:
                first.setdefault(made[0], group)
    chosen = set(first.values())
    fresh_first = sorted(first.values(), key=lambda group: not taken.isdisjoint(group))
    next_ones = set(fresh_first[: enough // SPARE])
    asked.update(question for question, group in first.items() if group in next_ones)
    return [*fresh_first, *(group for group in groups if group not in chosen)]
