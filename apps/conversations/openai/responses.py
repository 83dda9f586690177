"""Responses as they are kept: a run and a stretch of its events. Later requests name them and go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.conversations.openai.follow import Followed, outcome_read
from apps.conversations.openai.segments import (
    Segment,
    response_id_of,
    response_id_read,
    segments_of,
)
from apps.conversations.openai.services import completion_list
from apps.conversations.openai.wire import turn_read
from basics.errors import Missing
from runs.models import PendingDecision, Run, RunEvent
from runs.transcript import DECIDED, PARKED
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.messages import Message, ToolResult, message_from_json


@dataclass(frozen=True, slots=True)
class Stored:
    """A response that is kept, the one it follows in its run, and those before both."""

    run: Run
    segment: Segment
    before: Sequence[Segment]

    def followed(self, tenant: Tenant, actor: Actor, segment: Segment | None = None) -> Followed:
        """Return what reads it, or one before it."""
        chosen = segment or self.segment
        model = self.run.request["completion"]["model"]
        return Followed(tenant, actor, self.run, model, chosen.after, until=chosen.until)

    @property
    def previous_id(self) -> str | None:
        """The response it follows, in its own run or in another."""
        if self.before:
            return response_id_of(self.run.pk, self.before[-1].after)
        named: str | None = self.run.request["response"]["asked"]["previous_response_id"]
        return named


@dataclass(frozen=True, slots=True)
class Previous:
    """What a request goes on from.

    Attributes:
        history: everything said up to and with that response.
        developer: what developer messages have said up to it; ``instructions`` end with their response.
        calls: its calls of client tools: call id -> name.
    """

    history: list[Message]
    developer: str
    calls: dict[str, str]


def response_get(*, actor: Actor, response_id: str) -> Stored:
    """Return a kept response of the actor's own.

    Raises:
        Missing: there is none, it was not to be kept, or another key asked for it.
    """
    named = response_id_read(response_id)
    run = completion_list(actor=actor).filter(pk=named[0]).first() if named else None
    if run is None or named is None:
        raise Missing("response")
    facts = run.request.get("response")
    if facts is None or not facts["asked"]["store"] or run.pruned_at is not None:
        raise Missing("response")
    rows = RunEvent.objects.filter(run=run, kind__in=[PARKED, DECIDED]).order_by("seq")
    segments = segments_of(rows.values_list("seq", "kind", "data"))
    for number, segment in enumerate(segments):
        if segment.after == named[1]:
            return Stored(run, segment, segments[:number])
    raise Missing("response")


def previous_read(*, tenant: Tenant, actor: Actor, response_id: str) -> Previous:
    """Return what a request goes on from: the words of both sides, and calls of the client's tools with their results.

    Calls of tools here are not in it, as they are not in what a client of chat completions sends back.

    Raises:
        Missing: see ``response_get``.
    """
    stored = response_get(actor=actor, response_id=response_id)
    facts = stored.run.request
    history = [message_from_json(message) for message in facts["completion"]["history"]]
    calls: dict[str, str] = {}
    for segment in [*stored.before, stored.segment]:
        history += _results(stored.run, calls)
        said = outcome_read(stored.followed(tenant, actor, segment)).answer
        turn = turn_read({"content": said.text, "tool_calls": said.calls}, "previous_response_id")
        calls = {call.id: call.name for call in turn.tool_calls}
        if turn.text or calls:
            history.append(turn)
    return Previous(history, facts["response"]["developer"], calls)


def _results(run: Run, calls: dict[str, str]) -> list[Message]:
    ids = {int(call_id.rpartition("_")[2]): call_id for call_id in calls}
    answers = PendingDecision.objects.filter(run=run, pk__in=ids).order_by("pk")
    return [
        ToolResult(ids[pk], calls[ids[pk]], answer)
        for pk, answer in answers.values_list("pk", "answer")
    ]
