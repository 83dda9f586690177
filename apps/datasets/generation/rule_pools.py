"""Passages that rules can ask about come first: most of what stands in real documents has no sentence for a template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from apps.datasets.generation.corpus import passages_read
from apps.datasets.generation.plan import Slot
from apps.datasets.generation.rule_questions import question_make
from apps.datasets.models import QuestionType
from tenancy.actors import Actor

MOST_TRIED, BATCH = 500, 50
"""Groups of passages looked at for each type: whoever starts a job waits for it."""
SPARE = 2
"""Groups with a question for each wanted row, before the looking ends."""

Group = tuple[int, ...]


def askable_first(
    actor: Actor,
    names: Mapping[int, str],
    slots: Sequence[Slot],
    pools: Mapping[str, Sequence[Group]],
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
    found = {}
    # Nearly every passage has a plain fact; the other types choose first. The order of the mapping must not matter.
    for kind in sorted(pools, key=lambda kind: (kind == QuestionType.FACTUAL, kind)):
        found[kind] = _ordered(actor, names, kind, list(pools[kind]), SPARE * wanted[kind], taken)
        taken.update(pk for group in found[kind][: wanted[kind]] for pk in group)
    return found


def _ordered(
    actor: Actor,
    names: Mapping[int, str],
    kind: str,
    groups: list[Group],
    enough: int,
    taken: Set[int],
) -> list[Group]:
    first: dict[str, Group] = {}
    for at in range(0, min(len(groups), MOST_TRIED), BATCH):
        if sum(taken.isdisjoint(group) for group in first.values()) >= enough:
            break
        batch = groups[at : at + BATCH]
        rows = passages_read(actor, {pk for group in batch for pk in group}, names)
        by_id = {passage.chunk_id: passage for passage in rows}
        for group in batch:
            asked = group[:1] if kind == QuestionType.MULTI_TURN else group
            passages = [by_id[pk] for pk in asked if pk in by_id]
            made = question_make(passages, kind, "medium") if len(passages) == len(asked) else None
            if made is not None:
                first.setdefault(made[0], group)
    chosen = set(first.values())
    fresh_first = sorted(first.values(), key=lambda group: not taken.isdisjoint(group))
    return [*fresh_first, *(group for group in groups if group not in chosen)]
