"""Writes of files attached to questions: give one, take it back, have it read again, send it with a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db import transaction

from apps.collections.collection.private import (
    private_collection_create,
    private_collection_forget,
    private_document_put,
    private_documents_remove,
)
from apps.collections.documents.services import document_name, document_retry, original_keep
from apps.collections.models import Collection
from apps.conversations.attachments.selectors import ATTACHED, SEEN_BYTES, attachment_get, sight_check
from apps.conversations.display.attached_files import kind_of, problem_of
from apps.conversations.models import Attachment, Conversation, QueuedQuestion, Turn
from apps.conversations.transcript.locks import conversation_locked
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from blobs import services as blobs
from runs.providers import catalog_for, models_available
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.selectors import limited_collections
from tenancy.services import audit_record
from toolloop.media import media_type_of
from toolloop.media_types import AUDIO

MAX_UNSENT = 20
MAX_IMAGE_BYTES = 5_000_000
"""Bytes of one image: the least that a provider takes."""
MAX_AUDIO_BYTES = SEEN_BYTES
"""Bytes of one recording: what goes along with a question at most. An hour of speech as MP3 with 22 kbit/s."""
_HEARD = ("audio/wav", "audio/mpeg", "audio/ogg", "audio/flac")


def attachment_add(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, name: str, chunks: Iterable[bytes]
) -> Attachment:
    """Attach a file to a conversation, for its next question; its reading begins at once.

    Any bytes are taken, up to the limit of uploads; a file that cannot be read says why. Images and sound are not read: a
    model that takes them is given them as they are.

    Args:
        name: as its owner calls it; folders in it are dropped.
        chunks: the bytes in pieces.

    Raises:
        Denied: without the right to talk or to read documents.
        Invalid: ``too_large`` (413), ``name_invalid``, ``image_too_large``, ``audio_too_large``, ``audio_format``.
        Conflict: ``attachments_full``.
        Missing: the conversation is not the actor's.
    """
    attaching_allowed(actor)
    name = document_name(name)
    received = blobs.receive(chunks, max_bytes=settings.MAX_UPLOAD_BYTES)
    try:
        as_is = _as_is_type(received, name)
        attachment = None
        while attachment is None:
            home, is_new = _home(tenant, actor, conversation)
            try:
                original_keep(tenant, home, received)
                attachment = _attach(tenant, actor, conversation, home, name, received, as_is)
            finally:
                if attachment is None and is_new:
                    private_collection_forget(tenant=tenant, actor=actor, collection=home)
    finally:
        received.discard()
    return attachment


def _attach(
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    home: Collection,
    name: str,
    received: blobs.ReceivedFile,
    as_is: str,
) -> Attachment | None:
    """Attach kept bytes, or return None when another file of the conversation has come first and has another home."""
    with transaction.atomic():
        row = _with_room(actor, conversation)
        if (_collection(actor, row) or home).pk != home.pk:
            return None
        put = private_document_put(
            tenant=tenant,
            actor=actor,
            collection=home,
            name=name,
            received=received,
            is_read=not as_is,
        )
        document = put.document
        attachment: Attachment = Attachment.objects.create(
            tenant=tenant,
            conversation=row,
            name=name,
            size=received.size,
            document=document,
            media_type=as_is or _read_type(document.media_type),
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="attachment.add",
            object=attachment,
            data={"conversation": row.pk, "size": received.size},
        )
    return attachment


def _home(tenant: Tenant, actor: Actor, conversation: Conversation) -> tuple[Collection, bool]:
    """Return the private collection for a conversation's next file, and whether it was made for it.

    It is there before the file: its id is part of the file's key.
    """
    with transaction.atomic():
        row = _with_room(actor, conversation)
        found = _collection(actor, row)
        return found or private_collection_create(tenant=tenant, actor=actor, name=ATTACHED), found is None


def _with_room(actor: Actor, conversation: Conversation) -> Conversation:
    """Return the locked conversation, unless too many of its files wait to be sent."""
    row = conversation_locked(actor, conversation.pk)
    if Attachment.objects.filter(conversation=row, turn=None).count() >= MAX_UNSENT:
        raise Conflict(
            "attachments_full",
            _("%(count)s files are already waiting to be sent. Send them, or remove one first.")
            % {"count": MAX_UNSENT},
        )
    return row


def attachment_remove(*, tenant: Tenant, actor: Actor, conversation: Conversation, pk: int) -> None:
    """Take back a file that was not sent, with its bytes.

    Raises:
        Conflict: ``attachment_sent``, it belongs to a question, or to one that waits.
        Missing: there is none.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        attachment = attachment_get(actor=actor, conversation=row, pk=pk)
        waits = QueuedQuestion.objects.filter(conversation=row, request__attachments__contains=pk)
        if attachment.turn_id is not None or waits.exists():
            raise Conflict(
                "attachment_sent",
                _(
                    "This file belongs to a question that was already asked. It is deleted with the "
                    "conversation."
                ),
            )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="attachment.remove",
            object=attachment,
            data={"conversation": row.pk},
        )
        document = attachment.document_id
        attachment.delete()
        attachments_forget(tenant, actor, [document])


