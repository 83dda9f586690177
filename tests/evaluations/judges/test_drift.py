"""A judge that grades gold answers otherwise than before: the experiment waits, and its scores gate nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.datasets.records.record import Record
from apps.datasets.records.rubric import SIX
from apps.evaluations.experiments import judge_checks
from apps.evaluations.experiments.services import experiment_resume, experiment_stop
from apps.evaluations.experiments.starting import CHECK_JOB
from apps.evaluations.judges import asking
from apps.evaluations.judges.drift import LEAST_GOLD, check_list
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.judges.trust import arm_agreements
from apps.evaluations.models import (
    AnnotationItem,
    AnnotationQueue,
    Experiment,
    JudgeCheck,
    RubricVersion,
    Trial,
)
from apps.evaluations.results.selectors import arm_scores
from jobs.models import Job
from jobs.runner import _finish
from runs.services import Completion, CompletionFailed
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_experiment, make_version
from tests.runs.support import take
from toolloop.tokens import Usage

committing = pytest.mark.django_db(transaction=True)
GOLD = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 3, 4]
JUDGED = [{"kind": "rubric", "options": {"models": ["openai/j"]}}]
TARGET = {"kind": "model", "model": "extractive"}


def gold(cast: Any, levels: list[int]) -> None:
    """Answers with levels that are known to be right, of the six scores."""
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(len(levels))])
    experiment = make_experiment(cast, version, TARGET)
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        queue = AnnotationQueue.objects.create(tenant=cast.tenant, name="Gold", rubric_version=rubric)
        for trial in Trial.objects.filter(experiment=experiment):
            level = levels[trial.position]
            Trial.objects.filter(pk=trial.pk).update(state="done", answer=f"level {level}")
            AnnotationItem.objects.create(
                tenant=cast.tenant,
                queue=queue,
                trial=trial,
                position=trial.position,
                gold={c.name: level for c in SIX.criteria},
            )
        Experiment.objects.filter(pk=experiment.pk).update(state="completed")


def judge(monkeypatch: pytest.MonkeyPatch, graded: Callable[[int], int]) -> list[str]:
    """Have the judge's model grade by the level that an answer names; returns what it is asked."""
    asked: list[str] = []

    def complete(**given: Any) -> Completion:
        asked.append(given["prompt"])
        level = graded(int(given["prompt"].partition("level ")[2][0]))
        grade = {"reason": "r", "evidence": "e", "level": level}
        return Completion({c.name: grade for c in SIX.criteria}, "", Usage(), 0.01)

    monkeypatch.setattr(asking, "completion_run", complete)
    monkeypatch.setattr("apps.evaluations.experiments.choices._model_checked", lambda tenant, model: None)
    return asked


async def check(experiment: Experiment, lane: Any) -> None:
    """Do the experiment's check as a worker would."""

    def queued() -> Job:
        with tenant_scope(experiment.tenant_id):
            return Job.objects.get(kind=CHECK_JOB, status="queued", payload__experiment_id=experiment.pk)

    job = await sync_to_async(queued)()
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(experiment.tenant_id):
        error: BaseException | None = None
        try:
            await judge_checks.judge_check(ctx, **job.payload)
        except Exception as raised:  # noqa: BLE001 - the runner's own rules decide
            error = raised
        await ctx.in_db(_finish, ctx, job, error)


def now(cast: Any, experiment: Experiment) -> tuple[str, int, list[JudgeCheck]]:
    """Return its state, how many trials have begun, and its checks."""
    with tenant_scope(cast.tenant.pk):
        row = Experiment.objects.get(pk=experiment.pk)
        begun = Trial.objects.filter(experiment=row).exclude(state="pending").count()
        return row.state, begun, check_list(actor=cast.actor("viewer"), experiment=row)


