"""A conversation as a file: Markdown with its sources for people, JSON with all branches for programs."""

from __future__ import annotations

import re
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from apps.conversations.display.marks import compared_of, marks_legend, marks_of, text_marked
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.conversations.sharing.figures import Figures, turns_figures
from apps.conversations.sharing.selectors import comparison_told, documents_readable, models_compared
from apps.conversations.transcript.branch_tree import tree_read
from apps.conversations.transcript.selectors import turn_list
from basics.texts import told
from runs.providers import model_label
from runs.withheld import HIDDEN
from tenancy.actors import Actor

FORMAT = 1
"""Version of the JSON export; it rises when a field changes its meaning."""
_UNSAFE = re.compile(r"[^\w\- ]+")


def export_markdown(*, actor: Actor, conversation: Conversation) -> str:
    """Return the branch that is shown as Markdown: questions, answers with markers ``[1]``, and under each its sources.

    Behind a sentence that its reader should check stands why, in brackets, and below the answer what that means.

    Of a source that the actor may not read any more, neither name nor words are given.
    """
    turns = list(turn_list(actor=actor, conversation=conversation))
    readable = documents_readable(actor, (c.document_id for t in turns for c in t.citations.all()))
    compared = models_compared(turns)
    parts = [
        f"# {conversation}",
        _("Exported from Groundwork. Started on %(day)s.")
        % {"day": date_format(conversation.created_at, "DAY")},
    ]
    figures = turns_figures(actor=actor, conversation=conversation, turns=turns)
    for turn in turns:
        parts.append("## " + " ".join(_said(turn, Message.Author.USER).split()))
        no_answer = _("*No answer (%(status)s).*") % {"status": turn.run.get_status_display()}
        parts += _answer_parts(turn, readable, figures[turn.pk]) or [no_answer]
        parts.append(f"*{model_label(turn.run.model)}, {date_format(turn.created_at, 'DAY_TIME')} UTC*")
        if turn.pk in compared:
            parts.append(f"*{comparison_told(turn.is_kept, compared[turn.pk])}*")
    return "\n\n".join(parts) + "\n"


def answer_markdown(*, actor: Actor, turn: Turn, has_pictures: bool = True) -> str:
    """Return one answer as Markdown, its markers ``[1]`` explained by its sources; as in ``export_markdown``.

    Args:
        has_pictures: with the bytes of its pictures; otherwise with what they are called.
    """
    rows = turn.citations.all()
    readable = documents_readable(actor, (row.document_id for row in rows))
    figures = turns_figures(actor=actor, conversation=turn.conversation, turns=[turn])[turn.pk]
    if not has_pictures:
        figures.pictures = {}
    return "\n\n".join(_answer_parts(turn, readable, figures)) + "\n"


def export_json(*, actor: Actor, conversation: Conversation) -> dict[str, Any]:
    """Return a conversation with all its branches as plain values: a tree by ``parent``; ``shown`` is the chosen branch."""
    turns = list(turn_list(actor=actor, conversation=conversation, all_branches=True))
    readable = documents_readable(actor, (c.document_id for t in turns for c in t.citations.all()))
    figures = turns_figures(actor=actor, conversation=conversation, turns=turns)
    return {
        "format": FORMAT,
        "id": conversation.pk,
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "shown": tree_read(conversation).shown,
        "turns": [_turn(turn, readable, figures[turn.pk]) for turn in turns],
    }


def export_name(conversation: Conversation, suffix: str) -> str:
    """Return a file name made of the title, safe everywhere."""
    return file_name(conversation.title, suffix, f"conversation-{conversation.pk}")


def file_name(title: str, suffix: str, otherwise: str = "answer") -> str:
    """Return a file name made of words, safe everywhere; ``otherwise`` if none of them is left."""
    name = _UNSAFE.sub("", title).strip()[:60].strip().replace(" ", "-")
    return f"{name or otherwise}.{suffix}"


def _answer_parts(turn: Turn, readable: Any, figures: Figures) -> list[str]:
    """Return an answer with its marks, what they mean, and its sources; nothing where there is none of these."""
    answer = _message(turn, Message.Author.ASSISTANT)
    marks = marks_of(answer)
    text = "" if answer is None else text_marked(answer.text, marks)
    parts = [figures.markdown(text), marks_legend(marks), told(compared_of(answer))]
    if rows := turn.citations.all():
        parts += [_("Sources:"), "\n".join(_source_line(row, row.document_id in readable) for row in rows)]
    return [part for part in parts if part]


def _message(turn: Turn, author: str) -> Message | None:
    return next((m for m in turn.messages.all() if m.author == author), None)


def _said(turn: Turn, author: str) -> str:
    return str(getattr(_message(turn, author), "text", ""))


def _source_line(row: Citation, is_readable: bool) -> str:
    if not is_readable:
        return f"- [{row.number}] {HIDDEN}"
    quote = " ".join((f"{row.header}: {row.quote}" if row.header else row.quote).split())
    where = row.collection_name
    if row.page:
        where = _("%(collection)s, page %(page)s") % {"collection": where, "page": row.page}
    return f"- [{row.number}] {row.document_name} ({where}): “{quote}”"


def _turn(turn: Turn, readable: Any, figures: Figures) -> dict[str, Any]:
    run = turn.run
    return {
        "id": turn.pk,
        "parent": turn.parent_id,
        "alongside": turn.alongside_id,
        "is_kept": turn.is_kept,
        "asked_at": turn.created_at.isoformat(),
        "question": _said(turn, Message.Author.USER),
        "answer": _said(turn, Message.Author.ASSISTANT),
        "marks": [mark.to_json() for mark in marks_of(_message(turn, Message.Author.ASSISTANT))],
        "compared": compared_of(_message(turn, Message.Author.ASSISTANT)),
        "figures": figures.to_json(),
        "status": run.status,
        "model": run.model,
        "usage": run.usage,
        "cost_usd": None if run.cost_usd is None else str(run.cost_usd),
        "citations": [_citation(row, row.document_id in readable) for row in turn.citations.all()],
    }


def _citation(row: Citation, is_readable: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": row.number, "chunk_id": row.chunk_ref, "is_hidden": not is_readable}
    if is_readable:
        facts |= {
            "document_id": row.document_id,
            "document_name": row.document_name,
            "collection_name": row.collection_name,
            "page": row.page,
            "quote": row.quote,
            "header": row.header,
            "char_start": row.char_start,
            "char_end": row.char_end,
        }
    return facts
