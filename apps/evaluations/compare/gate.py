"""May this arm be released? It is compared with the baseline, and every reason is said.

A score stops a release only when its fall is larger than the noise between repeats and the interval is below 0. A judge's
score stops one only when people were found to agree with the judge; otherwise it is advisory, and says so. Over other
documents than the baseline's, nothing is decided.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.evaluations.compare.comparison import (
    OVERALL,
    PASS,
    Comparison,
    arms_compare,
    overall_parts,
    stale_told,
    weighted_mean,
)
from apps.evaluations.judges.calibrations import Calibrated, arms_read
from apps.evaluations.judges.trust import BAR, Agreement, arm_agreements, trusted_names
from apps.evaluations.models import Arm, Baseline, ExperimentState
from apps.evaluations.results.selectors import baseline_get
from apps.evaluations.results.series import ArmScores
from apps.evaluations.scorers.retrieval import COVERAGE_ALARM
from basics.errors import Conflict
from basics.texts import number_told
from tenancy.actors import Actor

PASSED, FAILED, NOT_COMPARABLE = 0, 1, 3
Verdict = Literal["passed", "failed", "advisory"]
_REPEATS = 2.0  # standard deviations of the means of repeats that count as noise
_MOST_ROWS = 50


@dataclass(frozen=True, slots=True)
class Check:
    """One decision of a gate.

    Attributes:
        verdict: ``advisory``: it would have failed, or is not trusted enough to decide.
        noise: fall that the repeats explain.
        raw_baseline, raw_value: of a score on the scale of people: the judge's own means; ``calibration`` is the id of what was
            read by, ``calibration_number`` its version, and ``calibrated_low`` to ``calibrated_high`` where the arm's mean lies,
            as far as the calibration is known.
        kappa_low: of a judged score: lower end of the least of its judges' kappa with people, None where nothing is known.
        ceiling: how far people agree with each other, None where nothing is known.
    """

    name: str
    verdict: Verdict
    message: str
    baseline: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    noise: float = 0.0
    kappa_low: float | None = None
    ceiling: float | None = None
    calibration: int | None = None
    calibration_number: int | None = None
    calibrated_low: float | None = None
    calibrated_high: float | None = None
    raw_baseline: float | None = None
    raw_value: float | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate decided.

    Attributes:
        code: exit code: 0 passed, 1 failed, 3 not comparable.
        reason: one sentence.
        failed_rows: rows that passed in the baseline and fail now, worst first.
        baseline_name, arm_name: of the two arms, with their experiments; ids alone tell people nothing.
    """

    code: int
    reason: str
    checks: Sequence[Check] = ()
    failed_rows: Sequence[int] = ()
    baseline_arm: int | None = None
    arm: int | None = None
    baseline_name: str = ""
    arm_name: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def gate_run(
    *,
    actor: Actor,
    arm: Arm,
    baseline: str = "main",
    tolerance: float = 0.0,
    minima: Mapping[str, float] | None = None,
    most_failed_rows: int | None = None,
    must_pass: Sequence[int] = (),
    bar: float = BAR,
    calibrated: bool = False,
) -> GateResult:
    """Decide about an arm.

    Args:
        baseline: name of the baseline of the arm's dataset.
        tolerance: fall of a mean (0 to 1) that is accepted.
        minima: score -> least mean, whatever the baseline has.
        most_failed_rows: how many rows may pass in the baseline and fail now; None: any number.
        must_pass: rows (by ``row_ref``) that must pass whatever the means are; one that was not scored has not passed.
        bar: least lower end of a judge's kappa with people.
        calibrated: read judges' scores on the scale of people where they have a calibration, minima too. A judge is trusted
            by what it gave, so this makes none of them decide that would not.

    Returns:
        The decision. What cannot be compared is a result, not an error: its code is 3.
    """
    actor.require("evaluation.read")
    if arm.experiment.state != ExperimentState.COMPLETED:
        return _undecided(arm, None, _("The experiment isn't complete yet."))
    known = baseline_get(actor=actor, dataset_id=arm.experiment.dataset_id, name=baseline)
    if known is None:
        return _undecided(
            arm,
            None,
            _("This dataset has no baseline “%(baseline)s”. Set one first.") % {"baseline": baseline},
        )
    if cut := next((one for one in (known.arm, arm) if one.stopped_at), None):
        return _undecided(
            arm,
            known,
            _("“%(name)s” was stopped early, so not all its rows were asked. Run it alone.")
            % {"name": cut.name},
        )
    read = arms_read(actor=actor, a=known.arm, b=arm, is_calibrated=calibrated)
    before, after = read.a, read.b
    if problem := _other_ground(known, arm, after):
        return _undecided(arm, known, problem)
    try:
        found = arms_compare(before, after)
    except Conflict as error:
        return _undecided(arm, known, error.message)
    agreements = arm_agreements(actor=actor, arm=arm, scores=after)
    trusted = trusted_names(agreements, bar=bar)
    if after.judged <= trusted:
        trusted = trusted | {OVERALL}
    checks = _changes(found, read, trusted, tolerance, agreements, bar)
    checks += _minima(read, trusted, minima or {})
    failed_rows = [r.row for r in found.rows if r.a >= PASS > r.b]
    if most_failed_rows is not None:
        checks.append(_rows_check(found, trusted, after, failed_rows, most_failed_rows))
    if must_pass:
        checks.append(_must_pass(found, trusted, must_pass))
    failed = [c.name for c in checks if c.verdict == "failed"]
    reason = (
        _("Failed: %(checks)s.") % {"checks": ", ".join(failed)}
        if failed
        else _("No deciding score has dropped.")
    )
    return GateResult(
        FAILED if failed else PASSED, reason, checks, failed_rows[:_MOST_ROWS], **_sides(arm, known)
    )


