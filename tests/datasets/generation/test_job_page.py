"""The page of a generation job: live by its stream, the same after a reload, with one candidate's calls; closed to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncRequestFactory, Client

from apps.datasets.curation import services as curation_services
from apps.datasets.curation import streams as stream
from apps.datasets.generation.services import generation_pause, generation_stop
from apps.datasets.models import GenerationItem, GenerationJob, PaidCall
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.services import NewRow
from apps.datasets.versions import services as versions_services
from basics.errors import Missing
from runs.stream import aclose
from tenancy.models import Membership
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast, make_cast
from tests.collections.pipeline.test_summaries_model import run_job
from tests.patience import PATIENCE_S
from toolloop.messages import ToolCall, ToolResult, Turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    await aclose()
    await sync_to_async(connections.close_all)()


def running(cast: Cast) -> GenerationJob:
    """Return a job under way, of which one candidate has been asked about twice."""
    turns = (
        Turn("fake", "m", tool_calls=(ToolCall("1", "search_documentation", {"query": "<duty>"}),)),
        Turn("fake", "m", text="It is four percent.", reasoning="The tariff says so."),
    )
    with tenant_scope(cast.tenant.pk):
        dataset = dataset_services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Duties"
        )
        job: GenerationJob = GenerationJob.objects.create(
            tenant=cast.tenant,
            dataset=dataset,
            model="extractive",
            options={"collections": []},
            state="running",
            wanted=4,
            estimate={"low": 1, "middle": 2, "high": 3, "items": 5},
        )
        item = GenerationItem.objects.create(
            tenant=cast.tenant,
            job=job,
            slot=1,
            type="factual",
            difficulty="easy",
            state="synthesis",
            driver="1.1",
            data={"question": "What is the duty?"},
        )
        for step, turn in enumerate(turns):
            results = [ToolResult("1", "search_documentation", "Lamps: 4 %.").to_json()] if step else []
            PaidCall.objects.create(
                tenant=cast.tenant,
                job=job,
                item=item,
                stage="answer",
                attempt=0,
                step=step,
                turn=turn.to_json(),
                results=results,
                cost_usd="0.01",
                duration_ms=1500,
            )
    return job


async def watch(cast: Cast, job: GenerationJob, item: str = "") -> AsyncIterator[bytes]:
    request: Any = AsyncRequestFactory().get("/", {"item": item})
    request.tenant, request.actor = cast.tenant, await sync_to_async(cast.actor)("viewer")
    with tenant_scope(cast.tenant.pk):  # as the middleware does
        response: Any = await stream.job_stream(request, cast.tenant.slug, job.dataset_id, job.pk)
    assert "no-transform" in response["Cache-Control"]
    return aiter(response.streaming_content)


async def until(frames: AsyncIterator[bytes], text: str) -> str:
    seen = ""
    async with asyncio.timeout(PATIENCE_S):
        async for chunk in frames:
            seen += chunk.decode()
            if text in seen:
                return seen
    raise AssertionError(f"the stream ended without {text!r}: {seen[-500:]}")


async def test_the_stream_shows_each_move_and_ends_with_the_job(cast: Cast) -> None:
    job = await sync_to_async(running)(cast)
    frames = await watch(cast, job)
    first = await until(frames, "Running")
    assert "95 % interval" in first
    assert "Pause" not in first  # a viewer has no buttons

    def move(service: Any) -> None:
        with tenant_scope(cast.tenant.pk):
            service(tenant=cast.tenant, actor=cast.actor("member"), job=job)

    await sync_to_async(move)(generation_pause)
    assert "Paused by a person." in await until(frames, "Paused")
    await sync_to_async(move)(generation_stop)
    assert "event: end" in await until(frames, "event: end")


@pytest.mark.usefixtures("dataset_storage")
async def test_checks_and_exports_show_their_end_without_being_asked(cast: Cast) -> None:
    def started() -> tuple[Any, Any]:
        with tenant_scope(cast.tenant.pk):
            who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
            dataset = dataset_services.dataset_create(**who, name="Duties")
            row = NewRow(Record("What?", "That."), "review")
            rows_services.rows_add(**who, dataset=dataset, rows=[row], source="test")
            version = versions_services.version_create(**who, dataset=dataset)
            export = curation_services.export_start(**who, dataset=dataset, version=version, form="jsonl")
            return curation_services.check_start(**who, dataset=dataset, kind="secrets"), export

    def run(work: Any) -> None:
        with tenant_scope(cast.tenant.pk):
            run_job(work.job)

    check, export = await sync_to_async(started)()
    request: Any = AsyncRequestFactory().get("/")
    request.tenant, request.actor = cast.tenant, await sync_to_async(cast.actor)("member")
    slug, pk = cast.tenant.slug, check.dataset_id
    with tenant_scope(cast.tenant.pk):
        pages: Any = [
            (check, await stream.checks_stream(request, slug, pk), "checks"),
            (export, await stream.export_stream(request, slug, pk, export.pk), "export-state"),
        ]
    for work, response, target in pages:
        frames = aiter(response.streaming_content)
        assert f'hx-target="#{target}"' in await until(frames, "Waiting")
        await sync_to_async(run)(work)
        assert "Completed" in await until(frames, "event: end")


async def test_the_stream_ends_for_who_has_left_and_is_closed_to_others(cast: Cast) -> None:
    job = await sync_to_async(running)(cast)
    other = await sync_to_async(make_cast)()
    with pytest.raises(Missing):
        await watch(other, job)

    def leave() -> None:
        with platform_scope():
            Membership.objects.filter(tenant=cast.tenant, user=cast.user("viewer")).delete()

    frames = await watch(cast, job)
    await until(frames, "Running")
    await sync_to_async(leave)()

    def pause() -> None:
        with tenant_scope(cast.tenant.pk):
            generation_pause(tenant=cast.tenant, actor=cast.actor("member"), job=job)

    await sync_to_async(pause)()
    assert "Paused" not in await until(frames, "event: end")


def test_a_candidate_is_shown_with_its_calls(cast: Cast) -> None:
    job = running(cast)
    client = Client()
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    url = f"/t/{cast.tenant.slug}/datasets/{job.dataset_id}/jobs/{job.pk}/"
    with tenant_scope(cast.tenant.pk):
        item = GenerationItem.objects.get(job=job)
    page = client.get(url, {"item": item.pk}).content.decode()
    for text in ("Lamps: 4 %.", "&lt;duty&gt;", "The tariff says so.", "It is four percent.", "1.5 s"):
        assert text in page
    assert f"stream/?item={item.pk}" in page
    for nonsense in ("0", "x", "9" * 30):
        plain = client.get(url, {"item": nonsense})
        assert plain.status_code == 200
        assert "Lamps" not in plain.content.decode()
