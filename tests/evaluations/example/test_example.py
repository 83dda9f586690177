"""A sample collection's conversation, dataset and experiment: made by real jobs, once, and taken away again."""

from __future__ import annotations

import inspect
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.collections.collection.samples import SAMPLES, Sample, sample_add
from apps.collections.models import Collection, Document
from apps.conversations.models import Conversation, Message, Turn
from apps.datasets.models import Dataset, DatasetRow, RowStatus
from apps.evaluations.compare.gate import FAILED, PASSED, gate_run
from apps.evaluations.example.services import MAKE_JOB, example_remove
from apps.evaluations.models import Example, ExampleStep, Experiment, Trial, TrialState
from apps.evaluations.results.selectors import arm_scores
from basics.errors import Denied, Missing
from jobs import registry
from jobs.models import Job, JobStatus
from jobs.runner import _finish
from notices.models import Notice
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import embedder, storage  # noqa: F401 - fixtures
from tests.factories import make_collection
from tests.permissions.world import make_row
from tests.runs.support import take

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage", "embedder")]


def add(cast: Cast, sample: Sample, role: str = "owner") -> Collection:
    with tenant_scope(cast.tenant.pk):
        return sample_add(tenant=cast.tenant, actor=cast.actor(role), sample=sample)


async def work_off_all(tenant: Tenant, lane: Executor) -> None:
    """Do all jobs of a workspace as a worker would, those that wait for a later time last, without waiting."""
    for _ in range(300):
        job = await sync_to_async(_next)(tenant)
        if job is None:
            return
        ctx = await sync_to_async(take)(job, "w1", lane)
        error: BaseException | None = None
        with tenant_scope(tenant.pk):
            handler = registry.get(job.kind).handler
            try:
                if inspect.iscoroutinefunction(handler):
                    await handler(ctx, **job.payload)
                else:
                    await sync_to_async(handler)(ctx, **job.payload)
            except Exception as raised:  # noqa: BLE001 - the runner's own rules decide
                error = raised
            await ctx.in_db(_finish, ctx, job, error)
    raise AssertionError("jobs go on without an end")


