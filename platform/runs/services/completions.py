"""One question to a model and one checked answer, for work that is no conversation: summaries, ranking, judging.

No run, no events, no tools; the usage of every request is recorded all the same, also of those that came to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from basics.errors import DomainError, Invalid
from basics.texts import gettext as _
from budgets.ledger import EXCEEDED, BillingAccount, BudgetExceeded
from runs.local_loop import LocalLoop
from runs.models import UsageRecord
from runs.providers import TenantProvider, provider_for
from runs.reservations import InDb, RunReservations
from runs.services.asking import loop_ask
from runs.usage import usage_columns, usage_kind
from tenancy.actors import Actor
from tenancy.inserting import rows_insert
from tenancy.models import Tenant
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, UserMessage
from toolloop.metering import UsageEvent
from toolloop.output import Output, output_of
from toolloop.reservations import BudgetReservations
from toolloop.service import limits_patient
from toolloop.tokens import Usage

log = structlog.get_logger(__name__)

COMPLETION_LIMITS = Limits(
    max_steps=1, max_tool_calls=0, max_seconds=120, final_seconds=5, request_timeout_s=120
)
CHECK_S = 0.2
_MAX_PURPOSE = 30


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer.

    Attributes:
        value: checked against the form asked for; None when none was.
        text: as the model wrote it.
        usage, cost_usd: of all attempts; the cost is None where the price is unknown.
    """

    value: Any
    text: str
    usage: Usage
    cost_usd: float | None


class CompletionFailed(DomainError):
    """The model gave no usable answer; ``code`` and ``message`` are the loop's, for a person to read.

    Attributes:
        is_retryable: the same question may be answered later (a rate limit, a server that is down, a time limit).
    """

    default_status = 502

    def __init__(self, code: str, message: str, *, is_retryable: bool, status: int | None = None) -> None:
        super().__init__(code, message, status=status)
        self.is_retryable = is_retryable


def completion_run(
    *,
    tenant: Tenant,
    actor: Actor,
    model: str,
    system: str = "",
    prompt: str | Sequence[ModelMessage],
    output: type[Any] | Mapping[str, Any] | Output | None = None,
    purpose: str,
    limits: Limits = COMPLETION_LIMITS,
    attribution: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
    billing_account: BillingAccount | None = None,
    options: Mapping[str, Any] | None = None,
) -> Completion:
    """Ask a model once, with the loop's retries, limits and repairs of answers that do not fit.

    It blocks. Call it outside of transactions: a model may take minutes, and what it costs is recorded at once, whatever
    becomes of the answer.

    Args:
        tenant: whose models, credentials and bill.
        actor: on whose behalf.
        model: with its routing prefix.
        prompt: the question, or a history that ends in one.
        output: pydantic model or JSON Schema of the answer; None for text.
        purpose: what for, at most 30 characters; it becomes ``UsageRecord.kind`` (``summary``, ``rerank``).
        limits: of this one question.
        attribution: facts for the bill, such as ``{"document": 5}``.
        check: called every 0.2 s, in this thread; what it raises ends the request and is raised here. It must be quick
            and must not use the database (``JobContext.check``).
        billing_account: on whose account, where that is more than the actor: an assistant's answer, a job with a budget of its own.
        options: settings of the model, see ``ModelRequest``; in the service tier "flex" it may take longer than ``limits``.

    Raises:
        CompletionFailed: there is no answer of that form; ``budget_exceeded`` when there is no money for it.
        Invalid: ``unknown_model``, or one that is no language model.
        Conflict: ``model_unavailable``.
        RuntimeError: called from an event loop's thread.
    """
    question = completion_prepare(
        tenant=tenant,
        actor=actor,
        model=model,
        system=system,
        prompt=prompt,
        output=output,
        purpose=purpose,
        limits=limits,
        attribution=attribution,
        check=check,
        billing_account=billing_account,
        options=options,
    )
    return question.answer_here()


def completion_prepare(
    *,
    tenant: Tenant,
    actor: Actor,
    model: str,
    system: str = "",
    prompt: str | Sequence[ModelMessage],
    output: type[Any] | Mapping[str, Any] | Output | None = None,
    purpose: str,
    limits: Limits = COMPLETION_LIMITS,
    attribution: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
    billing_account: BillingAccount | None = None,
    options: Mapping[str, Any] | None = None,
    provider: TenantProvider | None = None,
) -> Question:
    """Return what ``completion_run`` would ask, for a coroutine: see there. It reads the database, and asks nobody yet.

    Args:
        provider: of the model, where it is there already.

    Raises:
        Invalid: ``unknown_model``, or one that is no language model.
        Conflict: ``model_unavailable``.
    """
    if not 0 < len(purpose) <= _MAX_PURPOSE:
        raise ValueError(f"purpose must have 1 to {_MAX_PURPOSE} characters, got {purpose!r}")
    provider = provider or provider_for(tenant, model)
    if not provider.info.is_language_model:
        raise Invalid(
            "unknown_model",
            _("%(model)s can't generate text. Choose a language model.") % {"model": provider.info.label},
        )
    billing_account = billing_account or BillingAccount(tenant.pk, actor.user_id, actor.api_key_id)
    return Question(
        tenant=tenant,
        billing_account=billing_account,
        purpose=purpose,
        provider=provider,
        system=system,
        history=[UserMessage(prompt)] if isinstance(prompt, str) else list(prompt),
        output=None if output is None else output_of(output),
        limits=limits_patient(limits, options or {}),
        options=dict(options or {}),
        metadata={**(attribution or {}), "purpose": purpose, **billing_account.attribution},
        check=check,
    )


