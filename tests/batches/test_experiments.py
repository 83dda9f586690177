"""Experiments by batch over a real socket: the same results at half the price, and whatever may go wrong on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.evaluations.experiments.services import experiment_pause, experiment_resume, experiment_stop
from apps.evaluations.judges import asking
from apps.evaluations.models import Experiment, ExperimentState, JudgeCheck, Trial
from apps.evaluations.trials.batches import CARRY_JOB
from basics.errors import Invalid
from batches import lines as storing
from batches.models import OPEN, Batch, BatchLine
from batches.selectors import round_open
from budgets.models import Budget, BudgetHold
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from runs.models import Run, UsageRecord
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.batches.experiments import Clerk, begin, carry, results, step, work
from tests.batches.support import MODELS, PAST, WIRES, every, sent
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from tests.evaluations.judges.test_drift import GOLD, gold
from tests.evaluations.support import make_experiment, make_version, rows_of
from tests.fake_provider import FakeProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]
ROWS = 2
Act = Callable[..., Experiment]


@pytest.fixture
def library(cast: Cast) -> Iterator[Library]:
    made = make_library(cast)
    with tenant_scope(cast.tenant.pk):
        yield made


@pytest.fixture
def version(cast: Cast, library: Library) -> DatasetVersion:
    return make_version(cast, rows_of(library)[:ROWS])


@pytest.fixture
def clerk(server: FakeProvider, wire: str) -> Clerk:
    made = Clerk()
    made.cites = wire != "anthropic"
    server.replies[MODELS[wire].partition("/")[2]] = made
    return made


@pytest.fixture
def name(wire: str) -> str:
    return MODELS[wire]


def judged(name: str) -> list[dict[str, object]]:
    """Return scorers that ask a model: once, again about what it said, about pairs, and a rule."""
    kinds = ("rubric", "faithfulness", "noise_robustness", "pairwise")
    options = {"models": [name]}
    asked: list[dict[str, object]] = [{"kind": kind, "options": options} for kind in kinds]
    return [{"kind": "token_f1"}, *asked]


def ledger(experiment: Experiment) -> list[tuple[str, str, Decimal | None]]:
    """Return what of an experiment was paid for: kind and tier of each record, and its cost."""
    rows = UsageRecord.objects.filter(attribution__budget_job=experiment.budget_job)
    return sorted(rows.values_list("kind", "service_tier", "cost_usd"))


def paid_usd(experiment: Experiment) -> float:
    """Return what an experiment's calls have cost."""
    return float(sum(cost or 0 for *_, cost in ledger(experiment)))


def judged_in(experiment: Experiment) -> tuple[int, int, Decimal]:
    """Return how often judges were asked, how often from the cache, and what they cost."""
    trials = Trial.objects.filter(experiment=experiment)
    sums = trials.aggregate(a=Sum("judge_asked"), b=Sum("judge_cached"), c=Sum("judge_usd"))
    return sums["a"], sums["b"], sums["c"]


