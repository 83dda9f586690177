"""Hand out a conversation or an answer as a file, and note that somebody has taken it; keep an answer as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction

from apps.collections.display.selectors import collection_get
from apps.collections.documents.services import Uploaded, document_upload
from apps.conversations.models import Conversation, Turn
from apps.conversations.sharing.exports import (
    answer_markdown,
    export_json,
    export_markdown,
    export_name,
    file_name,
)
from apps.conversations.sharing.papers import (
    MEDIA_TYPES,
    WRITERS,
    answer_paper,
    conversation_paper,
    question_line,
)
from basics.errors import Conflict, Invalid
from basics.papers.model import Paper
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


@dataclass(frozen=True, slots=True)
class Export:
    """An exported conversation: ``markdown``, or ``conversation`` as plain values, as was asked."""

    name: str
    markdown: str
    conversation: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PaperFile:
    """A document as a file: ``body`` in its ``media_type``."""

    name: str
    body: bytes
    media_type: str


LONGEST_PDF = 400_000
"""Size of what a PDF is made of, see ``Paper.size``: its pages are filled while the reader waits.

Measured on a conversation of 400 turns with headings, lists and tables, of size 509,000, in CPU seconds on a busy machine: 0.55
to read it, 0.05 for DOCX, 2.6 for PDF. So 400 turns as DOCX are 0.6, and the longest PDF that is allowed is 2.5: no job for it.
"""


def conversation_export(*, tenant: Tenant, actor: Actor, conversation: Conversation, form: str) -> Export:
    """Export a conversation that was read for the actor.

    Args:
        form: ``json`` (all branches) or ``markdown`` (the branch that is shown, with its sources).

    Raises:
        Invalid: another form.
    """
    actor.require("conversation.read")
    if form not in ("json", "markdown"):
        raise Invalid(
            "invalid", _("Choose json or markdown."), data={"fields": {"form": [_("json or markdown.")]}}
        )
    with transaction.atomic():
        audit_record(
            tenant=tenant, actor=actor, action="conversation.export", object=conversation, data={"form": form}
        )
        if form == "json":
            return Export(
                export_name(conversation, "json"), "", export_json(actor=actor, conversation=conversation)
            )
        return Export(
            export_name(conversation, "md"), export_markdown(actor=actor, conversation=conversation), None
        )


def conversation_file(*, tenant: Tenant, actor: Actor, conversation: Conversation, form: str) -> PaperFile:
    """Export the branch that is shown as a document with footnotes.

    Args:
        conversation: one that was read for the actor.
        form: ``docx`` or ``pdf``.

    Raises:
        Invalid: another form, or ``too_long`` for a PDF.
    """
    actor.require("conversation.read")
    _form_check(form, [*WRITERS])
    paper = conversation_paper(actor=actor, conversation=conversation)
    file = PaperFile(export_name(conversation, form), _written(paper, form), MEDIA_TYPES[form])
    with transaction.atomic():
        audit_record(
            tenant=tenant, actor=actor, action="conversation.export", object=conversation, data={"form": form}
        )
    return file


def answer_file(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, turn: Turn, form: str
) -> PaperFile:
    """Export one answer as a document with footnotes, or as Markdown with its sources.

    Args:
        conversation, turn: read for the actor.
        form: ``docx``, ``pdf`` or ``md``.

    Raises:
        Invalid: another form, or ``too_long`` for a PDF.
        Conflict: there is no finished answer yet.
    """
    file = _answer_file(actor, turn, form)
    with transaction.atomic():
        data = {"form": form, "turn": turn.pk}
        audit_record(tenant=tenant, actor=actor, action="conversation.export", object=conversation, data=data)
    return file


def answer_save(
    *,
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    turn: Turn,
    collection_pk: int,
    form: str,
    name: str = "",
) -> Uploaded:
    """Add an answer to a collection as a document of its own, with its sources; who may read the collection may read it.

    The same answer in the same form again is the document that is there; another one of that name becomes its newest version.
    It is a copy: what is later erased from the conversation stays in it.

    Args:
        conversation, turn: read for the actor.
        form: ``md``, ``docx`` or ``pdf``.
        name: of the document; its question if empty.

    Raises:
        Denied: the actor can't add documents.
        Missing: the collection doesn't exist for the actor.
        Invalid: another form, ``too_long`` for a PDF, or ``name_invalid``.
        Conflict: there is no finished answer yet.
    """
    actor.require("document.write")
    collection = collection_get(actor=actor, pk=collection_pk)
    file = _answer_file(actor, turn, form)
    named = file_name(name.removesuffix(f".{form}"), form) if name.strip() else file.name
    kept = document_upload(tenant=tenant, actor=actor, collection=collection, name=named, chunks=[file.body])
    with transaction.atomic():
        data = {"form": form, "turn": turn.pk, "collection": collection.pk, "document": kept.document.pk}
        audit_record(tenant=tenant, actor=actor, action="answer.save", object=conversation, data=data)
    return kept


def _answer_file(actor: Actor, turn: Turn, form: str) -> PaperFile:
    actor.require("conversation.read")
    _form_check(form, [*WRITERS, "md"])
    if turn.is_active or not turn.run.answer.strip():
        raise Conflict("no_answer", _("There is no finished answer here yet."))
    question = question_line(turn)
    if form == "md":
        body = f"# {question}\n\n{answer_markdown(actor=actor, turn=turn)}".encode()
    else:
        body = _written(answer_paper(actor=actor, turn=turn), form)
    return PaperFile(file_name(question, form), body, MEDIA_TYPES[form])


def _written(paper: Paper, form: str) -> bytes:
    if form == "pdf" and paper.size > LONGEST_PDF:
        raise Invalid(
            "too_long",
            _(
                "This is too long for a PDF: it has more than %(most)s characters. Export it as Word or Markdown."
            )
            % {"most": intcomma(LONGEST_PDF)},
        )
    return WRITERS[form](paper)


def _form_check(form: str, forms: list[str]) -> None:
    if form not in forms:
        said = _("Choose one of: %(forms)s.") % {"forms": ", ".join(forms)}
        raise Invalid("invalid", said, data={"fields": {"form": [said]}})
