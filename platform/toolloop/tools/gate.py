"""Decide whether a checked call may run now, waits for somebody, or has its answer already."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolloop.deferred import SELF, Decision, PendingCall
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools.context import ToolContext
from toolloop.tools.runtime import CheckedCall, call_prepare, error_result
from toolloop.tools.tool import Verdict
from toolloop.tools.toolset import Toolset

logger = logging.getLogger(__name__)

Judged = Callable[[ToolCall, Verdict], None]
_OTHER_APPROVER = "someone else must approve it"
_TOOL_ASKS = "the tool asks for approval of such calls"


def call_gate(
    prepared: CheckedCall,
    toolset: Toolset,
    context: ToolContext,
    decision: Decision | None,
    judged: Judged | None = None,
) -> CheckedCall | ToolResult | PendingCall:
    """Apply the application's policy, approval rules and decisions to a call.

    A call that the policy denies is refused before anybody is asked about it, and after somebody has approved it.

    Args:
        judged: told what the policy, or the tool's own rule, says about the call; not called where there is neither.

    Returns:
        The call to run (with the arguments that were decided on), its result, or what it waits for. Arguments that
        were edited into something the tool does not take leave the call pending, with the problem as its reason; and so
        does an approval by somebody else than the policy wants for the arguments that would run.
    """
    if decision is None:
        verdict = _verdict(prepared, context, judged)
        if verdict.effect == "deny":
            return _denied(prepared, verdict)
        if prepared.tool.external:
            return PendingCall(prepared.call, "external", verdict.why, approval=verdict.approval)
        if verdict.effect == "allow" and _needs_approval(prepared, context):
            if judged is not None:
                judged(prepared.call, replace(verdict, effect="ask", why=_TOOL_ASKS))
            return PendingCall(prepared.call, "approval", verdict.why)
        if verdict.effect != "allow":
            return PendingCall(prepared.call, "approval", verdict.why, approval=verdict.approval)
        return prepared
    decided = _decided(prepared, toolset, decision)
    if isinstance(decided, ToolResult):
        return decided
    # Rights may have gone while the call waited, and edited arguments are other arguments.
    if isinstance(decided, PendingCall):
        verdict = _verdict(prepared, context, judged)
        if verdict.effect == "deny":
            return _denied(prepared, verdict)
        return replace(decided, approval=verdict.approval)
    verdict = _verdict(decided, context, judged)
    if verdict.effect == "deny":
        return _denied(decided, verdict)
    if verdict.effect == "ask" and not _is_enough(decision, verdict):
        if context.depth:
            # The tool that makes this call makes it with its own arguments again: it cannot wait with other ones.
            return _denied(decided, replace(verdict, why=_OTHER_APPROVER))
        return PendingCall(decided.call, "approval", verdict.why, approval=verdict.approval)
    return decided


def _is_enough(decision: Decision, verdict: Verdict) -> bool:
    """Tell whether a call was approved by whom the policy wants; a tool that parked itself asks for its own calls."""
    return decision.state is not None or verdict.approval.by in (decision.by, SELF.by)


def _decided(
    prepared: CheckedCall, toolset: Toolset, decision: Decision
) -> CheckedCall | ToolResult | PendingCall:
    call, tool = prepared.call, prepared.tool
    if decision.state is not None:
        return prepared  # The tool parked itself and goes on by itself.
    if decision.kind == "reject":
        text = f"{call.name} was not run: it was rejected."
        return error_result(call, "rejected", f"{text} {decision.reason}".strip())
    if decision.kind == "answer":
        return ToolResult(call.id, call.name, decision.content, payload=decision.payload)
    if tool.external:
        return PendingCall(call, "external", "This call can be answered or rejected, not approved.")
    if decision.arguments is None:
        return prepared
    return _edited(prepared, toolset, dict(decision.arguments))


def _edited(prepared: CheckedCall, toolset: Toolset, arguments: dict[str, Any]) -> CheckedCall | PendingCall:
    call = prepared.call
    changed = replace(call, arguments=arguments, raw=json.dumps(arguments, ensure_ascii=False), problem="")
    checked = call_prepare(changed, toolset)
    if isinstance(checked, ToolResult):
        return PendingCall(call, "approval", checked.content)
    return checked


def _verdict(prepared: CheckedCall, context: ToolContext, judged: Judged | None) -> Verdict:
    rule = prepared.tool.permit
    if rule is None:
        return Verdict("allow")
    try:
        verdict = rule(prepared.call.arguments or {}, context)
    except Exception:
        logger.exception("the policy about %s failed: the call is denied", prepared.tool.name)
        verdict = Verdict("deny", "its policy could not be evaluated")
    if judged is not None:
        judged(prepared.call, verdict)
    return verdict


def _denied(prepared: CheckedCall, verdict: Verdict) -> ToolResult:
    name = prepared.call.name
    text = f"{name} was not run: {verdict.why or 'the policy of this workspace denies it'}."
    return error_result(prepared.call, "denied", text, severity="fatal")


def _needs_approval(prepared: CheckedCall, context: ToolContext) -> bool:
    rule = prepared.tool.needs_approval
    if not callable(rule):
        return rule
    try:
        return bool(rule(prepared.arguments, context))
    except Exception:
        logger.exception("the approval rule of %s failed: a person decides", prepared.tool.name)
        return True
