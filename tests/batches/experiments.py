"""Experiments by batch, carried by the product's own runner, one job at a time, and the model that they ask."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from apps.datasets.models import DatasetVersion
from apps.datasets.records.rubric import SIX
from apps.evaluations.experiments.starting import CHECK_JOB
from apps.evaluations.models import Experiment, Preference, Score, Trial
from apps.evaluations.trials.batches import CARRY_JOB
from apps.evaluations.trials.services import TRIAL_JOB
from batches.services import WIND_UP
from jobs.models import ACTIVE, Job
from jobs.runner import run_here
from tests.batches.support import PAST
from tests.cast import Cast
from tests.evaluations.support import make_experiment

KINDS = (TRIAL_JOB, CHECK_JOB, CARRY_JOB, WIND_UP)
RUBRIC = "You grade an answer"
PAIRS = "You compare two answers"
CLAIMS = "You check an answer against passages"
AGAINST = "You check claims against a reference"
SERVING = "You check whether an answer keeps to"
MOST_JOBS = 300


class Clerk:
    """Answers rows, calls a search on the way where it has one, and judges answers; the same words to the same question.

    Attributes:
        asked: system prompt's first words and the request of each call that was answered.
        fails: status for each question that names one of these words.
        cites: marks what an answer rests on. Claude, asked directly, cites in a way of its own that batches do not have.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails: dict[str, int] = {}
        self.cites = True

    def __call__(self, body: dict[str, Any]) -> str | int | list[dict[str, Any]]:
        messages = body["messages"]
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        said = json.dumps(messages, sort_keys=True)
        for word, status in self.fails.items():
            if word in said:
                return status
        self.asked.append((system[:30], said))
        if system.startswith(RUBRIC):
            grade = {"reason": "It says so.", "evidence": "", "level": 3 + len(said) % 3}
            return json.dumps({one.name: grade for one in SIX.criteria})
        if system.startswith(PAIRS):
            return json.dumps({"reason": "It is shorter.", "better": "first"})
        if system.startswith(CLAIMS):
            claim = {"claim": "Cars pay 2.5 percent.", "verdict": "supported", "quote": "2.5 percent"}
            return json.dumps({"claims": [claim]})
        if system.startswith(AGAINST):
            return json.dumps({"verdicts": [{"number": 1, "reason": "", "is_supported": True}]})
        if system.startswith(SERVING):
            return json.dumps({"statements": [{"statement": "It is said.", "serves_the_question": True}]})
        if messages[-1]["role"] == "tool" and not self.cites:
            return "It is said."
        if messages[-1]["role"] == "tool":
            found = re.search(r"c\d+", messages[-1]["content"])
            return f"It is said [{found[0] if found else 'c0'}]."
        if '"search_documents"' in json.dumps(body.get("tools", ())):
            return [{"name": "search_documents", "arguments": {"query": "duty"}}]
        return f"As for {messages[-1]['content'][:40]}: 2.5 percent."


def begin(cast: Cast, version: DatasetVersion, *targets: Mapping[str, Any], **given: Any) -> Experiment:
    """Start an experiment by batch; the caller is in the tenant's scope."""
    return make_experiment(cast, version, *targets, **{"delivery": "batch", **given})


def step(experiment: Experiment, *kinds: str) -> Job | None:
    """Let a worker take the experiment's next job, of these kinds; trials before the one that sends. None when there is none."""
    rows = Job.objects.filter(tenant_id=experiment.tenant_id, status__in=ACTIVE)
    rows = rows.filter(kind__in=kinds or KINDS, topic=experiment.topic)
    found = sorted(rows, key=lambda job: (KINDS.index(job.kind), job.pk))
    if not found:
        return None
    job = found[0]
    Job.objects.filter(pk=job.pk).update(run_after=PAST)
    run_here(job.tenant_id, job.pk)
    job.refresh_from_db()
    experiment.refresh_from_db()
    return job


def work(experiment: Experiment) -> Experiment:
    """Let trials work until all of them are away or ended, and send once what they ask."""
    while step(experiment, TRIAL_JOB, CHECK_JOB) is not None:
        pass
    step(experiment, CARRY_JOB)
    return experiment


def carry(experiment: Experiment) -> Experiment:
    """Do the experiment's jobs until none is left."""
    experiment.refresh_from_db()
    for _ in range(MOST_JOBS):
        if step(experiment) is None:
            return experiment
    raise AssertionError("jobs go on without an end")


def results(experiment: Experiment) -> dict[str, list[Any]]:
    """Return what an experiment has found, without what differs between two that found the same."""
    trials = Trial.objects.filter(experiment=experiment).select_related("arm")
    place = {t.pk: (t.position, t.arm.position, t.repeat) for t in trials}
    scores = Score.objects.filter(trial__experiment=experiment)
    pairs = Preference.objects.filter(experiment=experiment)
    return {
        "answers": sorted((place[t.pk], t.state, t.answer, t.error) for t in trials),
        "calls": sorted(
            (place[t.pk], json.dumps([(c["name"], c["arguments"]) for c in t.outcome.get("calls", [])]))
            for t in trials
        ),
        "scores": sorted((place[s.trial_id], s.name, s.author, s.value, s.reason) for s in scores),
        "pairs": sorted((place[p.a_id], place[p.b_id], p.better, p.is_flip, p.author) for p in pairs),
    }
