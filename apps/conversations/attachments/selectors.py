"""Files attached to questions: which there are, and what of them a model is given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from django.db.models import Max, QuerySet
from django.utils.translation import gettext_lazy

from apps.collections.models import Chunk
from apps.conversations.display.attached_files import PDF, SEEN_PAGES, is_as_is, kind_of
from apps.conversations.models import Attachment, Conversation, QueuedQuestion
from basics.errors import DomainError, Invalid, Missing, TryAgain
from basics.texts import gettext as _
from basics.texts import ngettext
from blobs.leases import blob_read
from tenancy.actors import Actor
from toolloop.errors import MediaRefused
from toolloop.media import Media
from toolloop.models import ModelInfo
from toolloop.providers.profiles import Profile
from toolloop.providers.registry import takes_media

ATTACHED = "Attached files"
"""What the private collection of a conversation is called, in citations too."""
WHOLE_CHARS = 30_000
"""Characters of text that a question's files may have together to be given whole: with what stands around them they fit
into one tool result (``Limits.max_tool_output_chars``, 40,000), which is about 8,000 tokens with each question."""
SEEN_BYTES = 10_000_000
"""Bytes of images, sound and PDF files that go along with a question, those of questions before included."""
_NAMED = 3


def attachment_list(*, actor: Actor, conversation: Conversation) -> QuerySet[Attachment]:
    """Return the files of a conversation of the actor's, the newest first."""
    actor.require("conversation.read")
    rows = Attachment.objects.visible_to(actor).filter(conversation=conversation)
    return cast("QuerySet[Attachment]", rows.select_related("document").order_by("-pk"))


def attachment_get(*, actor: Actor, conversation: Conversation, pk: int) -> Attachment:
    """Return one file of a conversation of the actor's. Raises Missing."""
    found = attachment_list(actor=actor, conversation=conversation).filter(pk=pk).first()
    if found is None:
        raise Missing("attachment")
    return found


def attachments_unsent(*, actor: Actor, conversation: Conversation) -> list[Attachment]:
    """Return the files that were given and go with no question yet, also with none that waits, in their order."""
    rows = attachment_list(actor=actor, conversation=conversation).filter(turn=None)
    unsent = list(rows.order_by("pk"))
    if not unsent:
        return []
    waiting = QueuedQuestion.objects.filter(conversation=conversation)
    taken = {
        pk for request in waiting.values_list("request", flat=True) for pk in request.get("attachments", ())
    }
    return [row for row in unsent if row.pk not in taken]


def attachments_of(turns: Collection[int], *, tenant_id: int) -> list[Attachment]:
    """Return the files of some turns with their documents, in the order in which they were given."""
    rows = Attachment.objects.filter(tenant_id=tenant_id, turn_id__in=turns)
    return list(rows.select_related("document").order_by("turn__index", "pk"))


def whole_chosen(rows: Sequence[Attachment]) -> dict[int, int]:
    """Return which documents are given whole, with their characters: the newest, as long as all fit together."""
    pks = [row.document_id for row in rows if row.document_id and not is_as_is(row)]
    ends = Chunk.objects.filter(document_id__in=pks, is_disabled=False).values("document_id")
    length = dict(ends.annotate(end=Max("char_end")).values_list("document_id", "end"))
    chosen: dict[int, int] = {}
    left = WHOLE_CHARS
    for pk in dict.fromkeys(reversed(pks)):
        if 0 < length.get(pk, 0) <= left:
            chosen[pk] = length[pk]
            left -= length[pk]
    return chosen


def passages_whole(pks: Collection[int], actor: Actor) -> list[Chunk]:
    """Return documents' passages in reading order, each stretch of the text once."""
    rows = Chunk.objects.visible_to(actor).filter(document_id__in=pks, is_disabled=False)
    found: list[Chunk] = []
    end = (0, 0)
    for chunk in rows.select_related("document").order_by("document_id", "char_start", "index"):
        if (chunk.document_id, chunk.char_end) > end:  # of code, a class has its functions in it
            found.append(chunk)
            end = (chunk.document_id, chunk.char_end)
    return found


