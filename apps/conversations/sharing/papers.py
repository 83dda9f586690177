"""A conversation or an answer as a document to hand on: questions as headings, citations as footnotes with the words they rest on."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from textwrap import shorten

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from apps.conversations.citations.markers import Piece, flagged
from apps.conversations.display.marks import LABELS, compared_of, marks_legend, marks_of
from apps.conversations.display.rendering import answer_tokens, link_leads_out
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.conversations.sharing.figures import Figures, turns_figures
from apps.conversations.sharing.selectors import comparison_told, documents_readable, models_compared
from apps.conversations.support.sentences import LANGUAGE
from apps.conversations.transcript.selectors import turn_list
from basics.papers import docx
from basics.papers.model import Block, Note, Paper, Reader, Run
from basics.texts import told as in_own_language
from runs.providers import model_label
from runs.withheld import HIDDEN
from tenancy.actors import Actor


def _pdf_write(paper: Paper) -> bytes:
    from basics.papers.pdf import pdf_write  # ReportLab: only who makes a PDF needs its 8 MB

    return pdf_write(paper)


WRITERS: dict[str, Callable[[Paper], bytes]] = {"docx": docx.docx_write, "pdf": _pdf_write}
"""Forms of a document, by the end of its name."""
MEDIA_TYPES = {"docx": docx.MEDIA_TYPE, "pdf": "application/pdf", "md": "text/markdown; charset=utf-8"}
_HEADING_MOST = 200
_NUMBER = re.compile(r"\[(\d{1,4})\]")


def conversation_paper(*, actor: Actor, conversation: Conversation) -> Paper:
    """Return the branch that is shown as a document; of a source that the actor may not read any more, neither name nor words."""
    turns = list(turn_list(actor=actor, conversation=conversation))
    readable = documents_readable(actor, (c.document_id for t in turns for c in t.citations.all()))
    said = _("Exported from Groundwork. Started on %(day)s.") % {
        "day": date_format(conversation.created_at, "DAY")
    }
    paper = Paper(str(conversation), [Block("small", [Run(said)])])
    figures, compared = (
        turns_figures(actor=actor, conversation=conversation, turns=turns),
        models_compared(turns),
    )
    for turn in turns:
        _question_add(paper, turn)
        _answer_add(paper, turn, readable, figures[turn.pk])
        if turn.pk in compared:
            told = comparison_told(turn.is_kept, compared[turn.pk])
            paper.blocks.append(Block("small", [Run(told, italic=True)]))
    return paper


def answer_paper(*, actor: Actor, turn: Turn) -> Paper:
    """Return one answer as a document, its question as title; as in ``conversation_paper``."""
    readable = documents_readable(actor, (row.document_id for row in turn.citations.all()))
    paper = Paper(_shortened(question_line(turn)))
    _question_add(paper, turn, is_title=True)
    figures = turns_figures(actor=actor, conversation=turn.conversation, turns=[turn])
    _answer_add(paper, turn, readable, figures[turn.pk])
    return paper


def question_line(turn: Turn) -> str:
    """Return what was asked, in one line."""
    return " ".join((_message(turn, Message.Author.USER) or Message(text="")).text.split()) or _("Answer")


def _question_add(paper: Paper, turn: Turn, *, is_title: bool = False) -> None:
    """Put a question as a heading; a long one is cut there, and stands below as it was written."""
    question = question_line(turn)
    short = _shortened(question)
    if not is_title:
        paper.blocks.append(Block("heading", [Run(short)], 1))
    if short != question:
        paper.blocks.append(Block("quote", [Run(question)]))


def _shortened(text: str) -> str:
    return shorten(text, _HEADING_MOST, placeholder=" …") if len(text) > _HEADING_MOST else text


def _answer_add(paper: Paper, turn: Turn, readable: Container[int | None], figures: Figures) -> None:
    answer = _message(turn, Message.Author.ASSISTANT)
    if answer is None:
        no_answer = _("No answer (%(status)s).") % {"status": turn.run.get_status_display()}
        paper.blocks.append(Block("paragraph", [Run(no_answer, italic=True)]))
    else:
        blocks = _answer_blocks(paper, answer, list(turn.citations.all()), readable, figures)
        paper.blocks += [*figures.rest(), *blocks]
    told = f"{model_label(turn.run.model)}, {date_format(turn.created_at, 'DAY_TIME')} UTC"
    paper.blocks.append(Block("small", [Run(told, italic=True)]))


def _answer_blocks(
    paper: Paper,
    answer: Message,
    rows: list[Citation],
    readable: Container[int | None],
    figures: Figures,
) -> list[Block]:
    """Return an answer's blocks; its sources become footnotes in the order in which it names them."""
    sources = {row.number: row for row in rows}
    pieces, at = list[Piece](), 0
    for match in _NUMBER.finditer(answer.text):
        if int(match[1]) in sources:
            pieces.append(Piece(answer.text[at : match.start()], (int(match[1]),)))
            at = match.end()
    marks = marks_of(answer)
    spans = [(mark.start, mark.end, mark.reason) for mark in marks]
    tokens = answer_tokens(flagged([*pieces, Piece(answer.text[at:])], spans))
    notes: dict[int, int] = {}
    named = [int(c.content) for token in tokens for c in token.children or [] if c.type == "cite"]
    for number in dict.fromkeys([*named, *sources]):
        paper.notes.append(_note(sources[number], sources[number].document_id in readable))
        notes[number] = len(paper.notes)
    signs = {reason: f"{'' if reason == LANGUAGE else '△ '}{label}" for reason, label in LABELS.items()}
    blocks = Reader(notes, signs, link_leads_out, figures.blocks).blocks(tokens)
    unnamed = [Run("", note=notes[number]) for number in sources if number not in named]
    if unnamed:  # named only in code, or in a part that was cut off
        blocks.append(Block("small", [Run(_("Sources:")), *unnamed]))
    for said in (marks_legend(marks), in_own_language(compared_of(answer))):
        blocks += [Block("small", [Run(line.removeprefix("- "))]) for line in said.splitlines() if line]
    return blocks


def _note(row: Citation, is_readable: bool) -> Note:
    if not is_readable:
        return Note(str(HIDDEN))
    where = row.collection_name
    if row.page:
        where = _("%(collection)s, page %(page)s") % {"collection": where, "page": row.page}
    quote = f"{row.header}: {row.quote}" if row.header else row.quote
    return Note(f"{row.document_name} ({where})", " ".join(quote.split()))


def _message(turn: Turn, author: str) -> Message | None:
    return next((m for m in turn.messages.all() if m.author == author), None)