def _next(tenant: Tenant) -> Job | None:
    with tenant_scope(tenant.pk):
        waiting = Job.objects.filter(tenant=tenant, status=JobStatus.QUEUED)
        found: Job | None = waiting.order_by("run_after", "pk").first()
        return found


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each of three steps fails the first time just before it is kept, as if its worker had died."""
    died: list[str] = []
    save = Example.save

    def fail_once(self: Example, *args: Any, **kwargs: Any) -> None:
        watched = (ExampleStep.DATASET, ExampleStep.EXPERIMENT, ExampleStep.BASELINE)
        if self.step in watched and self.step not in died:
            died.append(str(self.step))
            raise RuntimeError("the worker died")
        save(self, *args, **kwargs)

    monkeypatch.setattr(Example, "save", fail_once)
    return died


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
async def test_a_sample_shows_what_every_page_is_for_and_goes_whole(
    cast: Cast, client: Client, lane_threads: Executor, dying: list[str], sample: Sample
):
    await sync_to_async(add)(cast, sample)
    await work_off_all(cast.tenant, lane_threads)
    await sync_to_async(_made_once_and_whole)(cast, sample, dying)
    await sync_to_async(_goes_whole)(cast, client)


def _made_once_and_whole(cast: Cast, sample: Sample, died: list[str]) -> None:
    owner = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        row = Example.objects.get()
        assert (row.step, row.error, len(died)) == (ExampleStep.DONE, "", 3)
        turn = Turn.objects.get()
        assert (turn.conversation, turn.run.model) == (row.conversation, "extractive")
        assert turn.conversation.title
        assert turn.citations.filter(document_name__in=sample.files).exists()
        assert Message.objects.filter(turn=turn, author="assistant").exists()
        rows = list(DatasetRow.objects.all())
        assert len(rows) == 8
        assert {(r.dataset_id, r.status) for r in rows} == {(row.dataset_id, RowStatus.APPROVED)}
        for one in rows:
            (source,) = one.sources
            document = Document.objects.get(pk=source["document_id"])
            assert (document.name in sample.files, source["end"] > source["start"]) == (True, True)
        experiment = Experiment.objects.get()
        assert (experiment.pk, experiment.state) == (row.experiment_id, "completed")
        assert set(Trial.objects.values_list("state", flat=True)) == {TrialState.DONE}
        few, many = experiment.arms.order_by("position")
        hits = [arm_scores(actor=owner, arm=arm).values for arm in (few, many)]
        assert set(hits[0]) == set(hits[1]) >= {"token_f1", "mrr"}
        assert gate_run(actor=owner, arm=many).code in (PASSED, FAILED)
        assert not Notice.objects.filter(read_at=None).exists()


def _goes_whole(cast: Cast, client: Client) -> None:
    other = make_collection(cast.tenant, "Own")
    with tenant_scope(cast.tenant.pk):
        row = Example.objects.get()
        page = reverse("evaluations:example-remove", args=[cast.tenant.slug, row.collection_id])
        with pytest.raises(Denied):
            example_remove(tenant=cast.tenant, actor=cast.actor("viewer"), example=row)
        with pytest.raises(Denied):
            example_remove(tenant=cast.tenant, actor=cast.actor("member"), example=row)
        with pytest.raises((Denied, Missing)):
            example_remove(tenant=cast.other_tenant, actor=cast.actor("outsider"), example=row)
        row.refresh_from_db()
        title = Conversation.objects.get().title
        assert row.step == ExampleStep.DONE
    client.force_login(cast.user("admin"))
    shown = client.get(page).content.decode()
    assert shown.count("Is deleted for good.") == 4
    assert title not in shown  # it is another person's
    assert client.post(page).status_code == 302
    assert client.get(page).status_code == 404
    with tenant_scope(cast.tenant.pk):
        assert list(Collection.objects.all()) == [other]
        for model in (Example, Conversation, Dataset, Experiment, Document):
            assert not model.objects.exists(), model


async def test_what_people_made_of_a_sample_stays_and_is_named(cast: Cast, lane_threads: Executor):
    await sync_to_async(add)(cast, SAMPLES[0])
    await work_off_all(cast.tenant, lane_threads)
    await sync_to_async(_keeps_what_people_made)(cast)


def _keeps_what_people_made(cast: Cast) -> None:
    owner = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        row = Example.objects.select_related("tenant", "collection").get()
        one = DatasetRow.objects.order_by("pk")[0]
        one.status = RowStatus.DRAFT
        one.save()
        make_row(Document, cast.tenant, cast.user("owner"), collection=row.collection)
        make_row(Turn, cast.tenant, cast.user("owner"), conversation=row.conversation)
        stays = example_remove(tenant=cast.tenant, actor=owner, example=row)
        assert stays == [
            "The conversation stays: its owner has asked more in it.",
            "The dataset stays: people have changed it.",
            "The collection stays: people have added documents to it.",
        ]
        assert (Conversation.objects.count(), Dataset.objects.count(), Collection.objects.count()) == (
            1,
            1,
            1,
        )
        assert not Experiment.objects.exists()
        assert not Example.objects.exists()  # what is left is no sample's


async def test_documents_that_failed_end_it_with_a_reason(cast: Cast, lane_threads: Executor):
    collection = await sync_to_async(add)(cast, SAMPLES[0])
    await sync_to_async(_fail_documents)(cast, collection)
    await work_off_all(cast.tenant, lane_threads)
    await sync_to_async(_ended_with_reason)(cast)


def _fail_documents(cast: Cast, collection: Collection) -> None:
    with tenant_scope(cast.tenant.pk):
        Job.objects.exclude(kind=MAKE_JOB).delete()
        Document.objects.filter(collection=collection).update(status="failed")


def _ended_with_reason(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        row = Example.objects.get()
        assert (row.step, str(row.error)) == (ExampleStep.FAILED, "Its documents couldn't be read.")
        assert not Conversation.objects.exists()
