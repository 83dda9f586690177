"""Carry an owner's lines to their providers and the answers back.

Whoever drives the owner's work calls ``collect`` when it wakes up, and ``send`` when nothing can go on without an answer;
between the two it holds no worker and no connection. Every step can be repeated after a crash: a batch is written down
with its mark before it is sent, looked for by that mark where its handle was lost, and its answers are kept line by line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import structlog
from django.utils import timezone

from basics.texts import gettext as _
from basics.texts import gettext_noop
from batches import lines
from batches.engines import Engine
from batches.models import Batch
from batches.selectors import batches_open, look_again_s, models_wanted, round_next
from budgets.ledger import BillingAccount
from toolloop.batches.base import BatchGone
from toolloop.errors import ProviderError
from toolloop.messages import Turn

log = structlog.get_logger(__name__)

SUBMIT_S = 900.0
"""What an upload may take. Who finds a batch half sent waits so long before sending it again."""
KEPT_AT_ONCE = 200
UNSENT = gettext_noop("It was stopped before it was sent.")


class BatchRefused(Exception):
    """The provider does not take a batch; ``reason`` is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Courier:
    """Sends and collects for one owner; belongs to one event loop.

    Args:
        billing_account: on whose account.
        owner: see ``Batch.owner``.
        in_db: runs a function on the database threads.
        engines: by routing name, of all models that the owner asks.
    """

    def __init__(
        self,
        *,
        billing_account: BillingAccount,
        owner: str,
        in_db: Callable[..., Awaitable[Any]],
        engines: Mapping[str, Engine],
    ) -> None:
        self._billing_account, self._owner, self._in_db = billing_account, owner, in_db
        self._engines = engines

    async def send(self) -> str:
        """Send what is wanted, each model's lines in batches of their own.

        Returns:
            Why lines were left behind that no waiting will bring on, or "". What waits for money that is held goes with the
            next batch.

        Raises:
            BatchRefused: the provider takes no batch.
        """
        tenant, owner = self._billing_account.tenant_id, self._owner
        number = await self._in_db(round_next, tenant, owner)
        reason = ""
        for model in await self._in_db(models_wanted, tenant, owner):
            planned = await self._in_db(self._plan, model, number)
            if planned.refusal is not None and planned.refusal.why != "held":
                reason = reason or planned.refusal.message
        for batch in await self._in_db(batches_open, tenant, owner):
            if batch.handle is None and batch.trying_until is None:
                await self._submit(batch)
        return reason

    async def collect(self, *, sends: bool = True) -> None:
        """Take up what a dead sender has left, and keep the answers of batches that are over.

        Args:
            sends: send what such a sender has not sent; False gives it up.

        Raises:
            BatchRefused: the provider refused a batch, or does not let us ask about it.
        """
        refused: BatchRefused | None = None
        for batch in await self._in_db(batches_open, self._billing_account.tenant_id, self._owner):
            try:
                await self._collect(batch, sends=sends)
            except BatchRefused as error:
                refused = refused or error
            except ProviderError as error:
                log.info("batch_look_failed", batch=batch.pk, code=error.code)
                if not error.retryable:
                    refused = refused or BatchRefused(error.message)
        if refused is not None:
            raise refused

    async def cancel(self) -> None:
        """Tell the providers to stop what is out; what is answered by then is kept by ``collect``."""
        for batch in await self._in_db(batches_open, self._billing_account.tenant_id, self._owner):
            if batch.handle is not None and batch.cancelled_at is None:
                # First the mark: what comes back without an answer was not tried in vain then.
                await self._in_db(lines.batch_cancelled, batch)
                try:
                    await self._engine(batch).api.cancel(batch.handle)
                except ProviderError as error:
                    log.warning("batch_cancel_failed", batch=batch.pk, code=error.code)

    async def look_again_s(self) -> float:
        """Return after how many seconds to call ``collect`` again."""
        found: float = await self._in_db(look_again_s, self._billing_account.tenant_id, self._owner)
        return found

    async def aclose(self) -> None:
        """Close the connections to providers."""
        for engine in self._engines.values():
            await engine.api.aclose()

    def _plan(self, model: str, number: int) -> lines.Planned:
        limits = self._engines[model].api.limits
        return lines.batches_plan(
            billing_account=self._billing_account,
            owner=self._owner,
            model=model,
            limits=limits,
            number=number,
        )

    def _engine(self, batch: Batch) -> Engine:
        return self._engines[batch.model]

    async def _submit(self, batch: Batch) -> None:
        engine = self._engine(batch)
        bodies = await self._in_db(lines.bodies_read, batch)
        await self._in_db(lines.batch_trying, batch, lines.sending_until(SUBMIT_S))
        try:
            handle = await engine.api.submit(bodies, model=engine.info.model, mark=batch.mark)
        except ProviderError as error:
            if not error.retryable:
                await self._in_db(lines.batch_refused, batch, error.message)
                raise BatchRefused(error.message) from error
            # It may have arrived all the same: the next look asks for its mark first.
            log.info("batch_send_failed", batch=batch.pk, code=error.code)
            await self._in_db(lines.batch_trying, batch, timezone.now())
            return
        await self._in_db(lines.batch_sent, batch, handle)

    async def _find(self, batch: Batch, *, sends: bool) -> None:
        """Find a batch whose handle was lost, or send it or give it up, once nobody can be at it any more."""
        engine = self._engine(batch)
        if batch.trying_until is not None:
            handle = await engine.api.find(
                batch.mark, model=engine.info.model, total=batch.total, since=batch.created_at
            )
            if handle is not None:
                await self._in_db(lines.batch_sent, batch, handle)
                return
            if batch.trying_until > timezone.now():
                return
        if sends:
            await self._submit(batch)
        else:
            await self._in_db(lines.batch_refused, batch, UNSENT)

    async def _collect(self, batch: Batch, *, sends: bool) -> None:
        if batch.handle is None:
            await self._find(batch, sends=sends)
            return
        engine = self._engine(batch)
        try:
            standing = await engine.api.standing(batch.handle)
            await self._in_db(lines.batch_looked, batch, standing)
            if not standing.is_over:
                await self._hurry(batch, engine)
                return
            if standing.status == "failed":
                reason = standing.message or _("The provider refused the batch without giving a reason.")
                await self._in_db(lines.batch_refused, batch, reason)
                raise BatchRefused(reason)
            await self._results(batch, engine)
        except BatchGone as gone:
            await self._in_db(lines.batch_ended, batch, message=gone.message)
            return
        await self._in_db(lines.batch_ended, batch)
        try:
            await engine.api.forget(batch.handle)
        except ProviderError as error:  # its answers are here; the provider deletes them by itself one day
            log.warning("batch_forget_failed", batch=batch.pk, code=error.code)

    async def _hurry(self, batch: Batch, engine: Engine) -> None:
        """Cancel a batch that has not ended in its time, and give it up when that does not end it either.

        What such a batch has answered is kept like that of one that expired; its other calls count as tried.
        """
        assert batch.sent_at is not None  # noqa: S101 - it has a handle
        late_s = (timezone.now() - batch.sent_at - timedelta(hours=batch.hours)).total_seconds()
        if late_s > lines.SLACK_S:
            log.error("batch_never_ended", batch=batch.pk, model=batch.model)
            await self._in_db(_given_up, batch)
        elif late_s > lines.SLACK_S / 2:
            try:
                await engine.api.cancel(batch.handle or {})
            except ProviderError as error:
                log.warning("batch_cancel_failed", batch=batch.pk, code=error.code)

    async def _results(self, batch: Batch, engine: Engine) -> None:
        part: dict[str, Turn | ProviderError] = {}
        async for key, result in engine.api.results(batch.handle or {}):
            part[key] = result
            if len(part) >= KEPT_AT_ONCE:
                await self._in_db(lines.results_keep, batch, part, engine.profile)
                part = {}
        if part:
            await self._in_db(lines.results_keep, batch, part, engine.profile)


def _given_up(batch: Batch) -> None:
    lines.batch_ended(batch, message=lines.NEVER_ENDED, gives_up=True)
