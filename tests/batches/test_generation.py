"""Datasets by batch over a real socket: rounds, prices, pauses, failures, and deaths between any two steps."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from django.db import DatabaseError

from apps.datasets.generation.services import generation_pause, generation_resume, generation_stop
from apps.datasets.models import GenerationItem, GenerationJob, GenerationState, PaidCall
from apps.datasets.records.columns import record_of
from apps.datasets.rows import selectors
from apps.datasets.rows.dataset_services import dataset_delete
from basics.errors import Invalid
from batches import courier
from batches import lines as storing
from batches.models import Batch, BatchLine, BatchState
from batches.selectors import round_open
from batches.services import WIND_UP
from budgets.models import Budget, BudgetHold
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from runs.models import UsageRecord
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.batches.support import MODEL, MODELS, WIRES, batches, begin, carry, every, lines, look, sent
from tests.cast import Cast
from tests.conversations.support import Library
from tests.datasets.support import FakeModel, start
from tests.fake_provider import FakeProvider
from toolloop.batches.google import GoogleBatches

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]


def rows_of(cast: Cast, job: GenerationJob) -> list[dict[str, Any]]:
    """Return what the job's rows say, without what differs between two jobs."""
    records = [record_of(r) for r in selectors.job_rows(actor=cast.actor("viewer"), job=job)]
    return sorted(
        (
            {
                "question": r.question,
                "answer": r.answer,
                "steps": [(s.thought, s.action, s.observation) for s in r.steps],
                "sources": [(s.chunk_id, s.quote) for s in r.sources],
                "messages": [(m.role, m.content) for m in r.messages],
                "scores": [(s.name, s.value) for s in r.scores],
            }
            for r in records
        ),
        key=lambda row: row["question"],
    )


@pytest.mark.parametrize("wire", WIRES, indirect=True)
def test_rows_by_batch_are_those_made_directly_at_half_the_price(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel, wire: str
) -> None:
    if wire == "anthropic":  # Claude, asked directly, cites in a way of its own that batches do not have.
        model.answer = "It is said."
    job = carry(begin(cast, library, model=MODELS[wire]))
    assert (job.state, job.kept, job.failed) == (GenerationState.COMPLETED, 3, 0), job.reason
    stages = Counter(PaidCall.objects.filter(job=job).values_list("stage", flat=True))
    assert stages == {"question": 3, "filter": 3, "answer": 6, "synthesis": 3, "judge": 3}
    assert len(model.asked) == 18
    assert set(sent(server).values()) == {1}
    assert len(sent(server)) == 18
    # An answer that calls a tool takes two rounds.
    assert [(b.round, b.total, b.state) for b in batches(job)] == [
        (n, 3, BatchState.ENDED) for n in range(1, 7)
    ]
    assert lines(job) == {}
    by_batch = rows_of(cast, job)
    paid = UsageRecord.objects.filter(kind="dataset")
    assert paid.count() == 18
    assert sum(r.cost_usd or 0 for r in paid) == job.spent_usd
    assert {r.service_tier for r in paid} == {"batch"}

    direct = start(cast, library.collection, name="Now", model=MODELS[wire], rows=3, types={"factual": 1})
    direct = carry(direct)
    assert (direct.state, direct.kept) == (GenerationState.COMPLETED, 3), direct.reason
    assert rows_of(cast, direct) == by_batch
    # Each record is rounded to 8 places of a dollar.
    half = pytest.approx(direct.spent_usd / 2, abs=18 * Decimal("1e-8"))
    assert job.spent_usd == half
    assert job.spent_usd > 0


