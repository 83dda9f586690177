"""Search of a workspace's tools by meaning: their vectors come from the database, and a job makes those that are missing.

The embedder is one on this server always. Descriptions of tools and what a model looks for in them are never sent to a
service for this.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

import structlog

from apps.collections.embedders.base import Embedder, EmbeddingError
from apps.collections.index.embedding import embedder_local
from apps.tools.models import ToolVector
from jobs.services import job_enqueue
from tenancy.actors import system_actor
from tenancy.models import Tenant
from toolloop.tools import Tool
from toolloop.tools.meaning import embedded_text
from toolloop.tools.ranking import VectorIndex

log = structlog.get_logger(__name__)
JOB_KIND = "tools.vectors"
_KEPT = 10_000  # vectors a process holds: 8 MB of those of the built-in embedder
_QUESTION_CHARS = 2_000
_kept: OrderedDict[tuple[int, bytes], Any] = OrderedDict()
_asked: OrderedDict[tuple[int, bytes], None] = OrderedDict()
_lock = Lock()


def tool_text(tool: Tool) -> str:
    """Return what is embedded of a tool."""
    return embedded_text(
        tool.name, tool.description, category=tool.category, tags=tool.tags, schema=tool.parameters
    )


def tool_meaning(
    tenant: Tenant, tools: Iterable[Tool]
) -> tuple[Callable[[list[str]], list[Any]], Callable[[list[str]], list[Any]]] | None:
    """Return what ``Catalog`` needs to search tools by meaning; None where this server's embedder cannot be had.

    One query at most. Texts without a vector are put to work in the background, and are found by their words until then.
    """
    try:
        embedder = embedder_local(tenant=tenant)
    except EmbeddingError as error:
        log.warning("tools_by_words_alone", error=error.message)
        return None
    digests = {text: text_digest(embedder, text) for text in map(tool_text, tools)}
    found = vectors_known(tenant.pk, digests.values(), length=embedder.space.dims)
    missing = sorted(set(digests.values()) - set(found))
    if missing and _is_new(tenant.pk, missing):
        vectors_refresh(tenant)

    def known(texts: list[str]) -> list[Any]:
        return [found.get(digests.get(text, b"")) for text in texts]

    def embed(texts: list[str]) -> list[Any]:
        return [embedder.embed_query(text) for text in texts]

    return embed, known


def tools_likeness(tenant: Tenant, tools: Sequence[Tool], question: str) -> list[float | None] | None:
    """Return how like each tool is to a question, for ``Catalog.search``; None where words must decide alone (logged)."""
    found = tool_meaning(tenant, tools)
    if found is None:
        return None
    embed, known = found
    index = VectorIndex(known([tool_text(tool) for tool in tools]))
    if not index.has_any:
        return None
    try:
        return index.similarities(embed([question[:_QUESTION_CHARS]])[0])
    except EmbeddingError as error:
        log.warning("tools_by_words_alone", error=error.message)
        return None


def vectors_refresh(tenant: Tenant) -> None:
    """Have the vectors made that the workspace's tools lack, in the background; call it when tools have changed."""
    job_enqueue(tenant=tenant, actor=system_actor(tenant.pk), kind=JOB_KIND, payload={}, dedupe_key="all")


def vectors_known(tenant_id: int, digests: Iterable[bytes], *, length: int) -> dict[bytes, Any]:
    """Return the vectors that are there, from this process's memory or by one query; float16, shape (length,)."""
    import numpy as np

    wanted = set(digests)
    with _lock:
        found = {d: _kept[tenant_id, d] for d in wanted if (tenant_id, d) in _kept}
    if lacking := wanted - set(found):
        rows = ToolVector.objects.filter(tenant_id=tenant_id, digest__in=lacking)
        for digest, raw in rows.values_list("digest", "vector"):
            vector = np.frombuffer(bytes(raw), "<f2")
            if len(vector) == length:
                found[bytes(digest)] = vector
    with _lock:
        for digest, vector in found.items():
            _kept[tenant_id, digest] = vector
            _kept.move_to_end((tenant_id, digest))
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def vectors_store(tenant: Tenant, digests: Sequence[bytes], vectors: Any) -> None:
    """Keep vectors; one that somebody else has stored meanwhile stays. In the caller's transaction."""
    ToolVector.objects.bulk_create(
        [
            ToolVector(tenant=tenant, digest=digest, vector=vector.astype("<f2").tobytes())
            for digest, vector in zip(digests, vectors, strict=True)
        ],
        ignore_conflicts=True,
    )


def text_digest(embedder: Embedder, text: str) -> bytes:
    """Return the name under which the vector of a text is kept."""
    return hashlib.sha256(f"{embedder.space.key}\0{text}".encode()).digest()


def _is_new(tenant_id: int, missing: Sequence[bytes]) -> bool:
    """Tell whether this process has not asked for these yet: what no job can make must not start one with every run."""
    key = (tenant_id, hashlib.sha256(b"".join(missing)).digest())
    with _lock:
        if key in _asked:
            return False
        _asked[key] = None
        while len(_asked) > _KEPT:
            _asked.popitem(last=False)
    return True
