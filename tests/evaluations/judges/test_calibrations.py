"""A judge on the scale of people: what is kept of a calibration, where it is used, and what stays as the judge gave it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.records.record import Record
from apps.evaluations.compare.comparison import arms_compare
from apps.evaluations.compare.gate_reports import to_sarif
from apps.evaluations.judges.calibration_services import calibration_create
from apps.evaluations.judges.calibrations import arms_read
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.models import Experiment, JudgeCalibration, JudgeCheck, Score, Trial
from apps.evaluations.statistics.calibration import isotonic_band
from basics.errors import Conflict, Denied, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.evaluations.compare.test_gate import JUDGE, decide, grade, measured, promote
from tests.evaluations.support import make_version

pytestmark = pytest.mark.django_db
ROWS = 40


def lenient(row: int, repeat: int) -> float:
    """Return what a judge gives that is a level too kind, but for the lowest."""
    return (0.25, 0.5, 0.75, 1.0)[row % 4]


def made(cast, **given: Any) -> JudgeCalibration:
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        return calibration_create(
            tenant=cast.tenant,
            version=rubric,
            **{"actor": cast.actor("member"), "name": "accuracy", "author": "judge:six@1:m", **given},
        )


def graded(cast, arm, rows) -> None:
    """One person grades some answers a level below the judge."""
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        for trial in Trial.objects.filter(arm=arm, position__in=rows):
            level = 1 + trial.position % 4
            Score.objects.create(
                tenant=cast.tenant,
                trial=trial,
                name="accuracy",
                value=(level - 1) / 4,
                level=level,
                author_kind="person",
                author="person:1",
                rubric_version=rubric,
            )


def test_the_band_holds_the_curve_and_narrows_with_answers():
    rng = np.random.default_rng(7)
    widths = []
    for n in (40, 640):
        judge = np.repeat([0, 0.25, 0.5, 0.75, 1.0], n // 5)
        people = np.clip(judge - 0.25 + rng.choice([-0.25, 0, 0.25], judge.size), 0, 1)
        band = isotonic_band(judge, people)
        assert (np.diff(band.y) >= 0).all()
        assert (np.array(band.low) <= band.y).all()
        assert (np.array(band.high) >= band.y).all()
        low, high = band.mean_interval(judge)
        assert low <= float(band.apply(judge).mean()) <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2
    exact = isotonic_band([0, 0.5, 1], [0, 0.5, 1])
    assert exact.apply([0.25, 2]).tolist() == [0.25, 1.0]


def test_a_calibration_needs_people_and_keeps_its_versions(cast):
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(ROWS)])
    arm = measured(cast, version, lenient, **JUDGE)
    with pytest.raises(Missing):
        made(cast)  # nobody has graded
    graded(cast, arm, range(10))
    with pytest.raises(Conflict, match="10 of the answers"):
        made(cast)
    graded(cast, arm, range(10, ROWS))
    with pytest.raises(Denied):
        made(cast, actor=cast.actor("viewer"))
    with pytest.raises(Missing):
        made(cast, actor=cast.actor("outsider"))
    assert [made(cast).number, made(cast).number] == [1, 2]
    with tenant_scope(cast.tenant.pk):
        told = AuditEvent.objects.filter(action="judge.calibrate").values_list("data", flat=True)
        assert [one["number"] for one in told.order_by("pk")] == [1, 2]


def test_a_gate_reads_a_judge_on_the_scale_of_people_with_the_raw_score_beside(cast):
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(ROWS)])
    before = measured(cast, version, lenient, **JUDGE)
    arm = measured(cast, version, lenient, repeats=2, **JUDGE)
    promote(cast, before)
    grade(cast, before, lambda row: 1 + row % 4)  # one level below the judge
    # Not calibrated yet: what is asked for cannot be had, and the raw score counts.
    assert decide(cast, arm, calibrated=True).checks[0].calibration is None
    kept = made(cast)
    raw = decide(cast, arm, minima={"accuracy": 0.6})
    read = decide(cast, arm, minima={"accuracy": 0.6}, calibrated=True)
    assert (raw.checks[0].value, raw.checks[0].calibration) == (0.625, None)
    one, least = read.checks
    assert (one.value, one.raw_value, one.raw_baseline) == (pytest.approx(0.375), 0.625, 0.625)
    assert (one.calibration, one.calibration_number) == (kept.pk, 1)
    assert one.calibrated_low == one.calibrated_high == pytest.approx(0.375)  # people were of one mind
    assert "Calibrated to people (version 1, 40 answers)" in one.message
    assert least.value == pytest.approx(0.375)
    assert raw.checks[1].value == 0.625
    (result, _) = to_sarif(read)["runs"][0]["results"]
    assert (result["properties"]["rawValue"], result["properties"]["calibrationNumber"]) == (0.625, 1)
    # A kind judge is trusted as before; what its score means has changed.
    assert raw.checks[0].verdict == one.verdict == "passed"
    assert (raw.checks[1].verdict, least.verdict) == ("passed", "failed")

    client = Client()
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    said = {"X-Tenant": cast.tenant.slug}
    path = f"/api/v1/arms/{arm.pk}/comparison?against={before.pk}"
    (criterion,) = client.get(path, headers=said).json()["criteria"]
    assert (criterion["b"]["value"], criterion["calibrated"]) == (0.625, [])
    (criterion,) = client.get(f"{path}&calibrated=true", headers=said).json()["criteria"]
    assert criterion["b"]["value"] == pytest.approx(0.375)
    assert [one["raw"] for one in criterion["calibrated"]] == [0.625, 0.625]
    page = reverse("evaluations:compare", args=[cast.tenant.slug])
    shown = client.get(f"{page}?a={before.pk}&b={arm.pk}").content.decode()
    assert "Show adjusted to people's grades" in shown
    shown = client.get(f"{page}?a={before.pk}&b={arm.pk}&calibrated=1").content.decode()
    assert "Show raw scores" in shown
    assert "raw 0.63" in shown or "raw 0.62" in shown
    gate = reverse("evaluations:gate", args=[cast.tenant.slug, arm.pk])
    assert "Calibrated, version 1" in client.get(f"{gate}?calibrated=on").content.decode()
    trust = reverse("evaluations:trust", args=[cast.tenant.slug])
    assert "Calibration 1" in client.get(trust).content.decode()
    again = reverse("evaluations:calibrate", args=[cast.tenant.slug, kept.rubric_version_id])
    client.post(again, {"score": "accuracy", "judge": "judge:six@1:m"})
    assert "Calibration 2" in client.get(trust).content.decode()
    client.force_login(cast.user("outsider"))
    assert client.post(again, {"score": "accuracy", "judge": "judge:six@1:m"}).status_code == 404

    with tenant_scope(cast.tenant.pk):  # a judge that has drifted is another one
        JudgeCheck.objects.create(
            tenant=cast.tenant,
            rubric_version_id=kept.rubric_version_id,
            experiment_id=arm.experiment_id,
            author="judge:six@1:m",
            levels={},
            findings=[],
            is_drifted=True,
        )
        assert Experiment.objects.filter(pk=arm.experiment_id).exists()
    assert decide(cast, arm, calibrated=True).checks[0].calibration is None


def test_scores_of_several_judges_stay_as_they_are(cast):
    version = make_version(cast, [Record(question=f"q{n}", answer="a") for n in range(ROWS)])
    first = measured(cast, version, lenient, **JUDGE)
    second = measured(cast, version, lenient, **JUDGE)
    grade(cast, first, lambda row: 1 + row % 4)
    made(cast)
    with tenant_scope(cast.tenant.pk):
        trial = Trial.objects.filter(arm=second)[0]
        Score.objects.create(
            tenant=cast.tenant,
            trial=trial,
            name="accuracy",
            value=0.5,
            author_kind="judge",
            author="judge:six@1:x",
        )
        read = arms_read(actor=cast.actor("viewer"), a=first, b=second, is_calibrated=True)
        assert read.readings == {}
        assert arms_compare(read.a, read.b).leading.a.value == 0.625
