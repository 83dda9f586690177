"""The tree that the turns of a conversation form: edited questions and answers asked for again stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apps.conversations.models import Conversation, Turn

HISTORY_TURNS = 40


@dataclass(frozen=True, slots=True)
class Tree:
    """A conversation's turns by their ids.

    Attributes:
        parents: turn to the one it follows, None for a first question; in the order in which they were asked.
        head: last turn of the branch that is shown.
    """

    parents: Mapping[int, int | None]
    head: int | None = None

    @property
    def shown(self) -> list[int]:
        """The branch that is shown, from the first question on."""
        return self.path(self.head)

    def path(self, last: int | None) -> list[int]:
        """Return the branch that ends with this turn, from the first question on; [] for None or an unknown one."""
        return list(self._upward(last))[::-1]

    def siblings(self, turn: int) -> list[int]:
        """Return the turns that follow the same turn as this one, itself among them, oldest first."""
        parent = self.parents[turn]
        return [pk for pk, other in self.parents.items() if other == parent]

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
        .values_list("pk", "parent_id", "conversation__head_id")
    )
    parents, head = {}, None
    for pk, parent, head in rows:  # noqa: B007 - the same in each row
        parents[pk] = parent
    return Tree(parents, head)


def branch_before(turn: Turn, most: int) -> list[int]:
    """Return the ids of up to ``most`` turns that a turn follows, the oldest first."""
    if turn.parent_id is None:
        return []
    tree = tree_read(Conversation(pk=turn.conversation_id, tenant_id=turn.tenant_id))
    return tree.path(turn.parent_id)[-most:]
