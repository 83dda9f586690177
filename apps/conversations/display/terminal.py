"""A growing answer for a terminal, which cannot take anything back."""

from __future__ import annotations

from collections.abc import Mapping

from apps.conversations.citations.markers import CitablePassage, answer_cite


class PlainAnswer:
    """Returns what is new to print; an answer that was begun anew starts on a new line."""

    def __init__(self) -> None:
        self._printed = ""

    def more(self, text: str, passages: Mapping[int, CitablePassage], *, is_complete: bool) -> str:
        """Return the next stretch of the answer.

        Args:
            text: the answer so far, as the model wrote it.
            is_complete: no more will come; until then, spaces and an open bracket at the end wait for what follows them.
        """
        shown = answer_cite(text, passages).text
        if not is_complete:
            shown = shown.rstrip(" \t\n[")  # a bracket may become a marker
        if shown.startswith(self._printed):
            new = shown[len(self._printed) :]
        else:
            new = f"\n[started again]\n{shown}" if shown else ""
        if new:
            self._printed = shown
        return new
