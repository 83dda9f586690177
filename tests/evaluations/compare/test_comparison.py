"""Comparisons say what is shown and what is not; a planted gain is found with enough rows and not with too few."""

from __future__ import annotations

import numpy as np
import pytest

from apps.evaluations.compare.comparison import arms_compare, verdict
from apps.evaluations.results.series import ArmScores, Series, pack, unpack
from basics.errors import Conflict


def arm(values, *, author="retrieval@1", judged=False, name="ndcg@10", cost=None):
    found = ArmScores(
        values={name: Series.of(enumerate(values))},
        authors={name: {author}},
        judges={(name, author, 7)} if judged else set(),
    )
    if cost is not None:
        found.cost_usd = Series.of(dict.fromkeys(range(len(values)), cost))
    return found


def planted(rows: int, gain: float = 0.03):
    """Per-row nDCG as search gives it (many 0 and 1), and the same with noise and a gain of three points on the average."""
    rng = np.random.default_rng(11)
    before = rng.choice([0, 0.39, 0.5, 0.63, 1.0], rows, p=[0.16, 0.06, 0.08, 0.15, 0.55])
    noise = rng.normal(0, 0.12, rows)
    after = np.clip(before + noise, 0, 1)
    after += gain - (after - before).mean()
    return before.tolist(), after.tolist()


def test_a_gain_of_three_percent_is_shown_with_enough_rows():
    before, after = planted(300)
    found = arms_compare(arm(before), arm(after))
    assert found.leading.change.value == pytest.approx(0.03)
    assert found.leading.is_shown
    assert found.smallest < 0.03
    assert verdict(found)[0] == "B answers better"


def test_the_same_gain_is_not_shown_with_too_few_rows():
    before, after = planted(20)
    found = arms_compare(arm(before), arm(after))
    assert found.leading.change.value == pytest.approx(0.03)
    assert not found.leading.is_shown
    assert found.needed is not None
    assert found.needed > 20
    head, told = verdict(found)
    assert head == "No difference detected"
    assert f"needs about {found.needed}" in told


def test_the_same_answers_are_no_difference():
    found = arms_compare(arm([0.1, 0.5, 0.9]), arm([0.1, 0.5, 0.9]))
    assert (found.wins, found.ties, found.losses) == (0, 3, 0)
    assert found.bins == [0, 0, 0, 0, 3, 0, 0, 0, 0]
    assert found.needed is None
    assert "does not change" in verdict(found)[1]


def test_price_and_worst_rows():
    a, b = arm([0.9] * 12, cost=0.01), arm([0.2, *[0.8] * 11], cost=0.02)
    found = arms_compare(a, b)
    assert found.rows[0].row == 0
    assert found.rows[0].change == pytest.approx(-0.7)
    assert (found.wins, found.losses) == (0, 12)
    assert found.pass_a == 1
    assert found.pass_b == pytest.approx(11 / 12)
    assert verdict(found)[0] == "B answers worse, at a higher price"
    assert sum(found.bins) == 12


def test_rows_that_one_arm_lacks_are_left_out_and_counted():
    a, b = arm([1, 1, 1, 1]), arm([1, 1])
    found = arms_compare(a, b)
    assert (len(found.rows), found.left_out) == (2, 2)
    with pytest.raises(Conflict):
        arms_compare(a, arm([1], name="other"))
    with pytest.raises(Conflict):
        arms_compare(a, b, leading="nope")


def test_other_scorers_and_word_counting_are_said():
    a = arm([1, 0], author="lexical:six@1", judged=True, name="accuracy")
    b = arm([1, 0], author="judge:six@1:x", judged=True, name="accuracy")
    found = arms_compare(a, b)
    assert not found.leading.same_author
    assert any("different scorers" in note for note in found.notes)
    assert any("are word counts" in note for note in found.notes)


def test_packed_scores_compare_as_the_scores_themselves():
    before, after = planted(40)
    a, b = arm(before, cost=0.01), arm(after, cost=0.02, judged=True, author="judge:six@1:x")
    a.repeats, a.unscored = {"ndcg@10": [0.5, 0.6]}, {"ndcg@10": 3}
    first, second = unpack(pack(a)), unpack(pack(b))
    assert first is not None
    assert second is not None
    assert (first.repeats, first.unscored, second.judges) == (a.repeats, a.unscored, b.judges)
    plain, packed = arms_compare(a, b), arms_compare(first, second)
    assert packed.criteria == plain.criteria
    assert list(packed.rows) == list(plain.rows)
    assert (packed.bins, packed.cost, packed.notes) == (plain.bins, plain.cost, plain.notes)


def test_an_interval_without_zero_is_not_said_to_hold_it():
    same = {f"same_{n}": Series.of(enumerate([0.5] * 20)) for n in range(3)}
    gained = [0.55] * 6 + [0.5] * 14  # enough for the interval, not for the test after Holm over five scores
    a, b = arm([0.5] * 20), arm(gained)
    found = arms_compare(*(ArmScores(values={**one.values, **same}) for one in (a, b)), leading="ndcg@10")
    assert found.leading.change.excludes(0)
    assert not found.leading.is_shown
    told = verdict(found)[1]
    assert "includes 0" not in told
    assert f"the test is not significant: p {found.leading.p_corrected:.2f}, corrected for 5 scores" in told