def attachment_retry(*, tenant: Tenant, actor: Actor, conversation: Conversation, pk: int) -> Attachment:
    """Read a file again that could not be read.

    Raises:
        Conflict: ``document_not_retryable``, or ``attachment_gone`` when its bytes are no more.
        Missing: there is none.
    """
    actor.require("conversation.write")
    attachment = attachment_get(actor=actor, conversation=conversation, pk=pk)
    if attachment.document is None:
        raise Conflict("attachment_gone", _("The file was deleted. Remove it and attach it again."))
    system = system_actor(tenant.pk, actor.user_id)  # the file is the person's own, whatever their role
    attachment.document = document_retry(tenant=tenant, actor=system, document=attachment.document)
    return attachment


def attachments_checked(
    actor: Actor, conversation: Conversation, pks: Sequence[int], beside: Turn | None = None
) -> list[Attachment]:
    """Return the files that go with a question: those named, and those of the question that it stands beside.

    Args:
        conversation: locked.

    Raises:
        Invalid: ``unknown_attachment``, one is not there or was sent before; ``attachment_unreadable``.
    """
    if not pks and beside is None:
        return []
    rows = Attachment.objects.visible_to(actor).filter(conversation=conversation)
    rows = rows.select_related("document")
    chosen = list(rows.filter(turn=None, pk__in=set(pks)).order_by("pk"))
    if len(chosen) != len(set(pks)):
        message = _(
            "One of the attached files no longer exists or was already sent. Reload the page and "
            "attach it again."
        )
        raise Invalid("unknown_attachment", message, data={"fields": {"attachments": [message]}})
    if beside is not None:
        chosen = [*rows.filter(turn=beside).order_by("pk"), *chosen]
    for row in chosen:
        if problem := problem_of(row):
            raise Invalid("attachment_unreadable", unreadable(row.name, problem), data={"attachment": row.pk})
    return chosen


def attachments_seen(tenant: Tenant, rows: Sequence[Attachment], model: str) -> None:
    """Refuse a question whose model cannot look at what comes with it. Raises Invalid; see ``sight_check``."""
    if any(kind_of(row) != "text" for row in rows):
        info = catalog_for(tenant).get_model_info(model)
        sight_check(rows, info, lambda: models_available(tenant))


def attachments_send(turn: Turn, rows: Sequence[Attachment]) -> list[Attachment]:
    """Let files go with a turn; those of another turn stay there too. Returns the turn's own."""
    sent = []
    for row in rows:
        if row.turn_id is not None:
            row.pk, row._state.adding = None, True
            row.conversation_id = turn.conversation_id
        row.turn = turn
        row.save()
        sent.append(row)
    return sent


def attachments_forget(tenant: Tenant, actor: Actor, documents: Iterable[int | None]) -> None:
    """Delete documents that no file of any conversation is any more."""
    pks = {pk for pk in documents if pk is not None}
    kept = Attachment.objects.filter(tenant=tenant, document_id__in=pks)
    gone = pks.difference(kept.values_list("document_id", flat=True))
    if gone:
        private_documents_remove(tenant=tenant, actor=actor, documents=gone)


def unreadable(name: str, problem: str) -> str:
    """Return the sentence about a file that could not be read."""
    return _("“%(name)s” could not be read: %(problem)s Read it again, or ask without it.") % {
        "name": name,
        "problem": problem,
    }


def attaching_allowed(actor: Actor) -> None:
    """Raise Denied unless the actor may attach files."""
    actor.require("conversation.write")
    actor.require("collection.read")


def _collection(actor: Actor, conversation: Conversation) -> Collection | None:
    """Return the private collection of a conversation, None before its first file.

    A limited key has one for all its conversations: it sees the files that it has given, and none that its person gave.
    """
    homes = Collection.objects.filter(tenant_id=actor.tenant_id, owner_id=conversation.user_id)
    if actor.collections is not None:
        homes = homes.filter(pk__in=actor.collections)
    else:
        files = Attachment.objects.filter(conversation=conversation)
        homes = homes.filter(pk__in=files.values("document__collection_id"))
        homes = homes.exclude(pk__in=limited_collections(actor.tenant_id, conversation.user_id))
    found: Collection | None = homes.order_by("pk").first()
    return found


def _read_type(media_type: str) -> str:
    """Return the type of a file that is read: ingestion goes by the name too, which makes no picture and no sound of it."""
    is_claim = media_type.startswith(("image/", "audio/"))
    return "application/octet-stream" if is_claim else media_type


def _as_is_type(received: blobs.ReceivedFile, name: str) -> str:
    """Return the media type of an image or a recording, by its bytes; "" for any other file. Raises Invalid."""
    with received.path.open("rb") as file:
        found = media_type_of(file.read(64))
    if found.startswith("image/"):
        if received.size > MAX_IMAGE_BYTES:
            raise Invalid(
                "image_too_large",
                _("An image can have at most %(size)s MB. Make it smaller and attach it again.")
                % {"size": MAX_IMAGE_BYTES // 1_000_000},
                status=413,
            )
        return found
    if not found.startswith("audio/"):
        return ""
    if found not in _HEARD:
        raise Invalid(
            "audio_format",
            _(
                "“%(name)s” is %(format)s audio, which no model takes. Save it as MP3, WAV, OGG or FLAC, and attach that."
            )
            % {"name": name, "format": AUDIO[found].upper()},
        )
    if received.size > MAX_AUDIO_BYTES:
        raise Invalid(
            "audio_too_large",
            _("A recording can have at most %(size)s MB. Shorten it or save it as MP3, and attach it again.")
            % {"size": MAX_AUDIO_BYTES // 1_000_000},
            status=413,
        )
    return found
