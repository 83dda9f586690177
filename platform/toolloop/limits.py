"""What one run may use: a single frozen value, checked by the loop at fixed points."""

from __future__ import annotations

from dataclasses import dataclass

from toolloop.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. When one is met, the model gets one last turn without tools to answer with what it has.

    None switches a limit off. ``RunFinished.limit`` and ``LimitReached.limit`` carry the name of the field, or "budget" when
    the money of the run's ``BudgetReservations`` is used up.

    Attributes:
        max_steps: model turns that may call tools; the final answer comes on top. A resumed run goes on counting.
        max_requests: requests to the provider, attempts that failed included; there are no retries beyond it, and the
            final answer comes on top.
        max_tool_calls: tool calls that are run.
        max_tokens: input and output tokens of all turns; the final answer comes on top.
        max_seconds: wall-clock seconds for this attempt. Tools are cut off then; an answer that is already
            streaming may go on for ``final_seconds``.
        max_cost_usd: money for model calls. Reserved from list prices before each call, settled after; never
            exceeded by more than the error of the input estimate. Not enforced where the price is unknown
            (``RunFinished.data["notes"]`` says so).
        max_output_tokens: tokens of one turn; None leaves it to the provider.
        max_parallel_tools: calls of one turn that run at the same time.
        max_call_depth: how deep tools may call tools.
        max_tool_output_chars: characters of one result that the model sees; the payload stays whole.
        tool_timeout_s: seconds for a tool that states no own timeout.
        repeat_warn, repeat_stop: identical calls after which the model is warned, and the run is ended (that call is
            not run).
        failure_warn, failure_stop: failures of one tool in a row for the same.
        max_retries: further attempts at one model call after a retryable provider error.
        max_output_repairs: further turns for an answer that does not fit the schema asked for; on top of ``max_steps``.
        retry_min_s, retry_max_s: first and longest wait between attempts; ``Retry-After`` goes before both.
        final_seconds: seconds for the final answer once ``max_seconds`` have passed.
        request_timeout_s: seconds one model call may take when there is no ``max_seconds``; in the service tier "flex" at
            least ``toolloop.service.FLEX_SECONDS``.
    """

    max_steps: int = 25
    max_tool_calls: int | None = 50
    max_tokens: int | None = None
    max_seconds: float | None = 300.0
    max_cost_usd: float | None = None
    max_output_tokens: int | None = None
    max_parallel_tools: int = 10
    max_tool_output_chars: int = 40_000
    tool_timeout_s: float = 60.0
    repeat_warn: int = 3
    repeat_stop: int = 5
    failure_warn: int = 3
    failure_stop: int = 6
    max_retries: int = 3
    retry_min_s: float = 0.5
    retry_max_s: float = 30.0
    final_seconds: float = 30.0
    request_timeout_s: float = 600.0
    max_call_depth: int = 8
    max_output_repairs: int = 2
    max_requests: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_parallel_tools", "max_tool_output_chars", "repeat_stop", "failure_stop"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"Limits.{name} must be at least 1")
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigurationError(f"Limits.{name} must not be negative, got {value}")

    @property
    def total_seconds(self) -> float | None:
        """Longest wall time of one attempt, the final answer included; a queue's timeout must lie above it."""
        return None if self.max_seconds is None else self.max_seconds + self.final_seconds
