"""The job that makes the vectors of a workspace's tools, in batches, and removes those that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.db import transaction

from apps.collections.index.embedding import embedder_local
from apps.tools.models import ToolEntry, ToolVector
from apps.tools.toolset.bundles import bundle_list
from apps.tools.toolset.tenant_bundles import tenant_bundles
from apps.tools.toolset.vectors import JOB_KIND, text_digest, tool_text, vectors_store
from jobs.context import JobContext
from jobs.registry import job
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from toolloop.tools import Tool

BATCH = 64  # texts a commit


@job(JOB_KIND, lane="cpu", max_attempts=3)
def tool_vectors(ctx: JobContext) -> None:
    """Make the vectors that the workspace's tools lack, and remove those of texts that no tool has any more.

    Safe to run again after a crash; with nothing to do it only reads.

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
