"""A generation job as it moves: on each wake-up its part of the page is drawn again and sent whole.

A frame says what the job is now, not what happened, so a replay or a lost frame does no harm, and a reload shows the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.template.loader import render_to_string

from apps.datasets.job_page import job_context, job_shown
from apps.datasets.models import GenerationState
from basics.errors import Missing
from runs.stream import EVENT_STREAM, HEARTBEAT, HEARTBEAT_S, HELLO, frame, hub
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor

COALESCE_S = 0.5
OVER = (GenerationState.COMPLETED, GenerationState.STOPPED)
"""States that a job never leaves."""


async def job_stream(request: HttpRequest, tenant_slug: str, pk: int, job_pk: int) -> HttpResponseBase:  # fmt: skip
    """Stream the state of a job; ``?item=`` is the candidate that stands open."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    tenant: Tenant = request.tenant  # type: ignore[attr-defined]
    actor: Actor = request.actor  # type: ignore[attr-defined]
    actor.require("dataset.read")
    item = request.GET.get("item", "")
    await sync_to_async(job_shown)(actor=actor, pk=pk, job_pk=job_pk)
    # The buttons of a frame are forms as on the page, and must be as good as those.
    page = {"tenant": tenant, "csrf_token": get_token(request)}
    response = StreamingHttpResponse(
        _frames(page, actor, pk, job_pk, item), content_type=EVENT_STREAM
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(
    page: dict[str, Any], actor: Actor, pk: int, job_pk: int, item: str
) -> AsyncGenerator[bytes, None]:
    tenant: Tenant = page["tenant"]
    seq, shown = 0, ""
    with tenant_scope(tenant.pk):  # the middleware's scope ended with the view
        async with hub.subscribe(tenant.pk, f"generation:{job_pk}") as waker:
            yield HELLO
            while True:
                html, is_over = await sync_to_async(_drawn)(page, actor, pk, job_pk, item)
                if html and html != shown:
                    shown, seq = html, seq + 1
                    yield frame(
                        f'<hx-partial hx-target="#job-state" hx-swap="outerMorph">{html}</hx-partial>',
                        seq=seq,
                    )
                if is_over:
                    yield frame("over", seq=seq, event="end")
                    return
                await asyncio.sleep(COALESCE_S)
                if not await waker.wait(HEARTBEAT_S):
                    yield HEARTBEAT


def _drawn(page: dict[str, Any], actor: Actor, pk: int, job_pk: int, item: str) -> tuple[str, bool]:
    """Return the job with the rights of this moment, and whether nothing more can come."""
    tenant: Tenant = page["tenant"]
    with tenant_scope(tenant.pk):
        found = Membership.objects.select_related("user").filter(
            tenant=tenant, user_id=actor.user_id or 0, user__is_active=True
        )
        membership = found.first()
        if membership is None:
            return "", True
        now = user_actor(membership)
        try:
            job = job_shown(actor=now, pk=pk, job_pk=job_pk)
        except Missing:
            return "", True
        context = job_context(actor=now, job=job, item=item) | page
        return render_to_string("datasets/_job.html", context), job.state in OVER
