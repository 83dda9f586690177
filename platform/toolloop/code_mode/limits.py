"""What one program may use: a single frozen value, enforced by the worker and by the host."""

from __future__ import annotations

from dataclasses import dataclass

from toolloop.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """Limits of one program.

    Attributes:
        code_bytes: length of the source.
        run_s: seconds of computing in total; time in which tools are waited for does not count.
        turn_s: seconds of computing between two tool calls.
        memory_bytes: heap of the program.
        recursion_depth: nested function calls.
        tool_calls: calls a program may make; a run's own ``Limits.max_tool_calls`` holds besides.
        parallel: calls at the same time; ``Limits.max_parallel_tools`` holds besides.
        wall_s: seconds in total, tools included; time paused for an approval does not count.
        sleep_s: seconds of ``time.sleep`` and ``asyncio.sleep`` together.
        output_chars: characters of printed text that are kept. A program that prints far more is ended.
        model_chars: characters of the whole result that a model reads.
        result_bytes: size of one tool result, and of the arguments of one call.
        value_nodes: objects in one value that leaves the program: arguments of a call, or the last value.
    """

    code_bytes: int = 32_768
    run_s: float = 5.0
    turn_s: float = 2.0
    memory_bytes: int = 64 * 1024 * 1024
    recursion_depth: int = 1000
    tool_calls: int = 50
    parallel: int = 8
    wall_s: float = 120.0
    sleep_s: float = 5.0
    output_chars: int = 64_000
    model_chars: int = 20_000
    result_bytes: int = 1_000_000
    value_nodes: int = 20_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"CodeLimits.{name} must be above 0, got {getattr(self, name)}")

    @property
    def suspensions(self) -> int:
        """Times a program may wait for the host: calls, and look-ups of tool names."""
        return 2 * self.tool_calls + 200

    @property
    def output_stop(self) -> int:
        """Characters of output after which the program is ended instead of being cut."""
        return max(20 * self.output_chars, 1_000_000)
