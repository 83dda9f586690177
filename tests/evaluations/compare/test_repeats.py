"""Repeats: where scores vary, and which rows are flaky. Arms: which of them another one beats."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.datasets.records.record import Record
from apps.datasets.records.rubric import SIX
from apps.evaluations.compare.charts import front_chart
from apps.evaluations.compare.dominance import LEAST_ROWS, dominated, front_of, look_number
from apps.evaluations.compare.repeats import arm_repeats
from apps.evaluations.experiments.services import experiment_resume, experiment_stop
from apps.evaluations.models import Arm, Experiment, Score, Trial
from apps.evaluations.results.selectors import arms_summary
from apps.evaluations.results.series import ArmScores, Series
from apps.evaluations.scorers.base import TargetResult
from apps.evaluations.scorers.judges import JudgeAnswer, Jury, Repeated, RubricJudge
from apps.evaluations.statistics.variance import variance_split
from apps.evaluations.trials.services import JudgeUse, scores_write, trial_answered
from basics.errors import Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_experiment, make_version


def test_the_variance_is_split_as_it_was_made():
    """Known components, 4,000 rows: each is found again within five of its own standard errors or so."""
    rng = np.random.default_rng(7)
    answers = []
    for row in range(4_000):
        true = rng.normal(0, 0.20)
        for _ in range(1 + row % 4):  # unbalanced on purpose
            answer = true + rng.normal(0, 0.10)
            answers.append((row, list(answer + rng.normal(0, 0.05, 1 + row % 3))))
    found = variance_split(answers)
    assert found.rows == pytest.approx(0.04, rel=0.1)
    assert found.generator == pytest.approx(0.01, rel=0.1)
    assert found.judge == pytest.approx(0.0025, rel=0.1)
    assert found.judge_share == pytest.approx(0.2, rel=0.15)


def test_a_balanced_design_equals_the_table_of_mean_squares():
    """Two answers a row, two judgements each: the textbook's ANOVA, by hand."""
    given = [(1, [0.2, 0.4]), (1, [0.6, 0.8]), (2, [0.5, 0.7]), (2, [0.5, 0.5])]
    found = variance_split(given)
    judge = (4 * 0.1**2 + 2 * 0.1**2) / 4
    generator = ((0.3 - 0.5) ** 2 * 2 + (0.6 - 0.55) ** 2 * 2) / 2 - judge / 2
    assert found.judge == pytest.approx(judge)
    assert found.generator == pytest.approx(generator)
    assert found.rows == 0  # 0.00125 between the rows is less than what their answers explain


def test_what_was_not_repeated_is_not_known():
    assert variance_split([]).rows is None
    once = variance_split([(1, [0.2]), (2, [0.4])])
    assert once.rows == pytest.approx(0.02)
    assert (once.generator, once.judge) == (None, None)


class _Voice:
    """A judge's model that gives one level after the other."""

    def __init__(self, *levels: int | None) -> None:
        self.model, self.levels = "openai/j", iter(levels)

    def __call__(self, *, system: str, prompt: str, form: Mapping[str, Any]) -> JudgeAnswer:
        level = next(self.levels)
        if level is None:
            return JudgeAnswer(None, "not readable")
        grade = {"reason": "r", "evidence": "e", "level": level}
        return JudgeAnswer({c.name: grade for c in SIX.criteria})


def test_a_repeated_judge_keeps_every_judgement_and_leaves_out_what_it_cannot_read():
    row, outcome = Record(question="q", answer="a"), TargetResult(text="an answer")
    judge = Repeated(tuple(RubricJudge(SIX, _Voice(level)) for level in (5, 3, None)))
    first = judge.score(row, outcome)[0]
    assert (first.value, first.level, first.details["replicates"]) == (0.75, 4, [1.0, 0.5])
    assert judge.author == RubricJudge(SIX, _Voice()).author
    silent = Repeated((RubricJudge(SIX, _Voice(None)), RubricJudge(SIX, _Voice(None))))
    assert {value.value for value in silent.score(row, outcome)} == {None}
    juries = Repeated(
        tuple(Jury((RubricJudge(SIX, _Voice(a)), RubricJudge(SIX, _Voice(b)))) for a, b in ((5, 5), (1, 3)))
    )
    assert juries.score(row, outcome)[0].details["replicates"] == [1.0, 0.25]


def _scores(values, cost=0.01):
    rows = dict(enumerate(values))
    return ArmScores(values={"token_f1": Series.of(rows)}, cost_usd=Series.of(dict.fromkeys(rows, cost)))


