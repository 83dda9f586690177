"""Write the lines of an owner and the batches they are sent in; each function is one transaction.

A line is wanted, then sent, then answered or failed. What a batch has cost is recorded with the answer it paid for, in one
transaction, so that a crash counts nothing twice and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Func, IntegerField
from django.utils import timezone

from basics.texts import gettext_noop
from batches.engines import TIER
from batches.models import OPEN, Batch, BatchLine, BatchState, LineState
from budgets.ledger import BillingAccount, Refusal, ReservationRequest, budget_reserve_each, holds_release
from budgets.warnings import budgets_tell
from jobs.notify import notify
from runs.models import UsageRecord
from runs.usage import LOST, usage_columns
from toolloop.batches.base import BatchLimits, BatchStanding, new_mark
from toolloop.errors import MalformedResponse, ProviderError
from toolloop.messages import Turn
from toolloop.metering import UsageEvent
from toolloop.providers.profiles import Profile
from toolloop.storable import json_storable, text_storable
from toolloop.tokens import Usage

MOST_TRIES = 3
"""A call that came to nothing so often is given up."""
MOST_BYTES = 32 * 1024 * 1024
"""Of a batch, whatever the provider allows: it is in memory while it is sent."""
SLACK_S = 3600
"""Money stays held for so long behind the time that the provider has for a batch: one that has not ended by half of it is
cancelled, and given up at its end."""
RESERVED_AT_ONCE = 500
NO_ANSWER = gettext_noop("The provider didn't return an answer in time.")
NEVER_ENDED = gettext_noop("The provider neither finished the batch in time nor stopped it when asked.")


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of lines that were to be sent.

    Attributes:
        batches: how many were made.
        refusal: why lines were left behind; None when all are in a batch.
    """

    batches: int = 0
    refusal: Refusal | None = None


def line_find(tenant_id: int, owner: str, key: str) -> BatchLine | None:
    """Return the line of a call, None when nobody has asked for it."""
    found: BatchLine | None = BatchLine.objects.filter(tenant_id=tenant_id, owner=owner, key=key).first()
    return found


def line_want(line: BatchLine) -> None:
    """Keep a call to be sent with the next batch; one of that key that is there stays as it is."""
    line.context = json_storable(line.context)
    line.body = text_storable(line.body)
    BatchLine.objects.bulk_create([line], ignore_conflicts=True)


def line_forget(line: BatchLine) -> None:
    """Forget a call, so that it can be asked again."""
    BatchLine.objects.filter(tenant_id=line.tenant_id, pk=line.pk).delete()


def batches_plan(
    *, billing_account: BillingAccount, owner: str, model: str, limits: BatchLimits, number: int
) -> Planned:
    """Put the wanted lines of a model into batches, as far as there is money for them; sends nothing yet.

    The money of each line is held until its answer is recorded, at the most that it may cost.

    Args:
        number: of the round that the batches belong to.
    """
    seconds = limits.hours * 3600 + SLACK_S
    with transaction.atomic():
        lines = list(
            BatchLine.objects.select_for_update()
            .filter(tenant_id=billing_account.tenant_id, owner=owner, model=model, state=LineState.WANTED)
            .annotate(size=Func("body", function="octet_length", output_field=IntegerField()))
            .defer("body")  # all that is wanted may be more than fits into memory; a batch does
            .order_by("pk")
        )
        funded, refusal, must_tell = _funded(billing_account, lines, seconds)
        groups = _groups(funded, limits)
        for group in groups:
            batch = Batch.objects.create(
                tenant_id=billing_account.tenant_id,
                owner=owner,
                user_id=billing_account.user_id,
                round=number,
                model=model,
                mark=new_mark(),
                total=len(group),
                hours=limits.hours,
            )
            for line in group:
                line.batch, line.state = batch, LineState.SENT
            BatchLine.objects.bulk_update(group, ["batch", "state", "hold_id"], batch_size=1000)
        _tell(billing_account.tenant_id, owner)
    if must_tell:
        budgets_tell(billing_account.tenant_id)
    return Planned(len(groups), refusal)


