"""The gate: what may stop a release, what is advice, and what cannot be compared."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from apps.datasets.records.record import Record
from apps.evaluations.compare.gate import FAILED, NOT_COMPARABLE, PASSED, gate_run
from apps.evaluations.compare.gate_reports import to_sarif
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.judges.trust import agreement_list
from apps.evaluations.models import Arm, Experiment, Score, Trial
from basics.errors import Conflict, Denied
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_experiment, make_version

pytestmark = pytest.mark.django_db
ROWS = 40


@pytest.fixture
def version(cast):
    return make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(ROWS)])


def measured(cast, version, value, *, name="token_f1", author="token_f1@1", kind="rule", repeats=1):
    """Return the arm of a completed experiment; ``value`` gives each row's score from row and repeat."""
    target = {"kind": "model", "model": "extractive"}
    experiment = make_experiment(cast, version, target, repeats=repeats, concurrency=1)
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        Trial.objects.filter(experiment=experiment).update(state="done")
        Experiment.objects.filter(pk=experiment.pk).update(state="completed")
        Score.objects.bulk_create(
            Score(
                tenant=cast.tenant,
                trial=t,
                name=name,
                value=value(t.position, t.repeat),
                level=1 + round(value(t.position, t.repeat) * 4),
                author_kind=kind,
                author=author,
                rubric_version=rubric if kind != "rule" else None,
            )
            for t in Trial.objects.filter(experiment=experiment)
        )
        return Arm.objects.select_related("experiment").get(experiment=experiment)


def decide(cast, arm, **given):
    with tenant_scope(cast.tenant.pk):
        return gate_run(actor=cast.actor("member"), arm=arm, **given)


def promote(cast, arm, **given):
    with tenant_scope(cast.tenant.pk):
        return baseline_set(tenant=cast.tenant, actor=cast.actor("member"), arm=arm, **given)


def good(row, repeat):
    return 0.9 - 0.01 * (row % 3)


def bad(row, repeat):
    return 0.6 - 0.01 * (row % 5)


def test_without_a_baseline_nothing_is_decided(cast, version):
    arm = measured(cast, version, good)
    assert decide(cast, arm).code == NOT_COMPARABLE


def test_a_fall_fails_and_the_same_passes(cast, version):
    promote(cast, measured(cast, version, good))
    assert decide(cast, measured(cast, version, good)).code == PASSED
    result = decide(cast, measured(cast, version, bad), most_failed_rows=3)
    assert result.code == FAILED
    assert {c.name for c in result.checks if c.verdict == "failed"} == {"token_f1", "rows"}
    assert len(result.failed_rows) == ROWS
    assert decide(cast, measured(cast, version, bad), tolerance=0.5).code == PASSED


def test_a_row_that_must_pass_fails_the_gate_alone(cast, version):
    promote(cast, measured(cast, version, good))
    arm = measured(cast, version, lambda row, repeat: 0.5 if row == 7 else good(row, repeat))
    with tenant_scope(cast.tenant.pk):
        rows = dict(Trial.objects.filter(arm=arm).values_list("position", "row_ref"))
    assert decide(cast, arm).code == PASSED
    assert decide(cast, arm, must_pass=[rows[6]]).code == PASSED
    for missed in (rows[7], max(rows.values()) + 1):
        result = decide(cast, arm, must_pass=[rows[6], missed])
        assert (result.code, result.reason) == (FAILED, "Failed: must pass.")
        assert str(missed) in result.checks[-1].message


def test_sarif_tells_every_check_and_every_row_that_fell(cast, version):
    promote(cast, measured(cast, version, good))
    result = decide(cast, measured(cast, version, bad), minima={"token_f1": 0.1})
    log = to_sarif(result, at="prompts/chat.md")
    (run,) = log["runs"]
    assert (log["version"], run["invocations"][0]["exitCode"]) == ("2.1.0", FAILED)
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {one["ruleId"] for one in run["results"]} == known
    assert len(known) == len(run["tool"]["driver"]["rules"])
    told = [(one["ruleId"], one["kind"], one["level"]) for one in run["results"]]
    assert told[:2] == [("token_f1", "fail", "error"), ("token_f1 at least 0.1", "pass", "none")]
    assert told[2:] == [("row-fell", "fail", "warning")] * ROWS
    prints = [json.dumps(one["partialFingerprints"]) for one in run["results"]]
    assert len(set(prints)) == len(prints)
    for one in run["results"]:
        (place,) = one["locations"]
        assert place["physicalLocation"]["artifactLocation"] == {"uri": "prompts/chat.md"}
    assert json.loads(json.dumps(log, allow_nan=False)) == log