def test_an_arm_is_dominated_only_where_it_is_shown_and_costs_no_less():
    rng = np.random.default_rng(1)
    base = rng.uniform(0.3, 0.6, 40)
    good, bad = _scores(base + 0.2), _scores(base)
    (one,) = dominated({1: good, 2: bad}, look=1, arms=2)
    assert (one.loser, one.winner, one.rows) == (2, 1, 40)
    assert one.change == pytest.approx(-0.2)
    assert dominated({1: _scores(base + 0.2, cost=0.02), 2: bad}, look=1, arms=2) == []
    unknown = _scores(base + 0.2)
    unknown.cost_usd = Series.of()
    assert dominated({1: unknown, 2: bad}, look=1, arms=2) == []
    few = _scores(base[: LEAST_ROWS - 1] + 0.2)
    assert dominated({1: few, 2: bad}, look=1, arms=2) == []
    same = _scores(base + rng.normal(0, 0.01, 40))
    assert dominated({1: same, 2: bad}, look=1, arms=2) == []
    # The level shrinks with looks and arms: what is shown at the first look is not at the thirtieth.
    barely = _scores(base + np.where(np.arange(40) % 4 == 0, -0.05, 0.05) + rng.normal(0, 0.04, 40))
    assert dominated({1: barely, 2: bad}, look=1, arms=2)
    assert dominated({1: barely, 2: bad}, look=30, arms=2) == []


def test_arms_that_are_alike_are_rarely_stopped_however_often_one_looks():
    rng = np.random.default_rng(3)
    stopped = 0
    for _ in range(100):
        a, b = rng.uniform(0, 1, 320), rng.uniform(0, 1, 320)
        stopped += any(
            dominated({1: _scores(a[:n]), 2: _scores(b[:n])}, look=look, arms=2)
            for look, n in enumerate((20, 40, 80, 160, 320), 1)
        )
    assert stopped <= 16  # 5 % of 200 are 10; more than 16 has a chance below 3 %, and the seed is fixed
    assert [look_number(2 * 20 * 2**n, 2) for n in range(4)] == [1, 2, 3, 4]


def _ended(cast, experiment, trial, value, cost):
    """End a trial as its job does."""
    trial_answered(trial, TargetResult(text="x", cost_usd=float(cost)), is_next_job=False)
    Score.objects.create(
        tenant=cast.tenant, trial=trial, name="token_f1", value=value, author_kind="rule", author="t@1"
    )
    scores_write(trial, [], JudgeUse())


@pytest.mark.django_db
def test_a_sweep_stops_asking_the_arm_that_another_beats(cast):
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(36)])
    targets = [{"kind": "model", "model": "extractive", "system": s} for s in ("good", "bad", "dear")]
    experiment = make_experiment(cast, version, *targets, stops_dominated=True, concurrency=3)
    quality, cost = (0.9, 0.5, 0.95), ("0.01", "0.02", "0.05")
    with tenant_scope(cast.tenant.pk):
        while True:
            trial = Trial.objects.filter(experiment=experiment, state="answering").order_by("pk").first()
            if trial is None:
                break
            place = trial.arm.position
            _ended(cast, experiment, trial, quality[place] + 0.001 * (trial.position % 7), cost[place])
        good, bad, dear = Arm.objects.filter(experiment=experiment).order_by("position")
        experiment.refresh_from_db()
        states = [list(arm.trials.values_list("state", flat=True)) for arm in (good, bad, dear)]
        assert experiment.state == "completed"
        assert bad.stopped_at is not None
        assert "answers better at no higher cost" in bad.stop_reason
        assert good.stopped_at is None
        assert dear.stopped_at is None, "it costs more and answers best: it is on the front"
        assert states[0].count("done") == 36
        assert LEAST_ROWS <= states[1].count("done") <= LEAST_ROWS + 3
        assert states[1].count("skipped") == 36 - states[1].count("done")
        assert AuditEvent.objects.filter(action="experiment.arm_stop").count() == 1
        assert experiment.spent_usd == sum(t.cost_usd or 0 for t in Trial.objects.filter(state="done"))
        assert experiment.ended_count == Trial.objects.filter(state="done").count()
        points = front_of(arms_summary(actor=cast.actor("viewer"), experiment=experiment))
        assert [(p.is_on_front, p.is_stopped) for p in points] == [
            (True, False),
            (False, True),
            (True, False),
        ]
        chart = front_chart(points)
        assert chart is not None
        assert [spot.kind for spot in chart.spots] == ["on", "stopped", "on"]
        assert len(chart.line.split()) == 2


