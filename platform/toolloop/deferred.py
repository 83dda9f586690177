"""Calls that wait for somebody outside the run: for approval, or for an answer.

A run that reaches such calls runs the others of the turn, then ends with ``RunFinished(status="parked")``, whose
``pending`` holds one ``PendingCall`` each. Nothing waits in memory. When decisions are there, call
``run_loop`` again with the stored history, which ends in the open turn, and ``decisions`` by call id. Calls that are not
decided yet park the run again; give those to ``run_loop`` as ``pending``, so that what they have done so far is kept. A
decided call has its result in the history from then on, so a decision counts once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from toolloop.messages import ToolCall

PendingKind = Literal["approval", "external"]


@dataclass(frozen=True, slots=True)
class Approval:
    """How the application wants a call approved. The loop only carries it, and compares who approved with who should.

    Attributes:
        approver_kind, approver: who decides, in the application's own terms; "self" is whoever the run works for.
        hours: how long the call may wait; None leaves that to the application.
        needs_reason: whether a rejection must say why.
    """

    approver_kind: str = "self"
    approver: str = ""
    hours: int | None = None
    needs_reason: bool = False

    @property
    def by(self) -> tuple[str, str]:
        """Who decides."""
        return self.approver_kind, self.approver

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Approval:
        """Rebuild what ``to_json`` wrote; None is the default."""
        return cls(**(data or {}))


SELF = Approval()
_EDITED = frozenset({"edited_arguments", "state_before"})
"""Keys of the state of a call that runs with arguments that a person has changed."""


class ParkCall(Exception):
    """Raise inside a tool to park the run at this call.

    When the run goes on, the tool is called again with the decision in ``ToolContext.decision``.

    Args:
        kind: "approval" when somebody must agree, "external" when somebody must answer.
        reason: what a person reads.
        state: JSON value that comes back in ``Decision.state``. With a state the tool is called whatever the decision
            is; without one a rejection or an answer is the call's result.
        approval: who decides.
    """

    def __init__(
        self, kind: PendingKind = "approval", reason: str = "", state: Any = None, approval: Approval = SELF
    ) -> None:
        super().__init__(reason or kind)
        self.kind, self.reason, self.state, self.approval = kind, reason, state, approval


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided about a parked call.

    Attributes:
        kind: "approve" runs it, "reject" tells the model that it was refused, "answer" is its result.
        arguments: with "approve", run it with these instead; they are checked like the model's own.
        reason: with "reject", what the model reads.
        content, payload: with "answer", as in ``ToolResult``.
        state: the ``state`` of the pending call.
        by: as whom somebody decided, ``Approval.by`` of the pending call. An approval counts only where the policy still
            wants that one, or leaves it to whoever the run works for.
    """

    kind: Literal["approve", "reject", "answer"]
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    content: str = ""
    payload: Any = None
    state: Any = None
    by: tuple[str, str] = SELF.by

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        return {
            "kind": self.kind,
            "arguments": None if self.arguments is None else dict(self.arguments),
            "reason": self.reason,
            "content": self.content,
            "payload": self.payload,
            "state": self.state,
            "by": list(self.by),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        """Rebuild the decision that ``to_json`` wrote.

        Raises:
            ValueError: for an unknown kind; a misspelt one must never approve anything.
        """
        if data["kind"] not in ("approve", "reject", "answer"):
            raise ValueError(f"unknown decision {data['kind']!r}: approve, reject or answer")
        return cls(
            kind=data["kind"],
            arguments=data.get("arguments"),
            reason=data.get("reason", ""),
            content=data.get("content", ""),
            payload=data.get("payload"),
            state=data.get("state"),
            by=tuple(data.get("by", SELF.by)),
        )


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a decision.

    Attributes:
        call: the call as the model wrote it.
        kind: what is waited for.
        reason: for the person who decides.
        state: what the tool wants back; opaque.
        approval: who decides.
    """

    call: ToolCall
    kind: PendingKind
    reason: str = ""
    state: Any = None
    approval: Approval = SELF

    def approve(self, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Let it run, with other arguments where given."""
        return Decision("approve", arguments=arguments, state=self.state, by=self.approval.by)

    def reject(self, reason: str = "") -> Decision:
        """Refuse it; the model reads the reason."""
        return Decision("reject", reason=reason, state=self.state)

    def answer(self, content: str, payload: Any = None) -> Decision:
        """Answer in place of the tool."""
        return Decision("answer", content=content, payload=payload, state=self.state)

    def to_json(self) -> dict[str, Any]:
        """Return the pending call as JSON values."""
        return {
            "call": self.call.to_json(),
            "kind": self.kind,
            "reason": self.reason,
            "state": self.state,
            "approval": self.approval.to_json(),
        }

    @property
    def asked(self) -> ToolCall:
        """Return the call that is decided about: the innermost one, where a call that a tool made waits."""
        call, state = self.call, _before(self.state)
        while isinstance(state, dict) and isinstance(state.get("call"), dict):
            call, state = ToolCall.from_json(state["call"]), _before(state.get("inner"))
        return call

    def kept(self, original: ToolCall) -> PendingCall:
        """Return it with the arguments it runs with in its state, where they are not those of ``original``."""
        if self.call.arguments == original.arguments:
            return self
        state = {"edited_arguments": self.call.arguments, "state_before": self.state}
        return replace(self, state=state)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PendingCall:
        """Rebuild the pending call that ``to_json`` wrote."""
        return cls(
            ToolCall.from_json(data["call"]),
            data["kind"],
            data.get("reason", ""),
            data.get("state"),
            Approval.from_json(data.get("approval")),
        )


def edit_restored(call: ToolCall, decision: Decision | None) -> tuple[ToolCall, Decision | None]:
    """Return a call as an earlier decision has changed it, and the decision with the state from before that."""
    if decision is None or not _is_edited(decision.state):
        return call, decision
    arguments = decision.state["edited_arguments"]
    raw = json.dumps(arguments, ensure_ascii=False)
    decision = replace(decision, state=decision.state["state_before"])
    return replace(call, arguments=arguments, raw=raw, problem=""), decision


def _is_edited(state: Any) -> bool:
    return isinstance(state, dict) and state.keys() == _EDITED


def _before(state: Any) -> Any:
    return state["state_before"] if _is_edited(state) else state