def advisory_names(
    *, actor: Actor, arm: Arm, scores: ArmScores, found: Comparison, bar: float = BAR
) -> set[str]:
    """Return the scores of a comparison that stop no release: judges gave them whom people were not shown to agree with.

    Args:
        scores: those of the arm.
    """
    judged = {one.name for one in found.criteria if one.is_judged}
    if not judged:
        return set()
    trusted = trusted_names(arm_agreements(actor=actor, arm=arm, scores=scores), bar=bar)
    if judged - {OVERALL} <= trusted:
        trusted = trusted | {OVERALL}
    return judged - trusted


def _other_ground(known: Baseline, arm: Arm, scores: ArmScores) -> str:
    """Return why nothing can be decided, "" when both stand on the same ground."""
    before, after = known.arm.experiment, arm.experiment
    if before.corpus != after.corpus:
        return _(
            "The documents have changed since the baseline ran, which may explain score changes. Run the baseline's arm again on the current documents, then set the baseline again."
        )
    if scores.coverage is not None and scores.coverage < COVERAGE_ALARM:
        return stale_told(scores.coverage)
    return ""


def _changes(
    found: Comparison,
    read: Calibrated,
    trusted: set[str],
    tolerance: float,
    agreements: Mapping[str, Sequence[Agreement]],
    bar: float,
) -> list[Check]:
    checks = []
    for one in found.criteria:
        noise = max(_noise(read.a, one.name), _noise(read.b, one.name))
        allowed = max(tolerance, noise)
        fell = one.change.high < 0 and one.change.value < -allowed
        facts: Mapping[str, Any] = {
            "baseline": one.a.value,
            "value": one.b.value,
            "low": one.change.low,
            "high": one.change.high,
            "noise": noise,
            **_agreement_facts(agreements.get(one.name, ())),
            **_calibration_facts(read, one.name),
        }
        moved = ngettext(
            "%(change)s (95 %% %(low)s to %(high)s, %(count)s row)",
            "%(change)s (95 %% %(low)s to %(high)s, %(count)s rows)",
            one.n,
        ) % {
            "change": f"{one.change.value:+.3f}",
            "low": f"{one.change.low:+.3f}",
            "high": f"{one.change.high:+.3f}",
            "count": one.n,
        }
        if how := _how(read, one.name, found):
            moved = f"{moved}. {how}"
        if one.is_judged and one.name not in trusted:
            why = next(
                (a.told(bar) for a in agreements.get(one.name, ()) if not a.is_trusted(bar)),
                _("One of its scores is advisory."),
            )
            message = _(
                "%(change)s. Advisory: this judge's agreement with people hasn't been shown to be high enough. %(why)s"
            ) % {"change": moved, "why": why}
            checks.append(Check(one.name, "advisory", message, **facts))
        elif not one.same_author:
            message = _("%(change)s. Advisory: baseline and arm were scored by different scorers.") % {
                "change": moved
            }
            checks.append(Check(one.name, "advisory", message, **facts))
        elif fell:
            message = _("A drop of more than %(allowed)s: %(change)s") % {
                "allowed": number_told(allowed, 3),
                "change": moved,
            }
            checks.append(Check(one.name, "failed", message, **facts))
        else:
            checks.append(Check(one.name, "passed", moved, **facts))
    return checks


