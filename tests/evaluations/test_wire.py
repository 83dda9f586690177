"""An experiment against a server that speaks OpenAI's wire: the loop answers, a model judges, and what it cannot say is unscored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.evaluations.compare.pairs import pairs_summary
from apps.evaluations.models import Arm, Experiment, Score, ScoreCache, Trial
from apps.evaluations.scorers.rag import RAG
from runs import remote_models
from tenancy.scope import tenant_scope
from tests.evaluations.support import QUESTIONS, make_experiment, make_version, rows_of, work_off
from tests.fake_provider import FakeProvider, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
SIX = ("completeness", "accuracy", "relevance", "clarity", "specificity", "reasoning")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    remote_models._known.clear()
    with running() as (url, fake):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", "fake-search,fake-words3,fake-judge")
        yield fake


def judged(body: dict[str, Any]) -> str:
    """Judge as a model would: by the parts that it is given. Of the second question it writes prose."""
    text = body["messages"][-1]["content"]
    if not text.startswith("{"):
        return "Still prose."  # asked to repair its answer
    parts = json.loads(text)
    if "answer_to_grade" in parts:
        if parts["question"] == QUESTIONS[1]:
            return "A fine answer, I would say."
        grade = {"reason": "Right.", "evidence": "duty", "level": 4}
        return "```json\n" + json.dumps(dict.fromkeys(SIX, grade)) + "\n```"
    if "first" in parts:
        return json.dumps({"reason": "It comes first.", "better": "first"})
    if "claims" in parts:
        verdicts = [{"number": c["number"], "reason": "", "is_supported": False} for c in parts["claims"]]
        return json.dumps({"verdicts": verdicts})
    if "passages" not in parts:
        return json.dumps({"statements": [{"statement": "s", "serves_the_question": True}]})
    if isinstance(parts["passages"][0], dict):
        found = [
            {"number": p["number"], "quote": p["text"][:20], "is_useful": p["number"] == 1}
            for p in parts["passages"]
        ]
        return json.dumps({"passages": found})
    quotes = (parts["passages"][0][:30], "words that stand nowhere")
    claims = [{"claim": q, "verdict": "supported", "quote": q} for q in quotes]
    return json.dumps({"claims": claims})


def read(experiment: Experiment, cast: Any) -> dict[str, Any]:
    with tenant_scope(experiment.tenant_id):
        rows = Score.objects.filter(trial__experiment=experiment).select_related("trial__arm")
        return {
            "state": Experiment.objects.get(pk=experiment.pk).state,
            "trials": list(Trial.objects.filter(experiment=experiment).order_by("pk")),
            "scores": {(s.trial.arm.position, s.trial.position, s.name): s for s in rows},
            "pairs": pairs_summary(actor=cast.actor("member"), experiment=experiment),
            "arms": list(Arm.objects.filter(experiment=experiment)),
            "cache": ScoreCache.objects.count(),
        }


async def test_a_model_judges_over_the_wire_and_what_cannot_be_read_is_unscored(
    cast, library, found, lane_threads, server
):
    server.replies["fake-judge"] = judged
    version = await sync_to_async(make_version)(cast, rows_of(library))
    judge = {"models": ["compatible/fake-judge"]}
    given: dict[str, Any] = {
        "scorers": [{"kind": kind, "options": judge} for kind in ("rubric", *RAG, "pairwise")]
    }
    targets = [
        {"kind": "assistant", "model": f"compatible/{name}", "collections": [library.collection.pk]}
        for name in ("fake-search", "fake-words3")
    ]
    first = await sync_to_async(make_experiment)(cast, version, *targets, **given)
    await work_off(first, lane_threads)
    got = await sync_to_async(read)(first, cast)
    assert (got["state"], {t.state for t in got["trials"]}) == ("completed", {"done"})
    scores = got["scores"]
    assert {scores[0, 0, name].value for name in SIX} == {0.75}
    # Prose, however often it is asked for again, is neither 0 nor NaN, and the rest of the answer's scores stand.
    for arm in (0, 1):
        unread = [scores[arm, 1, name] for name in SIX]
        assert {s.value for s in unread} == {None}
        assert all("could not be read" in s.reason for s in unread)
        assert scores[arm, 1, "answer_relevancy"].value == 1
    faithful = scores[0, 0, "faithfulness"]
    assert faithful.value == 0.5
    assert [c["verdict"] for c in faithful.details["claims"]] == ["supported", "unverified"]
    assert faithful.details["claims"][0]["start"] is not None
    assert scores[0, 0, "noise_robustness"].value == 0.5
    assert scores[0, 0, "context_precision"].value == 1
    # Without passages nothing is asked about them.
    assert scores[1, 0, "faithfulness"].value is None
    assert scores[1, 0, "context_recall"].value == 0
    pairs = got["pairs"]
    assert pairs is not None
    assert (pairs.flips, pairs.verdicts) == (3, 3)  # it always prefers the first
    asked = len([one for one in server.log if one["model"] == "fake-judge"])
    again = await sync_to_async(make_experiment)(cast, version, *targets, name="Again", **given)
    await work_off(again, lane_threads)
    later = await sync_to_async(read)(again, cast)
    assert later["cache"] == got["cache"]
    # Only what could not be read is asked again.
    repeated = [one["messages"][1]["content"] for one in server.log if one["model"] == "fake-judge"][asked:]
    assert repeated
    assert all(QUESTIONS[1] in text and "answer_to_grade" in text for text in repeated)