@pytest.mark.parametrize("wire", WIRES, indirect=True)
def test_results_by_batch_are_those_made_directly_at_half_the_price(
    cast: Cast,
    library: Library,
    version: DatasetVersion,
    server: FakeProvider,
    clerk: Clerk,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets = (
        {"kind": "assistant", "model": name, "collections": [library.collection.pk]},
        {"kind": "model", "model": name, "system": "Be short."},
    )
    batched = carry(begin(cast, version, *targets, scorers=judged(name)))
    assert batched.state == ExperimentState.COMPLETED, batched.reason
    assert set(sent(server).values()) == {1}
    calls = len(clerk.asked)
    assert len(sent(server)) == calls == len(ledger(batched))
    assert not BatchLine.objects.exists()
    assert not BudgetHold.objects.exists()
    assert {tier for _, tier, _ in ledger(batched)} == {"batch"}

    # What the judges have answered is not to be answered from the cache.
    key = asking._key
    monkeypatch.setattr(asking, "_key", lambda *parts: key("direct", *parts[1:]))
    direct = carry(make_experiment(cast, version, *targets, scorers=judged(name), concurrency=1))
    assert direct.state == ExperimentState.COMPLETED, direct.reason
    assert len(clerk.asked) == 2 * calls
    found = results(batched)
    assert found == results(direct)
    assert {t[1] for t in found["answers"]} == {"done"}
    # Each record is rounded to 8 places of a dollar, and what a run has cost to 6.
    assert paid_usd(batched) == pytest.approx(paid_usd(direct) / 2, abs=calls * 1e-8)
    assert paid_usd(batched) > 0
    assert float(batched.spent_usd) == pytest.approx(paid_usd(batched), abs=calls * 1e-6)
    for trial in Trial.objects.filter(experiment=batched):
        twin = Trial.objects.get(experiment=direct, arm__position=trial.arm.position, position=trial.position)
        assert float(trial.cost_usd or 0) == pytest.approx(float(twin.cost_usd or 0) / 2, abs=1e-6)
        assert trial.latency_ms is None
    # Which of two answers was there first, and so which pays for their comparison, is not what was found.
    asked, cached, cost = judged_in(direct)
    assert judged_in(batched)[:2] == (asked, cached)
    assert judged_in(batched)[2] == pytest.approx(cost / 2, abs=calls * Decimal("1e-8"))
    assert asked == 7 * ROWS


def test_no_worker_is_held_and_nobody_asks_in_vain_while_a_batch_is_out(
    cast: Cast, library: Library, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    server.batches.polls = 3
    target = {"kind": "assistant", "model": name, "collections": [library.collection.pk]}
    experiment = work(begin(cast, version, target, concurrency=1))
    jobs = Job.objects.filter(topic=experiment.topic)
    assert Counter(jobs.values_list("kind", "status")) == {
        ("evaluations.trial_run", JobStatus.SUCCEEDED): ROWS,
        (CARRY_JOB, JobStatus.QUEUED): 1,
    }
    assert set(Trial.objects.values_list("state", flat=True)) == {"away"}
    shown = round_open(actor=cast.actor("viewer"), owner=experiment.topic)
    assert shown is not None
    assert (shown.number, shown.total, shown.done) == (1, ROWS, 0)
    before = len(server.batches.asked)
    for _ in range(2):
        step(experiment)
    assert len(server.batches.asked) == before + 2  # a look is one request
    assert jobs.count() == ROWS + 1
    assert Run.objects.filter(status="queued").count() == ROWS


def test_answers_that_fail_expire_come_twice_or_are_nobodys_end_as_they_should(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    clerk.fails = {"notice": 400}
    target = {"kind": "model", "model": name}
    experiment = work(begin(cast, version, target, repeats=2))
    [first] = every(server)
    left, stray = min(sent(server)), {"key": "nobody-0", "response": {"candidates": []}}
    first.outcome, first.unanswered = "expired", frozenset([left])
    server.batches.strange = [json.dumps(stray).encode(), b"no JSON"]
    twice = first.answers
    step(experiment, CARRY_JOB)
    assert len(twice) == 2 * ROWS
    carry(experiment)
    assert experiment.state == ExperimentState.COMPLETED
    states = Counter(Trial.objects.values_list("position", "state"))
    assert states == {(0, "done"): 2, (1, "failed"): 2}
    assert "told to fail" in Trial.objects.filter(state="failed")[0].error
    # What expired was sent again, what was refused for good was not, and nobody's answer is not kept.
    assert Counter(sent(server).values()) == {1: 2 * ROWS - 1, 2: 1}
    assert len(ledger(experiment)) == len(clerk.asked) == 2


def test_a_doubled_answer_counts_once(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    experiment = work(begin(cast, version, {"kind": "model", "model": name}))
    [out] = every(server)
    out.lines = [*out.lines, *out.lines]  # the provider answers each of them twice
    carry(experiment)
    assert experiment.state == ExperimentState.COMPLETED
    assert len(clerk.asked) == 2 * len(ledger(experiment)) == 2 * ROWS


def test_a_batch_that_never_ends_is_cancelled_and_given_up_after_its_time(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    server.batches.polls = 10**6
    Budget.objects.create(tenant=cast.tenant, kind="tenant", amount_usd=100)
    experiment = work(begin(cast, version, {"kind": "model", "model": name}))
    [out] = every(server)
    assert BudgetHold.objects.count() == ROWS

    def late(seconds: float) -> None:
        [row] = Batch.objects.all()
        row.sent_at = timezone.now() - timedelta(hours=row.hours, seconds=seconds)
        row.save()
        step(experiment, CARRY_JOB)

    late(60)
    cancelled = [out.is_cancelled]
    late(storing.SLACK_S / 2 + 60)
    assert [*cancelled, out.is_cancelled] == [False, True]
    out.left = 10**6  # and the provider does not care
    late(storing.SLACK_S + 60)
    carry(experiment)
    assert (experiment.state, len(sent(server))) == (ExperimentState.COMPLETED, ROWS)
    assert set(sent(server).values()) == {1}
    assert set(Trial.objects.values_list("state", "error")) == {("failed", storing.NEVER_ENDED)}
    assert not BudgetHold.objects.exists()


@pytest.mark.parametrize("act", [experiment_pause, experiment_stop])
def test_what_is_away_is_cancelled_and_what_had_come_is_kept_when_it_goes_on(
    cast: Cast,
    library: Library,
    version: DatasetVersion,
    server: FakeProvider,
    clerk: Clerk,
    name: str,
    act: Act,
) -> None:
    server.batches.polls = 5
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    target = {"kind": "assistant", "model": name, "collections": [library.collection.pk]}
    experiment = work(begin(cast, version, target))
    [out] = every(server)
    out.unanswered = frozenset([max(sent(server))])
    act(**who, experiment=experiment)
    carry(experiment)
    assert out.is_cancelled
    assert (len(clerk.asked), len(ledger(experiment))) == (1, 1)
    assert not Trial.objects.filter(state="away").exists()
    assert not Batch.objects.filter(state__in=OPEN).exists()
    server.batches.polls = 1
    experiment_resume(**who, experiment=experiment)
    carry(experiment)
    assert experiment.state == ExperimentState.COMPLETED, experiment.reason
    assert set(Trial.objects.values_list("state", flat=True)) == {"done"}
    # Each call was paid once, and each trial has one run.
    assert len(clerk.asked) == len(ledger(experiment)) == 2 * ROWS
    assert Counter(Run.objects.values_list("status", flat=True)) == {"completed": ROWS}


def test_who_loses_their_rights_pauses_it_and_nothing_stays_with_the_provider(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    server.batches.polls = 3
    experiment = work(begin(cast, version, {"kind": "model", "model": name}))
    Membership.objects.filter(pk=cast.member.pk).delete()
    carry(experiment)
    assert experiment.state == ExperimentState.PAUSED
    assert "no longer a member" in experiment.reason
    assert every(server)[0].is_cancelled
    assert set(Trial.objects.values_list("state", flat=True)) == {"pending"}


def test_a_budget_is_held_at_half_the_price_and_pauses_what_it_does_not_pay(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    target = {"kind": "model", "model": name}
    whole = work(begin(cast, version, target, name="Whole", budget_usd=Decimal(100)))
    held = sorted(BudgetHold.objects.values_list("amount_usd", flat=True))
    most = sorted(BatchLine.objects.values_list("most_usd", flat=True))
    assert [round(x, 6) for x in held] == [round(x, 6) for x in most]
    carry(whole)
    assert not BudgetHold.objects.exists()
    # Enough for one call at a time: the second is sent when the first has been settled.
    one = carry(begin(cast, version, target, name="One", budget_usd=most[-1] * Decimal("1.2")))
    assert one.state == ExperimentState.COMPLETED, one.reason
    assert [batch.total for batch in Batch.objects.filter(owner=one.topic)] == [1] * ROWS
    assert one.spent_usd == whole.spent_usd
    none = carry(begin(cast, version, target, name="None", budget_usd=most[0] / 2))
    assert (none.state, len(ledger(none))) == (ExperimentState.PAUSED, 0)
    assert "budget" in none.reason.lower()


def test_what_cannot_go_by_batch_is_refused_at_the_start(
    cast: Cast, library: Library, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    target = {"kind": "model", "model": name}
    search = {"kind": "retriever", "collections": [library.collection.pk]}
    for given, words in (
        ({**target, "model": "extractive"}, "Rules answer immediately"),
        (search, "Nothing here uses a language model"),
        ({**target, "service_tier": "flex"}, "their own price and speed"),
    ):
        with pytest.raises(Invalid, match=words) as refused:
            begin(cast, version, given)
        assert list(refused.value.data["fields"]) == ["delivery"]
    with pytest.raises(Invalid, match="none can be stopped early"):
        begin(cast, version, target, stops_dominated=True)
    with pytest.raises(Invalid, match="now or batch"):
        begin(cast, version, target, delivery="later")
    assert not Experiment.objects.exists()


def test_a_refused_batch_pauses_in_the_providers_words(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    server.batches.refuse = 400
    experiment = carry(begin(cast, version, {"kind": "model", "model": name}))
    assert (experiment.state, experiment.reason) == (ExperimentState.PAUSED, "told to refuse")
    server.batches.refuse = 0
    experiment_resume(tenant=cast.tenant, actor=cast.actor("member"), experiment=experiment)
    assert carry(experiment).state == ExperimentState.COMPLETED
    assert set(sent(server).values()) == {1}


def test_a_dataset_that_goes_takes_its_experiments_batches_along(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    server.batches.polls = 3
    experiment = work(begin(cast, version, {"kind": "model", "model": name}))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM evaluations_experiment")
    for _ in range(8):
        Job.objects.filter(status="queued").update(run_after=PAST)
        for job in Job.objects.filter(status="queued"):
            run_here(job.tenant_id, job.pk)
    assert every(server)[0].is_cancelled
    assert not BatchLine.objects.filter(owner=experiment.topic).exists()
    assert not Job.objects.filter(status="queued").exists()


def test_judges_are_checked_on_gold_answers_by_batch_before_the_first_row(
    cast: Cast, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    gold(cast, GOLD)
    scorers = [{"kind": "rubric", "options": {"models": [name]}}]
    experiment = work(begin(cast, version, {"kind": "model", "model": name}, scorers=scorers))
    assert set(Trial.objects.filter(experiment=experiment).values_list("state", flat=True)) == {"pending"}
    [out] = every(server)
    assert len(out.lines) == len(GOLD)
    carry(experiment)
    assert experiment.state == ExperimentState.COMPLETED, experiment.reason
    assert JudgeCheck.objects.get(experiment=experiment).is_drifted is False
    assert set(sent(server).values()) == {1}
    assert sum(cost or 0 for *_, cost in ledger(experiment)) == experiment.spent_usd


def test_the_form_starts_it_and_page_and_rest_say_what_is_out(
    cast: Cast, library: Library, version: DatasetVersion, server: FakeProvider, clerk: Clerk, name: str
) -> None:
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.user("member"))
    page = reverse("evaluations:create", args=[cast.tenant.slug])
    assert b"Within a day, at half the price" in client.get(page).content
    filled = {
        "name": "By form",
        "version": version.pk,
        "kind": "model",
        "models": [name],
        "scorers": ["token_f1"],
        "judges": ["lexical"],
        "repeats": 1,
        "delivery": "batch",
    }
    refused = client.post(page, {**filled, "models": ["extractive"]})
    assert refused.status_code == 422
    assert b"Rules answer immediately and for free" in refused.content
    answer = client.post(page, filled)
    assert answer.status_code == 302, answer.context["form"].errors
    experiment = Experiment.objects.get()
    path = f"/api/v1/experiments/{experiment.pk}"
    assert "requests are sent to the provider" in client.get(answer["Location"]).content.decode()
    assert client.get(path).json()["batch"] is None
    server.batches.polls = 3
    work(experiment)
    shown = " ".join(client.get(answer["Location"]).content.decode().split())
    assert f"Round 1: {ROWS} calls sent to the provider on " in shown
    assert ". Answers usually arrive within 24 hours, at the latest on " in shown
    found = client.get(path).json()
    assert (found["delivery"], found["batch"]["total"], found["batch"]["done"]) == ("batch", ROWS, 0)
    arms = [{"target": {"kind": "model", "model": name}}]
    posted = {
        "name": "By REST",
        "version": version.pk,
        "arms": arms,
        "scorers": [{"kind": "token_f1"}],
        "delivery": "batch",
    }
    made = client.post("/api/v1/experiments", json.dumps(posted), content_type="application/json")
    assert (made.status_code, made.json()["delivery"]) == (201, "batch"), made.content
    other = json.dumps({**posted, "delivery": "later"})
    assert client.post("/api/v1/experiments", other, content_type="application/json").status_code == 400