def _funded(
    billing_account: BillingAccount, lines: Sequence[BatchLine], seconds: int
) -> tuple[list[BatchLine], Refusal | None, bool]:
    """Hold the money of lines, in order; returns those that may be sent, and the first refusal."""
    funded = [line for line in lines if not line.most_usd]
    by_assistant: dict[int | None, list[BatchLine]] = {}
    for line in lines:
        if line.most_usd:
            assistant = line.attribution.get("assistant", billing_account.assistant_id)
            by_assistant.setdefault(assistant, []).append(line)
    refusal, must_tell = None, False
    for assistant, costly in by_assistant.items():
        who, is_refused = replace(billing_account, assistant_id=assistant), False
        for start in range(0, len(costly), RESERVED_AT_ONCE):
            part = costly[start : start + RESERVED_AT_ONCE]
            asked = [
                ReservationRequest(most, most, most, line.is_priced, seconds)
                for line in part
                for most in (float(line.most_usd),)
            ]
            for line, got in zip(part, budget_reserve_each(who, asked), strict=True):
                must_tell = must_tell or got.must_tell
                if got.refusal is None:
                    line.hold_id = got.hold_id
                    funded.append(line)
                is_refused = is_refused or got.refusal is not None
                refusal = refusal or got.refusal
            if is_refused:
                break
    return funded, refusal, must_tell


def _groups(lines: Sequence[Any], limits: BatchLimits) -> list[list[BatchLine]]:
    """Split lines, each with its ``size`` in bytes, into batches within the provider's limits and ours."""
    most_bytes = min(limits.max_bytes, MOST_BYTES)
    groups: list[list[BatchLine]] = []
    size = 0
    for line in lines:
        length = line.size + 1
        if not groups or len(groups[-1]) >= limits.max_lines or size + length > most_bytes:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += length
    return groups


def bodies_read(batch: Batch) -> list[bytes]:
    """Return the lines of a batch as they are sent."""
    rows = BatchLine.objects.filter(tenant_id=batch.tenant_id, batch=batch).order_by("pk")
    return [body.encode() for body in rows.values_list("body", flat=True)]


def batch_trying(batch: Batch, until: datetime) -> None:
    """Say that somebody sends it now, and until when they may be at it."""
    Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk).update(trying_until=until)


def batch_sent(batch: Batch, handle: Mapping[str, Any]) -> None:
    """Keep how the provider names a batch that it has."""
    with transaction.atomic():
        Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk, state=BatchState.SENDING).update(
            state=BatchState.OUT, handle=dict(handle), sent_at=timezone.now()
        )
        _tell(batch.tenant_id, batch.owner)


def batch_looked(batch: Batch, standing: BatchStanding) -> None:
    """Keep how far the provider says it is."""
    with transaction.atomic():
        Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk, state=BatchState.OUT).update(
            done=standing.done, failed=standing.failed, looked_at=timezone.now()
        )
        _tell(batch.tenant_id, batch.owner)


def batch_cancelled(batch: Batch) -> None:
    """Keep that the provider was told to stop."""
    Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk).update(cancelled_at=timezone.now())


def results_keep(batch: Batch, results: Mapping[str, Turn | ProviderError], profile: Profile) -> None:
    """Keep answers of a batch, and record what each has cost; what is kept already is left alone."""
    with transaction.atomic():
        lines = list(
            BatchLine.objects.select_for_update()
            .filter(tenant_id=batch.tenant_id, batch=batch, state=LineState.SENT, key__in=list(results))
            .order_by("pk")
        )
        records, freed = [], []
        for line in lines:
            result = results[line.key]
            usage = result.usage
            if usage is not None and (usage.input_total or usage.output_total):
                records.append(_record(batch, line, result, usage, profile))
            elif line.hold_id is not None:
                freed.append(line.hold_id)
            line.hold_id = None
            if isinstance(result, Turn) and result.stop != "error":
                line.state, line.body = LineState.ANSWERED, ""
                line.turn = json_storable(result.to_json())
            else:
                _came_to_nothing(line, _error_of(result), counts=batch.cancelled_at is None)
        UsageRecord.objects.bulk_create(records)
        holds_release(*freed)
        _lines_written(lines)


