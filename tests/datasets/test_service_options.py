"""How the models of a generation job are served: checked when it begins, and passed on to every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from apps.datasets.generation import tasks
from apps.datasets.generation.claiming import row_ceiling
from apps.datasets.generation.forms import GenerateForm
from apps.datasets.generation.settings import Settings, settings_checked
from apps.datasets.models import GenerationItem, GenerationJob, PaidCall
from basics.errors import Invalid
from runs import remote_models
from runs.models import UsageRecord
from runs.providers import provider_for, provider_wrapped
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.datasets.support import FakeModel, drive, make_open_library, start
from tests.fake_provider import FakeProvider, running
from tests.toolloop.providers.test_background import DONE, MESSAGE, Server, stream, told
from tests.toolloop.providers.wires import OPENAI
from toolloop.providers.profiles import profile_for

SERVED = {"service_tier": "flex", "cache_ttl": "1h", "background": True}
FLEX = "fake-rows-tier_flex"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    remote_models._known.clear()
    with running() as (url, fake):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", FLEX)
        fake.replies[FLEX] = FakeModel()
        yield fake


def test_settings_keep_what_is_said() -> None:
    read = settings_checked({"collections": [1], **SERVED})
    assert read.service == SERVED
    assert Settings.from_json(read.to_json()) == read
    old = {k: v for k, v in read.to_json().items() if k not in SERVED}
    assert Settings.from_json(old).service == {}  # of a job that began before these were there


@pytest.mark.parametrize(
    "wrong", [{"service_tier": "cheap"}, {"service_tier": 1}, {"cache_ttl": "2h"}, {"background": "yes"}]
)
def test_settings_name_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        settings_checked({"collections": [1], **wrong})
    assert list(refused.value.data["fields"]) == list(wrong)


def test_a_row_is_held_at_the_price_of_its_tier_but_never_at_a_discount() -> None:
    profile = profile_for("openai", "gpt-5")
    plain = Settings(collections=(1,))
    usual = row_ceiling(plain, profile)
    assert row_ceiling(replace(plain, service_tier="priority"), profile) == usual * 2
    assert row_ceiling(replace(plain, service_tier="flex"), profile) == usual > Decimal(0)


def test_the_form_takes_it() -> None:
    data = {
        "collections": ["1"],
        "model": "extractive",
        "judge_model": "",
        "rows": 3,
        "keep_at": 0.7,
        "concurrency": 1,
        "seed": 0,
        "service_tier": "flex",
        "cache_ttl": "1h",
        "background": "on",
    }
    given: Any = {"collections": [(1, "One")], "models": [("extractive", "Extractive")]}
    form = GenerateForm(data, **given)
    assert form.is_valid(), form.errors
    assert {name: form.options()[name] for name in SERVED} == SERVED
    assert "service_tier" in GenerateForm({**data, "service_tier": "cheap"}, **given).errors


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("found")
def test_it_is_refused_at_the_start_and_reaches_every_request(
    cast: Cast, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    library = make_open_library(cast)
    model = f"compatible/{FLEX}"
    given: dict[str, Any] = {"rows": 1, "types": {"factual": 1}, "concurrency": 1}
    with tenant_scope(cast.tenant.pk):
        with pytest.raises(Invalid, match="no service tier “flex”") as refused:
            start(cast, library.collection, model=model, service_tier="flex", **given)
        assert list(refused.value.data["fields"]) == ["service_tier"]
        with pytest.raises(Invalid, match="claude-haiku-5-5 has no service tier “flex”"):
            start(
                cast,
                library.collection,
                name="Judged",
                model="extractive",
                service_tier="flex",
                judge_model="anthropic/claude-haiku-5-5",
                **given,
            )
        assert not GenerationJob.objects.exists()
        # Stated behind the check's back: the adapter refuses, so nothing on the way has dropped it.
        job = start(cast, library.collection, name="Late", model=model, rounds=1, **given)
        GenerationJob.objects.filter(pk=job.pk).update(options={**job.options, **SERVED})
        job.refresh_from_db()
        job = drive(job)
        assert (job.kept, job.failed) == (0, 1)
        assert server.log == []
        done = drive(start(cast, library.collection, name="Usual", model=model, **given))
        assert done.kept == 1
        tiers = UsageRecord.objects.filter(kind="dataset").values_list("service_tier", flat=True)
        assert set(tiers) == {"flex"}  # as the server says


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("found")
def test_an_answer_in_the_background_outlives_its_worker_and_is_paid_for_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    library = make_open_library(cast)

    async def worker_goes_down() -> None:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.Event().wait()

    said = {"question": "Why?", "rationale": "It matters.", "quotes": ["Lamps"]}
    part = {"type": "output_text", "text": json.dumps(said), "annotations": []}
    answer = {**DONE, "output": [{**MESSAGE, "content": [part]}]}
    first = Server(stream(*told(0, 2), then=worker_goes_down))
    refused = httpx2.Response(401, json={"error": {"message": "no", "code": "invalid_api_key"}})
    second = Server(httpx2.Response(200, json=answer), refused)
    servers = iter((first, second))
    monkeypatch.setattr(
        tasks,
        "provider_for",
        lambda tenant, name: provider_wrapped(
            provider_for(tenant, name), lambda adapter: OPENAI.provider(next(servers))
        ),
    )
    with tenant_scope(cast.tenant.pk):
        job = start(
            cast,
            library.collection,
            model="openai/gpt-5",
            background=True,
            rows=1,
            types={"factual": 1},
            concurrency=1,
        )
        with suppress(asyncio.CancelledError):
            drive(job, "w1")
        drive(job, "w2")
        assert first.asked == [("POST", "/responses")]
        assert second.asked[:2] == [("GET", "/responses/resp_7"), ("POST", "/responses")]
        paid = PaidCall.objects.filter(job=job)
        assert [(call.stage, call.output_tokens) for call in paid] == [("question", 20)]
        assert "response" not in GenerationItem.objects.get(job=job, slot=0, round=0).data
