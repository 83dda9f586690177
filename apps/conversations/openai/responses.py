"""Responses as they are kept: a run and a stretch of its events. Later requests name them and go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.conversations.openai.follow import Followed, outcome_read
from apps.conversations.openai.services import completion_list, completion_stop
from apps.conversations.openai.wire import turn_read
from apps.conversations.transcript.segments import Segment, response_id_of, response_id_read, segments_of
from apps.conversations.transcript.shown import run_withheld
from basics.errors import Missing
from runs.models import PendingDecision, Run, RunEvent
from runs.transcript import DECIDED, PARKED
from runs.withheld import message_withheld
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.messages import ModelMessage, ToolResult, message_from_json


@dataclass(frozen=True, slots=True)
class Stored:
    """A response that is kept, and those before it in its run.

    Attributes:
        is_last: no other response of the run has followed.
    """

    run: Run
    segment: Segment
    before: Sequence[Segment]
    is_last: bool

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

    history: list[ModelMessage]
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
    if named[1] in facts.get("deleted", ()):
        raise Missing("response")
    rows = RunEvent.objects.filter(run=run, kind__in=[PARKED, DECIDED]).order_by("seq")
    segments = segments_of(rows.values_list("seq", "kind", "data"))
    for number, segment in enumerate(segments):
        if segment.after == named[1]:
            return Stored(run, segment, segments[:number], segment is segments[-1])
    raise Missing("response")


def previous_read(*, tenant: Tenant, actor: Actor, response_id: str) -> Previous:
    """Return what a request goes on from: the words of both sides, and calls of the client's tools with their results.

    Calls of tools here are not in it, as they are not in what a client of chat completions sends back.

    Raises:
        Missing: see ``response_get``.
    """
    stored = response_get(actor=actor, response_id=response_id)
    history, calls = _told(stored, tenant, actor, [*stored.before, stored.segment])
    return Previous(history, stored.run.request["response"]["developer"], calls)


def inputs_read(*, tenant: Tenant, actor: Actor, response_id: str) -> tuple[str, list[ModelMessage]]:
    """Return what a response answers: the words of developer messages, and the messages before it, oldest first.

    Raises:
        Missing: see ``response_get``.
    """
    stored = response_get(actor=actor, response_id=response_id)
    history, calls = _told(stored, tenant, actor, stored.before)
    developer: str = stored.run.request["response"]["developer"]
    return developer, history + _results(stored.run, calls)


def response_delete(*, tenant: Tenant, actor: Actor, response_id: str) -> None:
    """Forget a response: nobody can name it any more. What still works on it, or waits for its calls, is stopped.

    The run stays, as the record of what tools did and what it cost, until the retention rule takes it. Responses that
    went on from this one keep what they were given.

    Raises:
        Denied: the actor may not.
        Missing: see ``response_get``.
    """
    actor.require("conversation.write")
    stored = response_get(actor=actor, response_id=response_id)
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=stored.run.pk)
        facts = run.request["response"]
        facts["deleted"] = sorted({*facts.get("deleted", ()), stored.segment.after})
        run.save(update_fields=["request"])
        audit_record(
            tenant=tenant, actor=actor, action="response.delete", object=run, data={"response": response_id}
        )
    if stored.is_last:
        completion_stop(tenant=tenant, actor=actor, run=stored.run)


def _told(
    stored: Stored, tenant: Tenant, actor: Actor, segments: Sequence[Segment]
) -> tuple[list[ModelMessage], dict[str, str]]:
    """Return what was said up to the end of some of a run's responses, and the calls that the last one ends with."""
    facts = stored.run.request["completion"]
    found = run_withheld(actor, stored.run)
    history = [message_withheld(message_from_json(m), found) for m in facts["history"]]
    calls: dict[str, str] = {}
    for segment in segments:
        history += _results(stored.run, calls)
        said = outcome_read(stored.followed(tenant, actor, segment)).answer
        turn = turn_read({"content": said.text, "tool_calls": said.calls}, "previous_response_id")
        calls = {call.id: call.name for call in turn.tool_calls}
        if turn.text or calls:
            history.append(turn)
    return history, calls


def _results(run: Run, calls: dict[str, str]) -> list[ModelMessage]:
    ids = {int(call_id.rpartition("_")[2]): call_id for call_id in calls}
    answers = PendingDecision.objects.filter(run=run, pk__in=ids).order_by("pk")
    return [ToolResult(ids[pk], calls[ids[pk]], answer) for pk, answer in answers.values_list("pk", "answer")]