def sight_check(
    rows: Iterable[Attachment], model: ModelInfo, offered: Callable[[], Iterable[ModelInfo]]
) -> None:
    """Refuse a question whose images, sound or scans its model cannot be given.

    Args:
        model: that is asked.
        offered: the models that could be chosen instead, named in the refusal.

    Raises:
        Invalid: ``model_sees_no_images``, ``model_hears_no_audio`` or ``model_reads_no_pdf``.
    """
    for row in rows:
        kind = kind_of(row)
        media_type = PDF if kind == "scan" else row.media_type
        if kind == "text" or takes_media(model.provider, media_type, model.profile):
            continue
        others = [m for m in offered() if takes_media(m.provider, media_type, m.profile)]
        code, why = _UNSEEN[kind]
        message = f"{why % {'name': row.name, 'model': model.label}} {_instead(others)}"
        raise _unseen(code, message)


_UNSEEN: Final = {
    "image": (
        "model_sees_no_images",
        gettext_lazy("“%(name)s” is an image, and %(model)s can only read text."),
    ),
    "audio": (
        "model_hears_no_audio",
        gettext_lazy("“%(name)s” is a sound recording, and %(model)s cannot listen to it."),
    ),
    "scan": (
        "model_reads_no_pdf",
        gettext_lazy("“%(name)s” has no text, only pictures of pages, and %(model)s cannot look at them."),
    ),
}


def _instead(others: Sequence[ModelInfo]) -> str:
    """Say what to do: choose a model that can, as far as there is one."""
    if not others:
        return _("No model in this workspace can. Remove the file, or ask an admin to add such a model.")
    named = ", ".join(info.label for info in others[:_NAMED])
    more = len(others) - _NAMED
    if more <= 0:
        return _("Choose one that can (%(models)s), or remove the file.") % {"models": named}
    return ngettext(
        "Choose one that can (%(models)s and %(count)s more), or remove the file.",
        "Choose one that can (%(models)s and %(count)s more), or remove the file.",
        more,
    ) % {"models": named, "count": more}


def _unseen(code: str, message: str) -> Invalid:
    return Invalid(code, message, data={"fields": {"attachments": [message]}})


@dataclass(frozen=True, slots=True)
class FilesInScope:
    """The files of a branch, as one run is given them.

    Attributes:
        rows: in the order in which they were given, each with its document.
        shown: ids of those that the model is shown as they are.
        media: what it is shown, by the turn they came with.
    """

    rows: Sequence[Attachment] = ()
    shown: frozenset[int] = frozenset()
    media: Mapping[int, tuple[Media, ...]] = field(default_factory=dict)

    @property
    def documents(self) -> list[int]:
        """Documents with passages that can be read and searched."""
        return [r.document_id for r in self.rows if r.document_id is not None and not is_as_is(r)]


def given_of(rows: Sequence[Attachment], provider: str, profile: Profile) -> FilesInScope:
    """Return what a model is given of a branch's files: with them, as they are, the newest of what it can be shown that fit.

    Args:
        provider: name of the model's.
    """
    media: dict[int, tuple[Media, ...]] = {}
    shown: set[int] = set()
    left = SEEN_BYTES
    for row in reversed(rows):
        if row.turn_id is None or row.size > left or not _is_shown(row, provider, profile):
            continue
        if (part := _media(row)) is not None:
            left -= row.size
            shown.add(row.pk)
            media[row.turn_id] = (part, *media.get(row.turn_id, ()))
    return FilesInScope(rows, frozenset(shown), media)


def _is_shown(row: Attachment, provider: str, profile: Profile) -> bool:
    if is_as_is(row):
        return takes_media(provider, row.media_type, profile)
    document = row.document
    return (
        profile.pdf_input
        and document is not None
        and document.media_type == PDF
        and 0 < document.page_count <= SEEN_PAGES
    )


def attachment_bytes(row: Attachment) -> bytes:
    """Return the bytes of a file whose document is there. Raises DomainError when they are gone."""
    return blob_read(cast(Any, row.document).file)


def _media(row: Attachment) -> Media | None:
    try:
        return Media.from_bytes(attachment_bytes(row), name=row.name)
    except TryAgain:
        raise
    except (DomainError, MediaRefused):
        return None  # gone from the storage, or damaged there: the tool says that it cannot be seen
