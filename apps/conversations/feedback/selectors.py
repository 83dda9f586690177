"""What people think of answers: the reasons that are offered, and the reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Prefetch, QuerySet, Subquery
from django.utils.translation import gettext_lazy

from apps.conversations.models import Citation, Feedback, Message, Turn
from apps.conversations.transcript.branch_tree import turns_alongside
from tenancy.actors import Actor

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

REASONS: dict[str, dict[str, StrOrPromise]] = {
    "good": {
        "correct": gettext_lazy("Correct"),
        "complete": gettext_lazy("Complete"),
        "well_sourced": gettext_lazy("Well sourced"),
        "clear": gettext_lazy("Clear"),
        "preferred": gettext_lazy("Better than the other answer"),
    },
    "bad": {
        "wrong": gettext_lazy("Wrong"),
        "unsupported": gettext_lazy("Not what the sources say"),
        "incomplete": gettext_lazy("Something is missing"),
        "missed_source": gettext_lazy("Did not find the right document"),
        "not_asked": gettext_lazy("Not what I asked"),
        "unclear": gettext_lazy("Unclear or too long"),
    },
}
"""Verdict to reason to how it is shown."""
PREFERRED = "preferred"
"""The reason that only one of two answers to one question can have."""


def reasons_offered(turn: Turn, verdict: str) -> dict[str, StrOrPromise]:
    """Return the reasons for a verdict about a turn, as ``REASONS`` has them."""
    return {code: text for code, text in REASONS[verdict].items() if code != PREFERRED or turn.side}


def feedback_list(*, actor: Actor, verdict: str = "") -> QuerySet[Feedback]:
    """Return feedback with its turns, runs, questions, answers and citations, newest first.

    ``other_model`` is the model whose answer to the same question was compared with this one, None without one.

    One sees one's own; who may read the audit log sees everybody's, which the form tells people before they send it.
    Nobody sees any of a conversation that was deleted, although it can still be brought back.

    Args:
        verdict: ``good`` or ``bad`` alone; "" for both.
    """
    actor.require("conversation.read")
    rows: QuerySet[Feedback] = Feedback.objects.visible_to(actor).filter(turn__conversation__removed_at=None)
    if verdict:
        rows = rows.filter(verdict=verdict)
    said: QuerySet[Message] = Message.objects.defer("words").order_by("pk")
    cited: QuerySet[Citation] = Citation.objects.order_by("number")
    return (
        rows.annotate(other_model=Subquery(turns_alongside("turn__").values("run__model")[:1]))
        .select_related("turn__run", "user")
        .prefetch_related(
            Prefetch("turn__messages", queryset=said), Prefetch("turn__citations", queryset=cited)
        )
        .order_by("-pk")
    )
