"""Files of exports and imports by a signed address of the bucket, for browsers alone."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.models import Dataset, DatasetExport, DatasetImport
from apps.datasets.rows.files import written_key
from blobs.stores import store
from tenancy.scope import tenant_scope
from tests.bucket import Bucket, serving
from tests.cast import Cast
from tests.permissions.world import make_row

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


@pytest.mark.parametrize("kind", ["export", "errors"])
def test_browser_fetches_the_file_from_the_bucket(
    s3: str, settings: Any, dataset_storage: Path, cast: Cast, tmp_path: Path, client: Client, kind: str
) -> None:
    settings.FILES_URL = Bucket(s3).url
    settings.FILES_SIGNED = True
    (tmp_path / "rows").write_bytes(b'{"id": 1}\n')
    with tenant_scope(cast.tenant.pk):
        dataset = make_row(Dataset, cast.tenant, cast.user("owner"))
        model, column = (DatasetExport, "file") if kind == "export" else (DatasetImport, "errors_file")
        row = make_row(
            model, cast.tenant, cast.user("owner"), dataset=dataset, status="completed", format="jsonl"
        )
        key = written_key(row, kind)
        setattr(row, column, key)
        row.save()
        store().put(key, tmp_path / "rows")
    name = "datasets:export-file" if kind == "export" else "datasets:import-errors"
    address = reverse(name, args=[cast.tenant.slug, dataset.pk, row.pk])
    client.force_login(cast.user("viewer"))
    assert client.get(address).status_code == 403
    client.force_login(cast.user("member"))
    answer = client.get(address)
    assert answer.status_code == 302
    with urllib.request.urlopen(answer.headers["Location"], timeout=60) as sent:  # noqa: S310 - loopback
        assert sent.read() == b'{"id": 1}\n'
        assert sent.headers["Content-Type"] == "application/octet-stream"
        assert sent.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
