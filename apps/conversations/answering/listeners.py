"""What else happens when an answer has ended: rooms above this one say so here."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from apps.conversations.models import Turn

Listener = Callable[[Turn], object]
_LISTENERS: list[Listener] = []


def on_answer(listener: Listener) -> None:
    """Have a function called with each turn that has an answer, after its transaction; once however often it is named."""
    if listener not in _LISTENERS:
        _LISTENERS.append(listener)


def answer_tell(turn: Turn) -> None:
    """Tell the listeners when the current transaction commits.

    The answer is there by then, so nothing that they do can delay or undo it; what one of them raises is logged.
    """
    for listener in _LISTENERS:
        transaction.on_commit(_told(listener, turn), robust=True)


def _told(listener: Listener, turn: Turn) -> Callable[[], object]:
    # Django logs a failure under the function's name, which a partial has not.
    def tell() -> object:
        return listener(turn)

    return tell
