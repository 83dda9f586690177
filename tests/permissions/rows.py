"""The permission matrix as data: for each URL the method, the right it needs, and what to send so that it works.

A URL without a row fails tests/permissions/test_matrix.py. Add the row with the URL.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from apps.collections.services import batch_undo, file_write
from apps.conversations.models import AssistantVersion, Message
from apps.datasets.columns import record_columns
from apps.datasets.files import dataset_file_key
from apps.datasets.record import Record, Source
from jobs.models import Job
from runs.models import RunStep
from tenancy.actors import system_actor
from tenancy.scope import platform_scope, tenant_scope
from tests.permissions.world import Side
from web.oauth.clients import client_register

Data = Callable[[Side, str], Mapping[str, Any]]
COLLECTION = {"pk": "collections.Collection"}
IMPORT = {"pk": "collections.Collection", "import_pk": "collections.Import"}
DOCUMENT = {"pk": "collections.Collection", "doc_pk": "collections.Document"}
ONE_CHUNK = {"pk": "collections.Collection", "chunk_pk": "collections.Chunk"}
ONE_DOCUMENT = {"pk": "collections.Document"}
CHUNK = {"pk": "collections.Chunk"}
REVISION = {"pk": "collections.ChunkRevision"}
SWAP = {"pk": "collections.SpaceSwap"}
DATASET = {"pk": "datasets.Dataset"}
DATASET_ROW = {"pk": "datasets.Dataset", "row_pk": "datasets.DatasetRow"}
EXPORT_PAGE = {"pk": "datasets.Dataset", "export_pk": "datasets.DatasetExport"}
IMPORT_PAGE = {"pk": "datasets.Dataset", "import_pk": "datasets.DatasetImport"}
GENERATION = {"pk": "datasets.GenerationJob"}
GENERATION_PAGE = {"pk": "datasets.Dataset", "job_pk": "datasets.GenerationJob"}
CONVERSATION = {"pk": "conversations.Conversation"}
ASSISTANT = {"pk": "conversations.Assistant"}
EXPERIMENT = {"pk": "evaluations.Experiment"}
ARM = {"pk": "evaluations.Arm"}
QUEUE = {"pk": "evaluations.AnnotationQueue"}
SAMPLING = {"pk": "evaluations.SamplingRule"}
RUBRIC = {"pk": "evaluations.Rubric"}
_CRITERION = {"name": "tone", "question": "Is it kind?", "anchors": ["a", "b", "c", "d", "e"]}
TURN = {"pk": "conversations.Conversation", "turn_pk": "conversations.Turn"}
QUEUED = {"pk": "conversations.Conversation", "queued_pk": "conversations.QueuedQuestion"}
ATTACHED = {"pk": "conversations.Conversation", "attachment_pk": "conversations.Attachment"}
SHARE = {"pk": "conversations.Conversation", "share_pk": "conversations.ConversationShare"}
RUN = {"pk": "conversations.Conversation", "run_pk": "runs.Run"}
API_DECISION = {"pk": "runs.Run", "decision_pk": "runs.PendingDecision"}
DECISION = {
    "pk": "conversations.Conversation",
    "run_pk": "runs.Run",
    "decision_pk": "runs.PendingDecision",
}
CALL = {"pk": "runs.ToolCall"}
APPROVAL = {"pk": "runs.PendingDecision"}
WEBHOOK = {"pk": "webhooks.Webhook"}
BUDGET = {"pk": "budgets.Budget"}
DELIVERY = {"pk": "webhooks.Webhook", "delivery_pk": "webhooks.WebhookDelivery"}
LIMIT = {"pk": "tools.ToolLimit"}
SOURCE = {"pk": "tools.ToolSource"}
SOURCE_VERSION = {**SOURCE, "version_pk": "tools.ToolVersion"}
SOURCE_SECRET = {**SOURCE, "credential_pk": "tools.ToolCredential"}
SOURCE_TEST = {**SOURCE, "test_pk": "tools.ContractTest"}
A_TOOL = {"name": "calculate"}
READ = ("collection.read",)
EDIT = ("assistant.read", "collection.read")
TALK = ("conversation.read", "collection.read", "search.run")


@dataclass(frozen=True)
class Row:
    """One method of one URL.

    Attributes:
        action: the right it needs; "" = any member.
        ids: URL argument -> model label; the row of that model in the side that is asked for.
        fixed: URL arguments that are no ids.
        data: what to send, from the side and the caller's role; may name ids of that side too.
        ok: the status when allowed.
        json: send as JSON.
        before: changes the row first, so that the call can succeed.
        body_ids: the ids are in the data: the status for those of another tenant.
        also: scopes that a key needs besides (who writes must read).
        is_stream: answers with server-sent events; these rows are driven by test_streams.py.
    """

    url: str
    method: str = "GET"
    action: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    data: Data | None = None
    ok: int = 200
    before: Callable[[Side, str], None] | None = None
    body_ids: int = 0
    also: tuple[str, ...] = ()
    is_stream: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


def _send(**values: Any) -> Data:
    return lambda side, role: {k: v(side, role) if callable(v) else v for k, v in values.items()}


def _pk(label: str) -> Callable[[Side, str], int]:
    return lambda side, role: side.row(label, role).pk


def _calculation(side: Side, role: str) -> list[dict[str, Any]]:
    function = {"name": "calculate", "arguments": '{"expression": "6*7"}'}
    return [{"id": "a", "type": "function", "function": function}]


def _connected(side: Side, role: str) -> None:
    key = side.row("tenancy.ApiKey", role)
    with platform_scope():
        type(key).objects.filter(pk=key.pk).update(
            client_id="app", user=side.user(role), revoked_at=None
        )


def _authorization(side: Side, role: str) -> dict[str, str]:
    uri = "https://app.example/cb"
    client = client_register(side.tenant.slug, {"redirect_uris": [uri]})
    return {
        "client_id": client.client_id,
        "redirect_uri": uri,
        "response_type": "code",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
    }


def _file(side: Side, role: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("notes.txt", f"Notes of {side.tenant.slug}.".encode(), "text/plain")


def _turn(is_active: bool, status: str) -> Callable[[Side, str], None]:
    """The conversation's one turn is under way, or has ended."""

    def change(side: Side, role: str) -> None:
        turn, run = side.row("conversations.Turn", role), side.row("runs.Run", role)
        turn.is_active, run.status = is_active, status
        with platform_scope():
            turn.save()
            run.save()
            Message.objects.get_or_create(
                tenant=side.tenant, turn=turn, author="user", defaults={"text": "Why?"}
            )

    return change


def _answered(side: Side, role: str) -> None:
    """The conversation's one turn is answered, and it is what the conversation shows."""
    _turn(False, "completed")(side, role)
    turn, run = side.row("conversations.Turn", role), side.row("runs.Run", role)
    run.answer = "Because."
    with platform_scope():
        run.save()
        turn.conversation.head = turn
        turn.conversation.save()


def _share_key(side: Side, role: str) -> uuid.UUID:
    """The key of a link that works."""
    share = side.row("conversations.ConversationShare", role)
    share.snapshot = {"turns": []}
    with platform_scope():
        share.save()
    key: uuid.UUID = share.key
    return key


def _cut_short(side: Side, role: str) -> None:
    """The answer was stopped, with something said."""
    _turn(False, "stopped")(side, role)
    run = side.row("runs.Run", role)
    run.answer = "Because"
    with platform_scope():
        run.save()


def _versioned(side: Side, role: str) -> None:
    """The assistant has a version 1."""
    row = side.row("conversations.Assistant", role)
    with platform_scope():
        AssistantVersion.objects.get_or_create(tenant=side.tenant, assistant=row, number=1)


def _measured(side: Side, role: str) -> None:
    """The arm's experiment is completed."""
    experiment = side.row("evaluations.Arm", role).experiment
    experiment.state = "completed"
    with platform_scope():
        experiment.save()


def _paired(side: Side, role: str) -> None:
    """The experiment judges pairs."""
    experiment = side.row("evaluations.Experiment", role)
    experiment.scorers = [{"kind": "pairwise"}]
    with platform_scope():
        experiment.save()


def _versioned_rubric(side: Side, role: str) -> None:
    """The rubric has a version."""
    side.row("evaluations.RubricVersion", role)


def _graded(side: Side, role: str) -> None:
    """The person has skipped an answer of the queue."""
    row = side.row("evaluations.Assignment", role)
    row.state, row.finished_at = "skipped", timezone.now()
    with platform_scope():
        row.save()


def _replayable(side: Side, role: str) -> None:
    """The run has ended, and its one model turn is stored."""
    run = side.row("runs.Run", role)
    run.status, run.request = "completed", {"history": [{"role": "user", "text": "Why?"}]}
    said = {"role": "assistant", "provider": "scripted", "model": "m", "text": "So."}
    with platform_scope():
        run.save()
        RunStep.objects.get_or_create(tenant=side.tenant, run=run, index=0, defaults={"turn": said})


def _somebody_else(side: Side, role: str) -> int:
    return int(side.user("viewer" if role != "viewer" else "member").pk)


def _parked(side: Side, role: str) -> None:
    """The run waits for a decision; its job, which it goes on with, is one of this kind."""
    _turn(True, "parked")(side, role)
    waiting, run = side.row("runs.PendingDecision", role), side.row("runs.Run", role)
    with platform_scope():
        run.job = Job.objects.create(
            tenant=side.tenant, kind="conversations.turn_run", lane="loop", status="succeeded"
        )
        run.save()
        waiting.expires_at = timezone.now() + timedelta(hours=1)
        waiting.save()


