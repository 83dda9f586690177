"""Collections in the admin: every list and page opens, owners see their own, and actions go through the services."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.models import Chunk, Collection, Document, EmbeddingSpace, Page
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def documents(cast: Cast, collection: Collection) -> list[Document]:
    with tenant_scope(cast.tenant.pk):
        return [ingest(cast, collection, "lamps.md", LAMPS), ingest(cast, collection, "empty.txt", b"")]


@pytest.fixture
def operator(client: Client, documents: list[Document]) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def test_lists_and_pages_open(cast: Cast, operator: Client) -> None:
    for model in (Collection, Document, Page, Chunk, EmbeddingSpace):
        name = f"admin:collections_{model._meta.model_name}"
        listing = operator.get(reverse(f"{name}_changelist"), {"q": "lamps"})
        assert listing.status_code == 200, name
        with tenant_scope(cast.tenant.pk):
            pk = model._default_manager.values_list("pk", flat=True)[0]
        assert operator.get(reverse(f"{name}_change", args=[pk])).status_code == 200, name


def test_owner_of_another_workspace_sees_nothing_of_it(
    cast: Cast, client: Client, documents: list[Document]
) -> None:
    client.force_login(cast.user("outsider"))
    for model in ("collection", "document", "page", "chunk"):
        page = client.get(reverse(f"admin:collections_{model}_changelist"))
        assert page.status_code == 200
        assert b"lamps.md" not in page.content
        assert b"Trade" not in page.content
    path = reverse("admin:collections_document_change", args=[documents[0].pk])
    assert client.get(path).status_code in (302, 403, 404)
    assert client.get(reverse("admin:collections_embeddingspace_changelist")).status_code == 403


@pytest.mark.parametrize(("action", "left"), [("retry", 2), ("delete_documents", 0)])
def test_action_works_through_the_services(
    cast: Cast, client: Client, documents: list[Document], action: str, left: int, storage: Path
) -> None:
    client.force_login(cast.user("owner"))
    chosen = [d.pk for d in documents]
    data = {"action": action, "_selected_action": chosen, "post": "yes"}
    answer = client.post(reverse("admin:collections_document_changelist"), data)
    assert answer.status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.count() == left
        if left:
            documents[1].refresh_from_db()
            assert documents[1].status == "queued"
        word = action.partition("_")[0]
        assert AuditEvent.objects.filter(action=f"document.{word}").exists()


def test_collection_is_deleted_with_its_rows(
    cast: Cast, client: Client, collection: Collection, documents: list[Document]
) -> None:
    client.force_login(cast.user("owner"))
    path = reverse("admin:collections_collection_delete", args=[collection.pk])
    assert client.get(path).status_code == 200
    assert client.post(path, {"post": "yes"}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        for model in (Collection, Document, Chunk):
            assert not model.objects.exists()
