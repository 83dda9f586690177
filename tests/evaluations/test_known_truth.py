"""A retrieval experiment measures what search measures: on the full set see ``benchmarks/scifact_experiment.py``."""

from __future__ import annotations

import math

import pytest
from asgiref.sync import sync_to_async

from apps.collections.models import Chunk
from apps.collections.search import search_run
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from apps.evaluations.results.selectors import arm_scores
from tenancy.scope import tenant_scope
from tests.collections.conftest import (  # noqa: F401 - fixtures
    LAMPS,
    collection,
    embedder,
    ingest,
    storage,
)
from tests.evaluations.support import make_experiment, make_version, work_off

ASKED = {
    "Which pumps come from Brazil?": "Pumps for liquids",
    "What is the duty on LED lamps?": "LED lamps of heading",
    "How is the value of wine told?": "Sparkling wine",
}
WINE = b"# Wine\n\nSparkling wine of heading 2204.10.00 pays by the litre, and the price does not matter.\n"


@pytest.mark.django_db(transaction=True)
async def test_an_experiment_measures_what_search_measures(cast, collection, lane_threads):  # noqa: F811
    def prepare():
        with tenant_scope(cast.tenant.pk):
            ingest(cast, collection, "lamps.md", LAMPS)
            ingest(cast, collection, "wine.md", WINE)
            rows, expected = [], []
            for question, words in ASKED.items():
                chunk = Chunk.objects.select_related("document").get(text__contains=words)
                source = RecordSource(
                    chunk.document.name,
                    chunk.text,
                    document_id=chunk.document_id,
                    start=chunk.char_start,
                    end=chunk.char_end,
                )
                rows.append(Record(question=question, sources=(source,)))
                hits = search_run(
                    tenant=cast.tenant,
                    actor=cast.actor("member"),
                    collections=[collection],
                    query=question,
                    k=10,
                ).hits
                ranks = [n for n, hit in enumerate(hits) if hit.chunk_id == chunk.pk]
                expected.append(1 / math.log2(ranks[0] + 2) if ranks else 0.0)
        version = make_version(cast, rows)
        target = {"kind": "retriever", "k": 10, "collections": [collection.pk]}
        scorer = {"kind": "retrieval", "options": {"k": 10}}
        return make_experiment(cast, version, target, scorers=[scorer]), expected

    experiment, expected = await sync_to_async(prepare)()
    await work_off(experiment, lane_threads)

    def measured() -> list[float]:
        with tenant_scope(cast.tenant.pk):
            arm = experiment.arms.get()
            found = arm_scores(actor=cast.actor("member"), arm=arm).values["ndcg@10"]
            return list(found.values)

    assert await sync_to_async(measured)() == pytest.approx(expected)
    assert max(expected) == 1
