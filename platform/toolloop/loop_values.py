"""What the loop is given: what to answer, and what the run stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from toolloop.compaction import Compaction
from toolloop.deferred import Decision, PendingCall
from toolloop.journal import Journal, NullJournal
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, Usage
from toolloop.metering import UsageHook
from toolloop.output import Output
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile
from toolloop.reservations import BudgetReservations
from toolloop.server_tools import ServerTool
from toolloop.tools.runtime import BlockingRunner, run_in_thread
from toolloop.tools.toolset import Toolset
from toolloop.usage import ProfileLookup


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInput:
    """What to answer, with which model and tools, within which limits.

    Args:
        model: bare model name.
        system: system prompt, "" for none.
        history: messages, oldest first. One that ends in a turn with unanswered calls goes on with these.
        toolset: what the model may call; asked anew before each turn.
        limits: what the run may use.
        context: given to tools as ``ToolContext.data``.
        first_step: number of this run's turns that the history already holds.
        usage: tokens those turns used.
        options, cache_key, user_key: see ``ModelRequest``.
        decisions: by call id, what was decided about calls at which the run parked; see ``toolloop.deferred``.
        pending: what the run waited for when it parked; calls among it that nothing was decided about wait on where they
            are. Without it they run from their start until they wait again.
        mock_tools: call the mocks of tools; nothing has effects and nothing needs approval.
        output: form the answer must have, from ``toolloop.output.output_of``. An answer that does not fit goes back to the
            model ``Limits.max_output_repairs`` times; then the run fails with code "invalid_output", or ends with the
            text where the form is not ``is_required``.
        tool_choice: for the first turn of the run; the later ones are free, but for "none".
        server_tools: what the provider may run itself; a model that has no such tool fails the run.
    """

    model: str
    system: str
    history: Sequence[ModelMessage]
    toolset: Toolset
    limits: Limits = field(default_factory=Limits)
    context: Mapping[str, Any] | None = None
    first_step: int = 0
    usage: Usage = field(default_factory=Usage)
    options: Mapping[str, Any] | None = None
    cache_key: str = ""
    user_key: str = ""
    decisions: Mapping[str, Decision] | None = None
    pending: Sequence[PendingCall] = ()
    mock_tools: bool = False
    output: Output | None = None
    tool_choice: Literal["auto", "required", "none"] = "auto"
    server_tools: Sequence[ServerTool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopServices:
    """What a run stands on; the caller made it, and closes what is to be closed.

    Args:
        provider: where turns come from.
        profile: facts about the model; looked up by its name when None.
        profiles: facts about other models that may answer (fallbacks), for their prices; the built-in ones when None.
        journal: told of everything before and after it happens.
        stop: set it (in the loop's thread) to end the run: the provider's stream is closed and tools are cancelled
            at once.
        run_blocking: runs the functions of blocking tools off the event loop.
        run_admission: runs ``Tool.admit`` off the event loop; None for ``run_blocking``. An application whose admission asks
            its database may have few threads for that, which stay connected.
        compaction: how a history that outgrows the model's context window is cut; None lets such a run fail.
        on_usage: told what each model call used, attempts that were billed in vain included; see ``toolloop.metering``.
        usage_metadata: goes into its events.
        reservations: holds back the money of each model call; when there is none left, the run meets the limit "budget".
    """

    provider: Provider
    profile: Profile | None = None
    profiles: ProfileLookup | None = None
    journal: Journal = field(default_factory=NullJournal)
    stop: asyncio.Event | None = None
    run_blocking: BlockingRunner = run_in_thread
    run_admission: BlockingRunner | None = None
    compaction: Compaction | None = field(default_factory=Compaction)
    on_usage: UsageHook | None = None
    usage_metadata: Mapping[str, Any] | None = None
    reservations: BudgetReservations | None = None