def _addressed(side: Side, role: str) -> None:
    """The source has an address, which a credential belongs to."""
    row = side.row("tools.ToolSource", role)
    row.url = "https://api.example.org"
    with platform_scope():
        row.save()


def _tested(side: Side, role: str) -> None:
    """The test is about a tool that has a version; its call fails, for it goes nowhere."""
    test, version = side.row("tools.ContractTest", role), side.row("tools.ToolVersion", role)
    test.tool_name, test.last_outcome = version.tool_name, ""
    with platform_scope():
        test.save()


def _delivered(side: Side, role: str) -> None:
    row = side.row("webhooks.WebhookDelivery", role)
    row.status, row.payload = "delivered", {"data": {}}
    with platform_scope():
        row.save()


def _source(side: Side, role: str) -> str:
    citation = side.row("conversations.Citation", role)
    return f"{side.row('runs.Run', role).pk}-{citation.number}"


def _tool_name(side: Side, role: str) -> str:
    name: str = side.row("tools.ToolVersion", role).tool_name
    return name


def _uuid(side: Side, role: str) -> str:
    return str(uuid.uuid4())


def _unread(side: Side, role: str) -> None:
    """The attached file could not be read."""
    attached, document = (
        side.row("conversations.Attachment", role),
        side.row("collections.Document", role),
    )
    attached.document, document.status = document, "failed"
    with platform_scope():
        document.save()
        attached.save()


def _status(status: str) -> Callable[[Side, str], None]:
    def change(side: Side, role: str) -> None:
        document = side.row("collections.Document", role)
        document.status = status
        with platform_scope():
            document.save()

    return change


def _generating(state: str) -> Callable[[Side, str], None]:
    """Return what puts the generation job into a state."""

    def set_state(side: Side, role: str) -> None:
        row = side.row("datasets.GenerationJob", role)
        row.state, row.options = state, {"collections": []}
        with platform_scope():
            row.save(update_fields=["state", "options"])

    return set_state


def _has_row(side: Side, role: str) -> None:
    row = side.row("datasets.DatasetRow", role)
    record = Record(row.question, "Because.", sources=(Source("a.pdf", "Because."),))
    for name, value in record_columns(record).items():
        setattr(row, name, value)
    with platform_scope():
        row.save()


def _work_of_the_dataset(label: str, **facts: Any) -> Callable[[Side, str], None]:
    """The work is done, has its file, and is of a version that has a row."""

    def change(side: Side, role: str) -> None:
        _has_row(side, role)
        row = side.row(label, role)
        key = dataset_file_key(side.tenant.pk, row.dataset_id, "file")
        path = Path(default_storage.path(key))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        for name, value in facts.items():
            setattr(row, name, key if value is _FILE else value)
        with platform_scope():
            row.save()

    return change


_FILE = object()
_EXPORTED = _work_of_the_dataset(
    "datasets.DatasetExport", status="completed", format="jsonl", file=_FILE,
    findings=[{"fingerprint": "0" * 64, "kind": "email", "row": "1", "field": "answer", "shown": "ja…om"}],
)  # fmt: skip
_IMPORTED = _work_of_the_dataset(
    "datasets.DatasetImport", status="completed", format="jsonl", errors_file=_FILE, problems=[]
)


def _row_ids(side: Side, role: str) -> list[int]:
    return [side.row("datasets.DatasetRow", role).pk]


def _turn_ids(side: Side, role: str) -> list[int]:
    return [side.row("conversations.Turn", role).pk]


def _feedback_ids(side: Side, role: str) -> list[int]:
    return [side.row("conversations.Feedback", role).pk]


def _content_hash(side: Side, role: str) -> str:
    found: str = side.row("datasets.DatasetRow", role).content_hash
    return found


def _number(side: Side, role: str) -> int:
    number: int = side.row("datasets.DatasetVersion", role).number
    return number


def _askable(side: Side, role: str) -> None:
    """Let everybody see the document, and make its passage long enough to be asked about."""
    chunk = side.row("collections.Chunk", role)
    chunk.text = "The duty on lamps of heading 8539 is four percent of their value at import. " * 4
    document = side.row("collections.Document", role)
    document.live_from = timezone.now()
    with platform_scope():
        chunk.save(update_fields=["text"])
        document.save(update_fields=["live_from"])


def _asked_about(side: Side, role: str) -> dict[str, Any]:
    return {
        "collections": [side.row("collections.Collection", role).pk],
        "rows": 1,
        "types": {"factual": 1},
    }


def _live(is_current: bool) -> Callable[[Side, str], None]:
    """The document is the live version, or an earlier one."""

    def change(side: Side, role: str) -> None:
        document = side.row("collections.Document", role)
        document.live_from, document.live_to = timezone.now(), None
        if not is_current:
            document.live_to = timezone.now()
        with platform_scope():
            document.save()

    return change


def _disabled_once(side: Side, role: str) -> None:
    """The chunk was left out of search by this change, which can be taken back."""
    revision = side.row("collections.ChunkRevision", role)
    text = side.row("collections.Chunk", role).text
    revision.before = {"text": text, "is_disabled": True}
    revision.after = {"text": text, "is_disabled": False}
    with platform_scope():
        revision.save()


def _import(status: str) -> Callable[[Side, str], None]:
    def change(side: Side, role: str) -> None:
        row = side.row("collections.Import", role)
        row.status, row.source, row.options = status, "url", {"urls": ["https://example.org/"]}
        with platform_scope():
            row.save()

    return change


def _a_file(side: Side, role: str) -> None:
    """The collection has a file there.py."""
    with tenant_scope(side.tenant.pk):
        file_write(
            tenant=side.tenant, actor=system_actor(side.tenant.pk), path="there.py", content="x = 1\n",
            collection=side.row("collections.Collection", role),
        )  # fmt: skip


def _an_undone_file(side: Side, role: str) -> None:
    """The file there.py was written and taken back."""
    _a_file(side, role)
    with tenant_scope(side.tenant.pk):
        batch_undo(
            tenant=side.tenant, actor=system_actor(side.tenant.pk),
            collection=side.row("collections.Collection", role),
        )  # fmt: skip


# Anyone may call these; they show nothing of any tenant.
PUBLIC: dict[str, dict[str, Any]] = {
    "web:healthz": {},
    "web:readyz": {"ok": (200, 503)},
    "web:invite-accept": {"args": ["no-such-token"], "ok": (404,)},
    "api-schema": {},
    "api-docs": {},
    "account_login": {},
    "account_signup": {},
    "account_inactive": {},
    "account_reset_password": {},
    "account_reset_password_done": {},
    "account_reset_password_from_key": {"kwargs": {"uidb36": "1", "key": "x-y"}},
    "account_reset_password_from_key_done": {},
    "account_email_verification_sent": {},
    "account_confirm_email": {"args": ["x"], "ok": (200, 404)},
    # For applications that ask for a token: made of the address alone, or proven by a code.
    "web:oauth-resource": {"kwargs": {"tenant_slug": "any"}},
    "web:oauth-server": {"kwargs": {"tenant_slug": "any"}},
    "web:oauth-register": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    "web:oauth-token": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    "web:oauth-revoke": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    # Steps of a sign-in that has begun: without one they lead back to its start.
    "account_confirm_login_code": {"ok": (302, 404)},
    "mfa_authenticate": {"ok": (302,)},
}

# URLs of a workspace that its keys alone open, by POST; each thing that is asked for there needs its own right.
KEYED: dict[str, dict[str, Any]] = {
    "mcp": {"data": {"jsonrpc": "2.0", "id": 1, "method": "ping"}},
}

# Pages about the signed-in person alone: anonymous people are sent to sign in.
PERSONAL: dict[str, dict[str, Any]] = {
    "web:home": {"ok": (302,)},
    "web:profile": {},
    "web:tenant-create": {"ok": (200, 403)},
    "account_logout": {"anonymous": (302,)},
    "account_reauthenticate": {"ok": (200, 302)},
    "account_email": {},
    "account_change_password": {},
    "account_set_password": {"ok": (302,)},
    "mfa_index": {},
    "mfa_reauthenticate": {"ok": (200, 302)},
    "mfa_activate_totp": {"ok": (200, 302)},
    "mfa_deactivate_totp": {"ok": (200, 302, 404)},
    "mfa_view_recovery_codes": {"ok": (200, 302, 404)},
    "mfa_generate_recovery_codes": {"ok": (200, 302, 404)},
    "mfa_download_recovery_codes": {"ok": (200, 302, 404)},
}

