"""An import of a private collection is there for no member, at no door."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.models import DocumentSource, Import, ImportStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


def test_an_import_of_a_private_collection_is_missing(cast: Cast) -> None:
    collection = make_collection(cast.tenant, "Zqprivate", owner=cast.user("owner"))
    with tenant_scope(cast.tenant.pk):
        row = Import.objects.create(
            tenant=cast.tenant,
            collection=collection,
            source=DocumentSource.URL,
            name="Zqimport",
            status=ImportStatus.FAILED,
            created_by=cast.user("owner"),
        )
    portal = [cast.tenant.slug, collection.pk, row.pk]
    doors = [
        ("get", reverse("collections:import", args=portal)),
        ("post", reverse("collections:import-cancel", args=portal)),
        ("post", reverse("collections:import-retry", args=portal)),
        ("get", f"/api/v1/imports/{row.pk}"),
        ("post", f"/api/v1/imports/{row.pk}/cancel"),
        ("post", f"/api/v1/imports/{row.pk}/retry"),
    ]
    for role in ("member", "admin"):
        client = Client(headers={"X-Tenant": cast.tenant.slug})
        client.force_login(cast.user(role), backend="django.contrib.auth.backends.ModelBackend")
        for method, url in doors:
            for headers in ({}, {"HX-Request": "true"}):  # a fragment reads less than its page
                answer = getattr(client, method)(url, headers=headers)
                assert (role, url, answer.status_code) == (role, url, 404)
    with tenant_scope(cast.tenant.pk):
        row.refresh_from_db()
    assert row.status == ImportStatus.FAILED
