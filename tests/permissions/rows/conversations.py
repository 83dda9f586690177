"""The permission rows of conversations, assistants and the OpenAI-compatible API."""

from __future__ import annotations

import uuid

from apps.conversations.models import AssistantVersion, Turn
from runs.models import Run
from tenancy.scope import platform_scope
from tests.permissions.rows.common import (
    TALK,
    Row,
    pk_of,
    run_parked,
    send,
    turn_answered,
    turn_is,
    uploaded_file,
)
from tests.permissions.world import Side

CONVERSATION = {"pk": "conversations.Conversation"}
ASSISTANT = {"pk": "conversations.Assistant"}
PROJECT = {"pk": "conversations.Project"}
TURN = {"pk": "conversations.Conversation", "turn_pk": "conversations.Turn"}
QUEUED = {"pk": "conversations.Conversation", "queued_pk": "conversations.QueuedQuestion"}
ATTACHED = {"pk": "conversations.Conversation", "attachment_pk": "conversations.Attachment"}
SHARE = {"pk": "conversations.Conversation", "share_pk": "conversations.ConversationShare"}
PROMPT = {"pk": "conversations.Prompt"}
RUN = {"pk": "conversations.Conversation", "run_pk": "runs.Run"}
CALL = RUN | {"call_pk": "runs.ToolCall"}
DECISION = {"pk": "conversations.Conversation", "run_pk": "runs.Run", "decision_pk": "runs.PendingDecision"}
PICTURE = CONVERSATION | {"picture_pk": "conversations.Picture"}
NOTE = {"entry_pk": "conversations.MemoryEntry"}
EDIT = ("assistant.read", "collection.read")


def _share_key(side: Side, role: str) -> uuid.UUID:
    """The key of a link that works."""
    share = side.row("conversations.ConversationShare", role)
    share.snapshot = {"turns": []}
    with platform_scope():
        share.save()
    key: uuid.UUID = share.key
    return key


def _shared_picture(side: Side, role: str) -> uuid.UUID:
    """The key of a link that works, to an answer with a picture."""
    key = _share_key(side, role)
    share = side.row("conversations.ConversationShare", role)
    row = side.row("conversations.Picture", role)
    figure = {"name": "Sales", "key": "p1", "picture_id": row.pk, "media_type": "image/png"}
    figure |= {"width": 2, "height": 2, "size": 70}
    turn = {
        "question": "How much?",
        "answer": "As drawn.",
        "model": "extractive",
        "asked_at": "2026-11-28T12:00:00+00:00",
    }
    share.snapshot = {"turns": [{**turn, "citations": [], "figures": [figure]}]}
    with platform_scope():
        share.save()
    return key


def _drawn(side: Side, role: str) -> None:
    """The picture is of the conversation's answer, and what a browser shows."""
    row = side.row("conversations.Picture", role)
    row.run, row.media_type = side.row("conversations.Turn", role).run, "image/png"
    with platform_scope():
        row.save()


def _cut_short(side: Side, role: str) -> None:
    """The answer was stopped, with something said."""
    turn_is(False, "stopped")(side, role)
    run = side.row("runs.Run", role)
    run.answer = "Because"
    with platform_scope():
        run.save()


def _compared(side: Side, role: str) -> None:
    """The answer is one of two to its question."""
    turn_answered(side, role)
    first, run = side.row("conversations.Turn", role), side.row("runs.Run", role)
    with platform_scope():
        first.side = 1
        first.save()
        known = {"tenant": side.tenant, "conversation_id": first.conversation_id, "index": first.index + 1}
        if not Turn.objects.filter(**known).exists():
            other = Run.objects.create(
                tenant=side.tenant, user_id=run.user_id, kind=run.kind, model=run.model, status="completed"
            )
            Turn.objects.create(**known, run=other, side=2, is_active=False, client_id=uuid.uuid4())


def _remembering(side: Side, role: str) -> None:
    """The answer's call was one of the tool that remembers."""
    turn_is(False, "completed")(side, role)
    call = side.row("runs.ToolCall", role)
    call.name = "remember"
    with platform_scope():
        call.save()


def _versioned(side: Side, role: str) -> None:
    """The assistant has a version 1."""
    row = side.row("conversations.Assistant", role)
    with platform_scope():
        AssistantVersion.objects.get_or_create(tenant=side.tenant, assistant=row, number=1)


def _source(side: Side, role: str) -> str:
    citation = side.row("conversations.Citation", role)
    return f"{side.row('runs.Run', role).pk}-{citation.number}"