def _minima(read: Calibrated, trusted: set[str], minima: Mapping[str, float]) -> list[Check]:
    checks, after = [], read.b
    for name, least in minima.items():
        values = after.values.get(name)
        if values is None or not len(values):
            checks.append(
                Check(f"{name} at least {least:g}", "failed", _("The arm doesn't have this score."))
            )
            continue
        mean = values.mean
        verdict: Verdict = "passed" if mean >= least else "failed"
        message = ngettext("%(mean)s over %(count)s row", "%(mean)s over %(count)s rows", len(values)) % {
            "mean": number_told(mean, 3),
            "count": len(values),
        }
        if how := read.told(name):
            message = f"{message}. {how}"
        if name in after.judged and name not in trusted:
            verdict = "advisory"
            message = _("%(mean)s. Advisory: this judge is not trusted enough.") % {"mean": message}
        facts = _calibration_facts(read, name)
        checks.append(Check(f"{name} at least {least:g}", verdict, message, None, mean, **facts))
    return checks


def _rows_check(
    found: Comparison, trusted: set[str], after: ArmScores, failed: Sequence[int], most: int
) -> Check:
    verdict: Verdict = "passed" if len(failed) <= most else "failed"
    count = len(failed)
    message = ngettext(
        "%(count)s row passed in the baseline but fails now; %(most)s allowed.",
        "%(count)s rows passed in the baseline but fail now; %(most)s allowed.",
        count,
    ) % {"count": count, "most": most}
    if found.leading.is_judged and found.leading.name not in trusted:
        verdict, message = "advisory", f"{message} {_('Advisory: the judge is not trusted enough.')}"
    return Check("rows", verdict, message)


def _must_pass(found: Comparison, trusted: set[str], rows: Sequence[int]) -> Check:
    passed = {r.row for r in found.rows if r.b >= PASS}
    missed = sorted(set(rows) - passed)
    named = ", ".join(map(str, missed[:_MOST_ROWS]))
    message = (
        _("Required rows that fail: %(rows)s.") % {"rows": named}
        if missed
        else _("Every required row passes.")
    )
    verdict: Verdict = "failed" if missed else "passed"
    if found.leading.is_judged and found.leading.name not in trusted:
        verdict, message = "advisory", f"{message} {_('Advisory: the judge is not trusted enough.')}"
    return Check("must pass", verdict, message)


def _noise(scores: ArmScores, name: str) -> float:
    """Return what the means of repeats vary by, twice their standard deviation; 0 for a single one."""
    means = scores.repeats.get(name, [])
    if name == OVERALL:
        parts = {n: scores.repeats.get(n, []) for n in overall_parts(scores.names)}
        each = zip(*parts.values(), strict=False)
        means = [weighted_mean(dict(zip(parts, one, strict=True))) for one in each]
    return _REPEATS * statistics.stdev(means) if len(means) > 1 else 0.0


def _agreement_facts(found: Sequence[Agreement]) -> dict[str, float | None]:
    lows = [None if one.judge_human is None else one.judge_human.low for one in found]
    ceilings = [one.human_human.value for one in found if one.human_human is not None]
    known = [low for low in lows if low is not None]
    return {
        "kappa_low": min(known) if known and len(known) == len(lows) else None,
        "ceiling": min(ceilings) if ceilings else None,
    }


def _calibration_facts(read: Calibrated, name: str) -> dict[str, Any]:
    if name not in read.readings:
        return {}
    before, after = read.readings[name]
    return {
        "calibration": after.calibration,
        "calibration_number": after.number,
        "calibrated_low": after.low,
        "calibrated_high": after.high,
        "raw_baseline": before.raw,
        "raw_value": after.raw,
    }


def _how(read: Calibrated, name: str, found: Comparison) -> str:
    """Return how a figure was read, "" where it is as it was given."""
    if name != OVERALL or not read.readings:
        return read.told(name)
    parts = overall_parts([one.name for one in found.criteria if one.name != OVERALL])
    count = sum(part in read.readings for part in parts)
    if not count:
        return ""
    return ngettext(
        "%(count)s of its %(all)s scores is calibrated to people",
        "%(count)s of its %(all)s scores are calibrated to people",
        count,
    ) % {"count": count, "all": len(parts)}


def _undecided(arm: Arm, known: Baseline | None, reason: str) -> GateResult:
    return GateResult(NOT_COMPARABLE, reason, **_sides(arm, known))


def _sides(arm: Arm, known: Baseline | None) -> dict[str, Any]:
    return {
        "arm": arm.pk,
        "arm_name": _side(arm),
        "baseline_arm": None if known is None else known.arm_id,
        "baseline_name": "" if known is None else _side(known.arm),
    }


def _side(arm: Arm) -> str:
    return f"{arm.name} ({arm.experiment.name})"


__all__ = ["FAILED", "NOT_COMPARABLE", "PASSED", "Check", "GateResult", "gate_run"]