@dataclass(slots=True)
class Question:
    """One call of the loop, for one answer."""

    tenant: Tenant
    billing_account: BillingAccount
    purpose: str
    provider: TenantProvider
    system: str
    history: list[ModelMessage]
    output: Output | None
    limits: Limits
    options: Mapping[str, Any]
    metadata: Mapping[str, Any]
    check: Callable[[], None] | None
    _used: list[UsageEvent] = field(default_factory=list)

    def answer_here(self) -> Completion:
        """Ask in an event loop of this thread's; see ``completion_run``."""
        here = LocalLoop()
        reservations = RunReservations(self.billing_account, here.in_db)
        try:
            end = here.run(self._ask(reservations))
        finally:
            self._pay(reservations)
        return self._completion(end)

    async def answer_by(self, provider: TenantProvider, reservations: BudgetReservations) -> Completion:
        """Ask the same model another way; ``reservations`` holds the money, and has what was used recorded."""
        direct, self.provider = self.provider, provider
        try:
            return self._completion(await self._ask(reservations))
        finally:
            self.provider = direct
            await self._close()

    async def answer(self, in_db: InDb) -> Completion:
        """Ask in this event loop, which reaches the database by ``in_db``; raises what ``completion_run`` does."""
        reservations = RunReservations(self.billing_account, in_db)
        try:
            end = await self._ask(reservations)
        finally:
            await in_db(self._pay, reservations)
        return self._completion(end)

    def _pay(self, reservations: RunReservations) -> None:
        rows = [
            UsageRecord(
                tenant=self.tenant,
                user_id=self.billing_account.user_id,
                **{**usage_columns(event), "kind": usage_kind(event, self.purpose), "step": None},
            )
            for event in self._used
            if not event.is_cached
        ]
        if rows:  # by one statement, which needs no transaction around it
            rows_insert(rows)
        reservations.close()

    def _completion(self, end: RunFinished) -> Completion:
        if end.status != "completed":
            raise CompletionFailed(
                end.error_code or end.status,
                end.error_message,
                is_retryable=end.retryable,
                status=BudgetExceeded.default_status if end.error_code == EXCEEDED else None,
            )
        if (self.output is not None and end.output is None) or not end.text.strip():
            why = f"its limit {end.limit} was reached" if end.limit else f"it stopped with “{end.stop}”"
            raise CompletionFailed(
                "no_answer",
                _("The model %(label)s gave no usable answer: %(why)s.")
                % {"label": self.provider.info.label, "why": why},
                is_retryable=False,
            )
        return Completion(end.output, end.text, end.usage, end.data["cost_usd"])

    async def _ask(self, reservations: BudgetReservations) -> RunFinished:
        """Return how it ended; raises what ``check`` raised."""
        stop = asyncio.Event()
        watch = asyncio.create_task(self._watch(stop))
        try:
            end = await self._drive(stop, reservations)
        finally:
            watch.cancel()
            (ended,) = await asyncio.gather(watch, return_exceptions=True)
            await self._close()
        if isinstance(ended, Exception):
            raise ended
        return end

    async def _drive(self, stop: asyncio.Event, reservations: BudgetReservations) -> RunFinished:
        return await loop_ask(
            provider=self.provider,
            model=self.provider.info.model,
            profile=self.provider.info.profile,
            system=self.system,
            history=self.history,
            limits=self.limits,
            options=self.options,
            output=self.output,
            stop=stop,
            on_usage=self._used.append,
            usage_metadata=self.metadata,
            reservations=reservations,
        )

    async def _watch(self, stop: asyncio.Event) -> None:
        while self.check is not None:
            try:
                self.check()
            except Exception:
                stop.set()
                raise
            await asyncio.sleep(CHECK_S)

    async def _close(self) -> None:
        try:
            await self.provider.aclose()
        except Exception:  # the answer counts, not how its connection ends
            log.exception("provider_close_failed", provider=self.provider.name)


__all__ = [
    "COMPLETION_LIMITS",
    "Completion",
    "CompletionFailed",
    "Question",
    "completion_prepare",
    "completion_run",
]
