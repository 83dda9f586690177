"""A job makes rows end to end without a key: questions, answers by the loop, scores, sources, shortfall."""

from __future__ import annotations

from typing import Any

import pytest

from apps.datasets.generation import prompts
from apps.datasets.models import DatasetRow, GenerationState
from apps.datasets.records.columns import record_of
from apps.datasets.rows import selectors
from apps.datasets.versions.services import version_create, version_is_intact
from runs.models import Run, ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.datasets.support import drive, make_open_library, start

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_have_every_part_when_no_model_is_there(cast: Cast, found: Any) -> None:  # noqa: F811
    library = make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        job = drive(start(cast, library.collection, rows=5, types={"factual": 4, "unanswerable": 1}))
        assert job.state == GenerationState.COMPLETED, job.reason
        assert job.kept >= 3
        assert job.kept + sum(s["missing"] for s in job.shortfall) == 5
        rows = list(selectors.job_rows(actor=cast.actor("viewer"), job=job))
        row = next(row for row in rows if row.type == "factual")
        record = record_of(row)
        assert record.question.endswith("?")
        assert record.steps[0].action == "search_documents"
        texts = {chunk.pk: chunk.text for chunk in library.chunks}
        for source in record.sources:
            assert source.chunk_id is not None
            assert source.quote in texts[source.chunk_id]
        assert {s.name for s in record.scores} >= {"accuracy", "reasoning"}
        assert record.tags == ("rules",)
        assert row.run_id is not None
        run = Run.objects.get(pk=row.run_id)
        assert run.kind == "dataset"
        assert ToolCall.objects.filter(run=run).exists()
        assert DatasetRow.objects.filter(dataset=job.dataset).count() == job.kept
        actor = cast.actor("member")
        frozen = version_create(tenant=cast.tenant, actor=actor, dataset=job.dataset)
        assert version_is_intact(frozen)
        made = frozen.manifest["generations"]
        assert made == [
            {
                "job": job.pk,
                "rows": job.kept,
                "model": "extractive",
                "judge": "extractive",
                "prompts": prompts.VERSION,
                "corpus": job.manifest["corpus"],
            }
        ]
        assert frozen.manifest["corpus"] == job.manifest["corpus"], "nothing changed meanwhile"
        assert sum(frozen.manifest["counts"]["type"].values()) == job.kept
