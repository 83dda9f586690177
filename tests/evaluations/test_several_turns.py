"""Rows of several turns: everybody who is asked, and everybody who judges, has what was said before the question."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.search import SearchResult
from apps.datasets.records.parts import ToolCall, TraceMessage
from apps.datasets.records.record import Record
from apps.datasets.records.rubric import SIX
from apps.evaluations.models import Trial, TrialState
from apps.evaluations.scorers.base import Call, ScoredPassage, TargetResult
from apps.evaluations.scorers.claims import ByModel
from apps.evaluations.scorers.judges import JudgeAnswer, RubricJudge, pairwise_judge
from apps.evaluations.scorers.rag import RagJudge
from apps.evaluations.scorers.tools import ToolCalls
from apps.evaluations.scorers.turns import EarlierMessage, history_of, query_of, said_before
from apps.evaluations.trials import tasks
from runs.services import Completion
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_experiment, make_version, work_off
from toolloop.messages import Turn, UserMessage
from toolloop.tokens import Usage

CARS, TRUCKS = "What is the duty on cars?", "And on trucks?"
_FIRST, _SECOND = ToolCall("1", "search", {"query": "cars"}), ToolCall("2", "search", {"query": "trucks"})
ROW = Record(
    question=TRUCKS,
    answer="25 percent.",
    messages=(
        TraceMessage("system", "You are somebody else."),
        TraceMessage("assistant", "Hello, what can I do?"),
        TraceMessage("user", CARS),
        TraceMessage("assistant", "I look it up.", (_FIRST,)),
        TraceMessage("tool", "8703 2.5 percent", (), "1"),
        TraceMessage("assistant", "2.5 percent."),
        TraceMessage("user", TRUCKS),
        TraceMessage("assistant", "", (_SECOND,)),
        TraceMessage("tool", "8704 25 percent", (), "2"),
        TraceMessage("assistant", "25 percent."),
    ),
)


def test_only_what_was_said_before_the_question_is_told():
    assert said_before(ROW) == [EarlierMessage("user", CARS), EarlierMessage("assistant", "2.5 percent.")]
    first, answer, last = history_of(ROW)
    assert isinstance(answer, Turn)
    assert [m.text for m in (first, answer, last)] == [CARS, "2.5 percent.", TRUCKS]
    assert "25 percent" not in str(history_of(ROW)).replace("2.5 percent", "")
    assert query_of(ROW) == f"{CARS} {TRUCKS}"


@pytest.mark.parametrize(
    ("messages", "texts"),
    [
        ((), ["Q"]),
        ((TraceMessage("user", "Q"), TraceMessage("assistant", "A")), ["Q"]),
        ((TraceMessage("assistant", "A"),), ["Q"]),
        (
            (TraceMessage("user", "P"), TraceMessage("assistant", "A"), TraceMessage("user", "Q")),
            ["P", "A", "Q"],
        ),
        ((TraceMessage("user", "P"), TraceMessage("user", "Q")), ["P\n\nQ"]),
        (
            (TraceMessage("user", "P"), TraceMessage("assistant", " "), TraceMessage("user", "old")),
            ["P\n\nQ"],
        ),
        (
            (
                TraceMessage("user", "P"),
                TraceMessage("assistant", "A"),
                TraceMessage("assistant", "B"),
                TraceMessage("user", "Q"),
            ),
            ["P", "A\n\nB", "Q"],
        ),
    ],
    ids=["none", "one turn", "no user", "no answer yet", "user twice", "edited", "assistant twice"],
)
def test_every_form_of_trace_becomes_a_history_that_ends_in_the_question(messages, texts):
    history = history_of(Record(question="Q", answer="A", messages=messages))
    assert [m.text for m in history] == texts
    assert [isinstance(m, UserMessage) for m in history] == [not n % 2 for n in range(len(history))]


def test_calls_of_earlier_turns_are_not_expected_again():
    (score,) = ToolCalls(forbids_others=True).score(
        ROW, TargetResult(calls=[Call("search", {"query": "trucks"})])
    )
    assert score.value == 1.0


def test_judges_read_the_conversation_and_others_are_asked_as_before():
    asked: list[dict[str, Any]] = []

    class Ask:
        model = "m"

        def __call__(self, *, system, prompt, form):
            asked.append(json.loads(prompt))
            return JudgeAnswer(None, "no")

    outcome = TargetResult(text="25 percent", retrieved=[ScoredPassage(1, 1, 0, 3, "8704")])
    for row in (ROW, replace(ROW, messages=())):
        RubricJudge(SIX, Ask()).score(row, outcome)
        RagJudge("answer_relevancy", ByModel(Ask())).score(row, outcome)
        pairwise_judge(Ask(), row, "a", "b")
    said = [{"role": "user", "text": CARS}, {"role": "assistant", "text": "2.5 percent."}]
    told = [one.get("conversation") for one in asked]
    assert told == [said, None, said, None, None, None]
    assert asked[1]["question"] == f"User: {CARS}\n\nAssistant: 2.5 percent.\n\nLast question: {TRUCKS}"
    assert asked[4]["question"] == TRUCKS


@pytest.mark.django_db(transaction=True)
async def test_every_kind_of_target_is_asked_with_the_conversation(
    cast, library, found, monkeypatch, lane_threads
):
    asked, searched = [], []

    def complete(**kwargs):
        asked.append([m.text for m in kwargs["prompt"]])
        return Completion(None, "25 percent.", Usage(), 0.01)

    def search(**kwargs):
        searched.append(kwargs["query"])
        return SearchResult(kwargs["query"], [], [], ("lexical",), "", 0.0, 0.0)

    monkeypatch.setattr(tasks, "completion_run", complete)
    monkeypatch.setattr(tasks, "search_run", search)
    version = await sync_to_async(make_version)(cast, [ROW])
    scope = {"collections": [library.collection.pk]}
    experiment = await sync_to_async(make_experiment)(
        cast,
        version,
        {"kind": "model", "model": "extractive"},
        {"kind": "retriever", **scope},
        {"kind": "assistant", "model": "extractive", **scope},
        {"kind": "assistant", "model": "extractive", "mode": "quick", **scope},
        scorers=[{"kind": "token_f1"}],
    )
    await work_off(experiment, lane_threads)
    assert asked == [[CARS, "2.5 percent.", TRUCKS]]
    assert searched == [f"{CARS} {TRUCKS}"]
    # Without a model both modes make the question stand alone by rule: they have read the history.
    assert [call["query"] for call in found] == [f"{CARS} {TRUCKS}"] * 2

    def states():
        with tenant_scope(cast.tenant.pk):
            return set(Trial.objects.filter(experiment=experiment).values_list("state", flat=True))

    assert await sync_to_async(states)() == {TrialState.DONE}
