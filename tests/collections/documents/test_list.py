"""The document list with many documents: as many queries as with few (benchmarks/document_list.py has the time)."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.collections.models import Collection, Document
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def fill(cast: Cast, collection: Collection, first: int, last: int) -> None:
    with tenant_scope(cast.tenant.pk):
        Document.objects.bulk_create(
            (
                Document(
                    tenant=cast.tenant,
                    collection=collection,
                    name=f"n{n}.txt",
                    path=f"f{n % 50}/n{n}.txt",
                    size=n,
                    sha256=f"{n:064}",
                    file=f"x{n}",
                    media_type="text/plain",
                    status="ready",
                    chunk_count=3,
                    document_type=f"type{n % 5}",
                    tags=[f"tag{n % 7}"],
                    is_restricted=n % 10 == 0,
                )
                for n in range(first, last)
            ),
            batch_size=2000,
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE collections_document")


def test_page_of_two_thousand_documents_costs_as_many_queries_as_one_of_sixty(
    cast: Cast, collection: Collection, member_client: Client
) -> None:
    url = reverse("collections:detail", args=[cast.tenant.slug, collection.pk])

    def cost(query: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert member_client.get(url + query).status_code == 200
        return len(queries)

    fill(cast, collection, 0, 60)
    few = cost("?page=1")
    fill(cast, collection, 60, 2_000)
    for query in ("?page=1", "?page=20", "?order=path&page=2", "?tag=tag3", "?q=n99"):
        assert cost(query) == few, query
