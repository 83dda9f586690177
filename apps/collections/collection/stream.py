"""Live rows of a collection: on each wake-up the changed rows are rendered again and sent as whole states.

A frame says what a row is now, not what happened, so a replay or a lost frame does no harm. The position is the time of
the newest change sent. Database reads go through ``runs.stream``'s small pool: a waiting stream holds no connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from apps.collections.display.waiting import Waiting, document_waits
from apps.collections.models import Document
from basics.errors import Missing
from basics.event_stream import HEARTBEAT, HEARTBEAT_S, HELLO, frame, position_of
from runs.standing import while_allowed
from runs.stream import hub, rows_read
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

COALESCE_S = 0.25
# A change stamped earlier may be committed later than one that was read; frames already sent are not repeated.
OVERLAP_US = 5_000_000
WAITS_EVERY_S = 2.0
SHOWN_WAITING = 200  # the first ones; a page shows fewer

_COLUMNS = (
    "id, name, path, version, live_from, live_to, document_type, type_reason, tags, is_restricted, source, size, status, "
    "job_id, stage, progress_current, progress_total, error_code, error_message, page_count, skipped_pages, chunk_count, "
    "identifiers_found, identifiers_total, updated_at"
)
# A person sees here what lists show them: no document that is limited to others, no earlier version, and no count of them.
_MINE = (
    "d.live_to IS NULL AND (NOT d.is_restricted OR EXISTS (SELECT FROM collections_documentaccess a "
    "WHERE a.tenant_id = d.tenant_id AND a.document_id = d.id AND (a.user_id = %s OR (a.role <> '' AND a.role = %s))))"
)
_CHANGED = (
    f"SELECT {_COLUMNS} FROM collections_document d "  # noqa: S608 - constants of this module
    f"WHERE d.tenant_id = own_tenant() AND d.collection_id = %s AND d.updated_at > to_timestamp(%s / 1000000.0) AND {_MINE} ORDER BY d.updated_at, d.id"
)
_COUNTS = (
    "SELECT c.name, coalesce(sum(d.chunk_count) FILTER (WHERE d.status = 'ready'), 0) AS chunk_count, "  # noqa: S608
    "count(d.id) AS document_count, coalesce(sum(d.page_count), 0) AS page_total, "
    "count(*) FILTER (WHERE d.status IN ('queued', 'processing')) AS processing_count, "
    "count(*) FILTER (WHERE d.status = 'failed') AS failed_count "
    "FROM collections_collection c LEFT JOIN collections_document d ON d.tenant_id = c.tenant_id AND d.collection_id = c.id "
    f"AND {_MINE} WHERE c.tenant_id = own_tenant() AND c.id = %s GROUP BY c.id, c.tenant_id"
)
_IDS = f"SELECT d.id FROM collections_document d WHERE d.tenant_id = own_tenant() AND d.collection_id = %s AND {_MINE}"  # noqa: S608


async def collection_stream(request: HttpRequest, tenant_slug: str, pk: int) -> HttpResponseBase:
    """Stream the state of a collection's rows and counts from ``?after=`` or ``Last-Event-ID`` on."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    tenant: Tenant = request.tenant  # type: ignore[attr-defined]
    actor: Actor = request.actor  # type: ignore[attr-defined]
    actor.require("collection.read")
    if not await rows_read(tenant.pk, _COUNTS, (actor.user_id, actor.role, pk)):
        raise Missing("collection")
    after = position_of(request.headers, request.GET)
    response = StreamingHttpResponse(
        while_allowed(_frames(tenant, actor, pk, after), actor=actor, right="collection.read"),
        content_type="text/event-stream",
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(tenant: Tenant, actor: Actor, pk: int, after: int) -> AsyncGenerator[bytes, None]:
    # The middleware's scope ended with the view; reads name the tenant, and rendering runs in the scope too.
    with tenant_scope(tenant.pk):
        async with hub.subscribe(tenant.pk, f"collection:{pk}") as waker:
            yield HELLO
            view = _View(tenant, actor, pk, after)
            while True:
                text = await view.changes()
                if text is None:
                    yield frame("gone", seq=view.after, event="end")
                    return
                if text:
                    yield frame(text, seq=view.after)
                    await asyncio.sleep(COALESCE_S)
                if not await waker.wait(HEARTBEAT_S):
                    yield HEARTBEAT


class _View:
    """What one stream has sent."""

    def __init__(self, tenant: Tenant, actor: Actor, pk: int, after: int) -> None:
        self.after = after
        self._tenant, self._pk = tenant, pk
        self._me = (actor.user_id, actor.role)
        self._can_write = actor.can("document.write")
        self._sent: dict[int, str] = {}
        self._known: set[int] | None = None
        self._stats = ""
        # Those under way: what they wait for changes while they do not.
        self._active: dict[int, Document] = {}
        self._waits: dict[int, Waiting] = {}
        self._looked_at = 0.0

    def _is_known(self, pk: int) -> bool:
        return self._known is None or pk in self._known

    async def _wait_look(self) -> None:
        """Ask what the documents under way wait for, every two seconds at most."""
        now = time.monotonic()
        if now - self._looked_at >= WAITS_EVERY_S:
            self._looked_at = now
            rows = list(self._active.values())[:SHOWN_WAITING]
            self._waits = await in_db(_waits_read, rows)

    async def changes(self) -> str | None:
        """Return the partials of what changed, "" if nothing did, None when the collection is gone."""
        rows = await rows_read(
            self._tenant.pk, _CHANGED, (self._pk, max(0, self.after - OVERLAP_US), *self._me)
        )
        counts = await rows_read(self._tenant.pk, _COUNTS, (*self._me, self._pk))
        if not counts:
            return None
        parts = await self._deletions(counts[0]["document_count"])
        documents = {row["id"]: Document(**row, tenant_id=self._tenant.pk) for row in rows}
        shown = {**self._active, **documents}
        self._active = {pk: shown[pk] for pk in sorted(shown) if shown[pk].is_active and self._is_known(pk)}
        await self._wait_look()
        for document in shown.values():
            document.waiting = self._waits.get(document.pk)  # type: ignore[attr-defined]
            self.after = max(self.after, round(document.updated_at.timestamp() * 1_000_000))
            html = self._render("_document_row.html", document=document)
            if self._sent.get(document.pk) != html:
                self._sent[document.pk] = html
                parts.append(_partial(f"#doc-{document.pk}", "outerMorph", html))
        self._forget(rows)
        stats = self._render(
            "_stats.html", collection=SimpleNamespace(**counts[0]), page_total=counts[0]["page_total"]
        )
        if stats != self._stats:
            self._stats = stats
            parts.append(_partial("#collection-stats", "outerMorph", stats))
            beside = self._render("_pane_link.html", c=SimpleNamespace(pk=self._pk, **counts[0]))
            parts.append(_partial(f"#pane-{self._pk}", "outerMorph", beside))
        return "".join(parts)

    async def _deletions(self, count: int) -> list[str]:
        if self._known is not None and len(self._known) == count:
            return []
        rows = await rows_read(self._tenant.pk, _IDS, (self._pk, *self._me))
        ids = {row["id"] for row in rows}
        gone = sorted((self._known or ids) - ids)
        self._known = ids
        return [_partial(f"#doc-{pk}", "delete", "") for pk in gone]

    def _forget(self, rows: list[dict[str, Any]]) -> None:
        """Keep only what the overlap may bring again, so that a long stream does not grow."""
        recent = {row["id"] for row in rows} | self._active.keys()
        self._sent = {pk: html for pk, html in self._sent.items() if pk in recent}

    def _render(self, template: str, **context: Any) -> str:
        base = {
            "tenant": self._tenant,
            "collection": SimpleNamespace(pk=self._pk),
            "can_write": self._can_write,
        }
        return render_to_string(f"collections/{template}", base | context)


def _waits_read(documents: list[Document]) -> dict[int, Waiting]:
    """Ask in a thread, and hold no connection afterwards: a stream may be open for hours."""
    if not documents:
        return {}
    try:
        return document_waits(documents)
    finally:
        connection.close()


def _partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html.strip()}</hx-partial>'
