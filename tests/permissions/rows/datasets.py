"""The permission rows of datasets and their generation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.datasets.curation.dividing import Move, moves_keep
from apps.datasets.records.columns import record_columns
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from apps.datasets.rows.files import dataset_file_key
from jobs.models import Job
from tenancy.scope import platform_scope
from tests.permissions.rows.common import Row, pk_of, send, turn_answered, uploaded_file
from tests.permissions.world import Side

DATASET = {"pk": "datasets.Dataset"}
DATASET_ROW = {"pk": "datasets.Dataset", "row_pk": "datasets.DatasetRow"}
EXPORT_PAGE = {"pk": "datasets.Dataset", "export_pk": "datasets.DatasetExport"}
IMPORT_PAGE = {"pk": "datasets.Dataset", "import_pk": "datasets.DatasetImport"}
CHECK_PAGE = {"pk": "datasets.Dataset", "check_pk": "datasets.DatasetCheck"}
GENERATION = {"pk": "datasets.GenerationJob"}
GENERATION_PAGE = {"pk": "datasets.Dataset", "job_pk": "datasets.GenerationJob"}


def _generating(state: str) -> Callable[[Side, str], None]:
    """Return what puts the generation job into a state."""

    def set_state(side: Side, role: str) -> None:
        row = side.row("datasets.GenerationJob", role)
        row.state, row.options = state, {"collections": []}
        with platform_scope():
            row.save(update_fields=["state", "options"])

    return set_state


def _has_row(side: Side, role: str) -> None:
    row = side.row("datasets.DatasetRow", role)
    record = Record(row.question, "Because.", sources=(RecordSource("a.pdf", "Because."),))
    for name, value in record_columns(record).items():
        setattr(row, name, value)
    with platform_scope():
        row.save()


def _work_of_the_dataset(label: str, **facts: Any) -> Callable[[Side, str], None]:
    """The work is done, has its file, and is of a version that has a row."""

    def change(side: Side, role: str) -> None:
        _has_row(side, role)
        row = side.row(label, role)
        key = dataset_file_key(side.tenant.pk, row.dataset_id, "file")
        path = Path(settings.MEDIA_ROOT) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        for name, value in facts.items():
            setattr(row, name, key if value is _FILE else value)
        with platform_scope():
            row.save()

    return change


_FILE = object()
_EXPORTED = _work_of_the_dataset(
    "datasets.DatasetExport",
    status="completed",
    format="jsonl",
    file=_FILE,
    findings=[{"fingerprint": "0" * 64, "kind": "email", "row": "1", "field": "answer", "shown": "ja…om"}],
)


def _under_way(label: str) -> Callable[[Side, str], None]:
    """Return what makes the work wait for a worker, with the job that does it."""
    make = _work_of_the_dataset(label, status="queued")

    def prepare(side: Side, role: str) -> None:
        make(side, role)
        row = side.row(label, role)
        with platform_scope():
            row.job = Job.objects.create(
                tenant=side.tenant, kind="datasets.check_run", payload={"pk": row.pk}
            )
            row.save(update_fields=["job"])

    return prepare


_IMPORTED = _work_of_the_dataset(
    "datasets.DatasetImport", status="completed", format="jsonl", errors_file=_FILE, problems=[]
)


def _divided(**facts: Any) -> Callable[[Side, str], None]:
    """Return what makes the check a division into splits that can be taken back."""
    make = _work_of_the_dataset("datasets.DatasetCheck", kind="splits", status="completed", **facts)

    def prepare(side: Side, role: str) -> None:
        make(side, role)
        row = side.row("datasets.DatasetCheck", role)
        with platform_scope():
            row.refresh_from_db()
            moves_keep(row, [Move("1", "", "test")], hold=lambda: None)

    return prepare


def _row_ids(side: Side, role: str) -> list[int]:
    return [side.row("datasets.DatasetRow", role).pk]


def _turn_ids(side: Side, role: str) -> list[int]:
    return [side.row("conversations.Turn", role).pk]


def _feedback_ids(side: Side, role: str) -> list[int]:
    return [side.row("conversations.Feedback", role).pk]


def _content_hash(side: Side, role: str) -> str:
    found: str = side.row("datasets.DatasetRow", role).content_hash
    return found


def _number(side: Side, role: str) -> int:
    number: int = side.row("datasets.DatasetVersion", role).number
    return number


def _askable(side: Side, role: str) -> None:
    """Let everybody see the document, and make its passage long enough to be asked about."""
    chunk = side.row("collections.Chunk", role)
    chunk.text = "The duty on lamps of heading 8539 is four percent of their value at import. " * 4
    document = side.row("collections.Document", role)
    document.live_from = timezone.now()
    with platform_scope():
        chunk.save(update_fields=["text"])
        document.save(update_fields=["live_from"])


def _asked_about(side: Side, role: str) -> dict[str, Any]:
    return {"collections": [side.row("collections.Collection", role).pk], "rows": 1, "types": {"factual": 1}}


PORTAL: tuple[Row, ...] = (
    Row("datasets:list", action="dataset.read"),
    Row("datasets:list", "POST", "dataset.write", data=send(name="Duties"), ok=302),
    Row("datasets:detail", "GET", "dataset.read", DATASET),
    Row("datasets:row", "GET", "dataset.read", DATASET_ROW, before=_has_row),
    Row("datasets:review", "GET", "dataset.read", DATASET, before=_has_row),
    Row(
        "datasets:row-review",
        "POST",
        "dataset.write",
        DATASET_ROW,
        data=send(verdict="approve", content_hash=_content_hash),
        before=_has_row,
        ok=302,
    ),
    Row(
        "datasets:row-edit",
        "POST",
        "dataset.write",
        DATASET_ROW,
        data=send(question="Why so?", answer="So."),
        before=_has_row,
        ok=302,
    ),
    Row("datasets:exports", "GET", "dataset.write", DATASET),
    Row(
        "datasets:exports", "POST", "dataset.write", DATASET, data=send(form="jsonl", version=_number), ok=302
    ),
    Row("datasets:export", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED),
    Row(
        "datasets:export",
        "POST",
        "dataset.write",
        EXPORT_PAGE,
        data=send(finding="0" * 64, note="Public."),
        before=_EXPORTED,
        ok=302,
    ),
    Row("datasets:export-stream", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED, is_stream=True),
    Row(
        "datasets:export-stop",
        "POST",
        "dataset.write",
        EXPORT_PAGE,
        before=_under_way("datasets.DatasetExport"),
        ok=302,
    ),
    Row("datasets:export-file", "GET", "dataset.write", EXPORT_PAGE, before=_EXPORTED),
    Row("datasets:imports", "GET", "dataset.write", DATASET),
    Row(
        "datasets:imports",
        "POST",
        "dataset.write",
        DATASET,
        data=send(form="jsonl", file=uploaded_file),
        ok=302,
    ),
    Row("datasets:import", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED),
    Row("datasets:import-stream", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED, is_stream=True),
    Row(
        "datasets:import-stop",
        "POST",
        "dataset.write",
        IMPORT_PAGE,
        before=_under_way("datasets.DatasetImport"),
        ok=302,
    ),
    Row("datasets:import-errors", "GET", "dataset.write", IMPORT_PAGE, before=_IMPORTED),
    Row("datasets:checks", "GET", "dataset.write", DATASET),
    Row("datasets:checks-stream", "GET", "dataset.write", DATASET, is_stream=True),
    Row("datasets:checks", "POST", "dataset.write", DATASET, data=send(kind="secrets"), ok=302),
    Row(
        "datasets:split-apply",
        "POST",
        "dataset.write",
        CHECK_PAGE,
        before=_divided(options={"is_trial": True, "into": "test", "rows": [1]}),
        ok=302,
    ),
    Row("datasets:split-undo", "POST", "dataset.write", CHECK_PAGE, before=_divided(), ok=302),
    Row(
        "datasets:check-stop",
        "POST",
        "dataset.write",
        CHECK_PAGE,
        before=_under_way("datasets.DatasetCheck"),
        ok=302,
    ),
    Row("datasets:diff", "GET", "dataset.read", DATASET, {"older": _number, "newer": _number}),
    Row("datasets:generate", "GET", "dataset.write", DATASET),
    Row("datasets:generate", "POST", "dataset.write", DATASET, data=send(rows=1), ok=422),
    Row("datasets:from-collection", "GET", "dataset.write", {"pk": "collections.Collection"}),
    Row(
        "datasets:from-collection",
        "POST",
        "dataset.write",
        {"pk": "collections.Collection"},
        data=send(rows=1),
        ok=422,
    ),
    Row("datasets:versions", "GET", "dataset.read", DATASET),
    Row("datasets:versions", "POST", "dataset.write", DATASET, ok=302),
    Row("datasets:version", "GET", "dataset.read", DATASET, {"number": _number}),
    Row(
        "datasets:rows-settle",
        "POST",
        "dataset.write",
        DATASET,
        data=send(row=_row_ids, act="train"),
        before=_has_row,
        ok=302,
    ),
    Row(
        "datasets:rows-split",
        "POST",
        "dataset.write",
        DATASET,
        data=send(into="test", status="draft"),
        before=_has_row,
        ok=302,
    ),
    Row("datasets:sources", "GET", "dataset.read", DATASET, before=_has_row),
    Row(
        "datasets:sources",
        "POST",
        "dataset.write",
        DATASET,
        data=send(document="a.pdf", license="MIT"),
        before=_has_row,
        ok=302,
    ),
    Row("datasets:from-feedback", "GET", "dataset.write"),
    Row("datasets:from-feedback", "POST", "dataset.write", data=send(pick=_feedback_ids), ok=302),
    Row(
        "datasets:from-conversation",
        "GET",
        "dataset.write",
        {"conversation_pk": "conversations.Conversation"},
        before=turn_answered,
    ),
    Row(
        "datasets:from-conversation",
        "POST",
        "dataset.write",
        {"conversation_pk": "conversations.Conversation"},
        data=send(pick=_turn_ids),
        before=turn_answered,
        ok=302,
    ),
    Row("datasets:job", "GET", "dataset.read", GENERATION_PAGE, before=_generating("running")),
    Row(
        "datasets:job-stream",
        "GET",
        "dataset.read",
        GENERATION_PAGE,
        before=_generating("completed"),
        is_stream=True,
    ),
    Row(
        "datasets:job-pause", "POST", "dataset.write", GENERATION_PAGE, before=_generating("running"), ok=302
    ),
    Row(
        "datasets:job-resume", "POST", "dataset.write", GENERATION_PAGE, before=_generating("paused"), ok=302
    ),
    Row("datasets:job-stop", "POST", "dataset.write", GENERATION_PAGE, before=_generating("running"), ok=302),
)


API: tuple[Row, ...] = (
    Row("api:datasets-list", "GET", "dataset.read"),
    Row(
        "api:datasets-list", "POST", "dataset.write", data=send(name="Rates"), ok=201, also=("dataset.read",)
    ),
    Row("api:datasets-detail", "GET", "dataset.read", DATASET),
    Row(
        "api:datasets-detail",
        "PATCH",
        "dataset.write",
        DATASET,
        data=send(description="New"),
        also=("dataset.read",),
    ),
    Row(
        "api:datasets-detail",
        "DELETE",
        "dataset.delete",
        DATASET,
        before=_generating("completed"),
        ok=204,
        also=("dataset.read",),
    ),
    Row("api:dataset-rows-list", "GET", "dataset.read", DATASET, before=_has_row),
    Row("api:dataset-rows-detail", "GET", "dataset.read", DATASET_ROW, before=_has_row),
    Row(
        "api:dataset-rows-detail",
        "PATCH",
        "dataset.write",
        DATASET_ROW,
        data=send(question="Why?"),
        before=_has_row,
        also=("dataset.read",),
    ),
    Row("api:dataset-versions-list", "GET", "dataset.read", DATASET),
    Row(
        "api:dataset-versions-list",
        "POST",
        "dataset.write",
        DATASET,
        data=send(note="First"),
        before=_has_row,
        ok=201,
        also=("dataset.read",),
    ),
    Row("api:dataset-versions-detail", "GET", "dataset.read", DATASET, {"number": _number}),
    Row("api:dataset-exports-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row(
        "api:dataset-exports-list",
        "POST",
        "dataset.write",
        DATASET,
        data=send(form="jsonl", version=_number),
        ok=202,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-exports-detail",
        "GET",
        "dataset.write",
        {"pk": "datasets.DatasetExport"},
        before=_EXPORTED,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-exports-file",
        "GET",
        "dataset.write",
        {"pk": "datasets.DatasetExport"},
        before=_EXPORTED,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-exports-accept",
        "POST",
        "dataset.write",
        {"pk": "datasets.DatasetExport"},
        data=send(fingerprints=["0" * 64], note="Public."),
        before=_EXPORTED,
        also=("dataset.read",),
    ),
    Row("api:dataset-imports-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row(
        "api:dataset-imports-list",
        "POST",
        "dataset.write",
        DATASET,
        data=send(form="jsonl", file=uploaded_file),
        ok=202,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-imports-detail",
        "GET",
        "dataset.write",
        {"pk": "datasets.DatasetImport"},
        before=_IMPORTED,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-imports-errors",
        "GET",
        "dataset.write",
        {"pk": "datasets.DatasetImport"},
        before=_IMPORTED,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-exports-stop",
        "POST",
        "dataset.write",
        {"pk": "datasets.DatasetExport"},
        before=_under_way("datasets.DatasetExport"),
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-imports-stop",
        "POST",
        "dataset.write",
        {"pk": "datasets.DatasetImport"},
        before=_under_way("datasets.DatasetImport"),
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-checks-stop",
        "POST",
        "dataset.write",
        {"pk": "datasets.DatasetCheck"},
        before=_under_way("datasets.DatasetCheck"),
        also=("dataset.read",),
    ),
    Row("api:dataset-checks-list", "GET", "dataset.write", DATASET, also=("dataset.read",)),
    Row(
        "api:dataset-checks-list",
        "POST",
        "dataset.write",
        DATASET,
        data=send(kind="secrets"),
        ok=202,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-checks-detail",
        "GET",
        "dataset.write",
        {"pk": "datasets.DatasetCheck"},
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-checks-undo",
        "POST",
        "dataset.write",
        {"pk": "datasets.DatasetCheck"},
        before=_divided(),
        ok=202,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-rows-review",
        "POST",
        "dataset.write",
        DATASET_ROW,
        data=send(verdict="approve", content_hash=_content_hash),
        before=_has_row,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-rows-settle",
        "POST",
        "dataset.write",
        DATASET,
        data=send(rows=_row_ids, act="train"),
        before=_has_row,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-rows-split",
        "POST",
        "dataset.write",
        DATASET,
        data=send(into="test", rows=_row_ids),
        before=_has_row,
        ok=202,
        also=("dataset.read",),
    ),
    Row(
        "api:dataset-rows-from-conversation",
        "POST",
        "dataset.write",
        DATASET,
        data=send(conversation=pk_of("conversations.Conversation"), turns=_turn_ids, is_trial=True),
        before=turn_answered,
        also=("dataset.read", "conversation.read"),
    ),
    Row(
        "api:dataset-rows-from-feedback",
        "POST",
        "dataset.write",
        DATASET,
        data=send(feedback=_feedback_ids, is_trial=True),
        before=turn_answered,
        also=("dataset.read", "conversation.read"),
    ),
    Row("api:dataset-sources-list", "GET", "dataset.read", DATASET, before=_has_row),
    Row(
        "api:dataset-sources-list",
        "PATCH",
        "dataset.write",
        DATASET,
        data=send(document="a.pdf", license="MIT"),
        before=_has_row,
        also=("dataset.read",),
    ),
    Row("api:dataset-versions-diff", "GET", "dataset.read", DATASET, {"older": _number, "newer": _number}),
    Row("api:generations-list", "GET", "dataset.read", DATASET),
    Row(
        "api:generations-list",
        "POST",
        "dataset.write",
        DATASET,
        data=send(settings=_asked_about),
        before=_askable,
        ok=202,
        also=("dataset.read", "search.run", "tool.run", "collection.read"),
        body_ids=404,
    ),
    Row("api:generations-detail", "GET", "dataset.read", GENERATION),
    Row(
        "api:generations-pause",
        "POST",
        "dataset.write",
        GENERATION,
        before=_generating("running"),
        also=("dataset.read",),
    ),
    Row(
        "api:generations-resume",
        "POST",
        "dataset.write",
        GENERATION,
        before=_generating("paused"),
        also=("dataset.read",),
    ),
    Row(
        "api:generations-stop",
        "POST",
        "dataset.write",
        GENERATION,
        before=_generating("running"),
        also=("dataset.read",),
    ),
)
