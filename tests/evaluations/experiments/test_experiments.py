"""Experiments from end to end: trials as jobs, scores that stay, budgets, stops, walls between tenants."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.models import Chunk, Collection
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create
from apps.datasets.records.record import Record
from apps.datasets.records.rubric import SIX
from apps.evaluations.arms.targets import MAX_NAME, ReferenceTarget, arms_named
from apps.evaluations.compare.pairs import pairs_summary
from apps.evaluations.experiments.services import (
    ArmSpec,
    experiment_create,
    experiment_pause,
    experiment_resume,
    experiment_stop,
)
from apps.evaluations.judges import asking
from apps.evaluations.models import Arm, Experiment, ExperimentState, KeptScores, Score, Trial, TrialState
from apps.evaluations.results.outcomes import labels_map
from apps.evaluations.results.selectors import arm_scores, arm_scores_counted
from apps.evaluations.trials import tasks
from basics.errors import Conflict, Denied, Invalid, Missing
from budgets.models import Budget
from notices.models import Notice
from runs.services import Completion, CompletionFailed
from tenancy.actors import system_actor
from tenancy.scope import tenant_scope
from tests.conversations.conftest import hit_of
from tests.evaluations.support import make_experiment, make_version, rows_of, work_off
from tests.permissions.world import make_row
from toolloop.tokens import Usage

pytestmark = pytest.mark.django_db
committing = pytest.mark.django_db(transaction=True)
RETRIEVER = {"kind": "retriever", "k": 3, "legs": ["lexical"]}


def stored(experiment: Experiment) -> Any:
    with tenant_scope(experiment.tenant_id):
        row: Any = Experiment.objects.get(pk=experiment.pk)
        told = Notice.objects.filter(tenant=row.tenant_id, user_id=row.created_by_id)
        row.noted = list(told.values_list("kind", "object_id", "state"))
        row.all = list(Trial.objects.filter(experiment=row).order_by("pk"))
        row.given = {
            (s.trial.position, s.trial.arm.position, s.name): s
            for s in Score.objects.filter(trial__experiment=row).select_related("trial__arm")
        }
        return row


@pytest.fixture
def searched(monkeypatch):
    """Search that finds the chunks of the collections in reading order, the wanted one where the test says."""
    from apps.collections.search import SearchResult

    def search(**kwargs: Any) -> SearchResult:
        kwargs["actor"].require("search.run")
        chunks = Chunk.objects.select_related("document").filter(collection__in=kwargs["collections"])
        hits = [hit_of(chunk) for chunk in chunks.order_by("pk")][: kwargs["k"]]
        return SearchResult(kwargs["query"], hits, [], ("lexical",), "", 0.0, 0.0)

    monkeypatch.setattr(tasks, "search_run", search)


def scores_both_ways(experiment: Experiment) -> tuple[set[float], set[float]]:
    """Return what the arm scored in "mrr", as it was kept at the end and as the rows say."""
    with tenant_scope(experiment.tenant_id):
        arm = Arm.objects.select_related("experiment").get(experiment=experiment)
        assert KeptScores.objects.filter(arm=arm).count() == 1
        kept = arm_scores(actor=system_actor(experiment.tenant_id), arm=arm)
        return set(kept.values["mrr"].values), set(arm_scores_counted(arm).values["mrr"].values)


@committing
async def test_a_retrieval_experiment_scores_every_row(cast, library, searched, lane_threads):
    version = await sync_to_async(make_version)(cast, rows_of(library))
    target = {**RETRIEVER, "collections": [library.collection.pk]}
    experiment = await sync_to_async(make_experiment)(cast, version, target, repeats=2)
    assert await work_off(experiment, lane_threads) == 6
    row = await sync_to_async(stored)(experiment)
    assert row.state == ExperimentState.COMPLETED
    assert row.noted == [("experiment", row.pk, "completed")]
    assert {t.state for t in row.all} == {TrialState.DONE}
    assert [row.given[place, 0, "mrr"].value for place in range(3)] == pytest.approx([1, 1 / 2, 1 / 3])
    assert row.given[2, 0, "mrr"].author == "retrieval@1"
    assert row.corpus
    kept, counted = await sync_to_async(scores_both_ways)(row)
    assert kept == counted == {1.0, 1 / 2, 1 / 3}


@committing
async def test_the_loop_answers_without_a_key_and_words_judge(cast, library, found, lane_threads):
    version = await sync_to_async(make_version)(cast, rows_of(library))
    target = {"kind": "assistant", "model": "extractive", "collections": [library.collection.pk]}
    experiment = await sync_to_async(make_experiment)(
        cast, version, target, scorers=[{"kind": "rubric"}, {"kind": "faithfulness"}, {"kind": "citations"}]
    )
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert row.state == ExperimentState.COMPLETED
    first = row.all[0]
    assert "2.5 percent" in first.answer
    assert first.run_id is not None
    assert first.outcome["calls"][0]["name"] == "search_documents"
    accuracy = row.given[0, 0, "accuracy"]
    assert (accuracy.author, accuracy.author_kind) == ("lexical:six@1", "judge")
    assert row.given[0, 0, "citation_recall"].value == 1
    # The extractive mode's own words about itself stand in no passage.
    claims = row.given[0, 0, "faithfulness"].details["claims"]
    assert "supported" in {claim["verdict"] for claim in claims}


@committing
async def test_two_arms_differ_row_by_row(cast, library, monkeypatch, lane_threads):
    def complete(**kwargs):
        good = kwargs["system"] == "good"
        text = "Cars of heading 8703 pay a duty of 2.5 percent. Trucks pay 25 percent."
        return Completion(None, text if good else "No idea.", Usage(), 0.01)

    monkeypatch.setattr(tasks, "completion_run", complete)
    version = await sync_to_async(make_version)(cast, rows_of(library))
    base = {"kind": "model", "model": "extractive"}
    experiment = await sync_to_async(make_experiment)(
        cast, version, {**base, "system": "good"}, {**base, "system": "bad"}
    )
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert row.given[0, 0, "token_f1"].value == 1
    assert row.given[0, 1, "token_f1"].value == 0
    assert {t.cost_usd for t in row.all} == {Decimal("0.01000000")}


@committing
async def test_a_budget_pauses_and_a_larger_one_goes_on(cast, library, monkeypatch, lane_threads):
    monkeypatch.setattr(tasks, "completion_run", lambda **_: Completion(None, "x", Usage(), 0.30))
    version = await sync_to_async(make_version)(cast, rows_of(library))
    experiment = await sync_to_async(make_experiment)(
        cast, version, {"kind": "model", "model": "extractive"}, budget_usd=Decimal("0.70")
    )
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert (row.state, [t.state for t in row.all].count("done")) == ("paused", 2)
    assert "budget" in row.reason

    def raise_it():
        with tenant_scope(cast.tenant.pk):
            experiment_resume(
                tenant=cast.tenant, actor=cast.actor("member"), experiment=row, budget_usd=Decimal(2)
            )

    await sync_to_async(raise_it)()
    await work_off(experiment, lane_threads)
    assert (await sync_to_async(stored)(experiment)).state == "completed"


@committing
async def test_what_has_no_money_waits_and_is_not_asked_again(cast, library, monkeypatch, lane_threads):
    asked: list[str] = []
    refused = CompletionFailed("budget_exceeded", "The job's budget is used up.", is_retryable=False)

    def complete(**kwargs: Any) -> Completion:
        asked.append(kwargs["purpose"])
        assert kwargs["billing_account"].job_id is not None
        if len(asked) == 1:
            raise refused
        return Completion(None, "Cars pay 2.5 percent.", Usage(), 0.01)

    def judge(**kwargs: Any) -> Completion:
        asked.append(kwargs["purpose"])
        assert kwargs["billing_account"].job_id is not None
        if asked.count("judge") == 1:
            raise refused
        grade = {"reason": "r", "evidence": "e", "level": 4}
        return Completion({c.name: grade for c in SIX.criteria}, "", Usage(), 0.02)

    monkeypatch.setattr(tasks, "completion_run", complete)
    monkeypatch.setattr(asking, "completion_run", judge)
    monkeypatch.setattr("apps.evaluations.experiments.choices._model_checked", lambda tenant, model: None)
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    experiment = await sync_to_async(make_experiment)(
        cast,
        version,
        {"kind": "model", "model": "openai/a"},
        budget_usd=Decimal("0.70"),
        scorers=[{"kind": "rubric", "options": {"models": ["openai/j"]}}],
    )

    def go_on(amount: str | None = None) -> None:
        with tenant_scope(cast.tenant.pk):
            row = Experiment.objects.get(pk=experiment.pk)
            assert (row.state, "used up" in row.reason) == ("paused", True)
            assert Trial.objects.get(experiment=row).state == "pending"
            more = {} if amount is None else {"budget_usd": Decimal(amount)}
            experiment_resume(tenant=cast.tenant, actor=cast.actor("member"), experiment=row, **more)
            budget = Budget.objects.get(kind="job", subject_id=row.budget_job)
            assert budget.amount_usd == Decimal(amount or "0.70")

    await work_off(experiment, lane_threads)
    await sync_to_async(go_on)()
    await work_off(experiment, lane_threads)
    await sync_to_async(go_on)("2.5")
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert asked == ["evaluation", "evaluation", "judge", "judge"]
    assert (row.state, row.all[0].state) == ("completed", "done")
    assert (row.all[0].judge_asked, row.all[0].judge_cached) == (1, 0)
    assert row.given[0, 0, "clarity"].value == 0.75


@committing
async def test_assistants_answer_in_their_mode_or_in_another(cast, library, found, lane_threads):
    def make() -> int:
        with tenant_scope(cast.tenant.pk):
            spec = VersionSpec(mode="quick", model="extractive", options={"top_k": 2})
            row = assistant_create(tenant=cast.tenant, actor=cast.actor("owner"), name="Quick", spec=spec)
            return row.versions.get().pk

    assistant = {"kind": "assistant", "version": await sync_to_async(make)()}
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    experiment = await sync_to_async(make_experiment)(
        cast, version, assistant, {**assistant, "mode": "planned"}, {**assistant, "k": 1}, concurrency=1
    )
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert {t.state for t in row.all} == {"done"}
    calls = [[call["name"] for call in t.outcome["calls"]] for t in row.all]
    assert calls[0] == calls[2] == ["search_documents"]
    assert calls[1][0] == "plan"
    assert (found[0]["k"], found[-1]["k"]) == (2, 1)


@committing
async def test_pairs_are_judged_once_and_ranked(cast, library, monkeypatch, lane_threads):
    def complete(**kwargs: Any) -> Completion:
        question = kwargs["prompt"][-1].text
        right = (kwargs["system"] == "good") != ("notice" in question)
        texts = {row.question: row.answer for row in rows_of(library)}
        return Completion(None, texts[question] if right else "No idea.", Usage(), 0.01)

    monkeypatch.setattr(tasks, "completion_run", complete)
    version = await sync_to_async(make_version)(cast, rows_of(library))
    base = {"kind": "model", "model": "extractive"}
    experiment = await sync_to_async(make_experiment)(
        cast,
        version,
        {**base, "system": "good"},
        {**base, "system": "bad"},
        scorers=[{"kind": "pairwise"}],
        repeats=2,
    )
    await work_off(experiment, lane_threads)

    def summary():
        with tenant_scope(cast.tenant.pk):
            row = Experiment.objects.get(pk=experiment.pk)
            assert row.state == "completed"
            return pairs_summary(actor=cast.actor("viewer"), experiment=row)

    found = await sync_to_async(summary)()
    (pair,) = found.pairs
    assert (pair.a_wins, pair.b_wins, pair.ties, pair.flips) == (4, 2, 0, 0)
    assert found.authors == ["lexical:pairwise@1"]
    first, second = found.strengths
    assert (first.arm.position, first.wins, first.games) == (0, 4, 6)
    assert first.chance.low < first.chance.value < first.chance.high
    assert first.chance.value > second.chance.value


@committing
async def test_what_a_target_cannot_answer_is_a_failed_trial(cast, library, monkeypatch, lane_threads):
    def refuse(**_):
        raise CompletionFailed("content_filter", "The model refused.", is_retryable=False)

    monkeypatch.setattr(tasks, "completion_run", refuse)
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    experiment = await sync_to_async(make_experiment)(cast, version, {"kind": "model", "model": "extractive"})
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert (row.state, row.all[0].state, row.all[0].error) == ("completed", "failed", "The model refused.")
    assert row.given[0, 0, "token_f1"].value == 0


@committing
async def test_a_repeated_job_writes_no_score_twice(cast, library, searched, lane_threads):
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    target = {**RETRIEVER, "collections": [library.collection.pk]}
    experiment = await sync_to_async(make_experiment)(cast, version, target)

    def again() -> int:
        with tenant_scope(cast.tenant.pk):
            Trial.objects.filter(experiment=experiment).update(state=TrialState.SCORING)
            Experiment.objects.filter(pk=experiment.pk).update(state="running")
            from jobs.models import Job

            Job.objects.update(status="queued")
            return Score.objects.count()

    await work_off(experiment, lane_threads)
    before = await sync_to_async(again)()
    await work_off(experiment, lane_threads)
    row = await sync_to_async(stored)(experiment)
    assert len(row.given) == before
    assert row.state == "completed"


def test_pause_resume_and_stop(cast, library):
    version = make_version(cast, rows_of(library))
    target = {**RETRIEVER, "collections": [library.collection.pk]}
    experiment = make_experiment(cast, version, target, concurrency=1)
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
    with tenant_scope(cast.tenant.pk):
        experiment_pause(**who, experiment=experiment)
        with pytest.raises(Conflict):
            experiment_pause(**who, experiment=experiment)
        experiment_resume(**who, experiment=experiment)
        assert experiment_stop(**who, experiment=experiment).state == "stopped"
        with pytest.raises(Conflict):
            experiment_stop(**who, experiment=experiment)
    assert [t.state for t in stored(experiment).all] == ["stopped"] * 3
    with tenant_scope(cast.tenant.pk):
        Experiment.objects.filter(pk=experiment.pk).update(corpus="f" * 64)
        with pytest.raises(Conflict, match="documents have changed"):
            experiment_resume(**who, experiment=experiment)
        Experiment.objects.filter(pk=experiment.pk).update(corpus=experiment.corpus)
        assert experiment_resume(**who, experiment=experiment).finished_at is None
    assert [t.state for t in stored(experiment).all] == ["answering", "pending", "pending"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"arms": []}, "experiment_invalid"),
        ({"name": " "}, "experiment_invalid"),
        ({"repeats": 0}, "experiment_invalid"),
        ({"split": "train"}, "experiment_invalid"),
        ({"scorers": []}, "experiment_invalid"),
        ({"scorers": [{"kind": "rubric", "options": {"models": ["openai/none"]}}]}, "unknown_model"),
        ({"scorers": [{"kind": "rubric", "options": {"models": 7}}]}, "scorer_invalid"),
        ({"arms": [ArmSpec({"kind": "model", "model": "openai/none"})]}, "unknown_model"),
        ({"arms": [ArmSpec({"kind": "shell"})]}, "target_invalid"),
        ({"arms": [ArmSpec({"kind": "retriever", "collections": [1], "k": 1000})]}, "target_invalid"),
    ],
    ids=[
        "no-arm",
        "no-name",
        "no-repeat",
        "empty-split",
        "no-scorer",
        "judge",
        "options",
        "model",
        "kind",
        "k",
    ],
)
def test_what_cannot_run_is_refused_and_leaves_nothing(cast, library, change, code):
    version = make_version(cast, rows_of(library))
    given: Any = {
        "name": "x",
        "version": version,
        "arms": [ArmSpec({**RETRIEVER, "collections": [library.collection.pk]})],
        "scorers": [{"kind": "token_f1"}],
        **change,
    }
    with tenant_scope(cast.tenant.pk):
        with pytest.raises(Invalid) as refused:
            experiment_create(tenant=cast.tenant, actor=cast.actor("member"), **given)
        assert refused.value.code == code
        assert not Experiment.objects.exists()
        assert not Arm.objects.exists()


def test_nobody_measures_what_is_not_theirs(cast, library):
    version = make_version(cast, rows_of(library))
    mine = {**RETRIEVER, "collections": [library.collection.pk]}
    with pytest.raises(Denied):
        make_experiment(cast, version, mine, role="viewer")
    with tenant_scope(cast.other_tenant.pk):
        given: Any = {"name": "x", "scorers": [{"kind": "token_f1"}], "arms": [ArmSpec(mine)]}
        with pytest.raises(Missing):
            experiment_create(
                tenant=cast.other_tenant, actor=cast.actor("outsider"), version=version, **given
            )
    with tenant_scope(cast.tenant.pk), pytest.raises(Missing):
        experiment_create(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            version=version,
            name="x",
            scorers=[{"kind": "token_f1"}],
            arms=[ArmSpec({**RETRIEVER, "collections": [library.collection.pk + 999]})],
        )


def test_labels_are_found_again_after_other_chunks_and_a_new_version(cast, library):
    rows = rows_of(library)
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        (label,) = labels_map(actor, rows[1], None)
        assert dict(label.chunks) == {library.chunks[1].pk: 1.0}
        # Other text stands there now, and the passage further down: found by its words.
        Chunk.objects.filter(pk=library.chunks[1].pk).update(
            text="Something else stands here now, for as many characters as before it had."
        )
        Chunk.objects.filter(pk=library.chunks[2].pk).update(
            text="Preface. " + rows[1].answer, char_end=library.chunks[2].char_start + 90
        )
        (label,) = labels_map(actor, rows[1], None)
        assert dict(label.chunks) == {library.chunks[2].pk: 1.0}
        Chunk.objects.filter(pk=library.chunks[2].pk).update(text="Gone.")
        (label,) = labels_map(actor, rows[1], None)
        assert not label.chunks
        assert labels_map(actor, Record(question="q", answer="a"), None) == []


def test_no_two_arms_of_an_experiment_have_one_name(cast, library):
    version = make_version(cast, rows_of(library))
    with tenant_scope(cast.tenant.pk):
        other = make_row(Collection, cast.tenant, cast.user("owner"), name="Fine passages")
    ours, theirs = ({"kind": "retriever", "collections": [pk]} for pk in (library.collection.pk, other.pk))
    chat, planned = ({"kind": "model", "model": "extractive", "system": text} for text in "ab")
    experiment = make_experiment(cast, version, ours, theirs, chat, planned, concurrency=1)
    with tenant_scope(cast.tenant.pk):
        names = list(experiment.arms.order_by("position").values_list("name", flat=True))
    assert names[0] == f"Hybrid search, k 10, {library.collection.name}"
    assert names[1] == "Hybrid search, k 10, Fine passages"
    assert names[3] == f"{names[2]} (2)"
    long = arms_named(["x" * 200] * 3, [ReferenceTarget()] * 3, collections={}, versions={})
    assert len(set(long)) == 3
    assert max(map(len, long)) <= MAX_NAME
