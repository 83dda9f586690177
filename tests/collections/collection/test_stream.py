"""The live rows of a collection: states, not events; nothing of others; an end when there is nothing to see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncRequestFactory
from django.utils import timezone

from apps.collections.collection import services as collection_services
from apps.collections.collection import stream
from apps.collections.collection.views import stamp
from apps.collections.documents import services as documents_services
from apps.collections.models import Collection, Document
from basics.errors import Denied, Missing
from jobs.notify import notify
from runs.stream import aclose
from tenancy.actors import Actor
from tenancy.models import Membership
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.markup import flat
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def closed():
    yield
    await aclose()
    await sync_to_async(connections.close_all)()  # of the thread that ran the ORM


class Viewer:
    """Reads frames of one stream."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.chunks = chunks

    async def until(self, text: str, timeout_s: float = PATIENCE_S) -> str:
        """Return everything up to and with the frame that holds the text."""
        seen = ""
        async with asyncio.timeout(timeout_s):
            async for chunk in self.chunks:
                seen += chunk.decode()
                if text in seen:
                    return seen
        raise AssertionError(f"the stream ended without {text!r}: {seen}")

    async def rest(self, timeout_s: float = PATIENCE_S) -> str:
        """Return what comes until the stream ends."""
        async with asyncio.timeout(timeout_s):
            return b"".join([chunk async for chunk in self.chunks]).decode()


async def watch(cast: Cast, collection: Collection, role: str = "viewer", after: int = 0) -> Viewer:
    request: Any = AsyncRequestFactory().get("/", {"after": str(after)})
    request.tenant, request.actor = cast.tenant, await sync_to_async(cast.actor)(role)
    response: Any = await stream.collection_stream(request, cast.tenant.slug, collection.pk)
    assert response["Content-Type"] == "text/event-stream"
    assert "no-transform" in response["Cache-Control"]
    return Viewer(aiter(response.streaming_content))


def inside(cast: Cast, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with tenant_scope(cast.tenant.pk):
            return function(*args, **kwargs)

    return sync_to_async(call)


def progress(document: Document, current: int) -> None:
    Document.objects.filter(pk=document.pk).update(
        status="processing",
        stage="embed",
        progress_current=current,
        progress_total=100,
        updated_at=timezone.now(),
    )
    notify(document.tenant_id, f"collection:{document.collection_id}", document.pk)


async def test_changed_row_and_counts_are_sent_as_they_are_now(cast: Cast, collection: Collection) -> None:
    document = await inside(cast, upload)(cast, collection, "lamps.md", b"lamps")
    viewer = await watch(cast, collection)
    first = await viewer.until("collection-stats")
    assert f'<hx-partial hx-target="#doc-{document.pk}" hx-swap="outerMorph"><tr' in first
    assert "Queued" in first
    assert f'hx-target="#pane-{collection.pk}"' in first
    assert "1 processing" in first
    await inside(cast, progress)(document, 40)
    second = await viewer.until("Embedding")
    assert "40 of 100" in flat(second.replace("\ndata: ", "\n"))
    assert "id: " in second


async def test_old_rows_are_not_sent_again_when_a_page_has_them(cast: Cast, collection: Collection) -> None:
    old = await inside(cast, upload)(cast, collection, "old.md", b"old")
    fresh = await inside(cast, upload)(cast, collection, "new.md", b"new")

    def age() -> int:
        Document.objects.filter(pk=old.pk).update(updated_at="2020-01-01T00:00Z")
        return stamp(Document.objects.get(pk=fresh.pk))

    viewer = await watch(cast, collection, after=await inside(cast, age)())
    assert f"#doc-{old.pk}" not in await viewer.until("collection-stats")


async def test_row_is_taken_away_when_its_document_is_deleted(cast: Cast, collection: Collection) -> None:
    document = await inside(cast, upload)(cast, collection, "lamps.md", b"lamps")
    viewer = await watch(cast, collection)
    await viewer.until("collection-stats")
    actor = await sync_to_async(cast.actor)("member")
    await inside(cast, documents_services.document_delete)(tenant=cast.tenant, actor=actor, document=document)
    await viewer.until(f'<hx-partial hx-target="#doc-{document.pk}" hx-swap="delete">')


async def test_stream_ends_when_the_collection_is_deleted(cast: Cast, collection: Collection) -> None:
    viewer = await watch(cast, collection)
    await viewer.until("retry")
    actor = await sync_to_async(cast.actor)("owner")
    await inside(cast, collection_services.collection_delete)(
        tenant=cast.tenant, actor=actor, collection=collection
    )
    assert "event: end" in await viewer.rest()


async def test_stream_ends_when_the_person_leaves_the_workspace(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.2)
    viewer = await watch(cast, collection, role="viewer")
    await viewer.until(": ping")

    def leave() -> None:
        with platform_scope():
            Membership.objects.filter(pk=cast.viewer.pk).delete()

    await sync_to_async(leave)()
    assert "event: end" in await viewer.rest()


async def test_foreign_collection_has_no_stream(cast: Cast, collection: Collection) -> None:
    request: Any = AsyncRequestFactory().get("/")
    request.tenant, request.actor = cast.other_tenant, await sync_to_async(cast.actor)("outsider")
    with pytest.raises(Missing):
        await stream.collection_stream(request, cast.other_tenant.slug, collection.pk)


async def test_actor_without_the_right_has_no_stream(cast: Cast, collection: Collection) -> None:
    request: Any = AsyncRequestFactory().get("/")
    request.tenant, request.actor = cast.tenant, Actor("user", cast.tenant.pk, frozenset())
    with pytest.raises(Denied):
        await stream.collection_stream(request, cast.tenant.slug, collection.pk)