@committing
async def test_a_judge_is_checked_before_each_run_and_a_drift_pauses_it(cast, monkeypatch, lane_threads):
    await sync_to_async(gold)(cast, GOLD)
    asked = judge(monkeypatch, lambda level: level)
    rows = [Record(question="q", answer="a")]
    version = await sync_to_async(make_version)(cast, rows)

    async def start() -> Experiment:
        made: Experiment = await sync_to_async(make_experiment)(cast, version, TARGET, scorers=JUDGED)
        return made

    first = await start()
    assert (await sync_to_async(now)(cast, first))[:2] == ("running", 0)
    await check(first, lane_threads)
    state, begun, (reference,) = await sync_to_async(now)(cast, first)
    assert (state, begun, reference.is_drifted, len(asked)) == ("running", 1, False, len(GOLD))
    assert {f["change"] for f in reference.findings} == {None}
    assert reference.findings[0]["kappa"]["value"] == pytest.approx(1)

    same = await start()
    await check(same, lane_threads)
    assert len(asked) == 2 * len(GOLD), "the cache would hide a drift"
    assert (await sync_to_async(now)(cast, same))[2][0].findings[0]["change"]["value"] == 0

    judge(monkeypatch, lambda level: max(1, level - 1))
    harsher = await start()
    await check(harsher, lane_threads)
    state, begun, (found,) = await sync_to_async(now)(cast, harsher)
    assert (state, begun, found.is_drifted) == ("paused", 0, True)

    def go_on() -> None:
        with tenant_scope(cast.tenant.pk):
            row = Experiment.objects.get(pk=harsher.pk)
            assert "differently than before" in row.reason
            experiment_resume(tenant=cast.tenant, actor=cast.actor("member"), experiment=row)
            assert Trial.objects.filter(experiment=row, state="answering").count() == 1
            rubric = RubricVersion.objects.get(rubric__slug=SIX.slug)
            trial = Trial.objects.get(experiment=row)
            trial.scores.create(
                tenant=cast.tenant,
                name="accuracy",
                value=0.5,
                author_kind="judge",
                author=found.author,
                rubric_version=rubric,
            )
            who = {"actor": cast.actor("viewer"), "arm": trial.arm}
            (one,) = arm_agreements(**who, scores=arm_scores(**who))["accuracy"]
            assert not one.is_trusted(0)
            assert "grades the gold answers differently" in one.told()
        client = Client()
        client.force_login(cast.user("viewer"))
        page = client.get(reverse("evaluations:detail", args=[cast.tenant.slug, harsher.pk]))
        assert page.content.decode().count("Drifted") == len(SIX.criteria)

    await sync_to_async(go_on)()


@committing
async def test_a_check_that_fails_pauses_and_is_made_again(cast, monkeypatch, lane_threads):
    await sync_to_async(gold)(cast, GOLD)
    judge(monkeypatch, lambda level: level)

    def refused(**_: Any) -> Completion:
        raise CompletionFailed("budget_exceeded", "The budget is used up.", is_retryable=False)

    monkeypatch.setattr(asking, "completion_run", refused)
    version = await sync_to_async(make_version)(cast, [Record(question="q", answer="a")])
    experiment = await sync_to_async(make_experiment)(cast, version, TARGET, scorers=JUDGED)
    await check(experiment, lane_threads)
    assert (await sync_to_async(now)(cast, experiment))[:2] == ("paused", 0)
    judge(monkeypatch, lambda level: level)

    def again() -> None:
        with tenant_scope(cast.tenant.pk):
            row = Experiment.objects.get(pk=experiment.pk)
            assert "could not be checked" in row.reason
            experiment_resume(tenant=cast.tenant, actor=cast.actor("member"), experiment=row)

    await sync_to_async(again)()
    await check(experiment, lane_threads)
    assert (await sync_to_async(now)(cast, experiment))[:2] == ("running", 1)


@pytest.mark.django_db
def test_few_gold_answers_or_no_model_start_at_once_and_a_stop_ends_the_check(cast, monkeypatch):
    judge(monkeypatch, lambda level: level)
    version = make_version(cast, [Record(question="q", answer="a")])
    gold(cast, GOLD[: LEAST_GOLD - 1])
    assert now(cast, make_experiment(cast, version, TARGET, scorers=JUDGED))[1] == 1
    gold(cast, GOLD)
    assert now(cast, make_experiment(cast, version, TARGET, scorers=[{"kind": "rubric"}]))[1] == 1
    waiting = make_experiment(cast, version, TARGET, scorers=JUDGED)
    with tenant_scope(cast.tenant.pk):
        experiment_stop(tenant=cast.tenant, actor=cast.actor("member"), experiment=waiting)
        assert Job.objects.get(kind=CHECK_JOB).status == "cancelled"
