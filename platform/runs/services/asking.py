"""Drive the loop to its end for work that keeps a journal of its own: dataset rows, experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from toolloop.events import RunFinished
from toolloop.journal import Journal, NullJournal
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage
from toolloop.metering import UsageHook
from toolloop.output import Output
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile
from toolloop.reservations import BudgetReservations
from toolloop.tokens import Usage
from toolloop.tools import Toolset
from toolloop.tools.runtime import BlockingRunner, run_in_thread


async def loop_ask(
    *,
    provider: Provider,
    model: str,
    profile: Profile | None,
    system: str,
    history: Sequence[ModelMessage],
    limits: Limits,
    toolset: Toolset | None = None,
    journal: Journal | None = None,
    context: Mapping[str, Any] | None = None,
    first_step: int = 0,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    options: Mapping[str, Any] | None = None,
    output: Output | None = None,
    stop: asyncio.Event | None = None,
    run_blocking: BlockingRunner = run_in_thread,
    on_usage: UsageHook | None = None,
    usage_metadata: Mapping[str, Any] | None = None,
    reservations: BudgetReservations | None = None,
) -> RunFinished:
    """Run the loop and return its last event; see ``toolloop.loop_values`` for the arguments.

    Nothing is written here: who asks keeps what the journal and ``on_usage`` tell, and may start again from it.

    Raises:
        Exception: what the journal raised.
    """
    events = run_loop(
        LoopInput(
            model=model,
            system=system,
            history=history,
            toolset=toolset or Toolset(),
            limits=limits,
            context=context,
            first_step=first_step,
            usage=usage,
            options=options,
            output=output,
        ),
        LoopServices(
            provider=provider,
            profile=profile,
            journal=journal or NullJournal(),
            stop=stop,
            run_blocking=run_blocking,
            on_usage=on_usage,
            usage_metadata=usage_metadata,
            reservations=reservations,
        ),
    )
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, RunFinished):
                return event
    raise RuntimeError("the loop ended without RunFinished")
