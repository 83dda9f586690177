"""What else happens when an answer has ended: rooms above this one say so here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import transaction

from apps.conversations.models import Turn

Listener = Callable[[Turn], object]
_LISTENERS: dict[Listener, str] = {}


def on_answer(listener: Listener, *, wanted: str) -> None:
    """Have a function called with each turn that has an answer, after its transaction; once however often it is named.

    Args:
        wanted: in SQL without values, whether it has anything to do about a turn ``t``. It's asked by the statement that ends
            the turn: in most workspaces there is nothing to do, and finding that out would take each answer another one.
    """
    _LISTENERS[listener] = wanted


def wanted_column() -> str:
    """Return what a statement about a turn ``t`` asks for ``answer_tell``, as one column."""
    return f"ARRAY[{', '.join(_LISTENERS.values())}]::boolean[]"


def answer_tell(turn: Turn, wanted: Sequence[bool]) -> None:
    """Tell the listeners that have something to do when the current transaction commits.

    The answer is there by then, so nothing that they do can delay or undo it; what one of them raises is logged.

    Args:
        wanted: as ``wanted_column`` was answered.
    """
    for listener, is_wanted in zip(_LISTENERS, wanted, strict=True):
        if is_wanted:
            transaction.on_commit(_told(listener, turn), robust=True)


def _told(listener: Listener, turn: Turn) -> Callable[[], object]:
    # Django logs a failure under the function's name, which a partial has not.
    def tell() -> object:
        return listener(turn)

    return tell
