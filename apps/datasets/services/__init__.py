"""Writes of datasets."""

from apps.datasets.services.datasets import dataset_create, dataset_delete, dataset_update
from apps.datasets.services.rows import NewRow, RowsAdded, row_update, rows_add
from apps.datasets.services.versions import version_create

__all__ = [
    "NewRow",
    "RowsAdded",
    "dataset_create",
    "dataset_delete",
    "dataset_update",
    "row_update",
    "rows_add",
    "version_create",
]
