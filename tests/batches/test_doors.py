"""Half price by the form, by REST and on the job's page, which says what is out and until when."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.generation.job_page import job_context
from apps.datasets.models import GenerationJob
from apps.datasets.rows.dataset_services import dataset_create
from tenancy.services import api_key_create
from tests.batches.support import MODEL, begin, look
from tests.cast import Cast
from tests.conversations.support import Library
from tests.datasets.pipeline import SCOPES
from tests.datasets.support import FakeModel
from tests.fake_provider import FakeProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]


def test_the_form_starts_a_batch_and_the_page_says_what_is_out(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    dataset = dataset_create(tenant=cast.tenant, actor=cast.actor("member"), name="By form")
    client = Client()
    client.force_login(cast.user("member"))
    page = reverse("datasets:generate", args=[cast.tenant.slug, dataset.pk])
    assert b"Within a day, at half the price" in client.get(page).content
    filled = {
        "collections": [library.collection.pk],
        "model": MODEL,
        "rows": 2,
        "delivery": "batch",
        "keep_at": 0.7,
        "concurrency": 8,
        "seed": 0,
        "probe": 0,
        "type_factual": 1,
        "difficulty_easy": 1,
    }
    refused = client.post(page, {**filled, "model": "extractive"})
    assert refused.status_code == 422
    assert b"Rules answer immediately and for free" in refused.content
    answer = client.post(page, filled)
    assert answer.status_code == 302, answer.context["form"].errors
    job = GenerationJob.objects.get(dataset=dataset)
    assert "requests are sent to the provider in batches" in client.get(answer["Location"]).content.decode()
    look(job)
    shown = " ".join(client.get(answer["Location"]).content.decode().split())
    assert "Round 1: 2 calls sent to the provider on " in shown
    assert ". Answers usually arrive within 24 hours, at the latest on " in shown
    assert "0 of 2 answers are back." in shown


def test_rest_starts_a_batch_and_tells_how_far_it_is(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    actor = cast.actor("owner")
    dataset = dataset_create(tenant=cast.tenant, actor=actor, name="By REST")
    _, key = api_key_create(tenant=cast.tenant, actor=actor, name="generation", scopes=SCOPES)
    headers = {"Authorization": f"Bearer {key}"}
    settings = {"collections": [library.collection.pk], "rows": 2, "types": {"factual": 1}}
    client = Client()

    def start(delivery: str):
        sent = {"model": MODEL, "settings": {**settings, "delivery": delivery}}
        path = f"/api/v1/datasets/{dataset.pk}/generations"
        return client.post(path, json.dumps(sent), content_type="application/json", headers=headers)

    assert start("later").status_code == 400
    answer = start("batch")
    assert answer.status_code == 202, answer.content
    assert answer.json()["settings"]["delivery"] == "batch"
    job = GenerationJob.objects.get(pk=answer.json()["id"])
    path = f"/api/v1/generations/{job.pk}"
    assert client.get(path, headers=headers).json()["batch"] is None
    look(job)
    batch = client.get(path, headers=headers).json()["batch"]
    assert (batch["number"], batch["total"], batch["done"], batch["is_stopping"]) == (1, 2, 0, False)
    assert batch["sent_at"] < batch["due_at"]


def test_the_admin_shows_what_is_out_and_not_what_was_said(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    job = begin(cast, library)
    look(job)
    assert job_context(actor=cast.actor("viewer"), job=job)["batch"].total == 3
    client = Client()
    client.force_login(cast.user("owner"))
    page = client.get("/admin/batches/batch/", follow=True)
    assert page.status_code == 200
    assert job.topic.encode() in page.content
    line = client.get("/admin/batches/batchline/", follow=True)
    assert b"-question-0-0" in line.content
    assert b"customs duty" not in line.content
