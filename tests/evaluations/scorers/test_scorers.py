"""Scorers by rule: published values, reference packages, hostile answers."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from apps.datasets.records.parts import Behaviour, RecordSource, ToolCall, TraceMessage
from apps.datasets.records.record import Record
from apps.evaluations.scorers import metrics
from apps.evaluations.scorers.base import Call, Label, ScoredPassage, TargetResult
from apps.evaluations.scorers.registry import rule_scorer
from apps.evaluations.scorers.retrieval import gains_of, label_coverage
from basics.errors import Invalid


def close(value):
    return pytest.approx(value, abs=1e-9)


def row(answer="", **kw):
    return Record(question="Which heading?", answer=answer, **kw)


def one(kind, reference, answer, **options):
    (value,) = rule_scorer(kind, options).score(row(reference), TargetResult(text=answer))
    return value


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 5, 10])
def test_rankings_equal_trec_eval(seed, k):
    rng = np.random.default_rng(seed)
    ranked = [int(i) for i in rng.permutation(40)[:20]]
    gains = {int(i): float(g) for i, g in zip(rng.permutation(40)[:7], [1, 1, 2, 3, 1, 2, 1], strict=True)}
    measures = {f"ndcg_cut.{k}", f"recall.{k}", f"P.{k}", f"map_cut.{k}", "recip_rank"}
    qrels = {"q": {str(key): int(gain) for key, gain in gains.items()}}
    run = {"q": {str(key): float(100 - place) for place, key in enumerate(ranked)}}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)["q"]
    assert metrics.ndcg_at(ranked, gains, k) == close(expected[f"ndcg_cut_{k}"])
    assert metrics.recall_at(ranked, gains, k) == close(expected[f"recall_{k}"])
    assert metrics.precision_at(ranked, gains, k) == close(expected[f"P_{k}"])
    assert metrics.average_precision(ranked, gains, k) == close(expected[f"map_cut_{k}"])
    assert metrics.reciprocal_rank(ranked, gains) == close(expected["recip_rank"])


def test_rouge_l_equals_lins_example():
    # Lin (2004), section 3.1: reference S1, candidates S2 and S3, beta 1.
    assert metrics.rouge_l("police kill the gunman", "police killed the gunman") == close(3 / 4)
    assert metrics.rouge_l("the gunman kill police", "police killed the gunman") == close(2 / 4)


def test_rouge_l_equals_the_plain_table():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (list(rng.choice(list("abcde"), size)) for size in rng.integers(1, 90, 2))
        table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
        expected = 2 * table[-1, -1] / (len(a) + len(b))
        assert metrics.rouge_l(" ".join(a), " ".join(b)) == close(expected)


def test_token_f1_follows_squad():
    assert metrics.token_f1("The Olive Oil.", "olive oil") == 1
    assert metrics.token_f1("olive oil of Spain", "olive oil") == close(2 * 2 / 6)
    assert metrics.token_f1("", "olive") == 0


def test_exact_reads_over_case_unless_strict():
    assert one("exact", "Heading 1509", "heading 1509.").value == 1
    assert one("exact", "Heading 1509", "heading 1509.", strict=True).value == 0


def test_numbers_within_tolerance():
    assert one("numeric", "6.5 % of 1,234.5", "It is 1234.5 at 6.5 percent").value == 1
    assert one("numeric", "100 and 7", "101", relative=0.02).value == close(0.5)
    assert one("numeric", "−3", "-3").value == 1
    assert one("numeric", "none here", "5").value is None


def test_codes_as_sets():
    value = one("codes", "8714.91 and 8712.00", "871491, and 9503.00", pattern=r"\d{4}\.?\d{2}")
    assert value.value == close(0.5)
    assert value.details == {"missing": ["871200"], "extra": ["950300"]}
    assert one("codes", "no code", "8714.91").value is None


def test_a_pattern_that_never_ends_is_unscored():
    slow = one("regex", "", "x" * 5000, pattern=r"(x+x+)+(x+x+)+y")
    assert slow.value is None
    assert "Simplify" in slow.reason


def test_json_must_fit_its_schema():
    form = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    assert one("json_schema", "", '{"code": "1509"}', form=form).value == 1
    assert one("json_schema", "", '{"code": 1509}', form=form).value == 0
    assert one("json_schema", "", "1509", form=form).value == 0


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("nope", {}),
        ("regex", {}),
        ("regex", {"pattern": "("}),
        ("json_schema", {"form": {"type": "array"}}),
        ("retrieval", {"k": 0}),
        ("exact", {"unknown": 1}),
        ("forbidden_tools", {"names": []}),
    ],
    ids=["unknown", "no-pattern", "broken-pattern", "array-schema", "no-k", "option", "no-names"],
)
def test_options_that_make_no_scorer_are_refused(kind, options):
    with pytest.raises(Invalid):
        rule_scorer(kind, options)


def test_a_missing_answer_is_wrong_but_a_missing_reference_is_unscored():
    scorer = rule_scorer("token_f1", {})
    assert scorer.score(row("1509"), TargetResult(error="The model is down."))[0].value == 0
    assert scorer.score(row(""), TargetResult(text="1509"))[0].value is None
    silent = row("", expected=Behaviour.ABSTAIN)
    assert scorer.score(silent, TargetResult(text="I cannot tell."))[0].value is None


def test_labels_survive_other_chunks():
    # The passage 100 to 200, cut otherwise: inside of one chunk, over two, with an overlap of a few characters.
    assert gains_of(100, 200, [(1, 0, 300)]) == {1: 1.0}
    assert gains_of(100, 200, [(1, 0, 150), (2, 150, 300)]) == {1: 1.0, 2: 1.0}
    assert gains_of(100, 200, [(1, 0, 110), (2, 105, 300)]) == {2: 1.0}
    assert gains_of(100, 200, [(1, 0, 130), (2, 160, 400)]) == {2: 1.0}
    assert gains_of(100, 200, [(1, 300, 400)]) == {}


def passage(chunk, start=0, end=10, document=1):
    return ScoredPassage(chunk_id=chunk, document_id=document, start=start, end=end)


def test_retrieval_scores_and_stale_labels():
    labels = [Label(1, 0, 10, "a", {7: 1.0}), Label(1, 20, 30, "b", {9: 1.0})]
    found = TargetResult(retrieved=[passage(3), passage(7), passage(7), passage(4)], labels=labels)
    scores = {s.name: s.value for s in rule_scorer("retrieval", {"k": 5}).score(row("x"), found)}
    assert scores["recall@5"] == close(0.5)
    assert scores["mrr"] == close(0.5)
    assert scores["precision@5"] == close(0.2)
    stale = [labels[0], Label(1, 20, 30, "b", {})]
    values = rule_scorer("retrieval", {}).score(row("x"), TargetResult(labels=stale))
    assert {v.value for v in values} == {None}
    assert label_coverage([stale, labels]) == close(3 / 4)
    assert label_coverage([[]]) is None


def test_citations_by_overlap():
    labels = [Label(1, 100, 200, "a", {}), Label(2, 0, 50, "b", {})]
    cited = [passage(None, 150, 250), passage(None, 0, 90), passage(None, 0, 90, document=3)]
    outcome = TargetResult(text="x", citations=cited, labels=labels)
    recall, precision = rule_scorer("citations", {}).score(row("x"), outcome)
    assert (recall.value, precision.value) == (close(0.5), close(1 / 3))


def traced(*calls, **meta):
    return row(
        "x",
        messages=(
            TraceMessage("user", "q"),
            TraceMessage("assistant", "", tuple(ToolCall(str(i), n, a) for i, (n, a) in enumerate(calls))),
        ),
        meta=meta,
    )


def test_tool_calls_by_value_not_wording():
    wanted = traced(("rate", {"code": "1509", "year": 2026}), ("note", {"chapter": 15}))
    made = [Call("note", {"chapter": 15.0}), Call("rate", {"code": " 1509", "year": 2026})]
    (value,) = rule_scorer("tool_calls", {}).score(wanted, TargetResult(calls=made))
    assert value.value == 1
    (ordered,) = rule_scorer("tool_calls", {"is_ordered": True}).score(wanted, TargetResult(calls=made))
    assert ordered.value == close(0.5)
    (strict,) = rule_scorer("tool_calls", {"forbids_others": True}).score(
        wanted, TargetResult(calls=[*made, Call("rm")])
    )
    assert strict.value == close(2 / 3)


def test_arguments_that_differ_are_named():
    wanted = traced(("rate", {"code": "1509", "deep": True}))
    (value,) = rule_scorer("tool_calls", {}).score(
        wanted, TargetResult(calls=[Call("rate", {"code": "1510", "deep": 1, "more": 2})])
    )
    assert value.value == 0
    (gap,) = value.details["differences"]
    assert set(gap["arguments"]) == {"code", "deep", "more"}


def test_allowed_values_and_failed_calls():
    wanted = traced(
        ("rate", {"code": "1509"}), allowed_arguments=[{"code": ["1509", "1510"], "year": [2026, ""]}]
    )
    score = rule_scorer("tool_calls", {}).score
    assert score(wanted, TargetResult(calls=[Call("rate", {"code": "1510"})]))[0].value == 1
    assert score(wanted, TargetResult(calls=[Call("rate", {"code": "1510"}, is_error=True)]))[0].value == 0


@pytest.mark.parametrize(
    ("allowed", "given", "fits"),
    [
        # ast_checker.py: standardize_string, dict_checker and list_dict_checker.
        ("New York, NY", "new york ny", True),
        ("2026-11-22", "2026/11.22", True),
        ("St. Mary's", 'st mary"s', True),
        ("New York", "New Jersey", False),
        ({"code": ["1509", "1510"], "year": [2026, ""]}, {"code": "1510"}, True),
        ({"code": ["1509"], "year": [2026]}, {"code": "1509"}, False),
        ({"code": ["1509"]}, {"code": "1509", "more": 1}, False),
        ([{"code": ["1509"]}, {"code": ["1510"]}], [{"code": "1509"}, {"code": "1510"}], True),
        ([{"code": ["1509"]}, {"code": ["1510"]}], [{"code": "1510"}, {"code": "1509"}], False),
        ([1, 2], [2, 1], False),
        (1, True, False),
    ],
    ids=[
        "marks",
        "dates",
        "quotes",
        "other-words",
        "object",
        "field-missing",
        "field-added",
        "objects",
        "objects-order",
        "order",
        "boolean",
    ],
)
def test_arguments_fit_as_the_leaderboard_has_it(allowed, given, fits):
    wanted = traced(("rate", {}), allowed_arguments=[{"x": [allowed]}])
    (value,) = rule_scorer("tool_calls", {}).score(wanted, TargetResult(calls=[Call("rate", {"x": given})]))
    assert value.value == float(fits)


def test_an_object_of_a_trace_is_wanted_as_it_stands():
    where = {"place": {"codes": ["1509", "1510"], "deep": {"a": 1}}}
    score = rule_scorer("tool_calls", {}).score
    right = [Call("rate", where)]
    assert score(traced(("rate", where)), TargetResult(calls=right))[0].value == 1
    wrong = [Call("rate", {"place": {"codes": ["1509"], "deep": {"a": 1}}})]
    assert score(traced(("rate", where)), TargetResult(calls=wrong))[0].value == 0


def test_a_loop_that_goes_in_circles_is_told_from_one_that_ends():
    score = rule_scorer("loop_ends", {}).score
    again = [Call("search", {"q": "oil"})] * 3
    (circle,) = score(row(), TargetResult(calls=again, limit="repeat_stop"))
    assert (circle.value, circle.details["repeated"]) == (0, 2)
    assert "circles" in circle.reason
    (ended,) = score(row(), TargetResult(text="1509", calls=again[:1], limit=""))
    assert (ended.value, ended.reason, ended.details["repeated"]) == (1, "", 0)
    assert score(row(), TargetResult(text="1509"))[0].value is None


def test_forbidden_tools():
    score = rule_scorer("forbidden_tools", {"names": ["file_*", "mail"]}).score
    assert score(row(), TargetResult(calls=[Call("file_write")]))[0].value == 0
    assert score(row(), TargetResult(calls=[Call("search")]))[0].value == 1


def test_pass_hat_k_is_the_share_of_all_choices():
    assert metrics.pass_hat_k(3, 4, 2) == close(3 / 6)
    assert metrics.pass_hat_k(4, 4, 4) == 1
    with pytest.raises(ValueError, match="tries"):
        metrics.pass_hat_k(1, 1, 2)


def test_sources_of_a_record_are_what_labels_are_made_of():
    source = RecordSource("hts.pdf", "1509", document_id=3, start=100, end=104)
    assert gains_of(source.start, source.end, [(5, 90, 180)]) == {5: 1.0}
