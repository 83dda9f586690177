"""Files that tools return, as a run goes on with them: what its model takes is shown to it, of the rest it is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from toolloop.media import Media
from toolloop.media_types import NAMES
from toolloop.messages import ToolCall, ToolResult
from toolloop.providers.profiles import Profile
from toolloop.providers.registry import takes_media

Keep = Callable[[int, ToolCall, Sequence[Media]], Awaitable[str]]
"""Keeps the files of a call of a step for people; returns what the model is told about that."""


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """What becomes of the files in results.

    Attributes:
        provider: name of the model's.
        keep: see ``Keep``; None where nobody looks at the run.
    """

    provider: str
    profile: Profile
    keep: Keep | None = None

    async def shown(self, step: int, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return a result with the files that the model takes, and with words about the others."""
        if not result.parts or result.is_error:
            return result
        told = [] if self.keep is None else [await self.keep(step, call, result.parts)]
        taken = tuple(
            part for part in result.parts if takes_media(self.provider, part.media_type, self.profile)
        )
        if left := len(result.parts) - len(taken):
            kinds = ", ".join(sorted({NAMES[p.kind] for p in result.parts if p not in taken}))
            told.append(
                f"[{left} of its files ({kinds}) can't be shown to you: this model doesn't take them.]"
            )
        content = "\n".join(filter(None, [result.content, *told]))
        return replace(result, content=content, parts=taken)
