"""Replay recorded runs and calls against today's tools and rules. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from apps.tools.toolset.direct_calls import offer_guard, offer_tools
from apps.tools.toolset.model_calls import run_toolset
from basics.errors import Conflict, DomainError
from basics.texts import gettext as _
from runs.actors import actor_now
from runs.call_log import call_get
from runs.models import Run, ToolCall
from runs.selectors import run_get
from runs.services import Replay, ReplayRow, run_replay
from runs.withheld import Withheld, withheld_of
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.masking import masked
from toolloop.messages import ToolCall as Call
from toolloop.messages import ToolResult
from toolloop.modes import PLAN_TOOL, plan_tool
from toolloop.tools import Tool, ToolContext, Toolset
from toolloop.tools.gate import call_gate
from toolloop.tools.runtime import CheckedCall, call_prepare
from toolloop.tools.tool import Verdict

ACCEPTED = "accepted"
_LONGEST_PLAN = 100  # Steps: more than any assistant may allow.


def recorded_run_replay(
    *, tenant: Tenant, actor: Actor, pk: int, ask_model: bool = False
) -> tuple[Run, Replay]:
    """Replay one of the actor's own runs with the tools of today; see ``runs.services.run_replay``.

    Raises:
        Missing, Conflict, Invalid: as ``run_replay``.
        Denied: without the right ``tool.run``.
    """
    actor.require("tool.run")
    run = run_get(actor=actor, pk=pk)
    toolset = _tools_of(actor, run)
    replay = run_replay(tenant=tenant, actor=actor, run=run, toolset=toolset, ask_model=ask_model)
    found = withheld_of(actor=actor, runs=[run.pk])
    return run, Replay([_told(row, found) for row in replay.rows], replay.missing)


def _told(row: ReplayRow, found: Withheld) -> ReplayRow:
    return replace(row, recorded=found.content(row.recorded), replayed=found.content(row.replayed))


def _tools_of(actor: Actor, run: Run) -> Toolset:
    """Return what a run's model could call if it began now: what is shown, and what it could load."""
    guard = offer_guard(actor=actor, collections=None)
    tools: dict[str, Tool] = {}
    for tool in (*run_toolset(guard, run), *offer_tools(guard)):
        tools.setdefault(tool.name, tool)
    if ToolCall.objects.filter(tenant_id=run.tenant_id, run=run, name=PLAN_TOOL).exists():
        # An answer by plan brings this one itself; its assistant may have allowed longer plans than others do.
        tools.setdefault(PLAN_TOOL, plan_tool(_LONGEST_PLAN))
    return Toolset(tools.values())


def recorded_call_replay(*, actor: Actor, pk: int) -> tuple[ToolCall, Replay]:
    """Hold a recorded call against today's tool and today's rules, as its person would make it now. It is not run.

    Args:
        actor: who looks; sees their own calls, or everybody's with the right ``audit.read``.

    Raises:
        Missing: the call is not there for the actor.
        Conflict: ``run_pruned``.
    """
    row = call_get(actor=actor, pk=pk)
    if row.run.pruned_at is not None:
        raise Conflict("run_pruned", _("This call's arguments were removed by the retention rule."))
    try:
        person = actor_now(row.run)
        toolset = _tools_of(person, row.run)
    except DomainError as error:
        return row, Replay([_row(row, "policy", _decision_recorded(row), error.message)])
    return row, Replay(list(_rows(row, toolset)))


def _rows(row: ToolCall, toolset: Toolset) -> Sequence[ReplayRow]:
    arguments = row.arguments if isinstance(row.arguments, dict) else None
    raw = row.arguments if isinstance(row.arguments, str) else json.dumps(row.arguments)
    call = Call(row.call_id, row.name, arguments, raw)
    tool = toolset.get(row.name)
    if tool is None:
        return [_row(row, "tool", _version(row.tool_version), _("is no longer available"))]
    found = [_row(row, "tool", _version(row.tool_version), _version(tool.version))]
    prepared = call_prepare(call, toolset)
    was_accepted = row.error_code not in ("invalid_arguments", "unknown_tool")
    now = ACCEPTED if isinstance(prepared, CheckedCall) else prepared.content
    found.append(_row(row, "arguments", ACCEPTED if was_accepted else row.content, now))
    if isinstance(prepared, CheckedCall):
        found.append(_policy(row, prepared, toolset))
    return found


def _policy(row: ToolCall, prepared: CheckedCall, toolset: Toolset) -> ReplayRow:
    verdicts: list[Verdict] = []

    def judged(call: Any, verdict: Verdict) -> None:
        verdicts.append(verdict)

    gated = call_gate(prepared, toolset, ToolContext(call_id=row.call_id), None, judged)
    if not verdicts:
        now = _("not applied") if not isinstance(gated, ToolResult) else gated.content
        return _row(row, "policy", _decision_recorded(row), now)
    last = verdicts[-1]
    recorded, now = _decision_recorded(row), _decision(str(last.effect), last.why)
    return ReplayRow(row.step, "policy", recorded, now, row.decision == last.effect)


def _decision_recorded(row: ToolCall) -> str:
    return _decision(row.decision, row.decision_why)


def _decision(effect: str, why: str) -> str:
    return f"{effect}: {why}" if effect and why else effect or _("not applied")


def _version(version: str) -> str:
    return _("version %(version)s") % {"version": version} if version else _("no version stated")


def _row(row: ToolCall, kind: str, recorded: str, now: str) -> ReplayRow:
    return ReplayRow(row.step, kind, str(masked(recorded)), str(masked(now)), recorded == now)
