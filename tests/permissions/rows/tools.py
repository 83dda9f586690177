"""The permission rows of tools, sources, grants, approvals and runs."""

from __future__ import annotations

from typing import Any

from runs.models import RunStep
from tenancy.scope import platform_scope
from tests.permissions.rows.common import COLLECTION, TALK, Row, pk_of, run_parked, send, turn_is
from tests.permissions.world import Side

API_DECISION = {"pk": "runs.Run", "decision_pk": "runs.PendingDecision"}
CALL = {"pk": "runs.ToolCall"}
APPROVAL = {"pk": "runs.PendingDecision"}
LIMIT = {"pk": "tools.ToolLimit"}
SOURCE = {"pk": "tools.ToolSource"}
SOURCE_VERSION = {**SOURCE, "version_pk": "tools.ToolVersion"}
SOURCE_SECRET = {**SOURCE, "credential_pk": "tools.ToolCredential"}
SOURCE_TEST = {**SOURCE, "test_pk": "tools.ContractTest"}
A_TOOL = {"name": "calculate"}


def _calculation(side: Side, role: str) -> list[dict[str, Any]]:
    function = {"name": "calculate", "arguments": '{"expression": "6*7"}'}
    return [{"id": "a", "type": "function", "function": function}]


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


def _tool_name(side: Side, role: str) -> str:
    name: str = side.row("tools.ToolVersion", role).tool_name
    return name


PORTAL: tuple[Row, ...] = (
    Row("tools:catalog", action="tool.run"),
    Row("tools:calls", action="run.read"),
    Row("tools:call-replay", "POST", "run.read", ids=CALL),
    Row("tools:run-replay", "POST", "run.read", ids={"pk": "runs.Run"}, before=_replayable),
    Row("tools:reads", action="run.read"),
    Row("tools:calls-file", action="run.read"),
    Row("tools:collection", action="tool.manage", ids=COLLECTION),
    Row(
        "tools:collection",
        "POST",
        "tool.manage",
        ids=COLLECTION,
        data=send(toolkit=pk_of("tools.Toolkit")),
        ok=302,
    ),
    Row("tools:call", action="run.read", ids=CALL),
    Row("tools:tool", action="tool.run", fixed=A_TOOL),
    Row("tools:tool-try", "POST", "tool.run", fixed=A_TOOL, data=send(do="check", **{"/expression": "6*7"})),
    Row("tools:tool-switch", "POST", "tool.manage", fixed=A_TOOL, data=send(is_enabled="false"), ok=302),
    Row("tools:tool-edit", action="tool.manage", fixed=A_TOOL),
    Row("tools:tool-edit", "POST", "tool.manage", fixed=A_TOOL, data=send(title="Sums"), ok=302),
    Row("tools:sources", action="tool.manage"),
    Row("tools:source-create", action="tool.manage"),
    Row(
        "tools:source-create",
        "POST",
        "tool.manage",
        data=send(name="crm", url="https://api.example.org", document='{"openapi": "3.1.0"}'),
        ok=302,
    ),
    Row("tools:source", "GET", "tool.manage", SOURCE),
    Row("tools:source-edit", "GET", "tool.manage", SOURCE),
    Row(
        "tools:source-edit",
        "POST",
        "tool.manage",
        SOURCE,
        data=send(title="CRM", document_url="https://example.org/openapi.json"),
        ok=302,
    ),
    Row("tools:source-act", "POST", "tool.manage", SOURCE, data=send(do="refresh"), ok=302),
    Row(
        "tools:source-credential",
        "POST",
        "tool.manage",
        SOURCE,
        data=send(placement="bearer", secret=""),
        ok=422,
    ),
    Row("tools:versions-decide", "POST", "tool.manage", SOURCE, data=send(do="accept"), ok=302),
    Row("tools:version", "GET", "tool.manage", {"pk": "tools.ToolVersion"}),
    Row("tools:contract-test-create", "GET", "tool.manage", fixed={"name": _tool_name}),
    Row(
        "tools:contract-test-create",
        "POST",
        "tool.manage",
        fixed={"name": _tool_name},
        data=send(name="Sums", arguments="{}", expected="{}"),
        ok=302,
    ),
    Row("tools:contract-test", "GET", "tool.manage", {"pk": "tools.ContractTest"}),
    Row(
        "tools:contract-test",
        "POST",
        "tool.manage",
        {"pk": "tools.ContractTest"},
        data=send(do="delete"),
        ok=302,
    ),
    Row("tools:permissions", action="tool.manage"),
    Row(
        "tools:permission-set",
        "POST",
        "tool.manage",
        data=send(cell="tool|calculate|role|viewer|deny"),
        ok=302,
    ),
    Row("tools:permission-undo", "POST", "tool.manage", data=send(undo="no such change"), ok=400),
    Row("tools:grants", action="tool.manage"),
    Row("tools:grant-create", action="tool.manage"),
    Row(
        "tools:grant-create",
        "POST",
        "tool.manage",
        data=send(effect="deny", target_kind="tool", target="calculate", calls="any", subject="role:viewer"),
        ok=302,
    ),
    Row("tools:grant-edit", "GET", "tool.manage", {"pk": "tools.ToolGrant"}),
    Row(
        "tools:grant-edit",
        "POST",
        "tool.manage",
        {"pk": "tools.ToolGrant"},
        data=send(effect="deny", target_kind="tool", target="calculate", calls="any", subject="everyone:"),
        ok=302,
    ),
    Row("tools:grant-delete", "POST", "tool.manage", {"pk": "tools.ToolGrant"}, ok=302),
    Row("tools:toolkits", action="tool.manage"),
    Row("tools:toolkits", "POST", "tool.manage", data=send(name="Sums", tools="calculate"), ok=302),
    Row("tools:toolkit-delete", "POST", "tool.manage", {"pk": "tools.Toolkit"}, ok=302),
    Row("tools:access", action="tool.run"),
    Row(
        "tools:access",
        "GET",
        "tool.manage",
        data=send(subject=lambda s, r: f"member:{s.user('viewer').pk}"),
        body_ids=404,
    ),
    Row("tools:settings-limits", action="tool.manage"),
    Row(
        "tools:settings-limits",
        "POST",
        "tool.manage",
        data=send(action="set", what="all", whose="tenant", most=9, period="day"),
        ok=302,
    ),
    Row("tools:approvals", action="run.read"),
    Row("tools:approvals-stream", action="run.read", is_stream=True),
    Row(
        "tools:approvals-approve",
        "POST",
        "conversation.write",
        data=send(approval=pk_of("runs.PendingDecision")),
        before=run_parked,
        ok=302,
    ),
    Row("tools:approval", action="run.read", ids=APPROVAL, before=run_parked),
    Row(
        "tools:approval-decide",
        "POST",
        "conversation.write",
        APPROVAL,
        data=send(decision="approve"),
        before=run_parked,
        ok=302,
    ),
    Row(
        "tools:approval-hand-over",
        "POST",
        "conversation.write",
        APPROVAL,
        data=send(to=_somebody_else),
        before=run_parked,
        ok=302,
    ),
)