@pytest.mark.django_db
def test_a_stopped_arm_stays_stopped_when_the_experiment_goes_on(cast):
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(3)])
    target = {"kind": "model", "model": "extractive"}
    experiment = make_experiment(cast, version, target, concurrency=1)
    who = {"tenant": cast.tenant, "actor": cast.actor("member")}
    with tenant_scope(cast.tenant.pk):
        Trial.objects.filter(experiment=experiment, position=2).update(state="skipped")
        experiment_stop(**who, experiment=experiment)
        experiment_resume(**who, experiment=experiment)
        states = Trial.objects.filter(experiment=experiment).order_by("position")
        assert states.values_list("state", flat=True)[2] == "skipped"


@pytest.mark.django_db
def test_what_a_trial_costs_does_not_grow_with_the_experiment(cast):
    """The next trial comes out of an index, and nothing sums or counts over all trials."""
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(200)])
    target = {"kind": "model", "model": "extractive"}
    experiment = make_experiment(cast, version, target, repeats=20, budget_usd=Decimal(50), concurrency=4)
    with tenant_scope(cast.tenant.pk):
        trial = Trial.objects.filter(experiment=experiment, state="answering")[0]
        trial.answer, trial.cost_usd = "x", Decimal("0.01")
        trial.save()
        with CaptureQueriesContext(connection) as seen:
            scores_write(trial, [], JudgeUse())
        reads = [q["sql"] for q in seen if q["sql"].startswith("SELECT") and "evaluations_trial" in q["sql"]]
        assert not [sql for sql in reads if "SUM(" in sql or "MAX(" in sql]
        (ordered,) = [sql for sql in reads if "ORDER BY" in sql]
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_sort TO off")  # without statistics a sort looks free
            cursor.execute(f"EXPLAIN {ordered}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "trial_next" in plan, plan
        assert "Sort" not in plan, plan
        assert Experiment.objects.get(pk=experiment.pk).ended_count == 1


def _measured(cast, given):
    """Return an arm whose rows have these values: row -> repeat -> judgements."""
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(len(given))])
    target = {"kind": "model", "model": "extractive"}
    experiment = make_experiment(cast, version, target, repeats=2, concurrency=1)
    with tenant_scope(cast.tenant.pk):
        for trial in Trial.objects.filter(experiment=experiment):
            judged = given[trial.position][trial.repeat]
            Score.objects.create(
                tenant=cast.tenant,
                trial=trial,
                name="accuracy",
                value=sum(judged) / len(judged),
                details={"replicates": judged},
                author_kind="judge",
                author="judge:six@1:m",
            )
        return Arm.objects.get(experiment=experiment)


@pytest.mark.django_db
def test_repeats_name_the_flaky_rows_and_who_makes_them_so(cast, client):
    arm = _measured(
        cast,
        [
            [[1.0, 1.0], [1.0, 1.0]],
            [[1.0, 1.0], [0.0, 0.0]],  # the answers differ
            [[1.0, 0.5], [0.5, 0.5]],  # so does the judge
        ],
    )
    with tenant_scope(cast.tenant.pk):
        found = arm_repeats(actor=cast.actor("viewer"), arm=arm)
        rows = dict(Trial.objects.filter(arm=arm).values_list("position", "row_ref"))
        with pytest.raises(Missing):
            arm_repeats(actor=cast.actor("viewer"), arm=arm, score="nope")
    assert [one.row for one in found.flaky] == [rows[1], rows[2]]
    assert [(one.passes, one.spread, one.judge_spread) for one in found.flaky] == [
        (1, 1.0, 0.0),
        (1, 0.25, 0.5),
    ]
    assert found.pass_all == pytest.approx(1 / 3)
    assert found.variance.judge == pytest.approx(0.125 / 6)
    assert (found.names, found.repeats, found.rows) == (["accuracy"], 2, 3)
    client.force_login(cast.user("viewer"))
    page = client.get(f"/t/{cast.tenant.slug}/evaluations/arms/{arm.pk}/repeats/")
    assert page.status_code == 200
    assert page.content.decode().count("1 of 2") == 2
    client.force_login(cast.user("outsider"))
    assert client.get(page.request["PATH_INFO"]).status_code == 404
