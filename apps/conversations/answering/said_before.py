"""What was said before a question, as far back as who answers it is shown."""

from __future__ import annotations

from apps.conversations.assistants.selectors import version_options
from apps.conversations.models import Message, Turn
from apps.conversations.transcript.branch_tree import HISTORY_TURNS, branch_before


def turn_said_before(turn: Turn) -> list[tuple[str, str]]:
    """Return what was said before a turn's question, as far back as who answered it was shown: (author, text), oldest first.

    Answers stand there as people read them; a question that got none is left out, as it is for who answers.
    """
    version = turn.assistant_version
    most = HISTORY_TURNS - 1
    if version is not None:
        most = min(most, version_options(version).memory_turns)
    before = branch_before(turn, most) if most else []
    said: dict[int, dict[str, str]] = {pk: {} for pk in before}
    rows = Message.objects.filter(tenant_id=turn.tenant_id, turn_id__in=before)
    for pk, author, text in rows.values_list("turn_id", "author", "text"):
        said[pk][author] = text
    both = (Message.Author.USER, Message.Author.ASSISTANT)
    return [
        (author.value, texts[author])
        for texts in said.values()
        if all(texts.get(author, "").strip() for author in both)
        for author in both
    ]
