"""Files that tools return, as a run goes on with them: what its model takes is shown to it, of the rest it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolloop.media import Media
from toolloop.media_types import NAMES
from toolloop.messages import ToolCall, ToolResult
from toolloop.providers.profiles import Profile
from toolloop.providers.registry import takes_media


class FileKeeper(Protocol):
    """Keeps the files that tools of a run return, for people to see."""

    async def keep(self, step: int, call: ToolCall, files: Sequence[Media]) -> str:
        """Keep the files of a call of a step; returns what the model is told about that."""
        ...

    def kept(self) -> Mapping[tuple[int, str], Sequence[Media]]:
        """Return what earlier attempts at the run have kept, by ``runs.journal.call_key``; in a database thread."""
        ...


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """What becomes of the files in results.

    Attributes:
        provider: name of the model's.
        keeper: None where nobody looks at the run.
        kept: what earlier attempts have kept and the model takes; it is shown these again.
    """

    provider: str
    profile: Profile
    keeper: FileKeeper | None = None
    kept: Mapping[tuple[int, str], Sequence[Media]] = field(default_factory=dict)

    def again(self) -> ResultFiles:
        """Return the same for an attempt after the first: the journal's rows hold no files. In a database thread."""
        if self.keeper is None:
            return self
        kept = {key: self._taken(files) for key, files in self.keeper.kept().items()}
        return replace(self, kept=kept)

    async def shown(self, step: int, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return a result with the files that the model takes, and with words about the others."""
        if not result.parts or result.is_error:
            return result
        told = [] if self.keeper is None else [await self.keeper.keep(step, call, result.parts)]
        taken = self._taken(result.parts)
        if left := len(result.parts) - len(taken):
            kinds = ", ".join(sorted({NAMES[p.kind] for p in result.parts if p not in taken}))
            told.append(
                f"[{left} of its files ({kinds}) can't be shown to you: this model doesn't take them.]"
            )
        content = "\n".join(filter(None, [result.content, *told]))
        return replace(result, content=content, parts=taken)

    def _taken(self, files: Sequence[Media]) -> tuple[Media, ...]:
        return tuple(file for file in files if takes_media(self.provider, file.media_type, self.profile))