PORTAL: tuple[Row, ...] = (
    Row("web:tenant-home", ok=302),
    Row("web:palette", action="tenant.read"),
    Row("web:leave", "POST", ok=302),
    Row("web:settings-members", action="member.read"),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=_send(action="role", role="viewer", membership=_pk("tenancy.Membership")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=_send(action="remove", membership=_pk("tenancy.Membership")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=_send(action="revoke", invite=_pk("tenancy.Invite")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-invites", action="member.manage", ok=302),
    Row(
        "web:settings-invites",
        "POST",
        "member.manage",
        data=_send(email="new@example.org", role="viewer"),
    ),
    Row("web:settings-keys", action="key.manage"),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=_send(action="create", name="k", scopes="search.run", expires="30"),
    ),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=_send(action="revoke", key=_pk("tenancy.ApiKey")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=_send(action="rotate", key=_pk("tenancy.ApiKey")),
        body_ids=404,
    ),
    Row("web:settings-connections", action="app.connect"),
    Row(
        "web:settings-connections",
        "POST",
        "app.connect",
        data=_send(connection=_pk("tenancy.ApiKey")),
        ok=302,
        before=_connected,
        body_ids=404,
    ),
    Row("web:oauth-authorize", action="app.connect", data=_authorization),
    Row("web:oauth-authorize", "POST", "app.connect", ok=400),  # its question stands in the address
    Row("web:settings-models", action="credential.manage"),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=_send(action="save", provider="openai", secret="sk-0123456789abcdef"),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=_send(action="remove", credential=_pk("tenancy.ProviderCredential")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=_send(action="model_save", **{"model-name": "openai/gpt-6-sol"}),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=_send(action="model_hide", model="openai/gpt-6-sol"),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=_send(action="model_forget", entry=_pk("tenancy.ModelEntry")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-audit", action="audit.read"),
    Row("web:settings-budgets", action="audit.read"),
    Row("web:settings-budgets", "POST", "budget.manage", data=_send(action="set", whose="tenant", amount_usd="5", period="day"), ok=302),
    Row("web:settings-budgets", "POST", "budget.manage", data=_send(action="remove", budget=_pk("budgets.Budget")), ok=302, body_ids=404),
    Row("web:settings-outgoing", action="tenant.manage"),
    Row("web:settings-outgoing", "POST", "tenant.manage", data=_send(hosts="api.example.com"), ok=302),
    Row("web:settings-retention", action="retention.manage"),
    Row("web:settings-retention", "POST", "retention.manage", data=_send(days="30"), ok=302),
    Row("tools:catalog", action="tool.run"),
    Row("tools:calls", action="run.read"),
    Row("tools:call-replay", "POST", "run.read", ids=CALL),
    Row("tools:run-replay", "POST", "run.read", ids={"pk": "runs.Run"}, before=_replayable),
    Row("tools:reads", action="run.read"),
    Row("usage:page", action="run.read"),
    Row("tools:calls-file", action="run.read"),
    Row("tools:collection", action="tool.manage", ids=COLLECTION),
    Row("tools:collection", "POST", "tool.manage", ids=COLLECTION, data=_send(toolkit=_pk("tools.Toolkit")), ok=302),
    Row("tools:call", action="run.read", ids=CALL),
    Row("tools:tool", action="tool.run", fixed=A_TOOL),
    Row("tools:tool-try", "POST", "tool.run", fixed=A_TOOL, data=_send(do="check", **{"/expression": "6*7"})),
    Row("tools:tool-switch", "POST", "tool.manage", fixed=A_TOOL, data=_send(is_enabled="false"), ok=302),
    Row("tools:tool-edit", action="tool.manage", fixed=A_TOOL),
    Row("tools:tool-edit", "POST", "tool.manage", fixed=A_TOOL, data=_send(title="Sums"), ok=302),
    Row("tools:sources", action="tool.manage"),
    Row("tools:source-create", action="tool.manage"),
    Row("tools:source-create", "POST", "tool.manage", data=_send(name="crm", url="https://api.example.org", document='{"openapi": "3.1.0"}'), ok=302),
    Row("tools:source", "GET", "tool.manage", SOURCE),
    Row("tools:source-edit", "GET", "tool.manage", SOURCE),
    Row("tools:source-edit", "POST", "tool.manage", SOURCE, data=_send(title="CRM", document_url="https://example.org/openapi.json"), ok=302),
    Row("tools:source-act", "POST", "tool.manage", SOURCE, data=_send(do="refresh"), ok=302),
    Row("tools:source-credential", "POST", "tool.manage", SOURCE, data=_send(placement="bearer", secret=""), ok=422),
    Row("tools:versions-decide", "POST", "tool.manage", SOURCE, data=_send(do="accept"), ok=302),
    Row("tools:version", "GET", "tool.manage", {"pk": "tools.ToolVersion"}),
    Row("tools:contract-test-create", "GET", "tool.manage", fixed={"name": _tool_name}),
    Row("tools:contract-test-create", "POST", "tool.manage", fixed={"name": _tool_name}, data=_send(name="Sums", arguments="{}", expected="{}"), ok=302),
    Row("tools:contract-test", "GET", "tool.manage", {"pk": "tools.ContractTest"}),
    Row("tools:contract-test", "POST", "tool.manage", {"pk": "tools.ContractTest"}, data=_send(do="delete"), ok=302),
    Row("tools:permissions", action="tool.manage"),
    Row("tools:permission-set", "POST", "tool.manage", data=_send(cell="tool|calculate|role|viewer|deny"), ok=302),
    Row("tools:permission-undo", "POST", "tool.manage", data=_send(undo="no such change"), ok=400),
    Row("tools:grants", action="tool.manage"),
    Row("tools:grant-create", action="tool.manage"),
    Row("tools:grant-create", "POST", "tool.manage", data=_send(effect="deny", target_kind="tool", target="calculate", calls="any", subject="role:viewer"), ok=302),
    Row("tools:grant-edit", "GET", "tool.manage", {"pk": "tools.ToolGrant"}),
    Row("tools:grant-edit", "POST", "tool.manage", {"pk": "tools.ToolGrant"}, data=_send(effect="deny", target_kind="tool", target="calculate", calls="any", subject="everyone:"), ok=302),
    Row("tools:grant-delete", "POST", "tool.manage", {"pk": "tools.ToolGrant"}, ok=302),
    Row("tools:toolkits", action="tool.manage"),
    Row("tools:toolkits", "POST", "tool.manage", data=_send(name="Sums", tools="calculate"), ok=302),
    Row("tools:toolkit-delete", "POST", "tool.manage", {"pk": "tools.Toolkit"}, ok=302),
    Row("tools:access", action="tool.run"),
    Row("tools:access", "GET", "tool.manage", data=_send(subject=lambda s, r: f"member:{s.user('viewer').pk}"), body_ids=404),
    Row("collections:list", action="collection.read"),
    Row("collections:create", action="collection.write"),
    Row("collections:sample", "POST", "collection.write", ok=302),
    Row("collections:create", "POST", "collection.write", data=_send(name="New", chunk_size=1200, chunk_overlap=200), ok=302),
    Row("collections:detail", "GET", "collection.read", COLLECTION),
    Row("collections:settings", "GET", "collection.write", COLLECTION),
    Row("collections:settings", "POST", "collection.write", COLLECTION, data=_send(name="Renamed", chunk_size=1200, chunk_overlap=200), ok=302),
    Row("collections:delete", "POST", "collection.delete", COLLECTION, data=_send(confirm=lambda s, r: s.row("collections.Collection", r).name), ok=302),
    Row("collections:imports", "GET", "document.write", COLLECTION),
    Row("collections:imports", "POST", "document.write", COLLECTION, data=_send(source="url", urls="https://example.org/"), ok=302),
    Row("collections:import", "GET", "document.write", IMPORT),
    Row("collections:import-cancel", "POST", "document.write", IMPORT, before=_import("queued")),
    Row("collections:import-retry", "POST", "document.write", IMPORT, before=_import("failed")),
    Row("collections:upload", "POST", "document.write", COLLECTION, data=_send(file=_file), ok=201),
    Row("collections:stream", "GET", "collection.read", COLLECTION, is_stream=True),
    Row("collections:search", "GET", "search.run", COLLECTION),
    Row("collections:chunks", "GET", "collection.read", COLLECTION),
    Row("collections:files", "GET", "collection.read", COLLECTION),
    Row("collections:file", "GET", "collection.read", COLLECTION, data=_send(path="there.py"), before=_a_file),
    Row("collections:file-edit", "GET", "document.write", COLLECTION),
    Row("collections:file-edit", "POST", "document.write", COLLECTION, data=_send(path="new.txt", content="New."), ok=302),
    Row("collections:file-delete", "POST", "document.write", COLLECTION, data=_send(path="there.py"), ok=302, before=_a_file),
    Row("collections:file-history", "GET", "collection.read", COLLECTION),
    Row("collections:file-revision", "GET", "collection.read", COLLECTION | {"revision": "collections.FileRevision"}),
    Row("collections:file-undo", "POST", "document.write", COLLECTION, ok=302, before=_a_file),
    Row("collections:file-redo", "POST", "document.write", COLLECTION, ok=302, before=_an_undone_file),
    Row("collections:file-restore", "POST", "document.write", COLLECTION, data=_send(revision=_pk("collections.FileRevision")), ok=302),
    Row("collections:file-search", "GET", "collection.read", COLLECTION, data=_send(q="x")),
    Row("collections:file-structure", "GET", "collection.read", COLLECTION),
    Row("collections:file-rules", "GET", "collection.write", COLLECTION),
    Row("collections:file-rules", "POST", "collection.write", COLLECTION, data=_send(max_file_bytes="1", max_total_bytes="10", max_files="10"), ok=302),
    Row("collections:git", "GET", "collection.read", COLLECTION),
    Row("collections:git-diff", "GET", "collection.read", COLLECTION),
    Row(
        "collections:chunks",
        "GET",
        "collection.read",
        COLLECTION,
        data=_send(document=_pk("collections.Document")),
        body_ids=404,
    ),
    Row("collections:type-rules", action="collection.write"),
    Row("collections:type-rules", "POST", "collection.write", data=_send(rules=""), ok=302),
    Row("collections:check", "GET", "collection.delete", COLLECTION),
    Row("collections:check", "POST", "collection.delete", COLLECTION),
    Row("collections:reindex", "POST", "document.write", COLLECTION, ok=302),
    Row("collections:swap", "GET", "collection.write", COLLECTION),
    Row("collections:swap-start", "POST", "collection.write", COLLECTION, data=_send(embedder="nonsense"), ok=302),
    Row("collections:swap-step", "POST", "collection.write", COLLECTION | {"swap_pk": "collections.SpaceSwap"}, data=_send(step="cancel"), ok=302),
    Row("collections:snapshot-create", "POST", "collection.write", COLLECTION, data=_send(name="Now"), ok=302),
    Row("collections:snapshot-delete", "POST", "collection.write", COLLECTION | {"snapshot_pk": "collections.CollectionSnapshot"}, ok=302),
    Row("collections:case-save", "POST", "collection.write", COLLECTION, data=_send(query="Why?"), ok=302),
    Row("collections:case-delete", "POST", "collection.write", COLLECTION | {"case_pk": "collections.SearchCase"}, ok=302),
    Row("collections:bulk", "POST", "document.write", COLLECTION, data=_send(action="tag", tag="a"), ok=302),
    Row("collections:chunk", "GET", "collection.read", ONE_CHUNK),
    Row("collections:chunk-edit", "POST", "document.write", ONE_CHUNK, data=_send(text=""), ok=400),
    Row("collections:chunk-disable", "POST", "document.write", ONE_CHUNK, data=_send(is_disabled="true"), ok=302),
    Row("collections:chunk-restore", "POST", "document.write", ONE_CHUNK | {"revision_pk": "collections.ChunkRevision"}, before=_disabled_once, ok=302),
    Row("collections:document-about", "GET", "collection.read", DOCUMENT),
    Row("collections:document-describe", "POST", "document.write", DOCUMENT, data=_send(tags="a, b"), ok=302),
    Row("collections:document-access", "POST", "collection.delete", DOCUMENT, data=_send(is_restricted="false"), ok=302),
    Row("collections:document-restore", "POST", "document.write", DOCUMENT, before=_live(False), ok=302),
    Row("web:settings-webhooks", action="webhook.manage"),
    Row("web:settings-webhooks", "POST", "webhook.manage", data=_send(url="https://93.184.216.34/hook", events="run.finished")),
    Row("web:settings-webhook", action="webhook.manage", ids=WEBHOOK),
    Row("web:settings-webhook", "POST", "webhook.manage", WEBHOOK, data=_send(action="test"), ok=302),
    Row("tools:settings-limits", action="tool.manage"),
    Row("tools:settings-limits", "POST", "tool.manage", data=_send(action="set", what="all", whose="tenant", most=9, period="day"), ok=302),
    Row("tools:approvals", action="run.read"),
    Row("tools:approvals-stream", action="run.read", is_stream=True),
    Row("tools:approvals-approve", "POST", "conversation.write", data=_send(approval=_pk("runs.PendingDecision")), before=_parked, ok=302),
    Row("tools:approval", action="run.read", ids=APPROVAL, before=_parked),
    Row("tools:approval-decide", "POST", "conversation.write", APPROVAL, data=_send(decision="approve"), before=_parked, ok=302),
    Row("tools:approval-hand-over", "POST", "conversation.write", APPROVAL, data=_send(to=_somebody_else), before=_parked, ok=302),
    Row("collections:document-reindex", "POST", "document.write", DOCUMENT, before=_live(True), ok=302),
    Row("collections:document-summarise", "POST", "document.write", DOCUMENT, ok=302),
    Row("collections:document-move", "POST", "document.write", DOCUMENT, data=_send(path="a/b.txt"), ok=302),
    Row("collections:document", "GET", "collection.read", DOCUMENT),
    # The page is there; that this document has no picture of it is told only to who may know of the document.
    Row("collections:page-image", "GET", "collection.read", DOCUMENT, {"page": 1}, ok=404),
    Row("collections:document-retry", "POST", "document.write", DOCUMENT, before=_status("failed")),
    Row("collections:document-cancel", "POST", "document.write", DOCUMENT, before=_status("queued")),
    Row("collections:document-delete", "POST", "document.write", DOCUMENT, ok=302),
    Row("collections:document-download", "GET", "collection.read", DOCUMENT),
    Row("evaluations:list", action="evaluation.read"),
    Row("evaluations:create", action="evaluation.write"),
    Row("evaluations:create", "POST", "evaluation.write", data=_send(name="First"), ok=422),
    Row("evaluations:detail", "GET", "evaluation.read", EXPERIMENT),
    Row("evaluations:act", "POST", "evaluation.write", EXPERIMENT, data=_send(do="stop"), ok=302),
    Row("evaluations:failures", "GET", "evaluation.read", ARM),
    Row("evaluations:failures-collect", "POST", "dataset.write", ARM, ok=302, also=("evaluation.read",)),
    Row("evaluations:repeats", "GET", "evaluation.read", ARM),
    Row("evaluations:compare", action="evaluation.read"),
    Row("evaluations:promote", "POST", "evaluation.write", data=_send(arm=_pk("evaluations.Arm")), ok=302, body_ids=404),
    Row("evaluations:queues", action="evaluation.read"),
    Row("evaluations:queue-create", action="evaluation.write"),
    Row("evaluations:queue-create", "POST", "evaluation.write", data=_send(name="First"), ok=422),
    Row("evaluations:queue", "GET", "evaluation.read", QUEUE),
    Row("evaluations:queue-act", "POST", "evaluation.write", QUEUE, data=_send(do="close"), ok=302),
    Row("evaluations:annotate", "GET", "evaluation.write", QUEUE),
    Row("evaluations:annotate", "POST", "evaluation.write", QUEUE, data=_send(do="undo"), before=_graded, ok=302),
    Row("evaluations:trust", action="evaluation.read"),
    Row("evaluations:live", action="evaluation.read"),
    Row("evaluations:live-create", action="tool.manage"),
    Row("evaluations:live-create", "POST", "tool.manage", data=_send(name="First"), ok=422),
    Row("evaluations:live-rule", "GET", "evaluation.read", SAMPLING),
    Row("evaluations:live-act", "POST", "tool.manage", SAMPLING, data=_send(do="pause"), ok=302),
    Row("evaluations:rubrics", action="evaluation.read"),
    Row("evaluations:rubric", "GET", "evaluation.read", RUBRIC, before=_versioned_rubric),
    Row("evaluations:rubric-create", action="evaluation.write"),
    Row("evaluations:rubric-create", "POST", "evaluation.write", data=_send(name="First"), ok=422),
    Row("evaluations:rubric-change", "GET", "evaluation.write", RUBRIC),
    Row("evaluations:rubric-change", "POST", "evaluation.write", RUBRIC, data=_send(note="First"), ok=422),
    Row("assistants:list", action="assistant.read"),
    Row("assistants:example", "POST", "tool.manage", fixed={"name": "trade_compliance"}, ok=302),
    Row("assistants:create", action="assistant.write"),
    Row("assistants:create", "POST", "assistant.write", data=_send(name="Clerk", mode="quick", output="text"), ok=302),
    Row("assistants:detail", "GET", "assistant.read", ASSISTANT),
    Row("assistants:edit", "GET", "assistant.write", ASSISTANT),
    Row("assistants:edit", "POST", "assistant.write", ASSISTANT, data=_send(mode="quick", output="text"), ok=302),
    Row("assistants:version", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned),
    Row("assistants:publish", "POST", "assistant.write", ASSISTANT, data=_send(version=1), before=_versioned, ok=302),
    Row("assistants:rename", "POST", "assistant.write", ASSISTANT, data=_send(name="Clerk"), ok=302),
    Row("assistants:archive", "POST", "assistant.write", ASSISTANT, ok=302),
    Row("assistants:try", "POST", "assistant.write", ASSISTANT, data=_send(version=1, text="Why?"), before=_versioned, ok=302),
    Row("datasets:list", action="dataset.read"),
    Row("datasets:list", "POST", "dataset.write", data=_send(name="Duties"), ok=302),
    Row("datasets:detail", "GET", "dataset.read", DATASET),
    Row("datasets:row", "GET", "dataset.read", DATASET_ROW, before=_has_row),
    Row("datasets:review", "GET", "dataset.read", DATASET, before=_has_row),
    Row("datasets:row-review", "POST", "dataset.write", DATASET_ROW, data=_send(verdict="approve", content_hash=_content_hash), before=_has_row, ok=302),
    Row("datasets:row-edit", "POST", "dataset.write", DATASET_ROW, data=_send(question="Why so?", answer="So."), before=_has_row, ok=302),
    Row("datasets:exports", "GET", "dataset.write", DATASET),
    Row("datasets:exports", "POST", "dataset.write", DATASET, data=_send(form="jsonl", version=_number), ok=302),
    Row("datasets:export", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED),
    Row("datasets:export", "POST", "dataset.write", EXPORT_PAGE, data=_send(finding="0" * 64, note="Public."), before=_EXPORTED, ok=302),
    Row("datasets:export-stream", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED, is_stream=True),
    Row("datasets:export-file", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED),
    Row("datasets:imports", "GET", "dataset.write", DATASET),
    Row("datasets:imports", "POST", "dataset.write", DATASET, data=_send(form="jsonl", file=_file), ok=302),
    Row("datasets:import", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED),
    Row("datasets:import-stream", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED, is_stream=True),
    Row("datasets:import-errors", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED),
    Row("datasets:checks", "GET", "dataset.write", DATASET),
    Row("datasets:checks-stream", "GET", "dataset.write", DATASET, is_stream=True),
    Row("datasets:checks", "POST", "dataset.write", DATASET, data=_send(kind="secrets"), ok=302),
    Row("datasets:diff", "GET", "dataset.read", DATASET, {"older": _number, "newer": _number}),
    Row("datasets:generate", "GET", "dataset.write", DATASET),
    Row("datasets:generate", "POST", "dataset.write", DATASET, data=_send(rows=1), ok=422),
    Row("datasets:versions", "GET", "dataset.read", DATASET),
    Row("datasets:versions", "POST", "dataset.write", DATASET, ok=302),
    Row("datasets:version", "GET", "dataset.read", DATASET, {"number": _number}),
    Row("datasets:rows-settle", "POST", "dataset.write", DATASET, data=_send(row=_row_ids, act="train"), before=_has_row, ok=302),
    Row("datasets:sources", "GET", "dataset.read", DATASET, before=_has_row),
    Row("datasets:sources", "POST", "dataset.write", DATASET, data=_send(document="a.pdf", license="MIT"), before=_has_row, ok=302),
    Row("datasets:from-feedback", "GET", "dataset.write"),
    Row("datasets:from-feedback", "POST", "dataset.write", data=_send(pick=_feedback_ids), ok=302),
    Row("datasets:from-conversation", "GET", "dataset.write", {"conversation_pk": "conversations.Conversation"}, before=_answered),
    Row("datasets:from-conversation", "POST", "dataset.write", {"conversation_pk": "conversations.Conversation"}, data=_send(pick=_turn_ids), before=_answered, ok=302),
    Row("datasets:job", "GET", "dataset.read", GENERATION_PAGE, before=_generating("running")),
    Row("datasets:job-stream", "GET", "dataset.read", GENERATION_PAGE, before=_generating("completed"), is_stream=True),
    Row("datasets:job-pause", "POST", "dataset.write", GENERATION_PAGE, before=_generating("running"), ok=302),
    Row("datasets:job-resume", "POST", "dataset.write", GENERATION_PAGE, before=_generating("paused"), ok=302),
    Row("datasets:job-stop", "POST", "dataset.write", GENERATION_PAGE, before=_generating("running"), ok=302),
    Row("conversations:home", action="conversation.read"),
    Row("conversations:create", "POST", "conversation.write", data=_send(text="Why?", client_id=_uuid), ok=302),
    Row(
        "conversations:create",
        "POST",
        "conversation.write",
        data=_send(text="Why?", client_id=_uuid, collections=_pk("collections.Collection")),
        ok=302,
        body_ids=400,
    ),
    Row("conversations:detail", "GET", "conversation.read", CONVERSATION),
    Row("conversations:turn-create", "POST", "conversation.write", CONVERSATION, data=_send(text="Why?", client_id=_uuid), ok=302),
    Row("conversations:turn-retry", "POST", "conversation.write", TURN, before=_turn(False, "failed"), ok=302),
    Row("conversations:turn-edit", "GET", "conversation.write", TURN, before=_turn(False, "completed")),
    Row("conversations:turn-edit", "POST", "conversation.write", TURN, data=_send(text="Why not?", client_id=_uuid), before=_turn(False, "completed"), ok=302),
    Row("conversations:turn-regenerate", "POST", "conversation.write", TURN, data=_send(client_id=_uuid), before=_turn(False, "completed"), ok=302),
    Row("conversations:turn-continue", "POST", "conversation.write", TURN, data=_send(client_id=_uuid), before=_cut_short, ok=302),
    Row("conversations:turn-choose", "POST", "conversation.write", TURN, before=_turn(False, "completed"), ok=302),
    Row("conversations:turn-fork", "POST", "conversation.write", TURN, before=_turn(False, "completed"), ok=302),
    Row("conversations:attachment-begin", "POST", "conversation.write", data=_send(file=_file)),
    Row("conversations:attachment-add", "POST", "conversation.write", CONVERSATION, data=_send(file=_file)),
    Row("conversations:attachment", "GET", "conversation.read", ATTACHED),
    Row("conversations:attachment-remove", "POST", "conversation.write", ATTACHED, ok=302),
    Row("conversations:attachment-retry", "POST", "conversation.write", ATTACHED, before=_unread, ok=302),
    Row("conversations:list", action="conversation.read"),
    Row("conversations:tools-new", action="conversation.read"),
    Row("conversations:tools", "GET", "conversation.read", CONVERSATION),
    Row("conversations:tools", "POST", "conversation.write", CONVERSATION, data=_send(listed=["calculate"], tools=[])),
    Row("conversations:recent", action="conversation.read"),
    Row("conversations:settings-rules", action="retention.manage"),
    Row("conversations:settings-rules", "POST", "retention.manage", data=_send(keep_days="30", makes_titles="on"), ok=302),
    Row("conversations:shared", action="conversation.read", fixed={"key": _share_key}),
    Row("conversations:draft", "POST", "conversation.write", CONVERSATION, data=_send(text="Wh"), ok=204),
    Row("conversations:queue", "GET", "conversation.read", CONVERSATION),
    Row("conversations:queue-ask", "POST", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:queue-remove", "POST", "conversation.write", QUEUED, ok=302),
    Row("conversations:feedback", "POST", "conversation.write", TURN, data=_send(verdict="good"), before=_answered, ok=302),
    Row("conversations:shares", "GET", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:shares", "POST", "conversation.write", CONVERSATION, before=_answered, ok=302),
    Row("conversations:share-revoke", "POST", "conversation.write", SHARE, ok=302),
    Row("conversations:export", "GET", "conversation.read", CONVERSATION),
    Row("conversations:turn-answer", "GET", "conversation.read", TURN, before=_answered),
    Row("conversations:run-stream", "GET", "conversation.read", RUN, before=_turn(False, "completed"), is_stream=True),
    Row("conversations:run-trace", "GET", "conversation.read", RUN, before=_turn(False, "completed"), also=("run.read",)),
    Row("conversations:run-stop", "POST", "conversation.write", RUN, before=_turn(True, "running"), ok=204),
    Row("conversations:run-decide", "POST", "conversation.write", DECISION, data=_send(decision="reject"), before=_parked, ok=302),
    Row("conversations:source", "GET", "conversation.read", CONVERSATION, {"source": _source}, before=_turn(False, "completed")),
    Row("conversations:rename", "POST", "conversation.write", CONVERSATION, data=_send(title="T"), ok=302),
    Row("conversations:delete", "POST", "conversation.write", CONVERSATION, ok=302),
    Row("conversations:scope", "POST", "conversation.write", CONVERSATION, data=_send(collections=_pk("collections.Collection"))),
)  # fmt: skip

API: tuple[Row, ...] = (
    Row("api:me", action="tenant.read"),
    Row("api:members-list", action="member.read"),
    Row("api:budgets-list", action="audit.read"),
    Row("api:budgets-list", "POST", "budget.manage", data=_send(kind="member", amount_usd="5"), ok=201),
    Row("api:budgets-detail", "GET", "audit.read", BUDGET),
    Row("api:budgets-detail", "DELETE", "budget.manage", BUDGET, ok=204),
    Row("api:budgets-rules", action="audit.read"),
    Row("api:budgets-rules", "PUT", "budget.manage", data=_send(refuses_unpriced=True)),
    Row("api:outgoing-hosts", action="tool.manage"),
    Row("api:outgoing-hosts", "PUT", "tenant.manage", data=_send(hosts=["api.example.com"])),
    Row("api:retention", action="audit.read"),
    Row("api:retention", "PUT", "retention.manage", data=_send(days=30)),
    Row("api:tool-limits-list", action="tool.manage"),
    Row("api:tool-limits-list", "POST", "tool.manage", data=_send(kind="tenant", period="day", calls=5), ok=201),
    Row("api:tool-limits-detail", "GET", "tool.manage", LIMIT),
    Row("api:tool-limits-detail", "DELETE", "tool.manage", LIMIT, ok=204),
    Row("api:webhooks-list", action="webhook.manage"),
    Row("api:webhooks-list", "POST", "webhook.manage", data=_send(url="https://example.org/hook", events=["run.finished"]), ok=201),
    Row("api:webhooks-detail", "GET", "webhook.manage", WEBHOOK),
    Row("api:webhooks-detail", "PATCH", "webhook.manage", WEBHOOK, data=_send(is_enabled=False)),
    Row("api:webhooks-detail", "DELETE", "webhook.manage", WEBHOOK, ok=204),
    Row("api:webhooks-ping", "POST", "webhook.manage", WEBHOOK, ok=202),
    Row("api:deliveries-list", "GET", "webhook.manage", WEBHOOK),
    Row("api:deliveries-redeliver", "POST", "webhook.manage", DELIVERY, ok=202, before=_delivered),
    Row("api:collections-list", action="collection.read"),
    Row("api:collections-list", "POST", "collection.write", data=_send(name="New"), ok=201, also=READ),
    Row("api:collections-detail", "GET", "collection.read", COLLECTION),
    Row("api:collections-detail", "PATCH", "collection.write", COLLECTION, data=_send(name="R"), also=READ),
    Row("api:collections-detail", "DELETE", "collection.delete", COLLECTION, ok=204, also=READ),
    Row("api:collections-toolkit", "GET", "collection.read", COLLECTION),
    Row("api:collections-toolkit", "PUT", "tool.manage", COLLECTION, data=_send(toolkit=_pk("tools.Toolkit")), also=READ),
    Row("api:documents-list", "GET", "collection.read", COLLECTION),
    Row("api:documents-list", "POST", "document.write", COLLECTION, data=_send(file=_file), ok=201, also=READ),
    Row("api:imports-list", "GET", "document.write", COLLECTION, also=READ),
    Row("api:imports-list", "POST", "document.write", COLLECTION, data=_send(source="url", urls=lambda s, r: ["https://example.org/"]), ok=202, also=READ),
    Row("api:imports-detail", "GET", "document.write", {"pk": "collections.Import"}),
    Row("api:imports-cancel", "POST", "document.write", {"pk": "collections.Import"}, ok=202, before=_import("queued")),
    Row("api:imports-retry", "POST", "document.write", {"pk": "collections.Import"}, ok=202, before=_import("failed")),
    Row("api:documents-detail", "GET", "collection.read", {"pk": "collections.Document"}),
    Row("api:documents-detail", "DELETE", "document.write", {"pk": "collections.Document"}, ok=204, also=READ),
    Row("api:documents-retry", "POST", "document.write", {"pk": "collections.Document"}, ok=202, before=_status("failed"), also=READ),
    Row("api:documents-cancel", "POST", "document.write", {"pk": "collections.Document"}, ok=202, before=_status("queued"), also=READ),
    Row("api:documents-detail", "PATCH", "document.write", ONE_DOCUMENT, data=_send(tags=["a"]), also=READ),
    Row("api:documents-versions", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:documents-restore", "POST", "document.write", ONE_DOCUMENT, ok=202, before=_live(False), also=READ),
    Row("api:documents-reindex", "POST", "document.write", ONE_DOCUMENT, ok=202, before=_live(True), also=READ),
    Row("api:documents-move", "POST", "document.write", ONE_DOCUMENT, data=_send(path="a/b.txt"), also=READ),
    Row("api:documents-access", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:documents-access", "PUT", "collection.delete", ONE_DOCUMENT, data=_send(is_restricted=False), also=READ),
    Row("api:documents-chunks", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:documents-statistics", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:files-list", "GET", "collection.read", COLLECTION),
    Row("api:files-content", "GET", "collection.read", COLLECTION, data=_send(path="there.py"), before=_a_file),
    Row("api:files-content", "PUT", "document.write", COLLECTION, data=_send(path="new.txt", content="New."), also=READ),
    Row("api:files-content", "DELETE", "document.write", COLLECTION, data=_send(path="there.py"), before=_a_file, also=READ),
    Row("api:files-edit", "POST", "document.write", COLLECTION, data=_send(files=[{"path": "there.py", "edits": [{"kind": "insert", "line": 1, "text": "y = 2"}]}]), before=_a_file, also=READ),
    Row("api:files-move", "POST", "document.write", COLLECTION, data=_send(path="there.py", to="here.py"), before=_a_file, also=READ),
    Row("api:files-search", "GET", "collection.read", COLLECTION, data=_send(query="x")),
    Row("api:files-structure", "GET", "collection.read", COLLECTION),
    Row("api:files-diff", "GET", "collection.read", COLLECTION, data=_send(path="there.py", other="there.py"), before=_a_file),
    Row("api:files-syntax", "GET", "collection.read", COLLECTION, data=_send(path="there.py"), before=_a_file),
    Row("api:files-changes", "GET", "collection.read", COLLECTION),
    Row("api:files-undo", "POST", "document.write", COLLECTION, before=_a_file, also=READ),
    Row("api:files-redo", "POST", "document.write", COLLECTION, before=_an_undone_file, also=READ),
    Row("api:files-restore", "POST", "document.write", COLLECTION, data=_send(revision=_pk("collections.FileRevision")), also=READ),
    Row("api:files-rules", "GET", "collection.read", COLLECTION),
    Row("api:files-rules", "PUT", "collection.write", COLLECTION, data=_send(read_only=True), also=READ),
    Row("api:git-status", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:git-log", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:git-diff", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:chunks-list", "GET", "collection.read", COLLECTION),
    Row("api:chunks-statistics", "GET", "collection.read", COLLECTION),
    Row("api:chunks-reader", "GET", "collection.read", COLLECTION),
    Row("api:chunks-detail", "PATCH", "document.write", CHUNK, data=_send(is_disabled=True), also=READ),
    Row("api:chunks-links", "GET", "collection.read", CHUNK),
    Row("api:chunks-chain", "GET", "collection.read", CHUNK),
    Row("api:chunks-neighbours", "GET", "collection.read", CHUNK),
    Row("api:chunks-graph", "GET", "collection.read", CHUNK),
    Row("api:chunks-history", "GET", "collection.read", CHUNK),
    Row("api:chunks-restore", "POST", "document.write", REVISION, before=_disabled_once, also=READ),
    Row("api:collections-reindex", "POST", "document.write", COLLECTION, ok=202, also=READ),
    Row("api:collections-check", "GET", "collection.delete", COLLECTION, also=(*READ, "document.write")),
    Row("api:collections-check", "POST", "collection.delete", COLLECTION, also=(*READ, "document.write")),
    Row("api:swaps-list", "GET", "collection.read", COLLECTION),
    Row("api:swaps-list", "POST", "collection.write", COLLECTION, data=_send(embedder="local/all-MiniLM-L6-v2"), ok=202, also=READ),
    Row("api:swaps-detail", "GET", "collection.read", SWAP),
    Row("api:swaps-detail", "POST", "collection.write", SWAP, data=_send(step="cancel"), also=READ),
    Row("api:document-types", action="collection.read"),
    Row("api:document-types", "PUT", "collection.write", data=_send(rules=None), also=READ),
    Row("api:document-types-example", action="collection.read"),
    Row("api:snapshots-list", "GET", "collection.read", COLLECTION),
    Row("api:snapshots-list", "POST", "collection.write", COLLECTION, data=_send(name="Now"), ok=201, also=READ),
    Row("api:snapshots-detail", "DELETE", "collection.write", {"pk": "collections.CollectionSnapshot"}, ok=204, also=READ),
    Row("api:search-cases-list", "GET", "collection.read", COLLECTION),
    Row("api:search-cases-list", "POST", "collection.write", COLLECTION, data=_send(query="Why?"), ok=201, also=READ),
    Row("api:search-cases-detail", "GET", "collection.read", {"pk": "collections.SearchCase"}),
    Row("api:search-cases-detail", "DELETE", "collection.write", {"pk": "collections.SearchCase"}, ok=204, also=READ),
    Row("api:chunks-detail", "GET", "collection.read", {"pk": "collections.Chunk"}),
    Row(
        "api:search",
        "POST",
        "search.run",
        data=_send(query="anything", legs=["lexical"], collections=lambda s, r: [s.row("collections.Collection", r).pk]),
        body_ids=404,
        also=READ,
    ),
    Row("api:experiments-list", action="evaluation.read"),
    Row("api:experiments-list", "POST", "evaluation.write", data=_send(name="First", version=_pk("datasets.DatasetVersion"), arms=[{"target": {"kind": "model", "model": "extractive"}}], scorers=[{"kind": "nope"}]), ok=400, also=("dataset.read",), body_ids=404),
    Row("api:experiments-detail", "GET", "evaluation.read", EXPERIMENT),
    Row("api:experiments-detail", "POST", "evaluation.write", EXPERIMENT, data=_send(do="stop"), also=("evaluation.read",)),
    Row("api:experiment-trials", "GET", "evaluation.read", EXPERIMENT),
    Row("api:experiment-pairs", "GET", "evaluation.read", EXPERIMENT, before=_paired),
    Row("api:experiment-front", "GET", "evaluation.read", EXPERIMENT),
    Row("api:experiment-judge-checks", "GET", "evaluation.read", EXPERIMENT),
    Row("api:arms-failures", "GET", "evaluation.read", ARM),
    Row("api:arms-failures", "POST", "dataset.write", ARM, data=_send(name=""), ok=400, also=("evaluation.read",)),
    Row("api:arms-repeats", "GET", "evaluation.read", ARM),
    Row("api:arms-compare", "GET", "evaluation.read", ARM, ok=400),
    Row("api:arms-gate", "POST", "evaluation.read", ARM),
    Row("api:arms-gate-sarif", "POST", "evaluation.read", ARM),
    Row("api:arms-baseline", "POST", "evaluation.write", ARM, before=_measured, ok=201, also=("evaluation.read",)),
    Row("api:annotation-queues-list", action="evaluation.read"),
    Row("api:annotation-queues-list", "POST", "evaluation.write", data=_send(name="First", rubric_version=_pk("evaluations.RubricVersion")), ok=400, also=("evaluation.read",), body_ids=404),
    Row("api:annotation-queues-detail", "GET", "evaluation.read", QUEUE),
    Row("api:annotation-queues-detail", "POST", "evaluation.write", QUEUE, data=_send(do="close"), also=("evaluation.read",)),
    Row("api:annotation-queues-progress", "GET", "evaluation.read", QUEUE),
    Row("api:annotation-queues-next", "POST", "evaluation.write", QUEUE, also=("evaluation.read",)),
    Row("api:annotation-queues-undo", "POST", "evaluation.write", QUEUE, before=_graded, also=("evaluation.read",)),
    Row("api:assignments-detail", "POST", "evaluation.write", {"pk": "evaluations.Assignment"}, data=_send(do="skip"), also=("evaluation.read",)),
    Row("api:sampling-rules-list", action="evaluation.read"),
    Row("api:sampling-rules-list", "POST", "tool.manage", data=_send(name="First", rate=0.1, budget_usd="1", scorers=[{"kind": "faithfulness"}]), ok=201, also=("evaluation.write",)),
    Row("api:sampling-rules-detail", "GET", "evaluation.read", SAMPLING),
    Row("api:sampling-rules-detail", "POST", "tool.manage", SAMPLING, data=_send(do="pause"), also=("evaluation.read",)),
    Row("api:sampling-rules-detail", "DELETE", "tool.manage", SAMPLING, ok=204, also=("evaluation.read",)),
    Row("api:sampling-rules-trend", "GET", "evaluation.read", SAMPLING),
    Row("api:rubrics-list", action="evaluation.read"),
    Row("api:rubrics-list", "POST", "evaluation.write", data=_send(name="Tone", criteria=[_CRITERION]), ok=201),
    Row("api:rubric-versions", "POST", "evaluation.write", RUBRIC, data=_send(criteria=[_CRITERION]), ok=201, also=("evaluation.read",)),
    Row("api:rubric-versions-agreement", "GET", "evaluation.read", {"pk": "evaluations.RubricVersion"}),
    Row("api:assistants-list", action="assistant.read"),
    Row("api:assistants-list", "POST", "assistant.write", data=_send(name="Clerk"), ok=201, also=EDIT),
    Row("api:assistants-list", "POST", "assistant.write", data=_send(name="Clerk", collections=lambda s, r: [s.row("collections.Collection", r).pk]), ok=201, also=EDIT, body_ids=400),
    Row("api:assistants-list", "POST", "assistant.write", data=_send(name="Clerk", helpers=lambda s, r: [s.row("conversations.Assistant", r).pk]), ok=201, also=EDIT, body_ids=400),
    Row("api:assistants-list", "POST", "assistant.write", data=_send(name="Clerk", has_toolkit=True, toolkit=_pk("tools.Toolkit")), ok=201, also=EDIT, body_ids=400),
    Row("api:assistants-detail", "GET", "assistant.read", ASSISTANT),
    Row("api:assistants-detail", "PATCH", "assistant.write", ASSISTANT, data=_send(name="Clerk"), also=EDIT),
    Row("api:assistants-detail", "DELETE", "assistant.write", ASSISTANT, ok=204, also=EDIT),
    Row("api:assistant-versions-list", "GET", "assistant.read", ASSISTANT),
    Row("api:assistant-versions-list", "POST", "assistant.write", ASSISTANT, data=_send(mode="quick"), ok=201, also=EDIT),
    Row("api:assistant-versions-detail", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned),
    Row("api:assistant-versions-changes", "GET", "assistant.read", ASSISTANT, {"number": 1}, before=_versioned),
    Row("api:assistants-publish", "POST", "assistant.write", ASSISTANT, data=_send(version=1), before=_versioned, also=EDIT),
    Row("api:assistants-publish", "DELETE", "assistant.write", ASSISTANT, ok=204, also=EDIT),
    Row("api:conversations-list", action="conversation.read"),
    Row("api:conversations-list", "POST", "conversation.write", data=_send(title="T"), ok=201, also=TALK),
    Row("api:conversations-detail", "GET", "conversation.read", CONVERSATION),
    Row("api:conversations-detail", "PATCH", "conversation.write", CONVERSATION, data=_send(title="T"), also=TALK),
    Row("api:conversations-detail", "DELETE", "conversation.write", CONVERSATION, ok=204, also=TALK),
    Row("api:turns-list", "GET", "conversation.read", CONVERSATION),
    Row("api:turns-list", "POST", "conversation.write", CONVERSATION, data=_send(text="Why?", client_id=_uuid), ok=201, also=TALK),
    Row("api:turns-detail", "GET", "conversation.read", TURN, before=_turn(False, "completed")),
    Row("api:turns-retry", "POST", "conversation.write", TURN, before=_turn(False, "failed"), also=TALK),
    Row("api:turns-edit", "POST", "conversation.write", TURN, data=_send(text="Why not?", client_id=_uuid), before=_turn(False, "completed"), ok=201, also=TALK),
    Row("api:turns-regenerate", "POST", "conversation.write", TURN, before=_turn(False, "completed"), ok=201, also=TALK),
    Row("api:turns-continue", "POST", "conversation.write", TURN, before=_cut_short, ok=201, also=TALK),
    Row("api:turns-choose", "POST", "conversation.write", TURN, before=_turn(False, "completed"), also=TALK),
    Row("api:turns-fork", "POST", "conversation.write", TURN, before=_turn(False, "completed"), ok=201, also=TALK),
    Row("api:turns-feedback", "PUT", "conversation.write", TURN, data=_send(verdict="bad", reason="wrong"), before=_answered, also=TALK),
    Row("api:turns-feedback", "DELETE", "conversation.write", TURN, before=_answered, ok=204, also=TALK),
    Row("api:feedback-list", action="conversation.read"),
    Row("api:conversations-rules", action="audit.read"),
    Row("api:conversations-rules", "PUT", "retention.manage", data=_send(keep_days=30)),
    Row("api:conversations-rules-preview", action="audit.read", data=_send(keep_days=30)),
    Row("api:conversations-search", action="conversation.read", data=_send(q="why")),
    Row("api:conversations-draft", "PUT", "conversation.write", CONVERSATION, data=_send(text="Wh"), ok=204, also=TALK),
    Row("api:conversations-export", "GET", "conversation.read", CONVERSATION),
    Row("api:attachments-list", "GET", "conversation.read", CONVERSATION),
    Row("api:attachments-list", "POST", "conversation.write", CONVERSATION, data=_send(file=_file), ok=201, also=TALK),
    Row("api:attachments-detail", "GET", "conversation.read", ATTACHED),
    Row("api:attachments-detail", "DELETE", "conversation.write", ATTACHED, ok=204, also=TALK),
    Row("api:attachments-retry", "POST", "conversation.write", ATTACHED, before=_unread, ok=202, also=TALK),
    Row("api:queue-list", "GET", "conversation.read", CONVERSATION),
    Row("api:turns-list", "POST", "conversation.write", CONVERSATION, data=_send(text="Why?", client_id=_uuid, when_busy="queue"), before=_turn(True, "running"), ok=202, also=TALK),
    Row("api:queue-detail", "PATCH", "conversation.write", QUEUED, data=_send(text="Why?"), also=TALK),
    Row("api:queue-detail", "DELETE", "conversation.write", QUEUED, ok=204, also=TALK),
    Row("api:shares-list", "GET", "conversation.read", CONVERSATION),
    Row("api:shares-list", "POST", "conversation.write", CONVERSATION, before=_answered, ok=201, also=TALK),
    Row("api:shares-detail", "DELETE", "conversation.write", SHARE, ok=204, also=TALK),
    Row("api:shares-read", action="conversation.read", fixed={"key": _share_key}),
    Row("api:runs-detail", "GET", "run.read", {"pk": "runs.Run"}, before=_turn(False, "completed")),
    Row("api:runs-trace", "GET", "run.read", {"pk": "runs.Run"}, before=_turn(False, "completed")),
    Row("api:runs-stop", "POST", "conversation.write", {"pk": "runs.Run"}, before=_turn(True, "running"), ok=202, also=("run.read", *TALK)),
    Row("api:approvals-list", action="run.read"),
    Row("api:approvals-hand-over", "POST", "conversation.write", APPROVAL, data=_send(to=_somebody_else), before=_parked, also=("run.read",)),
    Row("api:decisions-list", "GET", "run.read", {"pk": "runs.Run"}, before=_turn(False, "completed")),
    Row("api:decisions-detail", "POST", "conversation.write", API_DECISION, data=_send(decision="reject"), before=_parked, also=("run.read", *TALK)),
    Row("api:runs-events", "GET", "run.read", {"pk": "runs.Run"}, before=_turn(False, "completed"), is_stream=True),
    # A model that is not there: what is allowed is refused at once, and waits for no worker.
    Row("api:chat-completions", "POST", "conversation.write", data=_send(model="none", messages=[{"role": "user", "content": "?"}]), ok=400, also=TALK),
    Row("api:responses-list", "POST", "conversation.write", data=_send(model="none", input="?"), ok=400, also=TALK),
    Row("api:responses-detail", "GET", "conversation.read", fixed={"response_id": "resp_g0_0"}, ok=404),
    Row("api:embeddings", "POST", "search.run", data=_send(model="none", input="?"), ok=400),
    Row("api:models-list", action="model.read"),
    Row("api:models-detail", action="model.read", fixed={"model": "extractive"}),
    Row("api:tools-list", action="tool.run"),
    Row("api:tool-grants-list", action="tool.manage"),
    Row("api:tool-grants-list", "POST", "tool.manage", data=_send(effect="deny", target_kind="tool", target="calculate"), ok=201),
    Row("api:tool-grants-detail", "GET", "tool.manage", {"pk": "tools.ToolGrant"}),
    Row("api:tool-grants-detail", "PUT", "tool.manage", {"pk": "tools.ToolGrant"}, data=_send(effect="ask", target_kind="group", target="builtin")),
    Row("api:tool-grants-detail", "DELETE", "tool.manage", {"pk": "tools.ToolGrant"}, ok=204),
    Row("api:toolkits-list", action="tool.manage"),
    Row("api:toolkits-list", "POST", "tool.manage", data=_send(name="Sums", tools=["calculate"]), ok=201),
    Row("api:toolkits-detail", "GET", "tool.manage", {"pk": "tools.Toolkit"}),
    Row("api:toolkits-detail", "PUT", "tool.manage", {"pk": "tools.Toolkit"}, data=_send(tools=["calculate"])),
    Row("api:toolkits-detail", "DELETE", "tool.manage", {"pk": "tools.Toolkit"}, ok=204),
    Row("api:tool-entries-list", action="tool.manage"),
    Row("api:tool-entries-list", "POST", "tool.manage", data=_send(name="calculate", title="Sums"), ok=201),
    Row("api:tool-entries-detail", "GET", "tool.manage", {"pk": "tools.ToolEntry"}),
    Row("api:tool-entries-detail", "PATCH", "tool.manage", {"pk": "tools.ToolEntry"}, data=_send(is_enabled=False)),
    Row("api:tool-entries-detail", "DELETE", "tool.manage", {"pk": "tools.ToolEntry"}, ok=204),
    Row("api:access", action="tool.run"),
    Row("api:access-try", "POST", "tool.run", data=_send(tool="calculate", arguments={"expression": "1"})),
    Row("api:tool-calls-list", action="run.read"),
    Row("api:tool-calls-replay", "POST", "run.read", ids=CALL),
    Row("api:runs-replay", "POST", "run.read", ids={"pk": "runs.Run"}, before=_replayable, also=("tool.run",)),
    Row("api:reads-list", action="run.read"),
    Row("api:usage", action="run.read"),
    Row("api:tool-calls-file", action="run.read"),
    Row("api:tool-calls-read", action="run.read", ids=CALL),
    Row("api:tool-sources-list", action="tool.manage"),
    Row("api:tool-sources-list", "POST", "tool.manage", data=_send(kind="openapi", name="shop", document="{}"), ok=201),
    Row("api:tool-sources-detail", "GET", "tool.manage", SOURCE),
    Row("api:tool-sources-detail", "PATCH", "tool.manage", SOURCE, data=_send(is_enabled=False, url="", document_url="", document="{}")),
    Row("api:tool-sources-detail", "DELETE", "tool.manage", SOURCE, ok=204),
    Row("api:tool-sources-refresh", "POST", "tool.manage", SOURCE, ok=202),
    Row("api:tool-versions-list", "GET", "tool.manage", SOURCE),
    Row("api:tool-versions-detail", "GET", "tool.manage", SOURCE_VERSION),
    Row("api:tool-versions-accept", "POST", "tool.manage", SOURCE, data=_send(versions=lambda s, r: [s.row("tools.ToolVersion", r).pk]), body_ids=404),
    Row("api:tool-versions-reject", "POST", "tool.manage", SOURCE, data=_send(versions=lambda s, r: [s.row("tools.ToolVersion", r).pk]), body_ids=404),
    Row("api:tool-credentials-list", "GET", "tool.manage", SOURCE),
    Row("api:tool-credentials-list", "PUT", "tool.manage", SOURCE, data=_send(placement="bearer", secret="s3cret"), before=_addressed),
    Row("api:tool-credentials-detail", "DELETE", "tool.manage", SOURCE_SECRET, ok=204),
    Row("api:contract-tests-list", "GET", "tool.manage", SOURCE),
    Row("api:contract-tests-list", "PUT", "tool.manage", SOURCE, data=_send(tool_name=lambda s, r: s.row("tools.ToolVersion", r).tool_name, name="One", arguments=lambda s, r: {})),
    Row("api:contract-tests-detail", "DELETE", "tool.manage", SOURCE_TEST, ok=204),
    Row("api:contract-tests-run", "POST", "tool.manage", SOURCE_TEST, before=_tested),
    Row("api:datasets-list", "GET", "dataset.read"),
    Row("api:datasets-list", "POST", "dataset.write", data=_send(name="Rates"), ok=201, also=("dataset.read",)),
    Row("api:datasets-detail", "GET", "dataset.read", DATASET),
    Row("api:datasets-detail", "PATCH", "dataset.write", DATASET, data=_send(description="New"), also=("dataset.read",)),
    Row("api:datasets-detail", "DELETE", "dataset.delete", DATASET, before=_generating("completed"), ok=204, also=("dataset.read",)),
    Row("api:dataset-rows-list", "GET", "dataset.read", DATASET, before=_has_row),
    Row("api:dataset-rows-detail", "GET", "dataset.read", DATASET_ROW, before=_has_row),
    Row("api:dataset-rows-detail", "PATCH", "dataset.write", DATASET_ROW, data=_send(question="Why?"), before=_has_row, also=("dataset.read",)),
    Row("api:dataset-versions-list", "GET", "dataset.read", DATASET),
    Row("api:dataset-versions-list", "POST", "dataset.write", DATASET, data=_send(note="First"), before=_has_row, ok=201, also=("dataset.read",)),
    Row("api:dataset-versions-detail", "GET", "dataset.read", DATASET, {"number": _number}),
    Row("api:dataset-exports-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row("api:dataset-exports-list", "POST", "dataset.write", DATASET, data=_send(form="jsonl", version=_number), ok=202, also=("dataset.read",)),
    Row("api:dataset-exports-detail", "GET", "dataset.write", {"pk": "datasets.DatasetExport"}, before=_EXPORTED, also=("dataset.read",)),
    Row("api:dataset-exports-file", "GET", "dataset.write", {"pk": "datasets.DatasetExport"}, before=_EXPORTED, also=("dataset.read",)),
    Row("api:dataset-exports-accept", "POST", "dataset.write", {"pk": "datasets.DatasetExport"}, data=_send(fingerprints=["0" * 64], note="Public."), before=_EXPORTED, also=("dataset.read",)),
    Row("api:dataset-imports-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row("api:dataset-imports-list", "POST", "dataset.write", DATASET, data=_send(form="jsonl", file=_file), ok=202, also=("dataset.read",)),
    Row("api:dataset-imports-detail", "GET", "dataset.write", {"pk": "datasets.DatasetImport"}, before=_IMPORTED, also=("dataset.read",)),
    Row("api:dataset-imports-errors", "GET", "dataset.write", {"pk": "datasets.DatasetImport"}, before=_IMPORTED, also=("dataset.read",)),
    Row("api:dataset-checks-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row("api:dataset-checks-list", "POST", "dataset.write", DATASET, data=_send(kind="secrets"), ok=202, also=("dataset.read",)),
    Row("api:dataset-checks-detail", "GET", "dataset.write", {"pk": "datasets.DatasetCheck"}, also=("dataset.read",)),
    Row("api:dataset-rows-review", "POST", "dataset.write", DATASET_ROW, data=_send(verdict="approve", content_hash=_content_hash), before=_has_row, also=("dataset.read",)),
    Row("api:dataset-rows-settle", "POST", "dataset.write", DATASET, data=_send(rows=_row_ids, act="train"), before=_has_row, also=("dataset.read",)),
    Row("api:dataset-rows-from-conversation", "POST", "dataset.write", DATASET, data=_send(conversation=_pk("conversations.Conversation"), turns=_turn_ids, is_trial=True), before=_answered, also=("dataset.read", "conversation.read")),
    Row("api:dataset-rows-from-feedback", "POST", "dataset.write", DATASET, data=_send(feedback=_feedback_ids, is_trial=True), before=_answered, also=("dataset.read", "conversation.read")),
    Row("api:dataset-sources-list", "GET", "dataset.read", DATASET, before=_has_row),
    Row("api:dataset-sources-list", "PATCH", "dataset.write", DATASET, data=_send(document="a.pdf", license="MIT"), before=_has_row, also=("dataset.read",)),
    Row("api:dataset-versions-diff", "GET", "dataset.read", DATASET, {"older": _number, "newer": _number}),
    Row("api:generations-list", "GET", "dataset.read", DATASET),
    Row("api:generations-list", "POST", "dataset.write", DATASET, data=_send(settings=_asked_about), before=_askable, ok=202, also=("dataset.read", "search.run", "tool.run", "collection.read"), body_ids=404),
    Row("api:generations-detail", "GET", "dataset.read", GENERATION),
    Row("api:generations-pause", "POST", "dataset.write", GENERATION, before=_generating("running"), also=("dataset.read",)),
    Row("api:generations-resume", "POST", "dataset.write", GENERATION, before=_generating("paused"), also=("dataset.read",)),
    Row("api:generations-stop", "POST", "dataset.write", GENERATION, before=_generating("running"), also=("dataset.read",)),
    Row("api:tools-execute", "POST", "tool.run", data=_send(tool_calls=_calculation)),
)  # fmt: skip

# The Django admin's own pages beside those of models; test_admin_matrix.py makes a row for each page of each model.
ADMIN_SITE = {
    "admin:index",
    "admin:login",
    "admin:logout",
    "admin:password_change",
    "admin:password_change_done",
    "admin:autocomplete",
    "admin:jsi18n",
    "admin:view_on_site",
    "admin:app_list",
    "admin:switch_tenant",
    "admin:collections_check",
    "admin:tools_exchange",
    "admin:tools_matrix",
    "admin:tools_decide",
    "admin:tools_run_tests",
    *(
        f"admin:tools_{m}_{p}"
        for m in ("toolentry", "toolkit", "toolgrant", "toolsource")
        for p in ("changes", "restore")
    ),
    "admin:?",  # what matches no other URL under /admin/
}
