"""The job that makes the vectors of a workspace's tools, in batches, and removes those that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from django.db import transaction

from apps.collections.index.embedding import embedder_local
from apps.tools.models import ToolEntry, ToolVector
from apps.tools.toolset.bundles import bundle_list
from apps.tools.toolset.tenant_bundles import tenant_bundles
from apps.tools.toolset.vectors import text_digest, tool_text, vectors_store
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from toolloop.tools import Tool

BATCH = 64  # texts a commit


class VectorContext(Protocol):
    """What the job needs of ``jobs.context.JobContext``."""

    tenant_id: int

    def check(self) -> None:
        """Raise when the job must stop."""

    def give_way(self) -> None:
        """Raise between two commits when somebody else has the next turn."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""


def vectors_make(ctx: VectorContext) -> None:
    """Embed what has no vector yet; safe to run again after a crash, and with nothing to do it only reads.

    Raises:
        EmbeddingError: this server's embedder cannot be used.
    """
    tenant = Tenant.objects.get(pk=ctx.tenant_id)
    embedder = embedder_local(tenant=tenant)
    texts = {tool_text(tool) for tool in tools_stated(system_actor(tenant.pk))}
    wanted = {text_digest(embedder, text): text for text in sorted(texts)}
    rows = ToolVector.objects.filter(tenant=tenant)
    present = {bytes(digest) for digest in rows.values_list("digest", flat=True)}
    missing = [digest for digest in wanted if digest not in present]
    for start in range(0, len(missing), BATCH):
        ctx.check()
        batch = missing[start : start + BATCH]
        vectors = embedder.embed_documents([wanted[digest] for digest in batch])
        with transaction.atomic():
            ctx.hold()
            vectors_store(tenant, batch, vectors)
            ctx.advanced()
        ctx.give_way()
    # Of another embedder too: whoever goes back to it has them made again.
    if unused := present - set(wanted):
        rows.filter(digest__in=unused).delete()


def tools_stated(actor: Actor) -> Iterator[Tool]:
    """Yield all tools of a workspace as models read them: with the description that the workspace has given one."""
    stated = dict(
        ToolEntry.objects.visible_to(actor).exclude(description="").values_list("name", "description")
    )
    for bundle in (*bundle_list(), *tenant_bundles(actor=actor)):
        for tool in bundle.tools():
            own = stated.get(tool.name)
            yield tool if own is None else replace(tool, description=own)
