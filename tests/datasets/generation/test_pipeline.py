"""Command and REST make the same rows, and each row has every part; with rules, and with a model over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.collections.models import Document
from apps.datasets.models import DatasetRow, GenerationJob, GenerationState
from runs import remote_models
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.datasets.pipeline import by_command, exported, problems_of, start_by_rest
from tests.datasets.support import FakeModel, drive, make_open_library
from tests.fake_provider import running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]
NAME = "fake-pipeline"
SHARES = {"factual": 2.0, "how_to": 1.0, "unanswerable": 1.0, "adversarial": 1.0, "injected": 1.0}


@pytest.mark.parametrize("model", ["extractive", f"compatible/{NAME}"])
def test_command_and_rest_make_the_same_whole_rows(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    library = make_open_library(cast)
    remote_models._known.clear()
    shares = SHARES if model == "extractive" else {"factual": 1.0, "comparison": 1.0, "injected": 1.0}
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=library.document.pk).update(attributes={"license": "CC-BY-4.0"})
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", NAME)
        server.replies[NAME] = FakeModel()
        asked = ",".join(f"{name}={share}" for name, share in shares.items())
        rows = by_command(
            cast,
            "Tariff",
            tmp_path / "rows.jsonl",
            f"types={asked}",
            "rows=6",
            "concurrency=1",
            f"model={model}",
        )
        server.log.clear()  # The server counts its calls from here again, and names them by that.
        settings = {"collections": [library.collection.pk], "rows": 6, "types": shares, "concurrency": 1}
        job = drive(start_by_rest(cast, settings, model))
        assert job.state == GenerationState.COMPLETED, job.reason
        assert all(row["id"].isdecimal() for row in rows)
        own = {"id": "", "timestamp": ""}
        assert [{**row, **own} for row in exported(cast, job)] == [{**row, **own} for row in rows]
    assert len(rows) >= 3
    texts = {chunk.pk: chunk.text for chunk in library.chunks}
    assert {problem for row in rows for problem in problems_of(row, texts)} == set()
    assert {s["license"] for row in rows for s in row["sources"]} == {"CC-BY-4.0"}
    assert {row["language"] for row in rows} == {"en"}
    planted = [row for row in rows if row["type"] == "injected"]
    for row in planted:
        instruction = row["meta"]["planted"]
        assert any(instruction in step["observation"] for step in row["steps"])
        assert all(instruction not in source["quote"] for source in row["sources"])


def test_command_runs_twice_and_makes_nothing_twice(cast: Cast, tmp_path: Path) -> None:
    make_open_library(cast)
    out = tmp_path / "rows.jsonl"
    with pytest.raises(CommandError, match="Personas need a language model"):
        call_command(
            "dataset_generate", tenant=cast.tenant.slug, collection=["Tariff"], out=out, persona=["a broker"]
        )
    with tenant_scope(cast.tenant.pk):
        first = by_command(cast, "Tariff", out, "rows=3")
        out.unlink()
        assert by_command(cast, "Tariff", out, "rows=3") == first
        (job,) = GenerationJob.objects.all()
        assert DatasetRow.objects.count() == len(first) == job.kept > 0
        with pytest.raises(CommandError) as refused:
            by_command(cast, "Tariff", out, "rows=4")
        assert "--dataset tariff-questions" in str(refused.value)
        assert "--name" in str(refused.value)
        more = by_command(cast, "Tariff", out, "rows=3", "seed=9", f"dataset={job.dataset.slug}")
        assert DatasetRow.objects.count() == len(first) + len(more)
        GenerationJob.objects.filter(pk=job.pk).delete()
        GenerationJob.objects.update(state="paused", reason="The budget is used up.", options=job.options)
        with pytest.raises(CommandError, match=r"The budget is used up\.\n.*--resume"):
            by_command(cast, "Tariff", out, "rows=3")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"collection": ["Nowhere"]}, "There is no collection “Nowhere”"),
        ({"persona": ["a broker"]}, "Personas need a language model"),
        ({"language": "de"}, "questions are in English"),
        ({"language": "Klingon!"}, "language: Enter a language"),
        ({"types": "factual=often"}, "isn't a share"),
        ({"out": Path("/nowhere/at/all.jsonl")}, "folder that exists"),
        ({"collection": None, "resume": 999_999_999}, "generation job"),
    ],
    ids=["collection", "persona", "rules-language", "language", "share", "folder", "job"],
)
def test_command_says_what_is_wrong(cast: Cast, tmp_path: Path, options: dict[str, Any], told: str) -> None:
    make_open_library(cast)
    asked = {"collection": ["Tariff"], "out": tmp_path / "rows.jsonl", **options}
    with pytest.raises(CommandError) as refused:
        call_command(
            "dataset_generate",
            tenant=cast.tenant.slug,
            **{name: value for name, value in asked.items() if value is not None},
        )
    assert told in str(refused.value)
