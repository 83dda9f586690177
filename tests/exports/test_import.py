"""A workspace's file, imported, is the same workspace with other numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from apps.collections.models import Chunk, Document, FileBlob, Import, RepositoryPack
from apps.collections.storage.originals import file_key
from apps.datasets.models import DatasetExport, DatasetImport
from apps.datasets.rows.files import dataset_file_key, written_key
from exports.files import workspace_export
from exports.imports import workspace_import
from exports.moves import staying
from runs.models import RunEvent
from tenancy.models import User
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
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
        for row in FileBlob.objects.all():
            content = b"earlier words"
            FileBlob.objects.filter(pk=row.pk).update(
                content=content, sha256=hashlib.sha256(content).hexdigest(), size=len(content)
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
