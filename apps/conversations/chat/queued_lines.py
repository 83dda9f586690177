"""Questions that wait, as the page of a conversation shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.collections.models import Document
from apps.conversations.chat.suggestions import Suggestion
from apps.conversations.chat.tools_offered import tool_lines
from apps.conversations.display.narrowing import limits_told
from apps.conversations.models import Conversation
from apps.conversations.transcript.selectors import queued_list, scope_names
from apps.conversations.turns.narrowing import Narrowing, narrowing_kept
from runs.providers import model_label
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class QueuedLine:
    """A question that waits.

    Attributes:
        problem: why it wasn't asked when its turn came; "" while it waits.
        limits: what it is limited to and which model answers as well, in a few words each.
        named: the chips that go back into the message box with it, as a JSON list of ``Suggestion``.
    """

    pk: int
    text: str
    problem: str
    limits: list[str]
    named: str


def queued_lines(*, actor: Actor, conversation: Conversation) -> list[QueuedLine]:
    """Return the questions that wait in a conversation of the actor's, in the order in which they will be asked."""
    rows = list(queued_list(actor=actor, conversation=conversation))
    narrowings = [narrowing_kept(row.request) for row in rows]
    titles = _titles(actor, conversation, narrowings)
    return [
        QueuedLine(row.pk, row.text, row.problem, _told(row.request), _named(narrowing, titles))
        for row, narrowing in zip(rows, narrowings, strict=True)
    ]


def _told(request: Mapping[str, Any]) -> list[str]:
    told = limits_told(request)
    if second := request.get("compare_with"):
        told.append(_("Compared with %(model)s") % {"model": model_label(second)})
    return told


def _titles(
    actor: Actor, conversation: Conversation, narrowings: list[Narrowing]
) -> dict[tuple[str, str], str]:
    """Return the titles of what was named, by kind and value; what the actor can't see any more has none."""
    found: dict[tuple[str, str], str] = {}
    if any(one.collections for one in narrowings):
        scope = scope_names(actor=actor, conversation=conversation)
        found |= {("collection", str(pk)): name for pk, name in scope.items()}
    if documents := {pk for one in narrowings for pk in one.documents}:
        seen = Document.objects.visible_to(actor).filter(pk__in=documents)
        found |= {("document", str(pk)): name for pk, name in seen.values_list("pk", "name")}
    if any(one.tools for one in narrowings):
        lines = tool_lines(actor=actor, version=None, off=())
        found |= {("tool", line.name): line.title for line in lines}
    return found


def _named(narrowing: Narrowing, titles: dict[tuple[str, str], str]) -> str:
    kinds = (
        ("collection", narrowing.collections),
        ("document", narrowing.documents),
        ("tool", narrowing.tools),
    )
    keys = [(kind, str(value)) for kind, values in kinds for value in values]
    chips = [asdict(Suggestion(*key, titles[key])) for key in keys if key in titles]
    return json.dumps(chips, ensure_ascii=False)
