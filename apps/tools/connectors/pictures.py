"""Pictures in the results of sources' tools: written anew before a model or a person sees them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

from basics.pictures import PictureRefused, PixelBudget, picture_clean
from toolloop.media import Media
from toolloop.tools import ToolOutput

_MOST = 20
"""Of one result; what a server sends beyond that costs no time here."""


async def pictures_cleaned(output: ToolOutput) -> ToolOutput:
    """Return a result with its pictures written anew; of those that aren't shown, the text says why."""
    if not output.parts:
        return output
    parts, refusals = await asyncio.to_thread(_cleaned, output.parts)
    return ToolOutput("\n".join([output.content, *refusals]), output.payload, tuple(parts))


def _cleaned(parts: Sequence[Media]) -> tuple[list[Media], list[str]]:
    made: list[Media] = []
    refusals: list[str] = []
    budget = PixelBudget()
    for number, part in enumerate(parts[:_MOST], 1):
        try:
            clean = picture_clean(base64.b64decode(part.data), budget)
        except PictureRefused as refused:
            refusals.append(f"[Picture {number} isn't shown. {refused}]")
        else:
            made.append(Media.from_bytes(clean.content, clean.media_type, part.name))
    if len(parts) > _MOST:
        refusals.append(
            f"[{len(parts) - _MOST} more pictures aren't shown: at most {_MOST} of one call are.]"
        )
    return made, refusals
