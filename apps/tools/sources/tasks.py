"""The job that reads a source of tools."""

from __future__ import annotations

from apps.tools.connectors.base import kind_get
from apps.tools.models import ToolSource
from apps.tools.sources.services import JOB_KIND
from apps.tools.sources.versions import source_failed, versions_store
from basics.errors import Conflict
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from tenancy.actors import system_actor

_READS = 3


def source_read_ended(ended: Job) -> None:
    """Say at a source why it could not be read."""
    source_failed(tenant=ended.tenant, pk=int(ended.payload["source_id"]), problem=ended.error_message)


@job(JOB_KIND, lane="loop", max_attempts=2, on_end=source_read_ended)
async def source_read(ctx: JobContext, *, source_id: int, accept_all: int) -> None:
    """Read a source and store what changed; again when it was edited while it was read.

    Raises:
        SourceError, Invalid: it cannot be read; the source says why.
    """
    for _attempt in range(_READS):
        ctx.check()
        source = await ctx.in_db(_source_of, source_id)
        if source is None or await ctx.blocking(lambda row=source: _read(ctx, row, bool(accept_all))):  # type: ignore[misc]
            return
    raise Conflict("source_busy", _("The source kept changing while it was being read. Refresh it."))


def _source_of(pk: int) -> ToolSource | None:
    found: ToolSource | None = ToolSource.objects.select_related("tenant").filter(pk=pk).first()
    return found


def _read(ctx: JobContext, source: ToolSource, accept_all: bool) -> bool:
    """Read once, outside of transactions; tells whether it was stored."""
    found = kind_get(source.kind).read(source)
    ctx.check()
    actor = system_actor(ctx.tenant_id, ctx.user_id)
    stored = versions_store(
        tenant=source.tenant, actor=actor, read=source, found=found, accept_all=accept_all
    )
    return stored is not None
