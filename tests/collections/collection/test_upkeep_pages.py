"""Pages that keep a collection well: the move to another embedding model, rules for types, who may see a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.models import (
    Collection,
    CollectionSnapshot,
    Document,
    DocumentAccess,
    DocumentTypeRules,
    SpaceSwap,
)
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.collection.test_swaps import other, work  # noqa: F401 - a fixture
from tests.collections.conftest import LAMPS, attempt, ingest

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def go(cast: Cast, collection: Collection) -> Any:
    """Ask for a page, or post to it, as somebody."""

    def of(
        name: str, *more: Any, role: str = "owner", post: dict[str, Any] | None = None, **query: Any
    ) -> Any:
        client = Client()
        client.force_login(cast.user(role), "django.contrib.auth.backends.ModelBackend")
        address = reverse(f"collections:{name}", args=[cast.tenant.slug, *more])
        return (
            client.get(address, query, follow=True)
            if post is None
            else client.post(address, post, follow=True)
        )

    return of


@pytest.mark.usefixtures("other")
def test_panel_leads_through_the_move_to_another_model(go: Any, cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    assert "Build vectors" in go("settings", collection.pk).content.decode()
    page = go("swap-start", collection.pk, post={"embedder": "test/other"}).content.decode()
    swap = SpaceSwap.objects.get()
    assert "passages have a new vector" in page
    assert 'hx-trigger="every 2s"' in go("swap", collection.pk).content.decode()
    work(swap)
    panel = go("swap", collection.pk).content.decode()
    assert "Switch to this model" in panel
    assert "hx-trigger" not in panel, "it asks no longer when there is nothing to wait for"
    assert "Same top passage" in panel
    for step, says in (("switch", "Undo the switch"), ("undo", "Build vectors")):
        page = go("swap-step", collection.pk, swap.pk, post={"step": step}).content.decode()
        assert says in page
    refused = go("swap-step", collection.pk, swap.pk, post={"step": "switch"}).content.decode()
    assert 'class="alert' in refused or "toast" in refused
    swap.refresh_from_db()
    assert swap.status == "undone"
    assert go("swap-step", collection.pk, swap.pk, post={"step": "nonsense"}).status_code == 404


def test_move_to_a_model_that_is_not_there_is_refused_in_words(go: Any, collection: Collection) -> None:
    page = go("swap-start", collection.pk, post={"embedder": "nobody/knows"}).content.decode()
    assert "Nothing was started" in page
    assert SpaceSwap.objects.count() == 0
    assert go("swap-start", collection.pk, role="viewer", post={"embedder": "x/y"}).status_code == 403


def test_type_rules_are_shown_saved_refused_and_removed(go: Any, cast: Cast, collection: Collection) -> None:
    example = go("type-rules", example="1").content.decode()
    assert "hts_schedule" in example
    assert "Example, not saved yet" in example
    assert not DocumentTypeRules.objects.exists()
    rules = json.dumps(trade_compliance_data())
    assert "Saved." in go("type-rules", post={"rules": rules}).content.decode()
    said = b"# Schedule\n\nHarmonized Tariff Schedule of the United States, annotated for statistical reporting purposes.\n"
    hts = ingest(cast, collection, "hts-chapter-85.md", said + LAMPS)
    assert hts.document_type == "hts_schedule", hts.type_reason
    for wrong, says in (
        ("{", "isn&#x27;t JSON"),
        ('{"types": 3}', "types"),
        ("[" * 100_000, "isn&#x27;t JSON"),
    ):
        answer = go("type-rules", post={"rules": wrong})
        assert answer.status_code == 422, wrong[:20]
        assert says in answer.content.decode()
    assert DocumentTypeRules.objects.count() == 1
    go("type-rules", post={"rules": " "})
    assert DocumentTypeRules.objects.count() == 0
    assert AuditEvent.objects.filter(action="document_types.set").count() == 2
    assert go("type-rules", role="viewer").status_code == 403


def test_access_page_limits_a_document_and_opens_it_again(
    go: Any, cast: Cast, collection: Collection
) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    where = (collection.pk, document.pk)
    limited = {
        "is_restricted": "true",
        "roles": ["admin"],
        "users": [str(cast.user("member").pk), "x", "9" * 9],
    }
    assert "Nothing was changed" in go("document-access", *where, post=limited).content.decode()
    limited["users"] = [str(cast.user("member").pk)]
    out = go("document-access", *where, post=limited).content.decode()
    assert "Include yourself or your role" in out
    said = go("document-access", *where, role="admin", post=limited).content.decode()
    assert "Only the people you named can see it now" in said
    assert go("document-about", *where, role="owner").status_code == 404
    found = DocumentAccess.objects.filter(document=document)
    assert {(e.role, e.user_id) for e in found} == {("admin", None), ("", cast.user("member").pk)}
    assert go("document-about", *where, role="member").status_code == 200
    assert go("document-about", *where, role="viewer").status_code == 404
    page = go("document-about", *where, role="admin").content.decode()
    assert "limited" in page
    opened = go("document-access", *where, role="admin", post={"is_restricted": "false"})
    assert "The whole workspace can see it now" in opened.content.decode()
    assert go("document-about", *where, role="viewer").status_code == 200
    denied = go("document-access", *where, role="member", post={"is_restricted": "false"})
    assert denied.status_code == 403


def test_earlier_version_is_restored_and_key_points_are_made_again(
    go: Any, cast: Cast, collection: Collection
) -> None:
    first = ingest(cast, collection, "lamps.md", LAMPS)
    second = ingest(cast, collection, "lamps.md", LAMPS + b"\nMore.\n")
    page = go("document-restore", collection.pk, first.pk, post={}).content.decode()
    assert "becomes the current one" in page
    third = attempt(Document.objects.get(version=3))
    assert (third.status, third.sha256) == ("ready", first.sha256)
    assert third.sha256 != second.sha256
    page = go("document-summarise", collection.pk, third.pk, post={}).content.decode()
    assert "created again" in page
    refused = go("document-summarise", collection.pk, third.pk, post={}).content.decode()
    assert "Nothing was changed" in refused or "created again" in refused


def test_moment_gets_a_name_and_is_forgotten(go: Any, collection: Collection) -> None:
    assert "Before" in go("snapshot-create", collection.pk, post={"name": "Before"}).content.decode()
    row = CollectionSnapshot.objects.get()
    assert "Before" in go("search", collection.pk).content.decode()
    go("snapshot-delete", collection.pk, row.pk, post={})
    assert CollectionSnapshot.objects.count() == 0
    go("snapshot-create", collection.pk, post={"name": " "})
    assert CollectionSnapshot.objects.count() == 0
