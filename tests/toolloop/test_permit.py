"""The application's policy stands in the gate: before a person is asked, and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from toolloop.deferred import Decision, PendingCall
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import ToolContext, Toolset, tool
from toolloop.tools.gate import call_gate
from toolloop.tools.runtime import CheckedCall, call_prepare
from toolloop.tools.tool import Verdict


@tool
async def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: how much.
    """
    return "paid"


def _policy(arguments: Mapping[str, Any], context: ToolContext) -> Verdict:
    if arguments["amount"] > 100:
        return Verdict("deny", "more than 100")
    return Verdict("ask" if arguments["amount"] > 10 else "allow", "more than 10")


def gate(amount: int, decision: Decision | None = None, **changes: Any) -> Any:
    toolset = Toolset([replace(pay, **{"permit": _policy, **changes})])
    prepared = call_prepare(ToolCall("c", "pay", {"amount": amount}), toolset)
    assert isinstance(prepared, CheckedCall)
    return call_gate(prepared, toolset, ToolContext(), decision)


def denied(found: Any) -> bool:
    return isinstance(found, ToolResult) and found.is_error and found.error_code == "denied"


def test_policy_allows_asks_and_denies() -> None:
    assert isinstance(gate(5), CheckedCall)
    asked = gate(50)
    assert isinstance(asked, PendingCall)
    assert (asked.kind, asked.reason) == ("approval", "more than 10")
    assert denied(gate(500))


def test_denied_call_asks_nobody_when_the_tool_needs_approval_or_is_external() -> None:
    assert denied(gate(500, needs_approval=True))
    assert denied(gate(500, external=True))


def test_approval_lets_an_asked_call_run_but_never_a_denied_one() -> None:
    assert isinstance(gate(50, Decision("approve")), CheckedCall)
    assert denied(gate(500, Decision("approve")))
    assert denied(gate(500, Decision("approve", state={"own": 1})))


def test_edited_arguments_are_held_against_the_policy_again() -> None:
    assert denied(gate(50, Decision("approve", arguments={"amount": 101})))
    edited = gate(50, Decision("approve", arguments={"amount": 60}))
    assert isinstance(edited, CheckedCall)
    assert edited.arguments == {"amount": 60}


def test_rejection_and_answer_stay_what_they_are() -> None:
    assert gate(50, Decision("reject", reason="no")).error_code == "rejected"
    assert gate(50, Decision("answer", content="done")).content == "done"


@pytest.mark.parametrize("decision", [None, Decision("approve")])
def test_policy_that_fails_denies(decision: Decision | None) -> None:
    def broken(arguments: Mapping[str, Any], context: ToolContext) -> Verdict:
        raise KeyError("x")

    assert denied(gate(5, decision, permit=broken))
