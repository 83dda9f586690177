"""Writes of datasets."""

from apps.datasets.services.collected import (
    Collected,
    feedback_collect,
    feedback_rows_collect,
    rows_collect,
    turns_collect,
)
from apps.datasets.services.datasets import dataset_create, dataset_delete, dataset_update
from apps.datasets.services.reviews import SETTLEMENTS, row_review, rows_settle
from apps.datasets.services.rows import NewRow, RowsAdded, row_update, rows_add
from apps.datasets.services.sources import source_license_set
from apps.datasets.services.versions import version_create
from apps.datasets.services.work import (
    check_start,
    export_start,
    finding_accept,
    import_start,
    split_apply,
    split_assign,
    split_undo,
    work_cancel,
)

__all__ = [
    "SETTLEMENTS",
    "Collected",
    "NewRow",
    "RowsAdded",
    "check_start",
    "dataset_create",
    "dataset_delete",
    "dataset_update",
    "export_start",
    "feedback_collect",
    "feedback_rows_collect",
    "finding_accept",
    "import_start",
    "row_review",
    "row_update",
    "rows_add",
    "rows_collect",
    "rows_settle",
    "source_license_set",
    "split_apply",
    "split_assign",
    "split_undo",
    "turns_collect",
    "version_create",
    "work_cancel",
]
