"""Downloads by a signed address of the bucket: for whom they are, how long they hold, and what they are sent as."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.documents.access import document_access_set
from apps.collections.models import Collection, Document
from blobs.leases import blob_cache
from blobs.stores import store
from tenancy.scope import tenant_scope
from tests.bucket import Bucket, Server, server_run
from tests.cast import Cast
from tests.collections.conftest import upload

pytestmark = pytest.mark.django_db
PAGE = b"<script>alert(document.domain)</script>"
NAME = 'a "quote"; filename=b.exe ü.html'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_run() as running:
        yield running


@pytest.fixture
def document(
    server: Server, settings: Any, cast: Cast, collection: Collection, django_capture_on_commit_callbacks: Any
) -> Document:
    """An uploaded page in the bucket, whose downloads are signed."""
    settings.FILES_URL = Bucket(server.address).url
    settings.FILES_SIGNED = True
    with tenant_scope(cast.tenant.pk), django_capture_on_commit_callbacks(execute=True):
        return upload(cast, collection, NAME, PAGE)


def address_of(cast: Cast, document: Document) -> str:
    return reverse(
        "collections:document-download", args=[cast.tenant.slug, document.collection_id, document.pk]
    )


def asked(client: Client, cast: Cast, document: Document, role: str = "viewer") -> Any:
    client.force_login(cast.user(role))
    return client.get(address_of(cast, document))


def fetched(address: str) -> tuple[int, bytes, dict[str, str]]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {}


def test_browser_is_sent_to_the_bucket_and_saves_what_it_finds(
    cast: Cast, document: Document, client: Client, server: Server
) -> None:
    answer = asked(client, cast, document)
    assert answer.status_code == 302
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["Location"].startswith(f"{server.address}/")
    assert "X-Amz-Expires=60&" in answer.headers["Location"]
    status, content, headers = fetched(answer.headers["Location"])
    assert (status, content) == (200, PAGE)
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == (
        "attachment; filename*=UTF-8''a%20%22quote%22%3B%20filename%3Db.exe%20%C3%BC.html"
    )
    assert headers["cache-control"] == "private, no-store"
    assert not blob_cache().exists(), "no copy came here"


def test_address_that_was_changed_or_is_over_opens_nothing(
    cast: Cast, document: Document, client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = asked(client, cast, document).headers["Location"]
    other = "0" if address[-1] != "0" else "1"
    for changed in (
        address[:-1] + other,
        address.replace("X-Amz-Expires=60", "X-Amz-Expires=600000"),
        address.replace("application%2Foctet-stream", "text%2Fhtml"),
        address.replace("attachment", "inline"),
        address.replace(document.sha256, "0" * 64),
    ):
        assert changed != address
        status, content, _ = fetched(changed)
        assert (status, PAGE in content) == (403, False), changed
    assert fetched(address)[0] == 200
    monkeypatch.setattr(server.signed, "ahead", timedelta(seconds=3600))
    status, content, _ = fetched(address)
    assert (status, PAGE in content) == (403, False)


def test_rights_are_asked_before_anything_is_signed(cast: Cast, document: Document, client: Client) -> None:
    assert asked(client, cast, document, "outsider").status_code == 404
    client.logout()
    assert client.get(address_of(cast, document)).headers["Location"].startswith("/"), "to sign in"
    with tenant_scope(cast.tenant.pk):
        document_access_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            document=document,
            is_restricted=True,
            roles=["owner"],
        )
    assert asked(client, cast, document).status_code == 404
    assert asked(client, cast, document, "owner").status_code == 302


def test_deleted_bytes_are_gone_at_their_address_too(cast: Cast, document: Document, client: Client) -> None:
    address = asked(client, cast, document).headers["Location"]
    store().remove(document.file)
    assert fetched(address)[0] in (403, 404)
    answer = asked(client, cast, document)
    assert answer.status_code == 410, "which the page says, and not an answer of the bucket"


def test_store_that_is_away_is_said(cast: Cast, document: Document, client: Client, settings: Any) -> None:
    settings.FILES_URL = "s3://b/p?endpoint=http://127.0.0.1:9&region=us-east-1"
    assert asked(client, cast, document).status_code == 503


@pytest.mark.parametrize("is_signed", [True, False])
def test_this_server_sends_what_it_has_itself(
    cast: Cast, collection: Collection, storage: Path, client: Client, settings: Any, is_signed: bool
) -> None:
    settings.FILES_SIGNED = is_signed
    with tenant_scope(cast.tenant.pk):
        document = upload(cast, collection, "a.html", PAGE)
    assert whole(asked(client, cast, document)) == PAGE


def test_this_server_sends_all_files_unless_it_is_told_otherwise(
    cast: Cast, document: Document, client: Client, settings: Any
) -> None:
    settings.FILES_SIGNED = False
    assert whole(asked(client, cast, document)) == PAGE


def test_policy_of_pages_names_no_bucket(
    cast: Cast, document: Document, client: Client, server: Server
) -> None:
    """A link that is followed needs no permission of the page; the address appears in none."""
    client.force_login(cast.user("viewer"))
    page = client.get(
        reverse("collections:document", args=[cast.tenant.slug, document.collection_id, document.pk])
    )
    assert page.status_code == 200
    assert urlsplit(server.address).netloc not in page.headers["Content-Security-Policy"]


def whole(answer: Any) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    assert answer.status_code == 200
    return asyncio.run(read())
