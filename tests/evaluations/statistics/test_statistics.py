"""Our statistics equal the reference packages to 1e-9, their definitions, or the values that were published."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from itertools import permutations, product
from math import comb
from pathlib import Path

import numpy as np
import pytest

from apps.evaluations.statistics import agreement, corrections, paired, power
from apps.evaluations.statistics.calibration import isotonic_fit, reliability
from apps.evaluations.statistics.preferences import bradley_terry, length_controlled_win_rate
from tests.later import later

stats = later("scipy.stats")
isotonic, linear_model, metrics = (
    later(f"sklearn.{name}") for name in ("isotonic", "linear_model", "metrics")
)

SEEDS = [0, 1, 2, 3, 4]


def close(value):
    return pytest.approx(value, abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_cohen_kappa_equals_scikit_learn(seed, weights):
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 6, 80)
    b = np.clip(a + rng.integers(-1, 2, 80), 1, 5)
    expected = metrics.cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
    assert agreement.cohen_kappa(a.tolist(), b.tolist(), weights=weights) == close(expected)


def test_cohen_kappa_counts_levels_that_nobody_used():
    a, b = [1, 1, 5, 5], [1, 5, 5, 5]
    expected = metrics.cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
    found = agreement.cohen_kappa(a, b, weights="quadratic", levels=[1, 2, 3, 4, 5])
    assert found == close(expected)


def test_kappa_is_undefined_when_everybody_always_says_the_same():
    assert agreement.cohen_kappa([1, 1], [1, 1]) is None
    assert agreement.cohen_kappa_interval([1, 1], [1, 1]) is None
    assert agreement.krippendorff_alpha_interval([[1, 1], [1, 1]]) is None
    assert agreement.krippendorff_alpha_interval([[1, None], [None, 2]]) is None


def test_high_raw_agreement_with_low_kappa():
    # MTRAG's naturalness: nearly all equal, hardly better than chance.
    a, b = [1] * 85 + [1] * 7 + [0] * 7 + [0], [1] * 85 + [0] * 7 + [1] * 7 + [0]
    pairs = [list(pair) for pair in zip(a, b, strict=True)]
    assert agreement.percent_agreement(pairs) == close(0.86)
    kappa = agreement.cohen_kappa(a, b)
    assert kappa == close(metrics.cohen_kappa_score(a, b))
    assert kappa is not None
    assert kappa < 0.1


# 10 subjects, 14 raters, 5 levels: Fleiss' worked example, kappa 0.210 (observed 0.378, by chance 0.213).
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def fleiss_kappa(ratings):
    """Fleiss' kappa by its definition, None where chance alone explains everything."""
    raters, units = len(ratings[0]), len(ratings)
    rows = [[unit.count(level) for level in {v for u in ratings for v in u}] for unit in ratings]
    observed = sum(sum(n * (n - 1) for n in row) / (raters * (raters - 1)) for row in rows) / units
    chance = sum((sum(column) / (raters * units)) ** 2 for column in zip(*rows, strict=True))
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def test_fleiss_kappa_equals_the_published_value_and_exact_arithmetic():
    ratings = [[level for level, n in enumerate(row) for _ in range(n)] for row in FLEISS]
    observed = sum(Fraction(sum(n * (n - 1) for n in row), 14 * 13) for row in FLEISS) / 10
    chance = sum(Fraction(sum(column), 140) ** 2 for column in zip(*FLEISS, strict=True))
    found = agreement.fleiss_kappa_interval(ratings)
    assert found is not None
    assert found.value == close(float((observed - chance) / (1 - chance)))
    assert found.value == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_wants_the_same_number_of_ratings():
    with pytest.raises(ValueError, match="same number"):
        agreement.fleiss_kappa_interval([[1, 2], [1, 2, 3]])