def _uuid(side: Side, role: str) -> str:
    return str(uuid.uuid4())


def _unread(side: Side, role: str) -> None:
    """The attached file could not be read."""
    attached, document = (side.row("conversations.Attachment", role), side.row("collections.Document", role))
    attached.document, document.status = document, "failed"
    with platform_scope():
        document.save()
        attached.save()


def _sounding(side: Side, role: str) -> None:
    """The attached file is a recording."""
    attached = side.row("conversations.Attachment", role)
    attached.document, attached.media_type = side.row("collections.Document", role), "audio/wav"
    with platform_scope():
        attached.save()


PORTAL: tuple[Row, ...] = (
    Row("assistants:list", action="assistant.read"),
    Row("assistants:example", "POST", "tool.manage", fixed={"name": "trade_compliance"}, ok=302),
    Row("assistants:create", action="assistant.write"),
    Row(
        "assistants:create",
        "POST",
        "assistant.write",
        data=send(name="Clerk", mode="quick", output="text"),
        ok=302,
    ),
    Row("assistants:detail", "GET", "assistant.read", ASSISTANT),
    Row("assistants:edit", "GET", "assistant.write", ASSISTANT),
    Row(
        "assistants:edit",
        "POST",
        "assistant.write",
        ASSISTANT,
        data=send(mode="quick", output="text"),
        ok=302,
    ),
    Row("assistants:version", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned),
    Row(
        "assistants:publish",
        "POST",
        "assistant.write",
        ASSISTANT,
        data=send(version=1),
        before=_versioned,
        ok=302,
    ),
    Row("assistants:rename", "POST", "assistant.write", ASSISTANT, data=send(name="Clerk"), ok=302),
    Row("assistants:archive", "POST", "assistant.write", ASSISTANT, ok=302),
    Row(
        "assistants:try",
        "POST",
        "assistant.write",
        ASSISTANT,
        data=send(version=1, text="Why?"),
        before=_versioned,
        ok=302,
    ),
    Row("conversations:home", action="conversation.read"),
    Row(
        "conversations:create", "POST", "conversation.write", data=send(text="Why?", client_id=_uuid), ok=302
    ),
    Row(
        "conversations:create",
        "POST",
        "conversation.write",
        data=send(text="Why?", client_id=_uuid, collections=pk_of("collections.Collection")),
        ok=302,
        body_ids=400,
    ),
    Row("conversations:detail", "GET", "conversation.read", CONVERSATION),
    Row(
        "conversations:turn-create",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(text="Why?", client_id=_uuid),
        ok=302,
    ),
    Row(
        "conversations:turn-retry",
        "POST",
        "conversation.write",
        TURN,
        before=turn_is(False, "failed"),
        ok=302,
    ),
    Row("conversations:turn-edit", "GET", "conversation.write", TURN, before=turn_is(False, "completed")),
    Row(
        "conversations:turn-edit",
        "POST",
        "conversation.write",
        TURN,
        data=send(text="Why not?", client_id=_uuid),
        before=turn_is(False, "completed"),
        ok=302,
    ),
    Row(
        "conversations:turn-regenerate",
        "POST",
        "conversation.write",
        TURN,
        data=send(client_id=_uuid),
        before=turn_is(False, "completed"),
        ok=302,
    ),
    Row(
        "conversations:turn-continue",
        "POST",
        "conversation.write",
        TURN,
        data=send(client_id=_uuid),
        before=_cut_short,
        ok=302,
    ),
    Row(
        "conversations:turn-choose",
        "POST",
        "conversation.write",
        TURN,
        before=turn_is(False, "completed"),
        ok=302,
    ),
    Row("conversations:turn-keep", "POST", "conversation.write", TURN, before=_compared, ok=302),
    Row(
        "conversations:turn-fork",
        "POST",
        "conversation.write",
        TURN,
        before=turn_is(False, "completed"),
        ok=302,
    ),
    Row("conversations:attachment-begin", "POST", "conversation.write", data=send(file=uploaded_file)),
    Row(
        "conversations:attachment-add",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(file=uploaded_file),
    ),
    Row("conversations:attachment", "GET", "conversation.read", ATTACHED),
    Row("conversations:attachment-sound", "GET", "conversation.read", ATTACHED, before=_sounding),
    Row("conversations:attachment-remove", "POST", "conversation.write", ATTACHED, ok=302),
    Row("conversations:attachment-retry", "POST", "conversation.write", ATTACHED, before=_unread, ok=302),
    Row("conversations:list", action="conversation.read"),
    Row(
        "conversations:bulk",
        "POST",
        "conversation.write",
        data=send(do="archive", conversations=pk_of("conversations.Conversation")),
        ok=302,
        body_ids=400,
    ),
    Row(
        "conversations:bulk",
        "POST",
        "conversation.write",
        data=send(
            do="move",
            conversations=pk_of("conversations.Conversation"),
            project=pk_of("conversations.Project"),
        ),
        ok=302,
        body_ids=400,
    ),
    Row("conversations:bulk-undo", "POST", "conversation.write", data=send(undo="none"), ok=400),
    Row("conversations:projects", action="conversation.read"),
    Row("conversations:projects-side", action="conversation.read"),
    Row("conversations:project-choices", action="conversation.write"),
    Row("conversations:project-create", "POST", "conversation.write", data=send(name="Leases"), ok=302),
    Row("conversations:project", "GET", "conversation.read", PROJECT),
    Row("conversations:project-edit", "GET", "conversation.write", PROJECT),
    Row(
        "conversations:project-edit",
        "POST",
        "conversation.write",
        PROJECT,
        data=send(name="Leases", sharing="owner"),
        ok=302,
    ),
    Row("conversations:project-delete", "POST", "conversation.write", PROJECT, ok=302),
    Row("conversations:suggest", action="conversation.read"),
    Row("conversations:tools-new", action="conversation.read"),
    Row("conversations:tools", "GET", "conversation.read", CONVERSATION),
    Row(
        "conversations:tools",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(off=["calculate"]),
    ),
    Row("conversations:recent", action="conversation.read"),
    Row("conversations:prompts", action="conversation.read"),
    Row("conversations:prompt-create", action="conversation.write"),
    Row("conversations:prompt-create", "POST", "conversation.write", data=send(name="N", text="T"), ok=302),
    Row("conversations:prompt", "GET", "conversation.write", PROMPT),
    Row("conversations:prompt", "POST", "conversation.write", PROMPT, data=send(name="N", text="T"), ok=302),
    Row("conversations:prompt-delete", "POST", "conversation.write", PROMPT, ok=302),
    Row("conversations:settings-rules", action="retention.manage"),
    Row(
        "conversations:settings-rules",
        "POST",
        "retention.manage",
        data=send(keep_days="30", makes_titles="on"),
        ok=302,
    ),
    Row("conversations:settings-instructions", action="conversation.read"),
    Row(
        "conversations:settings-instructions",
        "POST",
        "instruction.manage",
        data=send(text="Answer formally.", allows_memory="on"),
        ok=302,
    ),
    Row("conversations:settings-memory", action="memory.use"),
    Row("conversations:settings-memory", "POST", "memory.use", data=send(text="Prefers tables."), ok=302),
    Row("conversations:memory-switch", "POST", "memory.use", data=send(is_on="1"), ok=302),
    Row("conversations:memory-erase", "POST", "memory.use", ok=302),
    Row("conversations:memory-change", "POST", "memory.use", NOTE, data=send(text="Likes lists."), ok=302),
    Row("conversations:memory-remove", "POST", "memory.use", NOTE, ok=302),
    Row("conversations:remembered", "GET", "memory.use", CALL, before=_remembering),
    Row("conversations:shared", action="conversation.read", fixed={"key": _share_key}),
    Row("conversations:picture", "GET", "conversation.read", PICTURE, before=_drawn),
    Row(
        "conversations:shared-picture",
        "GET",
        "conversation.read",
        {"picture_pk": "conversations.Picture"},
        before=_drawn,
        fixed={"key": _shared_picture},
    ),
    Row(
        "conversations:draft",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(text="Wh", client_id=_uuid),
        ok=204,
    ),
    Row("conversations:queue", "GET", "conversation.read", CONVERSATION),
    Row("conversations:queue-ask", "POST", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:queue-remove", "POST", "conversation.write", QUEUED, ok=302),
    Row(
        "conversations:feedback",
        "POST",
        "conversation.write",
        TURN,
        data=send(verdict="good"),
        before=turn_answered,
        ok=302,
    ),
    Row("conversations:shares", "GET", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:shares", "POST", "conversation.write", CONVERSATION, before=turn_answered, ok=302),
    Row("conversations:share-revoke", "POST", "conversation.write", SHARE, ok=302),
    Row("conversations:export", "GET", "conversation.read", CONVERSATION),
    Row("conversations:turn-answer", "GET", "conversation.read", TURN, before=turn_answered),
    Row("conversations:turn-file", "GET", "conversation.read", TURN, before=turn_answered),
    Row("conversations:turn-document", "GET", "conversation.read", TURN, before=turn_answered),
    Row(
        "conversations:turn-save",
        "POST",
        "document.write",
        TURN,
        data=send(collection=pk_of("collections.Collection"), form="md"),
        before=turn_answered,
        also=("conversation.read", "collection.read"),
        ok=302,
    ),
    Row(
        "conversations:run-stream",
        "GET",
        "conversation.read",
        RUN,
        before=turn_is(False, "completed"),
        is_stream=True,
    ),
    Row(
        "conversations:run-trace",
        "GET",
        "conversation.read",
        RUN,
        before=turn_is(False, "completed"),
        also=("run.read",),
    ),
    Row("conversations:run-output", "GET", "conversation.read", CALL, before=turn_is(False, "completed")),
    Row("conversations:run-stop", "POST", "conversation.write", RUN, before=turn_is(True, "running"), ok=204),
    Row(
        "conversations:run-decide",
        "POST",
        "conversation.write",
        DECISION,
        data=send(decision="reject"),
        before=run_parked,
        ok=302,
    ),
    Row(
        "conversations:source",
        "GET",
        "conversation.read",
        CONVERSATION,
        {"source": _source},
        before=turn_is(False, "completed"),
    ),
    Row("conversations:rename", "POST", "conversation.write", CONVERSATION, data=send(title="T"), ok=302),
    Row("conversations:pin", "POST", "conversation.write", CONVERSATION, data=send(is_pinned="1"), ok=302),
    Row("conversations:delete", "POST", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:erase", "GET", "conversation.write", CONVERSATION),
    Row(
        "conversations:erase", "POST", "conversation.write", CONVERSATION, data=send(confirm="erase"), ok=302
    ),
    Row(
        "conversations:scope",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(collections=pk_of("collections.Collection")),
    ),
)


API: tuple[Row, ...] = (
    Row("api:assistants-list", action="assistant.read"),
    Row("api:assistants-list", "POST", "assistant.write", data=send(name="Clerk"), ok=201, also=EDIT),
    Row(
        "api:assistants-list",
        "POST",
        "assistant.write",
        data=send(name="Clerk", collections=lambda s, r: [s.row("collections.Collection", r).pk]),
        ok=201,
        also=EDIT,
        body_ids=400,
    ),
    Row(
        "api:assistants-list",
        "POST",
        "assistant.write",
        data=send(name="Clerk", helpers=lambda s, r: [s.row("conversations.Assistant", r).pk]),
        ok=201,
        also=EDIT,
        body_ids=400,
    ),
    Row(
        "api:assistants-list",
        "POST",
        "assistant.write",
        data=send(name="Clerk", has_toolkit=True, toolkit=pk_of("tools.Toolkit")),
        ok=201,
        also=EDIT,
        body_ids=400,
    ),
    Row("api:assistants-detail", "GET", "assistant.read", ASSISTANT),
    Row("api:assistants-detail", "PATCH", "assistant.write", ASSISTANT, data=send(name="Clerk"), also=EDIT),
    Row("api:assistants-detail", "DELETE", "assistant.write", ASSISTANT, ok=204, also=EDIT),
    Row("api:assistant-versions-list", "GET", "assistant.read", ASSISTANT),
    Row(
        "api:assistant-versions-list",
        "POST",
        "assistant.write",
        ASSISTANT,
        data=send(mode="quick"),
        ok=201,
        also=EDIT,
    ),
    Row(
        "api:assistant-versions-detail", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned
    ),
    Row(
        "api:assistant-versions-changes", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned
    ),
    Row(
        "api:assistants-publish",
        "POST",
        "assistant.write",
        ASSISTANT,
        data=send(version=1),
        before=_versioned,
        also=EDIT,
    ),
    Row("api:assistants-publish", "DELETE", "assistant.write", ASSISTANT, ok=204, also=EDIT),
    Row("api:prompts-list", action="conversation.read"),
    Row("api:prompts-list", "POST", "conversation.write", data=send(name="N", text="T"), ok=201),
    Row("api:prompts-detail", "GET", "conversation.read", PROMPT),
    Row(
        "api:prompts-detail",
        "PATCH",
        "conversation.write",
        PROMPT,
        data=send(name="N"),
        also=("conversation.read",),
    ),
    Row("api:prompts-detail", "DELETE", "conversation.write", PROMPT, ok=204, also=("conversation.read",)),
    Row(
        "api:turns-list",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=lambda side, role: {
            "text": "Why?",
            "only": {"documents": [side.row("collections.Document", role).pk]},
        },
        ok=201,
        also=TALK,
        body_ids=400,
    ),
    Row("api:instructions", action="conversation.read"),
    Row("api:instructions", "PUT", "instruction.manage", data=send(text="Answer formally.")),
    Row("api:memory", action="memory.use"),
    Row("api:memory", "PUT", "memory.use", data=send(is_on=True)),
    Row("api:memory", "DELETE", "memory.use", ok=204),
    Row("api:memory-entries-list", action="memory.use"),
    Row("api:memory-entries-list", "POST", "memory.use", data=send(text="Prefers tables."), ok=201),
    Row("api:memory-entries-detail", "GET", "memory.use", {"pk": "conversations.MemoryEntry"}),
    Row(
        "api:memory-entries-detail",
        "PATCH",
        "memory.use",
        {"pk": "conversations.MemoryEntry"},
        data=send(text="Likes lists."),
    ),
    Row("api:memory-entries-detail", "DELETE", "memory.use", {"pk": "conversations.MemoryEntry"}, ok=204),
    Row("api:conversations-list", action="conversation.read"),
    Row("api:conversations-list", "POST", "conversation.write", data=send(title="T"), ok=201, also=TALK),
    Row("api:conversations-detail", "GET", "conversation.read", CONVERSATION),
    Row(
        "api:conversations-detail",
        "PATCH",
        "conversation.write",
        CONVERSATION,
        data=send(title="T"),
        also=TALK,
    ),
    Row("api:conversations-detail", "DELETE", "conversation.write", CONVERSATION, ok=204, also=TALK),
    Row(
        "api:conversations-bulk",
        "POST",
        "conversation.write",
        data=send(do="archive", conversations=lambda s, r: [s.row("conversations.Conversation", r).pk]),
        also=TALK,
        body_ids=400,
    ),
    Row("api:projects-list", action="conversation.read"),
    Row("api:projects-list", "POST", "conversation.write", data=send(name="Leases"), ok=201, also=TALK),
    Row(
        "api:projects-list",
        "POST",
        "conversation.write",
        data=send(name="Leases", collections=lambda s, r: [s.row("collections.Collection", r).pk]),
        ok=201,
        also=(*TALK, "collection.read"),
        body_ids=400,
    ),
    Row("api:projects-detail", "GET", "conversation.read", PROJECT),
    Row("api:projects-detail", "PATCH", "conversation.write", PROJECT, data=send(name="L"), also=TALK),
    Row("api:projects-detail", "DELETE", "conversation.write", PROJECT, ok=204, also=TALK),
    Row("api:conversations-erasure", "GET", "conversation.write", CONVERSATION, also=TALK),
    Row(
        "api:conversations-erasure",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(confirm="erase"),
        ok=202,
        also=TALK,
    ),
    Row("api:turns-list", "GET", "conversation.read", CONVERSATION),
    Row(
        "api:turns-list",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(text="Why?", client_id=_uuid),
        ok=201,
        also=TALK,
    ),
    Row("api:turns-detail", "GET", "conversation.read", TURN, before=turn_is(False, "completed")),
    Row("api:turns-retry", "POST", "conversation.write", TURN, before=turn_is(False, "failed"), also=TALK),
    Row(
        "api:turns-edit",
        "POST",
        "conversation.write",
        TURN,
        data=send(text="Why not?", client_id=_uuid),
        before=turn_is(False, "completed"),
        ok=201,
        also=TALK,
    ),
    Row(
        "api:turns-regenerate",
        "POST",
        "conversation.write",
        TURN,
        before=turn_is(False, "completed"),
        ok=201,
        also=TALK,
    ),
    Row("api:turns-continue", "POST", "conversation.write", TURN, before=_cut_short, ok=201, also=TALK),
    Row(
        "api:turns-choose", "POST", "conversation.write", TURN, before=turn_is(False, "completed"), also=TALK
    ),
    Row("api:turns-keep", "POST", "conversation.write", TURN, before=_compared, also=TALK),
    Row(
        "api:turns-fork",
        "POST",
        "conversation.write",
        TURN,
        before=turn_is(False, "completed"),
        ok=201,
        also=TALK,
    ),
    Row(
        "api:turns-feedback",
        "PUT",
        "conversation.write",
        TURN,
        data=send(verdict="bad", reason="wrong"),
        before=turn_answered,
        also=TALK,
    ),
    Row("api:turns-feedback", "DELETE", "conversation.write", TURN, before=turn_answered, ok=204, also=TALK),
    Row("api:feedback-list", action="conversation.read"),
    Row("api:conversations-rules", action="audit.read"),
    Row("api:conversations-rules", "PUT", "retention.manage", data=send(keep_days=30)),
    Row("api:conversations-rules-preview", action="audit.read", data=send(keep_days=30)),
    Row("api:conversations-search", action="conversation.read", data=send(q="why")),
    Row(
        "api:conversations-draft",
        "PUT",
        "conversation.write",
        CONVERSATION,
        data=send(text="Wh"),
        ok=204,
        also=TALK,
    ),
    Row("api:conversations-export", "GET", "conversation.read", CONVERSATION),
    Row("api:conversations-file", "GET", "conversation.read", CONVERSATION),
    Row("api:turns-file", "GET", "conversation.read", TURN, before=turn_answered),
    Row(
        "api:turns-document",
        "POST",
        "document.write",
        TURN,
        data=send(collection=pk_of("collections.Collection")),
        before=turn_answered,
        also=("conversation.read", "collection.read"),
        ok=201,
    ),
    Row("api:attachments-list", "GET", "conversation.read", CONVERSATION),
    Row(
        "api:attachments-list",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(file=uploaded_file),
        ok=201,
        also=TALK,
    ),
    Row("api:attachments-detail", "GET", "conversation.read", ATTACHED),
    Row("api:attachments-detail", "DELETE", "conversation.write", ATTACHED, ok=204, also=TALK),
    Row("api:attachments-retry", "POST", "conversation.write", ATTACHED, before=_unread, ok=202, also=TALK),
    Row("api:queue-list", "GET", "conversation.read", CONVERSATION),
    Row(
        "api:turns-list",
        "POST",
        "conversation.write",
        CONVERSATION,
        data=send(text="Why?", client_id=_uuid, when_busy="queue"),
        before=turn_is(True, "running"),
        ok=202,
        also=TALK,
    ),
    Row("api:queue-detail", "PATCH", "conversation.write", QUEUED, data=send(text="Why?"), also=TALK),
    Row("api:queue-detail", "DELETE", "conversation.write", QUEUED, ok=204, also=TALK),
    Row("api:shares-list", "GET", "conversation.read", CONVERSATION),
    Row(
        "api:shares-list", "POST", "conversation.write", CONVERSATION, before=turn_answered, ok=201, also=TALK
    ),
    Row("api:shares-detail", "DELETE", "conversation.write", SHARE, ok=204, also=TALK),
    Row("api:shares-read", action="conversation.read", fixed={"key": _share_key}),
    Row("api:pictures-detail", "GET", "conversation.read", PICTURE, before=_drawn),
    Row(
        "api:shares-picture",
        "GET",
        "conversation.read",
        {"picture_pk": "conversations.Picture"},
        before=_drawn,
        fixed={"key": _shared_picture},
    ),
    # A model that is not there: what is allowed is refused at once, and waits for no worker.
    Row(
        "api:chat-completions",
        "POST",
        "conversation.write",
        data=send(model="none", messages=[{"role": "user", "content": "?"}]),
        ok=404,
        also=TALK,
    ),
    Row(
        "api:responses-list",
        "POST",
        "conversation.write",
        data=send(model="none", input="?"),
        ok=404,
        also=TALK,
    ),
    Row("api:responses-detail", "GET", "conversation.read", fixed={"response_id": "resp_g0_0"}, ok=404),
    Row(
        "api:responses-detail",
        "DELETE",
        "conversation.write",
        fixed={"response_id": "resp_g0_0"},
        ok=404,
        also=TALK,
    ),
    Row(
        "api:responses-cancel",
        "POST",
        "conversation.write",
        fixed={"response_id": "resp_g0_0"},
        ok=404,
        also=TALK,
    ),
    Row("api:responses-inputs", "GET", "conversation.read", fixed={"response_id": "resp_g0_0"}, ok=404),
    Row("api:models-list", action="model.read"),
    Row("api:models-detail", action="model.read", fixed={"model": "extractive"}),
)
