"""Whether a row still names an original is found in an index, however many documents the workspace has."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.collections.models import Collection, Document, Import
from apps.collections.storage.originals import (
    cache_write,
    file_key,
    files_named,
    made_forget,
    page_cache,
    pages_orphaned,
)
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.factories import make_collection
from tests.plans import scans_of

pytestmark = pytest.mark.django_db
MANY = 2_000
ASKED = 3


def content(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def filled(cast: Cast, collection: Collection) -> Collection:
    """A workspace with many documents and imports, all but a few of which nobody asks for."""
    other = make_collection(cast.tenant, "Other")
    with tenant_scope(cast.tenant.pk):
        Document.objects.bulk_create(
            Document(
                tenant=cast.tenant,
                collection=collection,
                name=f"n{n}.txt",
                path=f"n{n}.txt",
                size=n,
                sha256=content(n),
                file=file_key(cast.tenant.pk, collection.pk, content(n)),
                media_type="text/plain",
                status="ready",
            )
            for n in range(MANY)
        )
        Import.objects.bulk_create(
            Import(
                tenant=cast.tenant,
                collection=collection if n < ASKED else other,
                source="archive",
                name="a.zip",
                status="completed",
                file=file_key(cast.tenant.pk, (collection if n < ASKED else other).pk, content(MANY + n)),
            )
            for n in range(MANY)
        )
    with as_login_role(), connection.cursor() as cursor:  # the workspace's role owns no table
        cursor.execute("ANALYZE collections_document, collections_import")
    return collection


def test_keys_are_looked_up_without_reading_the_workspaces_rows(cast: Cast, filled: Collection) -> None:
    named = {file_key(cast.tenant.pk, filled.pk, content(n)) for n in (1, 2, MANY, MANY + 1)}
    gone = {file_key(cast.tenant.pk, filled.pk, content(n)) for n in (2 * MANY, 2 * MANY + 1)}
    with tenant_scope(cast.tenant.pk):
        with CaptureQueriesContext(connection) as queries:
            assert files_named(cast.tenant.pk, named | gone) == named
        scans = list(scans_of(queries))
    of_documents = [(kind, vain) for table, kind, vain in scans if table == "collections_document"]
    assert [kind.rpartition(" ")[2] for kind, _ in of_documents] == ["document_content"], scans
    assert {table for table, _, _ in scans} >= {"collections_document", "collections_import"}
    assert sum(vain for _, _, vain in scans) <= ASKED, scans


def test_same_bytes_in_another_collection_are_named_by_their_own_key_alone(
    cast: Cast, filled: Collection
) -> None:
    elsewhere = file_key(cast.tenant.pk, filled.pk + 1, content(1))
    with tenant_scope(cast.tenant.pk):
        assert files_named(cast.tenant.pk, [elsewhere]) == set()


def test_what_was_made_of_originals_is_compared_in_the_index(cast: Cast, filled: Collection) -> None:
    kept, gone = page_cache(cast.tenant.pk, content(1)), page_cache(cast.tenant.pk, content(2 * MANY))
    for folder in (kept, gone):
        cache_write(folder / "1.webp", b"page")
    with tenant_scope(cast.tenant.pk):
        with CaptureQueriesContext(connection) as queries:
            orphaned: list[Path] = list(pages_orphaned(cast.tenant.pk))
            made_forget(
                cast.tenant.pk, [file_key(cast.tenant.pk, filled.pk, content(n)) for n in (1, 2 * MANY)]
            )
        scans = list(scans_of(queries))
    assert orphaned == [gone]
    assert kept.is_dir()
    assert not gone.exists()
    assert {kind.rpartition(" ")[2] for _, kind, _ in scans} == {"document_content"}, scans
    assert sum(vain for _, _, vain in scans) == 0, scans
