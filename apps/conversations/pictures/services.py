"""Keep the pictures that tools return in a conversation."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from apps.conversations.models import Picture
from basics.pictures import CleanPicture, PictureRefused, PixelBudget, picture_clean
from jobs.context import JobContext
from runs.journal import call_key
from runs.models import Run
from toolloop.media import Media
from toolloop.messages import ToolCall
from toolloop.storable import text_storable

MOST_IN_A_CALL = 8
MOST_IN_A_RUN = 40
MOST_BYTES = 40_000_000
"""Bytes of all pictures of a run."""
_NAME = 200
_Made = tuple[int, Media, CleanPicture]


@dataclass(frozen=True, slots=True)
class PictureKeeper:
    """Keeps the pictures that tools of a run return (``runs.result_files.FileKeeper``); the job's lease fences it."""

    ctx: JobContext
    run: Run

    async def keep(self, step: int, call: ToolCall, files: Sequence[Media]) -> str:
        """See ``FileKeeper``."""
        pictures = [file for file in files if file.kind == "image" and file.data]
        if not pictures:
            return ""
        # Seconds of decoding hold up no run's journal, which is what the database threads are for.
        made, refused = await self.ctx.blocking(partial(_cleaned, pictures))
        said: str = await self.ctx.in_db(pictures_keep, self.ctx, self.run, step, call, made)
        return "\n".join(filter(None, [*refused, said]))

    def kept(self) -> Mapping[tuple[int, str], Sequence[Media]]:
        """See ``FileKeeper``."""
        found: dict[tuple[int, str], list[Media]] = defaultdict(list)
        rows = Picture.objects.filter(tenant_id=self.run.tenant_id, run_id=self.run.pk)
        for row in rows.order_by("step", "call_id", "index"):
            file = Media.from_bytes(bytes(row.content), row.media_type, row.name)
            found[row.step, row.call_id].append(file)
        return found


def pictures_forget(runs: Sequence[int]) -> None:
    """Remove the pictures of runs whose results of tools go, in the workspace's scope."""
    Picture.objects.filter(run_id__in=runs).delete()


def _cleaned(files: Sequence[Media]) -> tuple[list[_Made], list[str]]:
    """Return the pictures of a call written anew, each with its number, and what the model is told of the others."""
    lines: list[str] = []
    made: list[_Made] = []
    budget = PixelBudget()
    for number, file in enumerate(files[:MOST_IN_A_CALL], 1):
        try:
            made.append((number, file, picture_clean(base64.b64decode(file.data), budget)))
        except PictureRefused as refused:
            lines.append(f"[Picture {number} is not shown to the user. {refused}]")
    if more := len(files) - len(files[:MOST_IN_A_CALL]):
        lines.append(f"[{more} more: at most {MOST_IN_A_CALL} are shown of one call.]")
    return made, lines


def pictures_keep(ctx: JobContext, run: Run, step: int, call: ToolCall, made: Sequence[_Made]) -> str:
    """Keep pictures of a call, each once a run; returns what the model is told about them.

    One that the conversation has no room for is told about and left out.

    Args:
        made: number among those of the call, what the tool returned, and the picture as it is kept.

    Raises:
        LeaseLost: the job was taken over or ended; nothing was kept.
    """
    lines: list[str] = []
    with transaction.atomic():
        ctx.hold()
        rows = Picture.objects.filter(tenant_id=run.tenant_id, run_id=run.pk)
        there = list(rows.values_list("sha256", "size"))
        known, count, total = {sha256 for sha256, _ in there}, len(there), sum(size for _, size in there)
        for number, file, clean in made:
            sha256 = hashlib.sha256(clean.content).hexdigest()
            if sha256 not in known:
                count, total = count + 1, total + len(clean.content)
                if count > MOST_IN_A_RUN or total > MOST_BYTES:
                    lines.append(f"[Picture {number} is not shown to the user: this answer has too many.]")
                    continue
                known.add(sha256)
                key = call_key(step, call.id)[1]
                Picture.objects.update_or_create(
                    tenant_id=run.tenant_id,
                    run_id=run.pk,
                    step=step,
                    call_id=key,
                    index=number - 1,
                    defaults={
                        "name": text_storable(" ".join((file.name or call.name).split()))[:_NAME],
                        "media_type": clean.media_type,
                        "width": clean.width,
                        "height": clean.height,
                        "size": len(clean.content),
                        "sha256": sha256,
                        "content": clean.content,
                    },
                )
            lines.append(
                f"The user sees picture {number} above your answer. To put it at a certain place of your answer instead, write "
                f"a line ![what it shows](figure:{sha256[:8]}) there."
            )
    return "\n".join(lines)
