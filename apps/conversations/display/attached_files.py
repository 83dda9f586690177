"""A file attached to a question as people see it: what it is, how far its reading is, why it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from apps.collections.models import DocumentStatus
from apps.conversations.models import Attachment
from toolloop.media_types import AUDIO

SEEN_PAGES = 10
"""Pages that a PDF may have to be shown to a model as it is; each costs about 2,000 tokens with each question."""

PDF = "application/pdf"

_NO_TEXT = "no_chunks"

State = Literal["reading", "ready", "failed"]


def is_image(row: Attachment) -> bool:
    """Tell whether it is a picture, which is not read but seen."""
    return row.media_type.startswith("image/")


def is_audio(row: Attachment) -> bool:
    """Tell whether it is sound, which is not read but heard."""
    return row.media_type in AUDIO


def is_as_is(row: Attachment) -> bool:
    """Tell whether nothing of it is read: a model that can is given it as it is."""
    return is_image(row) or is_audio(row)


def kind_of(row: Attachment) -> str:
    """Return what a file is to a model: ``image``, ``audio``, ``scan`` or ``text``."""
    if is_as_is(row):
        return "image" if is_image(row) else "audio"
    return "scan" if is_scan(row) else "text"


def is_scan(row: Attachment) -> bool:
    """Tell whether it is a short PDF in which no text was found: a model that takes PDF files can see it."""
    document = row.document
    return (
        document is not None
        and document.media_type == PDF
        and document.error_code == _NO_TEXT
        and 0 < document.page_count <= SEEN_PAGES
    )


def state_of(row: Attachment) -> State:
    """Return how far the reading of a file is; its document comes with it."""
    document = row.document
    if document is not None and document.is_active:
        return "reading"
    if document is not None and (document.status == DocumentStatus.READY or is_scan(row)):
        return "ready"
    return "failed"


def problem_of(row: Attachment) -> str:
    """Return why a file could not be read, "" when it was or still is."""
    if state_of(row) != "failed":
        return ""
    if row.document is None:
        return _("The file was deleted.")
    return row.document.error_message or _("Reading it was cancelled.")


@dataclass(frozen=True, slots=True)
class AttachmentView:
    """A file as its chip shows it.

    Attributes:
        kind: see ``kind_of``.
        percent: of the stage that reads it, None while that is not known.
        can_retry: reading it again may help.
    """

    pk: int
    conversation_pk: int
    name: str
    size: str
    kind: str
    state: State
    problem: str
    percent: int | None
    can_retry: bool
    is_sent: bool


def attachment_view(row: Attachment) -> AttachmentView:
    """Return what a page shows of a file; its document comes with it."""
    document, state = row.document, state_of(row)
    is_running = document is not None and state == "reading" and document.progress_total > 0
    return AttachmentView(
        pk=row.pk,
        conversation_pk=row.conversation_id,
        name=row.name,
        size=filesizeformat(row.size).replace("\xa0", " "),
        kind=kind_of(row),
        state=state,
        problem=problem_of(row),
        percent=int(document.progress_percent) if is_running else None,
        can_retry=document is not None and document.can_retry,
        is_sent=row.turn_id is not None,
    )
