"""The tree that the turns of a conversation form: edited questions and answers asked for again stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import OuterRef, QuerySet

from apps.conversations.models import Conversation, Turn

HISTORY_TURNS = 40


@dataclass(frozen=True, slots=True)
class Tree:
    """A conversation's turns by their ids.

    Attributes:
        parents: turn to the one it follows, None for a first question; in the order in which they were asked.
        head: last turn of the branch that is shown.
        undecided: first turn to second, where two answers to one question were asked for and none is kept yet.
    """

    parents: Mapping[int, int | None]
    head: int | None = None
    undecided: Mapping[int, int] = field(default_factory=dict)

    @property
    def shown(self) -> list[int]:
        """The branch that is shown, from the first question on; it ends with both answers where none is kept yet."""
        return self.ending(self.head)

    def ending(self, last: int | None) -> list[int]:
        """Return the branch that ends with this turn as it is shown: with both answers where none is kept yet."""
        path = self.path(last)
        for both in self.undecided.items():
            if path and path[-1] in both:
                return [*path[:-1], *both]
        return path

    def path(self, last: int | None) -> list[int]:
        """Return the branch that ends with this turn, from the first question on; [] for None or an unknown one."""
        return list(self._upward(last))[::-1]

    def siblings(self, turn: int) -> list[int]:
        """Return the turns that follow the same turn as this one, itself among them, oldest first.

        Two answers of which none is kept yet are shown together: the first stands for both.
        """
        parent, seconds = self.parents[turn], set(self.undecided.values())
        return [pk for pk, other in self.parents.items() if other == parent and pk not in seconds]

    def newest_leaf(self, turn: int) -> int:
        """Return the turn that was asked last among this one and all that follow it."""
        below = {turn}
        for pk, parent in self.parents.items():  # a turn is asked after the one it follows
            if parent in below:
                below.add(pk)
                turn = pk
        return turn

    def _upward(self, turn: int | None) -> Iterator[int]:
        while turn is not None and turn in self.parents:
            yield turn
            turn = self.parents[turn]


def tree_read(conversation: Conversation) -> Tree:
    """Return a conversation's tree as it is now, in one query."""
    rows = (
        Turn.objects.filter(tenant_id=conversation.tenant_id, conversation_id=conversation.pk)
        .order_by("index")
        .values_list("pk", "parent_id", "side", "is_kept", "conversation__head_id")
    )
    parents, undecided, head, before = {}, {}, None, 0
    for pk, parent, side, is_kept, head in rows:  # noqa: B007 - the same in each row
        parents[pk] = parent
        if side == 2 and is_kept is None:
            undecided[before] = pk
        before = pk
    return Tree(parents, head, undecided)


def turns_alongside(turn: str = "") -> QuerySet[Turn]:
    """Return the other turn of a comparison, for a subquery: it has the index next to that of the outer turn.

    A turn without a side has no such index, so nothing is looked up for it.

    Args:
        turn: how the outer query names the turn, with ``__``; "" where it is one of turns.
    """
    mine = {name: OuterRef(f"{turn}{name}") for name in ("tenant_id", "conversation_id")}
    return Turn.objects.filter(**mine, index=OuterRef(f"{turn}index") + 3 - 2 * OuterRef(f"{turn}side"))


def branch_before(turn: Turn, most: int) -> list[int]:
    """Return the ids of up to ``most`` turns that a turn follows, the oldest first."""
    if turn.parent_id is None:
        return []
    tree = tree_read(Conversation(pk=turn.conversation_id, tenant_id=turn.tenant_id))
    return tree.path(turn.parent_id)[-most:]
