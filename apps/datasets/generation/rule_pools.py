"""Passages that rules can ask about come first: most of what stands in real documents has no sentence for a template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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

    Args:
        names: of the collections, by id.
        pools: groups of passages by type, see ``pools_read``.
    """
    wanted = Counter(slot.type for slot in slots)
    return {
        kind: _ordered(actor, names, kind, list(groups), SPARE * wanted[kind])
        for kind, groups in pools.items()
    }


def _ordered(
    actor: Actor, names: Mapping[int, str], kind: str, groups: list[Group], enough: int
) -> list[Group]:
    first: dict[str, Group] = {}
    for at in range(0, min(len(groups), MOST_TRIED), BATCH):
        if len(first) >= enough:
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
    return [*first.values(), *(group for group in groups if group not in chosen)]