def batch_ended(batch: Batch, *, message: str = "", gives_up: bool = False) -> None:
    """End a batch whose results are kept; lines without one are wanted again, a few times.

    Args:
        message: what is to be told of it.
        gives_up: such lines have failed: the provider may still be at them, and what is sent again would be paid twice.
    """
    with transaction.atomic():
        now = timezone.now()
        if not Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk, state__in=OPEN).update(
            state=BatchState.ENDED, ended_at=now, message=message
        ):
            return
        lines = _left_in(batch)
        missing = ProviderError(message or NO_ANSWER, code="no_answer", retryable=not gives_up)
        for line in lines:
            _came_to_nothing(line, missing, counts=gives_up or batch.cancelled_at is None)
        _lines_written(lines)
        every = BatchLine.objects.filter(tenant_id=batch.tenant_id, batch=batch)
        done = every.filter(state=LineState.ANSWERED).count()
        Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk).update(
            done=done, failed=F("total") - done
        )
        _tell(batch.tenant_id, batch.owner)


def batch_refused(batch: Batch, message: str) -> None:
    """End a batch that the provider did not take; its lines are wanted as before, and no money is held for them."""
    with transaction.atomic():
        if not Batch.objects.filter(tenant_id=batch.tenant_id, pk=batch.pk, state__in=OPEN).update(
            state=BatchState.REFUSED, ended_at=timezone.now(), message=message
        ):
            return
        lines = _left_in(batch)
        for line in lines:
            line.state, line.batch = LineState.WANTED, None
        _lines_written(lines)
        _tell(batch.tenant_id, batch.owner)


def lines_unwant(tenant_id: int, owner: str) -> None:
    """Forget the lines that were not sent; the owner asks for them again when it goes on."""
    BatchLine.objects.filter(tenant_id=tenant_id, owner=owner, state=LineState.WANTED).delete()


def lines_clear(tenant_id: int, owner: str) -> None:
    """Forget all lines of an owner that has ended; its batches stay, as what happened."""
    BatchLine.objects.filter(tenant_id=tenant_id, owner=owner).delete()


def _left_in(batch: Batch) -> list[BatchLine]:
    """Lock the lines of a batch that nothing came of, and give back what was held for them."""
    lines = list(
        BatchLine.objects.select_for_update()
        .filter(tenant_id=batch.tenant_id, batch=batch, state=LineState.SENT)
        .order_by("pk")
    )
    holds_release(*(line.hold_id for line in lines if line.hold_id is not None))
    for line in lines:
        line.hold_id = None
    return lines


def _error_of(result: Turn | ProviderError) -> ProviderError:
    if isinstance(result, Turn):
        return MalformedResponse(result.stop_detail or "The turn is unusable.")
    return result


def _came_to_nothing(line: BatchLine, error: ProviderError, *, counts: bool) -> None:
    """Want a line again, or give it up.

    Args:
        counts: it was tried; False where we have stopped the batch ourselves.
    """
    line.tries += counts
    line.error_code, line.error_message = error.code[:60], text_storable(error.message)
    may_pass = error.retryable or not counts
    if may_pass and line.tries < MOST_TRIES:
        line.state, line.batch = LineState.WANTED, None
    else:
        line.state, line.body = LineState.FAILED, ""


def _lines_written(lines: Sequence[BatchLine]) -> None:
    BatchLine.objects.bulk_update(
        lines,
        ["state", "body", "turn", "cost_usd", "hold_id", "tries", "batch", "error_code", "error_message"],
        batch_size=500,
    )


def _record(
    batch: Batch, line: BatchLine, result: Turn | ProviderError, usage: Usage, profile: Profile
) -> UsageRecord:
    """Return the usage record of a line, which settles what was held for it."""
    cost = profile.cost_usd(usage)
    line.cost_usd = None if cost is None else Decimal(f"{cost:.8f}")
    is_turn = isinstance(result, Turn) and result.stop != "error"
    who = (result.provider, result.model) if isinstance(result, Turn) else _named(line.model)
    event = UsageEvent(
        provider=who[0],
        model=who[1],
        step=0,
        usage=usage,
        cost_usd=cost,
        metadata=line.attribution,
        hold=line.hold_id,
        service_tier=TIER,
    )
    return UsageRecord(
        tenant_id=batch.tenant_id,
        user_id=batch.user_id,
        **{**usage_columns(event), "kind": line.kind if is_turn else LOST, "step": None},
    )


def _named(model: str) -> tuple[str, str]:
    provider, _, name = model.partition("/")
    return provider, name


def _tell(tenant_id: int, owner: str) -> None:
    """Wake the pages that show an owner; ``generation:5`` is the name of its channel as well."""
    notify(tenant_id, owner)


def sending_until(seconds: float) -> datetime:
    """Return when somebody who begins to send now has ended at the latest."""
    return timezone.now() + timedelta(seconds=seconds)
