"""Whether a row still names a file of a dataset is found by the dataset that the file's key says."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.datasets.models import Dataset, DatasetCheck, DatasetExport, DatasetImport, DatasetVersion
from apps.datasets.rows.files import dataset_file_key, dataset_files_named, written_key
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.permissions.world import make_row
from tests.plans import scans_of

pytestmark = pytest.mark.django_db
MANY = 2_000


def test_files_are_looked_up_without_reading_other_datasets(cast: Cast) -> None:
    made: dict[str, Any] = {"tenant": cast.tenant}
    with tenant_scope(cast.tenant.pk):
        own, other = (make_row(Dataset, cast.tenant, cast.user("owner")) for _ in range(2))
        versions = {
            dataset: make_row(DatasetVersion, cast.tenant, cast.user("owner"), dataset=dataset)
            for dataset in (own, other)
        }
        for dataset, count in ((own, 3), (other, MANY)):
            key = dataset_file_key(cast.tenant.pk, dataset.pk, "import-ab")
            DatasetExport.objects.bulk_create(
                DatasetExport(
                    **made, dataset=dataset, version=versions[dataset], format="jsonl", file=f"{key}{n}"
                )
                for n in range(count)
            )
            DatasetImport.objects.bulk_create(
                DatasetImport(**made, dataset=dataset, format="jsonl", name="a", file=f"{key}{n}")
                for n in range(count)
            )
            DatasetCheck.objects.bulk_create(
                DatasetCheck(**made, dataset=dataset, kind="splits") for n in range(count)
            )
        check = DatasetCheck.objects.filter(dataset=own).first()
        assert check is not None
        check.options = {"moves": written_key(check, "splits")}
        check.save()
        export = DatasetExport.objects.filter(dataset=own).first()
        assert export is not None
        export.file = written_key(export, "export")
        export.save()
        brought = DatasetImport.objects.filter(dataset=own).first()
        assert brought is not None
        brought.errors_file = written_key(brought, "errors")
        brought.save()
    with as_login_role(), connection.cursor() as cursor:  # the workspace's role owns no table
        cursor.execute("ANALYZE datasets_datasetexport, datasets_datasetimport, datasets_datasetcheck")
    with tenant_scope(cast.tenant.pk):
        named = {brought.file, brought.errors_file, export.file, check.options["moves"]}
        gone = {written_key(work, kind) for work, kind in ((check, "splits"), (export, "export"))}
        with CaptureQueriesContext(connection) as queries:
            assert dataset_files_named(cast.tenant.pk, named | gone) == named
        scans = list(scans_of(queries))
    assert len(scans) >= 4
    assert sum(vain for _, _, vain in scans) <= 4 * 3, scans