API: tuple[Row, ...] = (
    Row("api:tool-limits-list", action="tool.manage"),
    Row(
        "api:tool-limits-list", "POST", "tool.manage", data=send(kind="tenant", period="day", calls=5), ok=201
    ),
    Row("api:tool-limits-detail", "GET", "tool.manage", LIMIT),
    Row("api:tool-limits-detail", "DELETE", "tool.manage", LIMIT, ok=204),
    Row("api:runs-detail", "GET", "run.read", {"pk": "runs.Run"}, before=turn_is(False, "completed")),
    Row("api:runs-trace", "GET", "run.read", {"pk": "runs.Run"}, before=turn_is(False, "completed")),
    Row(
        "api:runs-stop",
        "POST",
        "conversation.write",
        {"pk": "runs.Run"},
        before=turn_is(True, "running"),
        ok=202,
        also=("run.read", *TALK),
    ),
    Row("api:approvals-list", action="run.read"),
    Row(
        "api:approvals-hand-over",
        "POST",
        "conversation.write",
        APPROVAL,
        data=send(to=_somebody_else),
        before=run_parked,
        also=("run.read",),
    ),
    Row("api:decisions-list", "GET", "run.read", {"pk": "runs.Run"}, before=turn_is(False, "completed")),
    Row(
        "api:decisions-detail",
        "POST",
        "conversation.write",
        API_DECISION,
        data=send(decision="reject"),
        before=run_parked,
        also=("run.read", *TALK),
    ),
    Row(
        "api:runs-events",
        "GET",
        "run.read",
        {"pk": "runs.Run"},
        before=turn_is(False, "completed"),
        is_stream=True,
    ),
    Row("api:tools-list", action="tool.run"),
    Row("api:tools-suggestions", action="tool.run", data=send(question="calculate")),
    Row("api:tool-grants-list", action="tool.manage"),
    Row(
        "api:tool-grants-list",
        "POST",
        "tool.manage",
        data=send(effect="deny", target_kind="tool", target="calculate"),
        ok=201,
    ),
    Row("api:tool-grants-detail", "GET", "tool.manage", {"pk": "tools.ToolGrant"}),
    Row(
        "api:tool-grants-detail",
        "PUT",
        "tool.manage",
        {"pk": "tools.ToolGrant"},
        data=send(effect="ask", target_kind="group", target="builtin"),
    ),
    Row("api:tool-grants-detail", "DELETE", "tool.manage", {"pk": "tools.ToolGrant"}, ok=204),
    Row("api:toolkits-list", action="tool.manage"),
    Row("api:toolkits-list", "POST", "tool.manage", data=send(name="Sums", tools=["calculate"]), ok=201),
    Row("api:toolkits-detail", "GET", "tool.manage", {"pk": "tools.Toolkit"}),
    Row("api:toolkits-detail", "PUT", "tool.manage", {"pk": "tools.Toolkit"}, data=send(tools=["calculate"])),
    Row("api:toolkits-detail", "DELETE", "tool.manage", {"pk": "tools.Toolkit"}, ok=204),
    Row("api:tool-entries-list", action="tool.manage"),
    Row("api:tool-entries-list", "POST", "tool.manage", data=send(name="calculate", title="Sums"), ok=201),
    Row("api:tool-entries-detail", "GET", "tool.manage", {"pk": "tools.ToolEntry"}),
    Row(
        "api:tool-entries-detail",
        "PATCH",
        "tool.manage",
        {"pk": "tools.ToolEntry"},
        data=send(is_enabled=False),
    ),
    Row("api:tool-entries-detail", "DELETE", "tool.manage", {"pk": "tools.ToolEntry"}, ok=204),
    Row("api:access", action="tool.run"),
    Row("api:access-try", "POST", "tool.run", data=send(tool="calculate", arguments={"expression": "1"})),
    Row("api:tool-calls-list", action="run.read"),
    Row("api:tool-calls-replay", "POST", "run.read", ids=CALL),
    Row(
        "api:runs-replay", "POST", "run.read", ids={"pk": "runs.Run"}, before=_replayable, also=("tool.run",)
    ),
    Row("api:reads-list", action="run.read"),
    Row("api:tool-calls-file", action="run.read"),
    Row("api:tool-calls-read", action="run.read", ids=CALL),
    Row("api:tool-sources-list", action="tool.manage"),
    Row(
        "api:tool-sources-list",
        "POST",
        "tool.manage",
        data=send(kind="openapi", name="shop", document="{}"),
        ok=201,
    ),
    Row("api:tool-sources-detail", "GET", "tool.manage", SOURCE),
    Row(
        "api:tool-sources-detail",
        "PATCH",
        "tool.manage",
        SOURCE,
        data=send(is_enabled=False, url="", document_url="", document="{}"),
    ),
    Row("api:tool-sources-detail", "DELETE", "tool.manage", SOURCE, ok=204),
    Row("api:tool-sources-refresh", "POST", "tool.manage", SOURCE, ok=202),
    Row("api:tool-versions-list", "GET", "tool.manage", SOURCE),
    Row("api:tool-versions-detail", "GET", "tool.manage", SOURCE_VERSION),
    Row(
        "api:tool-versions-accept",
        "POST",
        "tool.manage",
        SOURCE,
        data=send(versions=lambda s, r: [s.row("tools.ToolVersion", r).pk]),
        body_ids=404,
    ),
    Row(
        "api:tool-versions-reject",
        "POST",
        "tool.manage",
        SOURCE,
        data=send(versions=lambda s, r: [s.row("tools.ToolVersion", r).pk]),
        body_ids=404,
    ),
    Row("api:tool-credentials-list", "GET", "tool.manage", SOURCE),
    Row(
        "api:tool-credentials-list",
        "PUT",
        "tool.manage",
        SOURCE,
        data=send(placement="bearer", secret="s3cret"),
        before=_addressed,
    ),
    Row("api:tool-credentials-detail", "DELETE", "tool.manage", SOURCE_SECRET, ok=204),
    Row("api:contract-tests-list", "GET", "tool.manage", SOURCE),
    Row(
        "api:contract-tests-list",
        "PUT",
        "tool.manage",
        SOURCE,
        data=send(
            tool_name=lambda s, r: s.row("tools.ToolVersion", r).tool_name,
            name="One",
            arguments=lambda s, r: {},
        ),
    ),
    Row("api:contract-tests-detail", "DELETE", "tool.manage", SOURCE_TEST, ok=204),
    Row("api:contract-tests-run", "POST", "tool.manage", SOURCE_TEST, before=_tested),
    Row("api:tools-execute", "POST", "tool.run", data=send(tool_calls=_calculation)),
)
