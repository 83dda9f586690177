"""The job that scores a live answer that a rule chose. It comes after the answer, in a job of its own."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from apps.conversations.answering.said_before import turn_said_before
from apps.conversations.display.answer_forms import shown_text
from apps.conversations.models import Message
from apps.datasets.records.parts import TraceMessage
from apps.datasets.records.record import Record
from apps.evaluations.judges.scoring import scorers_make
from apps.evaluations.models import LiveSample, SampleState
from apps.evaluations.results.actors import kept_actor
from apps.evaluations.results.outcomes import run_outcome
from apps.evaluations.sampling.services import SAMPLE_JOB, sample_end, sample_keep
from apps.evaluations.scorers.base import TargetResult
from basics.texts import gettext as _
from budgets.ledger import EXCEEDED
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.services import CompletionFailed
from tenancy.actors import Actor


def sample_ended(ended: Job) -> None:
    """End the sample of a job that ended without it."""
    why = ended.error_message or _("The work was abandoned.")
    sample_end(ended.payload["sample_id"], SampleState.FAILED, why)


@dataclass(frozen=True, slots=True)
class _Work:
    sample: LiveSample
    actor: Actor
    row: Record
    outcome: TargetResult


@job(SAMPLE_JOB, lane="loop", max_attempts=3, on_end=sample_ended)
async def sample_score(ctx: JobContext, *, sample_id: int) -> None:
    """Score a sampled answer; safe to run again at any point."""
    work = await ctx.in_db(_read, sample_id)
    if work is not None:
        await ctx.blocking(lambda: _score(ctx, work))


def _read(sample_id: int) -> _Work | None:
    sample: LiveSample | None = (
        LiveSample.objects.select_related("rule__tenant", "turn__run", "turn__assistant_version")
        .filter(pk=sample_id, state=SampleState.WAITING)
        .first()
    )
    if sample is None:
        return None
    rule, turn = sample.rule, sample.turn
    actor = kept_actor(rule.tenant_id, rule.created_by_id, rule.actor)
    both = {message.author: message for message in Message.objects.filter(turn=turn)}
    asked, answer = both.get(Message.Author.USER), both.get(Message.Author.ASSISTANT)
    if asked is None or answer is None or not answer.text.strip():
        sample_end(sample_id, SampleState.SKIPPED, _("There is no answer."))
        return None
    # The run's own words, for their markers name passages; the message's have become numbers.
    outcome = run_outcome(turn.run, (), shown=shown_text(turn.run.answer, answer.was_formed))
    # What "it" and "there" mean stands in the conversation: a judge without it would grade another question.
    said = [
        TraceMessage("user" if who == "user" else "assistant", text) for who, text in turn_said_before(turn)
    ]
    row = Record(question=asked.text, messages=(*said, TraceMessage("user", asked.text)) if said else ())
    return _Work(sample, actor, row, outcome)


def _score(ctx: JobContext, work: _Work) -> None:
    rule = work.sample.rule
    made, asks = scorers_make(
        tenant=rule.tenant,
        actor=work.actor,
        specs=rule.scorers,
        check=ctx.check,
        attribution={"sampling_rule": rule.pk},
    )
    try:
        scores = [(scorer, scorer.score(work.row, work.outcome)) for scorer, _ in made]
    except CompletionFailed as error:
        if error.code != EXCEEDED:
            raise
        with transaction.atomic():
            ctx.hold()
            sample_end(work.sample.pk, SampleState.SKIPPED, error.message)
            ctx.complete()
        return
    with transaction.atomic():
        ctx.hold()
        sample_keep(work.sample, scores, sum(ask.spent_usd for ask in asks))
        ctx.complete()
