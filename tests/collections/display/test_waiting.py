"""What waits says why and about how long: in the portal, in REST, and never more than one may know."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.collections.display.waiting import document_waits, duration
from apps.collections.models import Collection, Document
from jobs.models import Job, JobStatus, Worker
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.collection.test_api import ALL, Api
from tests.collections.conftest import job_of, upload

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(cast: Cast, collection: Collection) -> list[Document]:
    """A large document that runs, and two that wait: one of 4 MB, one of 1 KB."""
    Worker.objects.create(name="here:1", seen_at=timezone.now())
    made = []
    with tenant_scope(cast.tenant.pk):
        for name, weight in (("first.txt", 6_000_000), ("second.txt", 4_000_000), ("small.txt", 1_000)):
            document = upload(cast, collection, name, f"This is {name}.".encode())
            Job.objects.filter(pk=job_of(document).pk).update(weight=weight)
            made.append(document)
        Job.objects.filter(pk=job_of(made[0]).pk).update(status=JobStatus.RUNNING, started_at=timezone.now())
        Document.objects.filter(pk=made[0].pk).update(status="processing", stage="embed")
    return made


def test_portal_says_why_a_document_waits_and_how_long(
    cast: Cast, collection: Collection, queue: list[Document], member_client: Client
) -> None:
    page = member_client.get(f"/t/{cast.tenant.slug}/collections/{collection.pk}/").content.decode()
    assert "Waiting: 2 documents ahead of it, about 5 min" in page
    assert "Waiting: next in line" in page, "the small one waits for no large one"
    assert page.count("Waiting:") == 2
    about = f"/t/{cast.tenant.slug}/collections/{collection.pk}/documents/{queue[1].pk}/about/"
    assert "Waiting: 2 documents ahead of it" in member_client.get(about).content.decode()


def test_documents_that_are_limited_are_counted_as_other_work(cast: Cast, queue: list[Document]) -> None:
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=queue[0].pk).update(is_restricted=True)
        told = document_waits(Document.objects.filter(pk=queue[1].pk))[queue[1].pk]
    assert told.text.startswith("Waiting: 1 document and 1 other job ahead of it, about ")
    assert told.documents == 1
    assert told.seconds is not None


def test_document_says_when_no_worker_runs_and_when_it_is_tried_again(
    cast: Cast, queue: list[Document]
) -> None:
    with tenant_scope(cast.tenant.pk):
        small = Document.objects.filter(pk=queue[2].pk)
        Job.objects.filter(pk=job_of(queue[2]).pk).update(run_after=timezone.now() + timedelta(seconds=58))
        (told,) = document_waits(small).values()
        assert told.text == "Waiting: it failed and will be retried in about 1 min"
        Worker.objects.all().delete()
        (told,) = document_waits(small).values()
        assert (told.text, told.seconds) == ("Waiting: no worker is running on the server", None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1 s"),
        (4, "about 5 s"),
        (41, "about 45 s"),
        (58, "about 1 min"),
        (171, "about 3 min"),
        (7300, "about 2 h"),
    ],
)
def test_time_is_told_roughly(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_rest_tells_it_for_each_document_of_a_list(
    cast: Cast, collection: Collection, queue: list[Document]
) -> None:
    api = Api(cast, "owner", *ALL)
    rows = {
        row["name"]: row for row in api("get", f"collections/{collection.pk}/documents").json()["results"]
    }
    assert rows["first.txt"]["waiting"] is None
    assert rows["second.txt"]["waiting"]["documents"] == 2
    assert rows["second.txt"]["waiting"]["seconds"] > 60
    assert rows["small.txt"]["waiting"] == {"text": "Waiting: next in line", "documents": 0, "seconds": 0}
    one = api("get", f"documents/{queue[1].pk}").json()
    assert one["waiting"]["text"].startswith("Waiting: 2 documents ahead of it, about ")
