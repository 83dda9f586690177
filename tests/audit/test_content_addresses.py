"""Every address is a door with content, whose answers are recorded, or named as one without; and the record is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.test import Client
from django.urls import reverse

from audit.content_addresses import ADMIN_MODELS, DOORS
from audit.middleware import reads_recorded
from audit.models import ContentRead
from tenancy.models import User
from tenancy.scope import platform_scope, tenant_scope
from tests.permissions.rows import API, PORTAL, Row
from tests.permissions.test_matrix import ask, key_client, signed_in
from tests.permissions.urls import all_urls
from tests.permissions.walking import each_row
from tests.permissions.world import Side

WITHOUT = set((Path(__file__).parent / "without_content.txt").read_text().split())


@pytest.fixture
def mine(db: None) -> Side:
    return Side()


@pytest.fixture
def theirs(db: None) -> Side:
    return Side()


def reads(side: Side) -> list[ContentRead]:
    with tenant_scope(side.tenant.pk):
        return list(ContentRead.objects.filter(tenant=side.tenant).order_by("pk"))


def test_every_address_is_a_door_or_named_as_one_without_content() -> None:
    names = {name for name, _ in all_urls() if not name.startswith("admin:")}
    assert sorted(names - set(DOORS) - WITHOUT) == [], (
        "audit/content_addresses.py, or without_content.txt where it shows none"
    )
    assert sorted(set(DOORS) - names) == [], "no such address"
    assert sorted(WITHOUT - names) == [], "no such address"
    assert WITHOUT & set(DOORS) == set()
    assert {m._meta.label_lower for m in apps.get_models()} >= ADMIN_MODELS


def test_the_middleware_is_the_innermost() -> None:
    """Whatever a view answers passes it, and no other middleware answers in a view's place behind it."""
    assert settings.MIDDLEWARE[-1] == f"{reads_recorded.__module__}.{reads_recorded.__name__}"


def door_rows(rows: tuple[Row, ...]) -> list[Row]:
    """Return the rows of the permission matrix that get content: each door once, by its first row."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.url in DOORS and row.ok in (200, 201) and not row.is_stream:
            found.setdefault(row.url, row)
    return list(found.values())


DOOR_ROWS = door_rows((*PORTAL, *API))


def test_most_doors_are_walked_through() -> None:
    assert len(DOOR_ROWS) > 70


@each_row(DOOR_ROWS, of="mine")
def test_an_answer_of_a_door_leaves_one_read_with_whose_it_was(row: Row, mine: Side) -> None:
    where = {"X-Tenant": mine.tenant.slug}  # which REST asks of a session
    response = ask(
        signed_in(mine, "owner"), row, slug=mine.tenant.slug, ids=mine, role="owner", headers=where
    )
    assert response.status_code == row.ok, response.content[:300]
    found = [read for read in reads(mine) if read.door == row.url]
    assert len(found) == 1
    person = mine.user("owner")
    assert (found[0].kind, found[0].user_id, found[0].actor_name) == (DOORS[row.url], person.pk, person.email)
    assert found[0].request_id == response["X-Request-ID"]


def test_a_refused_read_is_none_and_another_workspace_sees_none(mine: Side, theirs: Side) -> None:
    address = reverse("collections:list", args=[theirs.tenant.slug])
    signed_in(mine, "owner").get(address)
    document = theirs.row("collections.Document", "owner")
    for name in ("collections:document", "collections:document-download"):
        url = reverse(name, args=[mine.tenant.slug, document.collection_id, document.pk])
        assert signed_in(mine, "owner").get(url).status_code == 404
    assert reads(mine) == []
    assert reads(theirs) == []


def test_a_search_names_the_documents_that_it_found(mine: Side) -> None:
    from apps.collections.models import Chunk

    chunk = mine.row("collections.Chunk", "owner")
    client = key_client(mine, ["search.run"])
    with tenant_scope(mine.tenant.pk):
        word = Chunk.objects.get(pk=chunk.pk).text.split()[0]
    answer = client.post("/api/v1/search", {"query": word}, content_type="application/json")
    assert answer.status_code == 200
    (found,) = reads(mine)
    assert (found.door, found.kind, found.actor_kind) == ("api:search", "search", "api_key")
    assert found.api_key_id is not None
    assert found.documents == list(dict.fromkeys(hit["document_id"] for hit in answer.json()["hits"]))


def test_pages_of_the_admin_are_doors_too(mine: Side) -> None:
    chunk = mine.row("collections.Chunk", "owner")
    operator = User.objects.create_superuser("operator@example.org", "x" * 12)
    client = Client()
    client.force_login(operator, "django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("admin:collections_chunk_change", args=[chunk.pk])).status_code == 200
    (found,) = reads(mine)
    assert (found.door, found.kind, found.user_id) == ("admin:collections_chunk_change", "admin", operator.pk)
    signed_in(mine, "owner").get(reverse("admin:collections_chunk_changelist"))
    assert [read.door for read in reads(mine)][1:] == ["admin:collections_chunk_changelist"]


def test_a_read_that_cannot_be_written_is_refused(mine: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    document = mine.row("collections.Document", "owner")

    def broken(**values: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr("audit.middleware.content_read", broken)
    url = reverse("collections:document-about", args=[mine.tenant.slug, document.collection_id, document.pk])
    answer = signed_in(mine, "owner").get(url)
    assert answer.status_code == 500
    assert document.name not in answer.content.decode()


def test_reads_are_pruned_when_they_are_old_but_their_count_goes_on(mine: Side, settings: Any) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from audit.reads import READS, content_read, reads_number
    from erasure.removal import removal_round
    from tests.factories import actor_of

    actor = actor_of(mine.people["owner"])
    for _ in range(3):
        content_read(actor=actor, door="api:search", kind="search", named={})
    reads_number(mine.tenant.pk)
    with platform_scope():
        ContentRead.objects.update(at=timezone.now() - timedelta(days=31))
    settings.READ_AUDIT_DAYS = 0
    assert removal_round(READS) == 0
    settings.READ_AUDIT_DAYS = 30
    assert removal_round(READS) == 2
    content_read(actor=actor, door="api:search", kind="search", named={})
    reads_number(mine.tenant.pk)
    assert [read.seq for read in reads(mine)] == [3, 4]