def test_no_worker_is_held_while_a_batch_is_out(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    server.batches.polls = 3
    job = begin(cast, library)
    assert status_after_look(job) == JobStatus.QUEUED
    assert not GenerationItem.objects.filter(job=job).exclude(driver="").exists()
    for _ in range(2):
        assert status_after_look(job) == JobStatus.QUEUED
        assert (lines(job), len(batches(job))) == ({"sent": 3}, 1)
    look(job)
    assert lines(job) == {"answered": 3, "sent": 3}


@pytest.mark.parametrize("place", ["before", "after", "lost"])
def test_a_death_while_sending_neither_loses_nor_repeats_a_call(
    cast: Cast,
    library: Library,
    server: FakeProvider,
    model: FakeModel,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = begin(cast, library)
    if place == "lost":  # the provider has it, and the connection broke
        server.batches.lose = 1
        look(job)
    else:
        name = "batch_trying" if place == "before" else "batch_sent"
        with monkeypatch.context() as patched:
            patched.setattr(storing, name, _die)
            look(job)
    [batch] = batches(job)
    assert (batch.state, batch.handle) == (BatchState.SENDING, None)
    assert len(sent(server)) == (0 if place == "before" else 3)
    for _ in range(3):
        look(job)
    assert lines(job)["answered"] >= 3
    assert set(sent(server).values()) == {1}


def test_a_batch_that_may_be_on_its_way_is_not_sent_again_before_its_time(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begin(cast, library)
    with monkeypatch.context() as patched:
        patched.setattr(GoogleBatches, "submit", _die)
        look(job)
    for _ in range(3):
        look(job)
        assert not sent(server)
    Batch.objects.update(trying_until="2000-01-01T00:00:00Z")
    look(job)
    assert (len(sent(server)), set(sent(server).values())) == (3, {1})


def test_a_death_while_reading_results_counts_each_of_them_once(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "KEPT_AT_ONCE", 1)
    keep, calls = storing.results_keep, count()

    def dying(*args: Any) -> None:
        keep(*args)
        if next(calls) in (0, 2, 5):
            raise RuntimeError("killed")

    Budget.objects.create(tenant=cast.tenant, kind="tenant", amount_usd=100)
    job = begin(cast, library)
    monkeypatch.setattr(storing, "results_keep", dying)
    for _ in range(6):
        look(job)
    assert next(calls) > 6
    assert set(sent(server).values()) == {1}
    assert UsageRecord.objects.filter(kind="dataset").count() == lines(job)["answered"] >= 3
    assert BudgetHold.objects.count() == lines(job)["sent"]


def test_calls_that_expire_are_sent_again_and_given_up_after_three_times(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    job = begin(cast, library, rounds=1)
    look(job)
    every(server)[0].outcome = "expired"
    every(server)[0].unanswered = frozenset([min(sent(server))])
    look(job)
    assert Counter(sent(server).values()) == {1: 4, 2: 1}
    server.batches.outcome = "expired"
    job = carry(job)
    assert (job.state, job.kept, job.failed) == (GenerationState.COMPLETED, 0, 3)
    assert max(sent(server).values()) == 3
    reasons = set(GenerationItem.objects.filter(job=job, state="failed").values_list("reason", flat=True))
    assert reasons == {storing.NO_ANSWER}


def test_a_refused_batch_pauses_the_job_in_the_providers_words_and_can_be_resumed(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    server.batches.refuse = 400
    job = carry(begin(cast, library))
    assert (job.state, job.reason) == (GenerationState.PAUSED, "told to refuse")
    assert [b.state for b in batches(job)] == [BatchState.REFUSED]
    server.batches.refuse = 0
    generation_resume(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    look(job)
    every(server)[-1].outcome = "failed"  # and one that is refused when it is read
    look(job)
    assert (job.state, job.reason) == (GenerationState.PAUSED, "Every line must name one model.")


def test_a_pause_cancels_what_is_out_keeps_what_came_and_resumes_from_there(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    server.batches.polls = 5
    job = begin(cast, library, rows=2)
    look(job)
    [out] = every(server)
    out.unanswered = frozenset([max(sent(server))])
    generation_pause(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    job = carry(job)
    assert (job.state, out.is_cancelled, lines(job)) == ("paused", True, {"answered": 1, "wanted": 1})
    assert UsageRecord.objects.filter(kind="dataset").count() == 1
    server.batches.polls = 1
    generation_resume(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    job = carry(job)
    assert (job.state, job.kept) == (GenerationState.COMPLETED, 2), job.reason
    assert Counter(sent(server).values()) == {1: 11, 2: 1}
    assert BatchLine.objects.count() == 0


def test_a_stop_and_a_deletion_leave_no_call_and_no_money_behind(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    Budget.objects.create(tenant=cast.tenant, kind="tenant", amount_usd=100)
    server.batches.polls = 5
    stopped, deleted = begin(cast, library, name="Stopped"), begin(cast, library, name="Deleted")
    look(stopped)
    look(deleted)
    assert BudgetHold.objects.count() == 6
    generation_stop(tenant=cast.tenant, actor=cast.actor("member"), job=stopped)
    carry(stopped)
    assert lines(stopped) == {}
    generation_pause(tenant=cast.tenant, actor=cast.actor("member"), job=deleted)
    dataset_delete(tenant=cast.tenant, actor=cast.actor("owner"), dataset=deleted.dataset)
    for row in Job.objects.filter(kind=WIND_UP, payload__owner=deleted.topic):
        for _ in range(4):
            Job.objects.filter(pk=row.pk).update(run_after="2000-01-01T00:00:00Z")
            if Job.objects.get(pk=row.pk).status == JobStatus.QUEUED:
                run_here(cast.tenant.pk, row.pk)
    assert (BatchLine.objects.count(), BudgetHold.objects.count()) == (0, 0)
    assert all(batch.is_cancelled for batch in every(server))


def test_money_is_held_at_half_price_before_anything_is_sent(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    budget = Budget.objects.create(tenant=cast.tenant, kind="tenant", amount_usd="0.0001")
    job = carry(begin(cast, library))
    assert job.state == GenerationState.PAUSED
    assert "The workspace's budget" in job.reason
    assert not sent(server)
    assert not BudgetHold.objects.exists()
    Budget.objects.filter(pk=budget.pk).update(amount_usd=100)
    generation_resume(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    look(job)
    half = sum(BudgetHold.objects.values_list("amount_usd", flat=True)) / 3
    # 4,000 tokens of output at 7.50 USD a million are the most of it, at half that price.
    assert Decimal("0.015") < half < Decimal("0.017")


def test_lines_wait_while_others_hold_the_money(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    # Two calls at most at once: the others go when their money is free again.
    Budget.objects.create(tenant=cast.tenant, kind="tenant", amount_usd="0.04")
    job = begin(cast, library)
    look(job)
    assert (job.state, lines(job)) == ("running", {"sent": 2, "wanted": 1})
    look(job)
    assert len(sent(server)) == 4
    assert set(sent(server).values()) == {1}


def test_who_loses_the_right_meanwhile_sends_nothing_more(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    server.batches.polls = 9
    job = begin(cast, library)
    look(job)
    Membership.objects.filter(tenant=cast.tenant, user=cast.user("member")).update(role="viewer")
    look(job)
    assert job.state == GenerationState.PAUSED
    carry(job)
    assert len(sent(server)) == 3
    assert all(batch.is_cancelled for batch in every(server))
    assert not BatchLine.objects.filter(state="sent").exists()


def test_the_budget_of_a_job_limits_what_is_sent_at_once(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    job = begin(cast, library, budget="1.05", row_usd=0.5)
    look(job)
    look(job)
    assert len({key.partition("-")[0] for key in sent(server)}) == 2  # a third row might cost too much
    assert len(sent(server)) == 4


def test_what_cannot_be_batched_is_refused_with_a_way_out(
    cast: Cast, library: Library, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    for options, field, words in (
        ({"model": "extractive"}, "delivery", "Rules answer immediately"),
        ({"judge_model": "extractive"}, "delivery", "Choose a language model"),
        ({"model": "compatible/fake-rows"}, "delivery", "or run it now"),
        ({"delivery": "tomorrow"}, "delivery", "Enter now or batch."),
        ({"drivers": 2}, "drivers", "leave this at 1"),
    ):
        with pytest.raises(Invalid) as refused:
            begin(cast, library, name=words, **options)
        assert words in refused.value.data["fields"][field][0], options
    assert not GenerationJob.objects.exists()


def test_no_workspace_reaches_the_calls_of_another(
    cast: Cast, library: Library, server: FakeProvider, model: FakeModel
) -> None:
    job = begin(cast, library)
    look(job)
    [batch] = batches(job)
    key = BatchLine.objects.values_list("key", flat=True)[0]
    stranger = cast.actor("outsider")
    with tenant_scope(stranger.tenant_id):
        assert not Batch.objects.exists()
        assert not BatchLine.objects.exists()
        assert BatchLine.objects.all().delete()[0] == 0
        assert round_open(actor=stranger, owner=job.topic) is None
        assert storing.line_find(cast.tenant.pk, job.topic, key) is None
        storing.batch_ended(batch)
        storing.lines_clear(cast.tenant.pk, job.topic)
        with pytest.raises(DatabaseError):
            BatchLine.objects.create(
                tenant_id=cast.tenant.pk, owner=job.topic, key="mine", model=MODEL, body="{}", kind="dataset"
            )
        with pytest.raises(DatabaseError):
            BatchLine.objects.create(
                tenant_id=stranger.tenant_id,
                owner="mine",
                key="mine",
                model=MODEL,
                body="{}",
                kind="dataset",
                batch_id=batch.pk,
            )
    assert lines(job) == {"sent": 3}
    batch.refresh_from_db()
    assert batch.state == BatchState.OUT


def status_after_look(job: GenerationJob) -> str:
    driver = look(job)
    assert driver is not None
    return driver.status


def _die(*_: Any, **__: Any) -> None:
    raise RuntimeError("killed")