# Krippendorff (2011), section E: four observers, twelve units.
OBSERVERS = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]
UNITS = [
    [None if v == "." else int(v) for v in unit]
    for unit in zip(*(row.split() for row in OBSERVERS), strict=True)
]


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_alpha_equals_the_published_values(level, published):
    found = agreement.krippendorff_alpha_interval(UNITS, level=level)
    assert found is not None
    assert found.value == pytest.approx(published, abs=6e-4)
    assert found.value == close(float(alpha_by_definition(UNITS, level)))


def alpha_by_definition(units, level):
    """Mean disagreement inside of units over that between all ratings, in fractions, pair by pair."""
    units = [[v for v in unit if v is not None] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    everything = [v for unit in units for v in unit]

    def distance(a, b):
        if level == "nominal":
            return Fraction(int(a != b))
        if level == "interval":
            return Fraction(a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(1 for v in everything if low <= v <= high)
        ends = Fraction(everything.count(a) + everything.count(b), 2)
        return Fraction(0) if a == b else (between - ends) ** 2

    inside = sum(sum(distance(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    n = len(everything)
    between = sum(distance(a, b) for a, b in permutations(everything, 2)) / (n - 1)
    return 1 - inside / between


def test_intervals_of_agreement_hold_the_value_and_narrow_with_more_units():
    few = agreement.krippendorff_alpha_interval(UNITS, level="ordinal")
    many = agreement.krippendorff_alpha_interval(UNITS * 9, level="ordinal")
    assert few
    assert many
    assert few.low <= few.value <= few.high
    assert many.high - many.low < few.high - few.low
    kappa = agreement.cohen_kappa_interval([1, 2, 3, 3, 2, 1, 4, 1], [1, 2, 3, 3, 2, 2, 4, 1])
    assert kappa
    assert kappa.low <= kappa.value <= kappa.high


def test_every_agreement_has_the_interval_of_a_bootstrap_over_units():
    ratings = [[level for level, n in enumerate(row) for _ in range(n)] for row in FLEISS]
    cases = [
        (agreement.percent_agreement, agreement.percent_agreement_interval),
        (fleiss_kappa, agreement.fleiss_kappa_interval),
    ]
    drawn = np.random.default_rng(0).multinomial(10, np.full(10, 0.1), 1_000)
    for figure, interval in cases:
        each = ([u for u, n in zip(ratings, w, strict=True) for _ in range(n)] for w in drawn)
        values = [value for one in each if (value := figure(one)) is not None]
        found = interval(ratings)
        assert found is not None
        low, high = np.quantile(values, [0.025, 0.975])
        assert (found.value, found.low, found.high) == (close(figure(ratings)), close(low), close(high))
    assert agreement.percent_agreement_interval([[1, None]]) is None
    assert agreement.fleiss_kappa_interval([[1, 1], [1, 1]]) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_bootstrap_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0.05, 0.3, 60)
    expected = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=10_000,
        method="percentile",
        vectorized=True,
        random_state=np.random.default_rng(7),
    ).confidence_interval
    found = paired.bootstrap_mean(paired.differences(np.zeros(60), values), seed=7)
    assert (found.low, found.high) == (close(expected.low), close(expected.high))
    assert found.value == close(values.mean())


def test_intervals_of_many_rows_come_from_the_standard_error():
    values = np.random.default_rng(0).normal(0.05, 0.3, 6_000)
    found = paired.bootstrap_mean(values)
    half = stats.norm.ppf(0.975) * stats.sem(values)
    assert (found.low, found.high) == (close(values.mean() - half), close(values.mean() + half))


@pytest.mark.parametrize(("losses", "wins"), [(0, 0), (0, 1), (3, 9), (12, 12), (35, 96), (400, 460)])
def test_mcnemar_exact_equals_the_binomial_test(losses, wins):
    found = paired.mcnemar(losses, wins, exact=True)
    n = losses + wins
    assert found.p_value == close(stats.binomtest(losses, n).pvalue if n else 1.0)


def test_mcnemar_chi_squared_is_corrected():
    found = paired.mcnemar(86, 150, exact=False)
    # Yates' correction of the goodness of fit to 118 and 118 is the same number.
    assert found.statistic == close(2 * (150 - 118 - 0.5) ** 2 / 118)
    assert found.p_value == close(stats.chi2.sf(63**2 / 236, 1))
    assert paired.mcnemar(7, 7, exact=False).p_value == 1


def test_mcnemar_of_very_many_rows_does_not_overflow():
    assert paired.mcnemar(5_000, 5_400, exact=True).p_value == pytest.approx(
        paired.mcnemar(5_000, 5_400).p_value, rel=0.01
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [1, 2, 6, 25, 50])
def test_wilcoxon_exact_equals_scipy(seed, n):
    values = np.random.default_rng(seed).normal(0.2, 1, n)
    expected = stats.wilcoxon(values, method="exact")
    found = paired.wilcoxon(values)
    assert (found.statistic, found.p_value) == (close(expected.statistic), close(expected.pvalue))
    assert found.method == "exact"


@pytest.mark.parametrize("seed", SEEDS)
def test_wilcoxon_with_ties_and_zeros_equals_scipy(seed):
    values = np.random.default_rng(seed).integers(-3, 5, 120) / 4
    expected = stats.wilcoxon(values, zero_method="wilcox", method="asymptotic", correction=False)
    found = paired.wilcoxon(values)
    assert (found.statistic, found.p_value) == (close(expected.statistic), close(expected.pvalue))
    assert (found.method, found.n) == ("normal", int(np.count_nonzero(values)))


def test_wilcoxon_of_unchanged_rows_finds_nothing():
    found = paired.wilcoxon([0, 0, 0])
    assert (found.p_value, found.n) == (1, 0)


def wilcoxon_by_definition(values):
    """Return the smaller sum of ranks and its two-sided p value: all ways to give n ranks their signs, counted."""
    ranks = {v: rank for rank, v in enumerate(sorted(values, key=abs), 1)}
    plus = sum(rank for v, rank in ranks.items() if v > 0)
    smaller = min(plus, sum(ranks.values()) - plus)
    sums = [
        sum(r for r, sign in zip(ranks.values(), signs, strict=True) if sign)
        for signs in product((0, 1), repeat=len(ranks))
    ]
    return smaller, min(Fraction(1), 2 * Fraction(sum(s <= smaller for s in sums), len(sums)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_wilcoxon_equals_its_definition(seed, n):
    values = np.random.default_rng(seed).normal(0.4, 1, n).tolist()
    found = paired.wilcoxon(values)
    smaller, p_value = wilcoxon_by_definition(values)
    assert (found.statistic, found.p_value) == (smaller, close(float(p_value)))


@pytest.mark.parametrize(("losses", "wins"), [(0, 1), (3, 9), (12, 12), (35, 96)])
def test_mcnemar_equals_its_definition(losses, wins):
    n = losses + wins
    tail = Fraction(sum(comb(n, k) for k in range(min(losses, wins) + 1)), 2**n)
    assert paired.mcnemar(losses, wins).p_value == close(float(min(Fraction(1), 2 * tail)))


def test_scipy_is_loaded_by_the_first_test_and_by_nothing_before():
    """Web and worker load every face and job of the product; most never compare two arms."""
    program = """
import sys, django
django.setup()
import config.asgi, config.urls
from django.utils.module_loading import autodiscover_modules
from django.urls import get_resolver
get_resolver().url_patterns
autodiscover_modules("tasks", "admin")
import apps.evaluations.compare.comparison, apps.evaluations.judges.charts
def loaded():
    return any(name == "scipy" or name.startswith("scipy.") for name in sys.modules)
before = loaded()
from apps.evaluations.statistics.paired import wilcoxon
wilcoxon([1.0, 2.0, -3.0])
print(before, loaded())
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ()
    )
    assert (said.returncode, said.stdout) == (0, "False True\n"), said.stderr


def environ():
    root = Path(__file__).resolve().parents[3]
    return {**os.environ, "PYTHONPATH": f"{root}:{root / 'platform'}"}


def test_holm_steps_down():
    # Sorted p times 4, 3, 2, 1, never falling.
    assert corrections.holm([0.01, 0.04, 0.03, 0.005]) == close([0.03, 0.06, 0.06, 0.02])
    assert corrections.holm([0.9, 0.8]) == close([1.0, 1.0])


def test_power_and_rows_are_inverse():
    reach = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert power.smallest_effect(0.25, 300) == close(reach * 0.25 / 300**0.5)
    rows = power.rows_needed(0.25, 0.03)
    assert power.smallest_effect(0.25, rows) <= 0.03 < power.smallest_effect(0.25, rows - 1)
    with pytest.raises(ValueError, match="effect"):
        power.rows_needed(0.25, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_isotonic_fit_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    judge = rng.integers(0, 20, 100) / 20
    human = np.clip(judge**2 + rng.normal(0, 0.2, 100), 0, 1)
    reference = isotonic.IsotonicRegression(out_of_bounds="clip").fit(judge, human)
    found = isotonic_fit(judge, human)
    asked = np.linspace(-0.2, 1.2, 57)
    assert [found.apply(x) for x in asked] == close(list(reference.predict(asked)))


def test_reliability_counts_every_answer_once():
    points = reliability([0, 0.1, 0.5, 1.0, 1.0], [0, 1, 1, 1, 0], bins=2)
    assert [(p.count, p.human) for p in points] == [(2, 0.5), (3, close(2 / 3))]


def test_bradley_terry_equals_logistic_regression():
    wins = np.array([[0, 7, 9, 4], [3, 0, 6, 5], [1, 4, 0, 2], [6, 5, 8, 0]], dtype=float)
    rows, weights = [], []
    for i in range(4):
        for j in range(4):
            if i != j:
                rows.append([(k == i) - (k == j) for k in range(3)])
                weights.append(wins[i, j])
    # Each game once as a win and once mirrored as a loss, so that both classes are there.
    x = np.array(rows + [[-v for v in row] for row in rows])
    y = np.array([1] * len(rows) + [0] * len(rows))
    model = linear_model.LogisticRegression(
        C=np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky"
    )
    model.fit(x, y, sample_weight=np.array(weights * 2))
    strengths = np.append(model.coef_[0], 0)
    expected = strengths - strengths.mean()
    assert [e.value for e in bradley_terry(wins)] == close(list(expected))


def test_bradley_terry_interval_of_two_arms_equals_walds():
    estimates = bradley_terry([[0, 60], [40, 0]])
    odds = np.log(60 / 40)
    half = stats.norm.ppf(0.975) * np.sqrt(1 / 60 + 1 / 40)
    assert estimates[0].value * 2 == close(odds)
    assert (estimates[0].high - estimates[0].value) * 2 == close(half)


def test_bradley_terry_refuses_what_no_finite_strength_explains():
    with pytest.raises(ValueError, match="won and lost"):
        bradley_terry([[0, 5], [0, 0]])
    with pytest.raises(ValueError, match="won and lost"):
        bradley_terry([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])


def test_length_controlled_win_rate_takes_the_gain_of_length_away():
    rng = np.random.default_rng(3)
    gap = rng.normal(120, 150, 400)
    y = (rng.uniform(size=400) < 1 / (1 + np.exp(-gap / 100))).astype(float)
    x = np.tanh(gap / gap.std())[:, None]
    model = linear_model.LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y)
    found = length_controlled_win_rate(y, gap)
    assert found == close(1 / (1 + np.exp(-model.intercept_[0])))
    assert found is not None
    assert abs(found - 0.5) < 0.1 < y.mean() - 0.5


def test_length_that_explains_everything_leaves_no_win_rate():
    assert length_controlled_win_rate([1, 1, 0, 0], [50, 60, -50, -60]) is None


def test_unscored_rows_cannot_slip_into_a_mean():
    with pytest.raises(ValueError, match="unscored"):
        paired.bootstrap_mean([1.0, float("nan")])
