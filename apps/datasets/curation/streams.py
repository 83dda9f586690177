"""Work on a dataset as it moves: on each wake-up its part of the page is drawn again and sent whole.

A frame says what the work is now, not what happened, so a replay or a lost frame does no harm, and a reload shows the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.template.loader import render_to_string

from apps.datasets.curation.contexts import checks_context, export_context, import_context
from apps.datasets.curation.services import dataset_topic
from apps.datasets.generation.job_page import job_context, job_shown
from apps.datasets.models import GenerationState
from basics.errors import Missing
from basics.event_stream import EVENT_STREAM, HEARTBEAT, HEARTBEAT_S, HELLO, frame
from runs.standing import while_allowed
from runs.stream import hub
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.models import Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor

COALESCE_S = 0.5
OVER = (GenerationState.COMPLETED, GenerationState.STOPPED)
"""States that a job never leaves."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page that is sent again when it has changed.

    Attributes:
        topic: what wakes it.
        target: id of its element; ``template`` draws it.
        right: what one must be allowed to look at it.
        read: the context for somebody, and whether nothing more can come. Raises Missing.
    """

    topic: str
    target: str
    template: str
    right: str
    read: Callable[[Actor], tuple[dict[str, Any], bool]]


async def job_stream(request: HttpRequest, tenant_slug: str, pk: int, job_pk: int) -> HttpResponseBase:
    """Stream the state of a generation job; ``?item=`` is the candidate that stands open."""
    item = request.GET.get("item", "")

    def read(actor: Actor) -> tuple[dict[str, Any], bool]:
        job = job_shown(actor=actor, pk=pk, job_pk=job_pk)
        return job_context(actor=actor, job=job, item=item), job.state in OVER

    part = Part(f"generation:{job_pk}", "job-state", "datasets/_job.html", "dataset.read", read)
    return await _stream(request, part)


async def export_stream(request: HttpRequest, tenant_slug: str, pk: int, export_pk: int) -> HttpResponseBase:
    """Stream the state of an export."""
    read = partial(_work, export_context, pk=pk, work_pk=export_pk)
    return await _stream(request, _part(pk, "export", read))


async def import_stream(request: HttpRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponseBase:
    """Stream the state of an import."""
    read = partial(_work, import_context, pk=pk, work_pk=import_pk)
    return await _stream(request, _part(pk, "import", read))


async def checks_stream(request: HttpRequest, tenant_slug: str, pk: int) -> HttpResponseBase:
    """Stream the checks of a dataset while one of them runs."""

    def read(actor: Actor) -> tuple[dict[str, Any], bool]:
        context = checks_context(actor=actor, pk=pk)
        return context, not context["is_active"]

    part = Part(dataset_topic(pk), "checks", "datasets/_checks.html", "dataset.write", read)
    return await _stream(request, part)


def _part(pk: int, name: str, read: Callable[[Actor], tuple[dict[str, Any], bool]]) -> Part:
    return Part(dataset_topic(pk), f"{name}-state", f"datasets/_{name}.html", "dataset.write", read)


def _work(
    context: Callable[..., dict[str, Any]], actor: Actor, *, pk: int, work_pk: int
) -> tuple[dict[str, Any], bool]:
    found = context(actor=actor, pk=pk, work_pk=work_pk)
    return found, not found["row"].is_active


async def _stream(request: HttpRequest, part: Part) -> HttpResponseBase:
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    tenant: Tenant = request.tenant  # type: ignore[attr-defined]
    actor: Actor = request.actor  # type: ignore[attr-defined]
    actor.require(part.right)
    await in_db(part.read, actor)
    # The buttons of a frame are forms as on the page, and must be as good as those.
    page = {"tenant": tenant, "csrf_token": get_token(request)}
    response = StreamingHttpResponse(
        while_allowed(_frames(page, actor, part), actor=actor, right=part.right), content_type=EVENT_STREAM
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(page: dict[str, Any], actor: Actor, part: Part) -> AsyncGenerator[bytes, None]:
    tenant: Tenant = page["tenant"]
    seq, shown = 0, ""
    with tenant_scope(tenant.pk):  # the middleware's scope ended with the view
        async with hub.subscribe(tenant.pk, part.topic) as waker:
            yield HELLO
            while True:
                html, is_over = await in_db(_drawn, page, actor, part)
                if html and html != shown:
                    shown, seq = html, seq + 1
                    yield frame(
                        f'<hx-partial hx-target="#{part.target}" hx-swap="outerMorph">{html.strip()}</hx-partial>',
                        seq=seq,
                    )
                if is_over:
                    yield frame("over", seq=seq, event="end")
                    return
                await asyncio.sleep(COALESCE_S)
                if not await waker.wait(HEARTBEAT_S):
                    yield HEARTBEAT


def _drawn(page: dict[str, Any], actor: Actor, part: Part) -> tuple[str, bool]:
    """Return the part with the rights of this moment, and whether nothing more can come."""
    tenant: Tenant = page["tenant"]
    with tenant_scope(tenant.pk):
        found = Membership.objects.select_related("user").filter(
            tenant=tenant, user_id=actor.user_id or 0, user__is_active=True
        )
        membership = found.first()
        if membership is None:
            return "", True
        now = user_actor(membership)
        if not now.can(part.right):
            return "", True
        try:
            context, is_over = part.read(now)
        except Missing:
            return "", True
        return render_to_string(part.template, context | page), is_over
