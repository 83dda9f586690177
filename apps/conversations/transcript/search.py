"""Search over one's own conversations: titles, questions and answers, by whole words and the beginnings of words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.conversations.models import Message
from apps.conversations.transcript.shown import conversation_withheld
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor

MAX_QUERY = 200
MOST_FOUND = 30
_WORDS = re.compile(r"\w+")
_LINES = re.compile(r"\|(?:\s*:?-+:?\s*\|)+|(?:^|\n)\s*#{1,6}\s")
"""What Markdown draws as lines and sizes: the rule of a table, the marks of a heading."""
_LONGEST = 300
"""Characters of an excerpt that is cut here."""
_OPEN, _CLOSE = "\ue000", "\ue001"
# Postgres full text search (https://www.postgresql.org/docs/current/textsearch.html). The best message of each conversation
# is shown; a match in the title alone shows none.
_SQL = """
WITH q AS (SELECT to_tsquery('simple', %(query)s) AS words),
mine AS (
  SELECT id, title, updated_at FROM conversations_conversation
  WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND removed_at IS NULL
),
best AS (
  SELECT DISTINCT ON (turn.conversation_id) turn.conversation_id, turn.id AS turn_id, message.author, message.text
  FROM mine
  JOIN conversations_turn turn ON turn.tenant_id = %(tenant)s AND turn.conversation_id = mine.id
  JOIN conversations_message message ON message.tenant_id = %(tenant)s AND message.turn_id = turn.id
  CROSS JOIN q
  WHERE message.words @@ q.words
  ORDER BY turn.conversation_id, ts_rank(message.words, q.words) DESC, message.id
),
found AS (
  SELECT mine.id, mine.title, mine.updated_at, best.turn_id, best.author, best.text
  FROM mine CROSS JOIN q LEFT JOIN best ON best.conversation_id = mine.id
  WHERE best.turn_id IS NOT NULL OR to_tsvector('simple', mine.title) @@ q.words
  ORDER BY mine.updated_at DESC, mine.id DESC
  LIMIT %(most)s
)
SELECT found.id, found.title, found.updated_at, found.turn_id, found.author,
  ts_headline('simple', left(found.text, 200000), q.words, %(options)s)
FROM found CROSS JOIN q ORDER BY found.updated_at DESC, found.id DESC
"""
_OPTIONS = (
    f"StartSel={_OPEN}, StopSel={_CLOSE}, MaxFragments=2, MaxWords=22, MinWords=8, FragmentDelimiter=' … '"
)


@dataclass(frozen=True, slots=True)
class ConversationHit:
    """A conversation that was found.

    Attributes:
        turn_pk: the turn whose question or answer fits best; None when only the title fits.
        excerpt: from there, plain text; ``marks`` are the [start, end) of the words in it that were searched for.
    """

    pk: int
    title: str
    updated_at: datetime
    turn_pk: int | None
    author: str
    excerpt: str
    marks: list[tuple[int, int]]

    @property
    def excerpt_html(self) -> SafeString:
        """The excerpt with its marks, escaped."""
        at, parts = 0, []
        for start, end in self.marks:
            parts.append((self.excerpt[at:start], self.excerpt[start:end]))
            at = end
        marked = format_html_join("", "{}<mark>{}</mark>", parts)
        return format_html("{}{}", marked, self.excerpt[at:])


def conversation_find(*, actor: Actor, query: str, most: int = MOST_FOUND) -> list[ConversationHit]:
    """Return the actor's own conversations that hold all words of the query, the last used first.

    Args:
        query: words; each also finds longer words that begin with it. Without any word nothing is found.

    Raises:
        Invalid: longer than ``MAX_QUERY`` characters.
    """
    actor.require("conversation.read")
    if len(query) > MAX_QUERY:
        message = _("Search for at most %(most)s characters.") % {"most": MAX_QUERY}
        raise Invalid("query_too_long", message, data={"fields": {"q": [message]}})
    words = _WORDS.findall(query)
    if not words or actor.user_id is None:
        return []
    values: dict[str, str | int] = {
        "query": " & ".join(f"'{word}':*" for word in words),  # \w+ holds no quote and no backslash
        "tenant": actor.tenant_id,
        "user": actor.user_id,
        "most": most,
        "options": _OPTIONS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SQL, values)
        rows = cursor.fetchall()
    found = [
        ConversationHit(pk, title, at, turn, author or "", *_marked(headline or ""))
        for pk, title, at, turn, author, headline in rows
    ]
    wanted = {word.lower() for word in words}
    shown = (_shown(actor, row, wanted) for row in found)
    return [row for row in shown if row is not None]


def _shown(actor: Actor, row: ConversationHit, wanted: set[str]) -> ConversationHit | None:
    """Return a hit without what its reader may not see any more of the documents that the conversation rests on.

    Where something is withheld, the words must stand in what is left: else they could be guessed by searching for them.
    """
    held = conversation_withheld(actor, row.pk)
    if not held:
        return row
    title = held.text(row.title)
    said = Message.objects.filter(tenant_id=actor.tenant_id, turn__conversation_id=row.pk)
    for turn, author, text in said.order_by("pk").values_list("turn_id", "author", "text"):
        left = text if author == Message.Author.USER else held.text(text)
        if _holds(left, wanted):
            excerpt, _is_cut = _marked(left[:_LONGEST])
            return replace(row, title=title, turn_pk=turn, author=author, excerpt=excerpt, marks=[])
    if _holds(title, wanted):
        return replace(row, title=title, turn_pk=None, author="", excerpt="", marks=[])
    return None


def _holds(text: str, wanted: set[str]) -> bool:
    words = set(_WORDS.findall(text.lower()))
    return all(any(word.startswith(one) for word in words) for one in wanted)


def _marked(headline: str) -> tuple[str, list[tuple[int, int]]]:
    """Take a headline apart: its text on one line without marks of Markdown, and where the marks of the search are."""
    headline = _LINES.sub(" ", headline).replace("**", "").replace("`", "")
    text, marks, start = "", list[tuple[int, int]](), None
    for part in re.split(f"([{_OPEN}{_CLOSE}])", re.sub(r"\s+", " ", headline)):
        if part == _OPEN:
            start = len(text)
        elif part == _CLOSE:
            if start is not None and start < len(text):
                marks.append((start, len(text)))
            start = None
        else:
            text += part
    return text, marks