def test_sarif_has_advice_as_review_and_no_comparison_as_a_failed_invocation(cast, version):
    arm = measured(cast, version, bad, **JUDGE)
    (run,) = to_sarif(decide(cast, arm))["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], run["results"]) == (False, [])
    assert "no baseline" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    promote(cast, measured(cast, version, good, **JUDGE))
    (run,) = to_sarif(decide(cast, arm))["runs"]
    assert {(one["kind"], one["level"]) for one in run["results"][:1]} == {("review", "none")}


def test_an_arm_that_was_stopped_early_is_neither_gated_nor_a_baseline(cast, version):
    promote(cast, measured(cast, version, good))
    arm = measured(cast, version, good)
    arm.stopped_at = arm.experiment.created_at
    assert decide(cast, arm).code == NOT_COMPARABLE
    with pytest.raises(Conflict):
        promote(cast, arm)


def test_the_noise_of_repeats_is_no_fall(cast, version):
    def noisy(row, repeat):
        return 0.8 + (0.1 if repeat else -0.1)

    def slightly_less(row, repeat):
        return noisy(row, repeat) - 0.02

    promote(cast, measured(cast, version, noisy, repeats=2))
    result = decide(cast, measured(cast, version, slightly_less, repeats=2))
    assert result.code == PASSED
    assert result.checks[0].noise > 0.2


def test_other_documents_are_not_compared(cast, version):
    promote(cast, measured(cast, version, good))
    arm = measured(cast, version, bad)
    arm.experiment.corpus = "f" * 64
    result = decide(cast, arm)
    assert result.code == NOT_COMPARABLE
    assert "documents have changed" in result.reason


def test_stale_labels_are_an_alarm_and_no_fall(cast, version):
    promote(cast, measured(cast, version, good))
    arm = measured(cast, version, bad)
    gone = {"labels": [{"document_id": 1, "start": 0, "end": 1, "quote": "x", "chunks": []}]}
    with tenant_scope(cast.tenant.pk):
        Trial.objects.filter(arm=arm).update(outcome=gone)
    result = decide(cast, arm)
    assert result.code == NOT_COMPARABLE
    assert "Label the dataset again" in result.reason


JUDGE = {"name": "accuracy", "author": "judge:six@1:m", "kind": "judge"}


def test_a_judge_is_advice_until_people_agree_with_it(cast, version):
    promote(cast, measured(cast, version, good, **JUDGE))
    arm = measured(cast, version, bad, **JUDGE)
    result = decide(cast, arm)
    assert result.code == PASSED
    assert result.checks[0].verdict == "advisory"
    assert "agreement with people" in result.checks[0].message
    spread = measured(cast, version, lambda row, _: (row % 5) / 4, **JUDGE)
    grade(cast, spread, lambda row: 1 + row % 5)
    result = decide(cast, arm)
    assert (result.code, result.checks[0].verdict) == (FAILED, "failed")


def test_a_judge_whom_people_contradict_stays_advice(cast, version):
    promote(cast, measured(cast, version, good, **JUDGE))
    spread = measured(cast, version, lambda row, _: (row % 5) / 4, **JUDGE)
    grade(cast, spread, lambda row: 1 + (row * 7 + 3) % 4)
    assert decide(cast, measured(cast, version, bad, **JUDGE)).code == PASSED
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        (one,) = agreement_list(actor=cast.actor("member"), version=rubric)
        assert one.n == ROWS
        assert one.human_human is not None
        assert not one.is_trusted()


def grade(cast, arm, level):
    """Two people grade every answer alike."""
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        Score.objects.bulk_create(
            Score(
                tenant=cast.tenant,
                trial=t,
                name="accuracy",
                value=(level(t.position) - 1) / 4,
                level=level(t.position),
                author_kind="person",
                author=f"person:{who}",
                rubric_version=rubric,
            )
            for t in Trial.objects.filter(arm=arm)
            for who in (1, 2)
        )


def test_baselines_move_and_keep_their_history(cast, version):
    first, second = measured(cast, version, bad), measured(cast, version, good)
    promote(cast, first)
    promote(cast, second)
    assert decide(cast, measured(cast, version, bad)).baseline_arm == second.pk
    with tenant_scope(cast.tenant.pk), pytest.raises(Denied):
        baseline_set(tenant=cast.tenant, actor=cast.actor("viewer"), arm=first)
    first.experiment.state = "running"
    with pytest.raises(Conflict):
        promote(cast, first)


def test_the_command_writes_reports_and_exits_by_the_decision(cast, version, tmp_path):
    promote(cast, measured(cast, version, good))
    arm = measured(cast, version, bad)
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "eval_gate",
            tenant=cast.tenant.slug,
            experiment=arm.experiment_id,
            stdout=out,
            junit=tmp_path / "gate.xml",
            json=tmp_path / "gate.json",
            min=["token_f1=0.8"],
            sarif=tmp_path / "gate.sarif",
        )
    assert ended.value.code == 1
    assert 'failures="2"' in (tmp_path / "gate.xml").read_text()
    assert json.loads((tmp_path / "gate.json").read_text())["code"] == 1
    assert json.loads((tmp_path / "gate.sarif").read_text())["version"] == "2.1.0"
    better = measured(cast, version, lambda row, _: 0.95)
    call_command(
        "eval_gate", tenant=cast.tenant.slug, experiment=better.experiment_id, stdout=out, promote=True
    )
    with pytest.raises(SystemExit):
        call_command("eval_gate", tenant=cast.tenant.slug, experiment=arm.experiment_id, stdout=out)
    assert "No deciding score has dropped." in out.getvalue()
