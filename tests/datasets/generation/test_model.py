"""Generation with a model over a real socket: stages, rate limits, budget, pause, and a kill around each commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError

from apps.datasets.generation import driving, prompts
from apps.datasets.generation.committing import Committer
from apps.datasets.generation.services import generation_pause, generation_resume, generation_stop
from apps.datasets.models import GenerationItem, GenerationJob, GenerationState, ItemState, PaidCall
from apps.datasets.records.columns import record_of
from apps.datasets.rows import selectors
from basics.errors import Conflict, Denied, Invalid, Missing
from notices.models import Notice
from runs import remote_models
from runs.models import UsageRecord
from tenancy.models import ModelEntry
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.conversations.support import Library
from tests.datasets.support import FakeModel, drive, make_open_library, start
from tests.fake_provider import FakeProvider, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]
NAME = "fake-rows"
MODEL = f"compatible/{NAME}"
FACTUAL = {"factual": 1}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    remote_models._known.clear()
    with running() as (url, fake):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", NAME)
        yield fake


@pytest.fixture
def model(server: FakeProvider) -> FakeModel:
    fake = FakeModel()
    server.replies[NAME] = fake
    return fake


@pytest.fixture
def library(cast: Cast) -> Iterator[Library]:
    made = make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        yield made


def begin(cast: Cast, library: Library, **options: Any) -> GenerationJob:
    options = {"rows": 3, "types": FACTUAL, "concurrency": 1, **options}
    return start(cast, library.collection, model=MODEL, **options)


def test_each_stage_is_paid_once_and_billed(cast: Cast, library: Library, model: FakeModel) -> None:
    job = drive(begin(cast, library, concurrency=3))
    assert (job.state, job.kept) == (GenerationState.COMPLETED, 3), job.reason
    told = Notice.objects.get(tenant=cast.tenant, user=job.created_by)
    assert (told.kind, told.object_id, told.state) == ("generation", job.pk, "completed")
    stages = Counter(PaidCall.objects.filter(job=job).values_list("stage", flat=True))
    assert stages == {"question": 3, "filter": 3, "answer": 6, "synthesis": 3, "judge": 3}
    assert len(model.asked) == 18 == UsageRecord.objects.filter(kind="dataset").count()
    record = record_of(next(selectors.job_rows(actor=cast.actor("viewer"), job=job)))
    assert [step.action for step in record.steps if step.action] == ["search_documentation"]
    assert record.sources[0].quote in {c.text[:80] for c in library.chunks}
    assert {score.author for score in record.scores} == {f"judge:six@{prompts.VERSION}:{MODEL}"}


def test_poor_answers_are_repaired_once_then_dropped_and_reported(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    model.level = 3
    job = drive(begin(cast, library, rows=1, rounds=2))
    assert (job.kept, job.dropped) == (0, 2)
    stages = Counter(PaidCall.objects.filter(job=job).values_list("stage", flat=True))
    assert stages["repair"] == 2
    assert stages["judge"] == 4
    assert job.shortfall == [
        {
            "type": "factual",
            "difficulty": "easy",
            "wanted": 1,
            "missing": 1,
            "why": "Quality 0.50 is too low.",
        }
    ]


def test_refusals_for_the_rate_are_waited_for(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    server.retry_after, model.refusals = "0", 4
    job = drive(begin(cast, library, concurrency=3))
    assert (job.state, job.kept) == (GenerationState.COMPLETED, 3), job.reason
    assert PaidCall.objects.filter(job=job).count() == 18 == len(model.asked)


def test_budget_is_held_and_can_be_raised(cast: Cast, library: Library, model: FakeModel) -> None:
    ModelEntry.objects.create(
        tenant=cast.tenant, name=MODEL, prices=[{"input": 10.0, "output": 100.0}]
    )  # 0.003 USD a call, as the server counts
    job = drive(begin(cast, library, budget="0.06", row_usd=0.5))
    assert job.state == GenerationState.PAUSED
    assert "budget" in job.reason
    assert job.spent_usd <= Decimal("0.06")
    with pytest.raises(Invalid):
        generation_resume(tenant=cast.tenant, actor=cast.actor("member"), job=job, budget_usd=job.spent_usd)
    job = generation_resume(tenant=cast.tenant, actor=cast.actor("member"), job=job, budget_usd="10")
    job = drive(job)
    assert (job.state, job.kept) == (GenerationState.COMPLETED, 3), job.reason
    paid = sum(call.cost_usd or 0 for call in PaidCall.objects.filter(job=job))
    assert job.spent_usd == paid


def test_budget_of_a_model_without_prices_is_refused(cast: Cast, library: Library, model: FakeModel) -> None:
    with pytest.raises(Invalid) as refused:
        begin(cast, library, budget="1")
    assert "prices" in refused.value.message


def test_probe_pauses_with_an_estimate_and_a_pause_is_resumed(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    job = drive(begin(cast, library, probe=1))
    assert (job.state, job.kept) == (GenerationState.PAUSED, 1)
    assert job.estimate["items"] == 1
    job = generation_resume(**who, job=job)
    job = generation_pause(**who, job=job)
    with pytest.raises(Conflict):
        generation_pause(**who, job=job)
    with pytest.raises(Denied):
        generation_stop(tenant=cast.tenant, actor=cast.actor("viewer"), job=job)
    job = drive(generation_resume(**who, job=job))
    assert (job.state, job.kept) == (GenerationState.COMPLETED, 3)
    assert PaidCall.objects.filter(job=job).count() == len(model.asked)


def test_a_wrong_key_pauses_the_job_and_fails_no_row(
    cast: Cast, library: Library, server: FakeProvider
) -> None:
    server.replies[NAME] = lambda body: 401
    job = drive(begin(cast, library))
    assert job.state == GenerationState.PAUSED
    assert job.reason
    assert (job.failed, job.dropped) == (0, 0)


class Killed(DatabaseError):
    """The process dies here: nothing after it is written."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", [0, 7, 20])
def test_a_paid_call_is_never_paid_again_when_the_worker_dies(
    cast: Cast, library: Library, model: FakeModel, monkeypatch: pytest.MonkeyPatch, point: int, when: str
) -> None:
    job = begin(cast, library)
    real = Committer._commit
    count, lost_calls = 0, 0

    def commit(self: Committer, writes: Any) -> set[int]:
        nonlocal count, lost_calls
        count += 1
        if count > point + 1:
            raise Killed
        if count == point + 1:
            if when == "after":
                real(self, writes)
            else:
                lost_calls += sum(write.paid is not None for write in writes)
            raise Killed
        return real(self, writes)

    def dead(*args: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Committer, "_commit", commit)
        patched.setattr(driving, "items_release", dead)
        with pytest.raises(Killed):
            drive(job)
    job = drive(job, "another")
    assert (job.state, job.kept, job.dropped) == (GenerationState.COMPLETED, 3, 0), job.reason
    assert PaidCall.objects.filter(job=job).count() == 18
    assert len(model.asked) == 18 + lost_calls
    assert GenerationItem.objects.filter(job=job, state=ItemState.KEPT).count() == 3


def test_jobs_of_others_do_not_exist(cast: Cast, library: Library, model: FakeModel) -> None:
    job = begin(cast, library)
    with tenant_scope(cast.other_tenant.pk), pytest.raises(Missing):
        selectors.job_get(actor=cast.actor("outsider"), pk=job.pk)
