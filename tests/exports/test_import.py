"""A workspace's file, imported, is the same workspace with other numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import JSONField

from apps.collections.models import Chunk, Document, FileBlob, Import, RepositoryPack
from apps.collections.storage.originals import file_key
from apps.conversations.models import Picture
from apps.datasets.models import DatasetCheck, DatasetExport, DatasetImport
from apps.datasets.rows.files import dataset_file_key, written_key
from apps.evaluations.models import Example
from exports.files import workspace_export
from exports.imports import workspace_import
from exports.moves import Moves, moves, staying
from runs.models import RunEvent
from tenancy.database.base import as_login_role
from tenancy.models import User
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.conversations.pictures.test_figures import png
from tests.erasure.conftest import rows_of
from tests.exports.moved import NEW, OLD, old_numbers, sequences_begin, sequences_set
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)


def files_name(side: Side) -> list[str]:
    """Give the rows that name files real ones; returns the keys."""
    tenant, keys = side.tenant, []
    with tenant_scope(tenant.pk):
        named: list[tuple[Any, str, str]] = [
            (row, column, f"{row._meta.model_name}-{column}")
            for row in (*Document.objects.all(), *Import.objects.all(), *RepositoryPack.objects.all())
            for column in (("file", "index") if isinstance(row, RepositoryPack) else ("file",))
        ]
        for row, column, words in named:
            sha256 = hashlib.sha256(words.encode()).hexdigest()
            home = row.repository if isinstance(row, RepositoryPack) else row
            key = file_key(tenant.pk, home.collection_id, sha256)
            if isinstance(row, Document):
                type(row).objects.filter(pk=row.pk).update(sha256=sha256)
            keys += _named(row, column, key, words)
        for row in DatasetExport.objects.all():
            keys += _named(row, "file", written_key(row, "export"), "rows")
        for row in DatasetImport.objects.all():
            key = dataset_file_key(tenant.pk, row.dataset_id, f"import-{uuid4().hex}")
            keys += _named(row, "file", key, "rows")
            keys += _named(row, "errors_file", written_key(row, "errors"), "errors")
        of_picture = {"media_type": "image/png", "width": 3, "height": 2}
        for model, content, also in ((FileBlob, b"earlier words", {}), (Picture, png(3, 2), of_picture)):
            model.objects.update(
                content=content, sha256=hashlib.sha256(content).hexdigest(), size=len(content), **also
            )
    return keys


def _named(row: Any, column: str, key: str, words: str) -> list[str]:
    path = Path(settings.MEDIA_ROOT) / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    type(row).objects.filter(pk=row.pk).update(**{column: key})
    return [key]


def people_forget() -> None:
    """Give everybody another address, as if the file came to a server where nobody is known."""
    for person in User.objects.all():
        User.objects.filter(pk=person.pk).update(email=f"was-{person.email}")


@pytest.fixture
def numbers(home: Path) -> Iterator[None]:
    """Old numbers until the test lets new ones begin."""
    before = sequences_begin(OLD)
    yield
    sequences_set(before)


JSON_OF_NO_ROW = {
    "collections.Collection.file_rules",
    "collections.SearchCase.expected",  # paths and places in texts
    "collections.SearchCase.filters",  # conditions, whose fields are keys that all columns know
    "conversations.AssistantVersion.options",  # settings of a mode
    "conversations.Conversation.tools_off",  # names
    "conversations.Message.unsupported",
    "datasets.DatasetExport.problems",
    "datasets.DatasetImport.problems",
    "datasets.DatasetRow.extra",
    "datasets.DatasetRow.scores",
    "datasets.DatasetRow.sources",  # keys that all columns know
    "datasets.DatasetRow.steps",
    "datasets.GenerationJob.actor",
    "datasets.GenerationJob.estimate",
    "datasets.GenerationJob.shortfall",
    "datasets.PaidCall.results",  # keys that all columns know
    "datasets.PaidCall.turn",
    "evaluations.AnnotationItem.gold",  # names of criteria
    "evaluations.Experiment.actor",
    "evaluations.Experiment.scorers",  # rubrics by name
    "evaluations.JudgeCalibration.curve",
    "evaluations.JudgeCheck.findings",
    "evaluations.RubricVersion.criteria",
    "evaluations.SamplingRule.actor",
    "evaluations.SamplingRule.scorers",
    "evaluations.Score.details",
    "runs.PendingDecision.arguments",  # arguments of tools: keys that all columns know
    "runs.PendingDecision.edited_arguments",
    "runs.PendingDecision.state",
    "runs.Run.background",
    "runs.Run.usage",
    "runs.RunStep.turn",
    "runs.ToolCall.arguments",
    "runs.ToolCall.arguments_masked",
    "runs.ToolCall.payload",
    "tenancy.ModelEntry.capabilities",
    "tenancy.ModelEntry.prices",
    "tools.ContractTest.arguments",
    "tools.ContractTest.expected",
    "tools.ToolEntry.tags",
    "tools.ToolGrant.arguments",
    "tools.ToolSource.allowed_hosts",
    "tools.ToolSource.settings",  # addresses and names
}
"""JSON columns without numbers of rows, or with those alone that ``exports.moves.KEYS`` names."""


def test_somebody_has_thought_of_every_json_column() -> None:
    """A new one is declared in ``AppConfig.moves``, or is added above by somebody who looked what it holds."""
    columns = {
        (model._meta.label, field.name)
        for model in tenant_models()
        if model._meta.label not in staying()
        for field in model._meta.concrete_fields
        if isinstance(field, JSONField)
    }
    declared = {(label, column) for label, column in columns if _is_declared(label, column)}
    assert {f"{label}.{column}" for label, column in columns - declared} == JSON_OF_NO_ROW


def _is_declared(label: str, column: str) -> bool:
    told = moves().get(label, Moves())
    return column in told.json or column in told.plain


def numbers_plant(side: Side) -> dict[str, int]:
    """Have JSON columns name rows in every form that programs write; returns the rows by label."""
    labels = (
        "collections.Chunk",
        "collections.Document",
        "datasets.Dataset",
        "datasets.DatasetRow",
        "datasets.DatasetCheck",
        "datasets.DatasetExport",
        "datasets.GenerationJob",
        "datasets.Acceptance",
        "evaluations.AnnotationItem",
        "evaluations.JudgeCheck",
        "evaluations.Trial",
        "collections.SearchCase",
    )
    rows = {label: side.row(label, "owner") for label in labels}
    pk = {label: row.pk for label, row in rows.items()}
    row, document = pk["datasets.DatasetRow"], pk["collections.Document"]
    pair = {"kind": "near", "kept": str(row), "dropped": str(row), "similarity": 0.9}
    written: dict[str, dict[str, Any]] = {
        "datasets.Dataset": {"options": {"against": [pk["datasets.Dataset"]]}},
        "datasets.DatasetCheck": {
            "options": {
                "rows": [row],
                "only": {"job": str(pk["datasets.GenerationJob"])},
                "undo": pk["datasets.DatasetCheck"],
            },
            "result": {
                "pairs": [pair],
                "overlaps": [
                    {"evaluated": str(row), "seen": str(row)},
                    {"evaluated": str(row), "seen": f"row {row} of Row 5 of {row}"},
                ],
                "rows_along": [{"row": str(row), "before": "test"}],
                "documents": [{"id": document, "collection_id": rows["collections.Document"].collection_id}],
            },
        },
        "datasets.DatasetExport": {
            "findings": [
                {
                    "row": str(row),
                    "fingerprint": "f",
                    "shown": f"Shares “row {row} pays” with training row {row}",
                },
                {
                    "row": str(row),
                    "fingerprint": "g",
                    "shown": f"Means the same as “duty” of row {row} of Duties",
                },
            ]
        },
        "datasets.Acceptance": {
            "kind": "contamination",
            "shown": f"Shares “row {row} pays” with row {row} of Duties",
        },
        "evaluations.Trial": {
            "outcome": {
                "retrieved": [{"chunk_id": pk["collections.Chunk"], "document_id": document}],
                "labels": [{"document_id": document, "chunks": [[pk["collections.Chunk"], 1]]}],
            }
        },
        "evaluations.JudgeCheck": {"levels": {str(pk["evaluations.AnnotationItem"]): {"quality": 3}}},
        "collections.SearchCase": {
            "filters": {"document_id": {"in": [document]}, "page": {"in": [document]}}
        },
    }
    with as_login_role():  # some are append-only for everybody else
        for label, values in written.items():
            type(rows[label])._base_manager.filter(pk=pk[label]).update(**values)
    return pk


def test_json_names_the_rows_that_came_with_it(home: Path, tmp_path: Path, numbers: None) -> None:
    side = Side()
    there = numbers_plant(side)
    files_name(side)
    workspace_export(side.tenant, tmp_path / "first.zip")
    people_forget()
    sequences_begin(NEW)
    made = workspace_import(tmp_path / "first.zip", slug="elsewhere")
    with platform_scope():

        def here(label: str) -> Any:
            return apps.get_model(label)._base_manager.get(tenant_id=made.tenant.pk)

        pk = {label: here(label).pk for label in there}
        dataset, check = here("datasets.Dataset"), here("datasets.DatasetCheck")
        trial, case = here("evaluations.Trial"), here("collections.SearchCase")
        row, document = pk["datasets.DatasetRow"], pk["collections.Document"]
        assert dataset.options["against"] == [dataset.pk]
        assert check.options == {
            "rows": [row],
            "only": {"job": str(pk["datasets.GenerationJob"])},
            "undo": check.pk,
        }
        assert check.result["pairs"][0]["kept"] == check.result["pairs"][0]["dropped"] == str(row)
        old = there["datasets.DatasetRow"]
        assert check.result["overlaps"] == [
            {"evaluated": str(row), "seen": str(row)},
            {"evaluated": str(row), "seen": f"row {row} of Row 5 of {old}"},
        ]
        assert check.result["rows_along"][0] == {"row": str(row), "before": "test"}
        assert check.result["documents"][0]["id"] == document
        assert [(one["row"], one["shown"]) for one in here("datasets.DatasetExport").findings] == [
            (str(row), f"Shares “row {old} pays” with training row {row}"),
            (str(row), f"Means the same as “duty” of row {row} of Duties"),
        ]
        assert here("datasets.Acceptance").shown == f"Shares “row {old} pays” with row {row} of Duties"
        assert trial.outcome["retrieved"][0] == {"chunk_id": pk["collections.Chunk"], "document_id": document}
        assert trial.outcome["labels"][0]["chunks"] == [[pk["collections.Chunk"], 1]]
        assert here("evaluations.JudgeCheck").levels == {
            str(pk["evaluations.AnnotationItem"]): {"quality": 3}
        }
        # What is no number of a row stays, even if it looks like one.
        assert case.filters == {
            "document_id": {"in": [document]},
            "page": {"in": [there["collections.Document"]]},
        }


def test_a_division_of_another_server_cannot_be_undone(home: Path, tmp_path: Path) -> None:
    """Its file has the numbers of the rows there, which may be those of other rows here."""
    side = Side()
    check = side.row("datasets.DatasetCheck", "owner")
    key = written_key(check, "splits")
    files_name(side)
    path = Path(settings.MEDIA_ROOT) / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1\ttrain\ttest\n")
    with platform_scope():
        DatasetCheck.objects.filter(pk=check.pk).update(kind="splits", options={"into": "test", "moves": key})
    workspace_export(side.tenant, tmp_path / "first.zip")
    made = workspace_import(tmp_path / "first.zip", slug="elsewhere")
    with platform_scope():
        assert DatasetCheck.objects.get(tenant=made.tenant).options == {"into": "test"}
    left = list((Path(settings.MEDIA_ROOT) / "datasets" / f"t{made.tenant.pk}").rglob("splits*"))
    assert left == []


def test_a_row_of_every_table_moves_or_stays_as_declared(home: Path, tmp_path: Path, numbers: None) -> None:
    side = Side()
    rows_of(side)
    keys = files_name(side)
    workspace_export(side.tenant, tmp_path / "first.zip")
    people_forget()
    sequences_begin(NEW)
    made = workspace_import(tmp_path / "first.zip", slug="elsewhere")
    assert "\n".join(old_numbers(made.tenant.pk)) == ""
    with platform_scope():
        for model in tenant_models():
            label = model._meta.label
            there = model._base_manager.filter(tenant_id=side.tenant.pk).count()
            here = model._base_manager.filter(tenant_id=made.tenant.pk).count()
            if label in staying():
                continue
            assert here == there - made.left.get(label, 0), label
        sample = Example.objects.get(tenant=made.tenant)
        assert (sample.step, bool(sample.error)) == ("failed", True)  # its job has stayed behind
    assert made.files == len(keys)


def test_a_marker_that_was_cut_while_it_was_streamed_names_the_same_passage(
    home: Path, tmp_path: Path, numbers: None
) -> None:
    side = Side()
    run, chunk = side.row("runs.Run", "owner"), side.row("collections.Chunk", "owner")
    files_name(side)
    mark = f"c{chunk.pk}"
    pieces = ["It is so [", mark, "], and so [" + mark[:4], mark[4:8], mark[8:] + f", {mark}] too", " [c5]."]
    with tenant_scope(side.tenant.pk):
        for seq, text in enumerate(pieces, 1):
            RunEvent.objects.create(
                tenant=side.tenant, run=run, seq=seq, kind="text", data={"step": 0, "text": text}
            )
    workspace_export(side.tenant, tmp_path / "first.zip")
    sequences_begin(NEW)
    made = workspace_import(tmp_path / "first.zip", slug="elsewhere")
    with tenant_scope(made.tenant.pk):
        here = f"c{Chunk.objects.get().pk}"
        told = [event.data["text"] for event in RunEvent.objects.order_by("seq")]
    assert "".join(told) == "".join(pieces).replace(mark, here)
    assert told[0] == f"It is so [{here}]"
    assert here != mark
