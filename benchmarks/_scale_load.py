"""The data of search_scale.py: texts with the word frequencies of language, vectors in clusters, loaded in bulk."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from django.db import transaction
from django.utils import timezone

from apps.collections.collection import services
from apps.collections.index import terms
from apps.collections.index.spaces import vectors_write
from apps.collections.ingestion.types import ChunkDraft
from apps.collections.models import Chunk, Collection, Document, Stage
from apps.collections.storage.rows import chunks_write
from tenancy.actors import system_actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope

SLUG = "benchmark-scale"
TENANTS, COLLECTIONS, CHUNKS, PER_DOCUMENT, DIMENSIONS = 50, 500, 200_000, 1_000, 384
POOL = 20_000  # distinct texts and token lists; chunks repeat them, their vectors are all different
CENTRES = 400


def sizes() -> list[int]:
    """Return the sizes of the collections, largest first: 200,000 chunks in 500."""
    found = [60_000, 10_000, 10_000, 10_000, *[2_000] * 16]
    rest = COLLECTIONS - len(found)
    weights = 1 / np.arange(1, rest + 1) ** 0.6
    small = np.maximum(10, (weights / weights.sum() * (CHUNKS - sum(found))).astype(int))
    small[0] += CHUNKS - sum(found) - int(small.sum())
    return [*found, *map(int, small)]


class Words:
    """Texts with the word frequencies of natural language."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._words = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) + "o" for i in range(30_000)]

    def draw(self, count: int) -> list[str]:
        last = len(self._words) - 1
        return [self._words[min(int(z), last)] for z in self._rng.zipf(1.25, count)]

    def text(self) -> str:
        code = f"{self._rng.integers(1000, 9999)}.{self._rng.integers(10, 99)}.{self._rng.integers(10, 99)}"
        return " ".join([*self.draw(84), code])[:510]

    def question(self) -> str:
        return " ".join(self.draw(8))


def vectors(rng: np.random.Generator, centres: np.ndarray, count: int) -> np.ndarray:
    """Return unit vectors in clusters, as embeddings of real collections are."""
    found = centres[rng.integers(0, CENTRES, count)] + 0.9 * rng.normal(size=(count, DIMENSIONS))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def load(rng: np.random.Generator, words: Words) -> dict[str, float]:
    """Fill the tenants; return how fast chunks went in, by what is counted."""
    texts = [words.text() for _ in range(POOL)]
    tokens = [terms.chunk_tokenise(0, text) for text in texts]
    centres = rng.normal(size=(CENTRES, DIMENSIONS))
    seconds = {"chunks": 0.0, "vectors": 0.0, "terms": 0.0}
    for number, size in enumerate(sizes()):
        with platform_scope():
            tenant, _ = Tenant.objects.get_or_create(
                slug=f"{SLUG}-{number % TENANTS}", defaults={"name": f"Scale {number % TENANTS}"}
            )
        with tenant_scope(tenant.pk):
            actor = system_actor(tenant.pk)
            collection = services.collection_create(tenant=tenant, actor=actor, name=f"Collection {number}")
            for start in range(0, size, PER_DOCUMENT):
                count = min(PER_DOCUMENT, size - start)
                made = vectors(rng, centres, count)
                picked = [int(i) for i in rng.integers(0, POOL, count)]
                _document_load(collection, f"{number}-{start}", made, picked, texts, tokens, seconds)
    return {name: round(CHUNKS / taken) for name, taken in seconds.items()} | {
        "chunks_and_vectors": round(CHUNKS / (seconds["chunks"] + seconds["vectors"])),
        "everything": round(CHUNKS / sum(seconds.values())),
    }


def _document_load(
    collection: Collection,
    name: str,
    made: np.ndarray,
    picked: list[int],
    texts: list[str],
    tokens: list[terms.ChunkTokens],
    seconds: dict[str, float],
) -> None:
    drafts = [ChunkDraft(i, texts[p], 0, len(texts[p]), 1, 1) for i, p in enumerate(picked)]
    document = Document.objects.create(
        tenant_id=collection.tenant_id,
        collection=collection,
        name=name,
        path=name,
        live_from=timezone.now(),
        media_type="text/plain",
        size=0,
        is_paged=False,
        sha256=name.rjust(64, "0"),
        file="none",
        status="ready",
        stage=Stage.INDEX,
        chunk_count=len(drafts),
        vector_count=len(drafts),
        lexical_count=len(drafts),
    )
    with transaction.atomic():
        began = time.perf_counter()
        chunks_write(document, drafts)
        seconds["chunks"] += time.perf_counter() - began
        pks = list(Chunk.objects.filter(document=document).order_by("index").values_list("pk", flat=True))
        began = time.perf_counter()
        vectors_write(
            tenant_id=collection.tenant_id,
            collection_id=collection.pk,
            space_id=collection.space_id,
            chunk_ids=pks,
            document_ids=[document.pk] * len(pks),
            vectors=made,
        )
        seconds["vectors"] += time.perf_counter() - began
        locked = Collection.objects.select_for_update().get(pk=collection.pk)
        given = [replace(tokens[p], chunk_id=pk) for p, pk in zip(picked, pks, strict=True)]
        began = time.perf_counter()
        terms.document_index(collection=locked, document_id=document.pk, chunks=given)
        seconds["terms"] += time.perf_counter() - began
