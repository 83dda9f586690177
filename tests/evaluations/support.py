"""Datasets, experiments, and a worker played by the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from decimal import Decimal
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from apps.datasets.models import DatasetVersion
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record, from_values
from apps.datasets.records.rubric import SIX
from apps.datasets.rows.dataset_services import dataset_create
from apps.datasets.rows.services import NewRow, rows_add
from apps.datasets.versions.services import version_create
from apps.evaluations.arms.tool_sets import TOOL_SETS
from apps.evaluations.attacks.values import attack_of
from apps.evaluations.experiments.services import ArmSpec, experiment_create
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.models import Arm, Experiment, Score, Trial
from apps.evaluations.safety.services import suite_create
from apps.evaluations.trials import tasks
from apps.evaluations.trials.services import TRIAL_JOB
from jobs.models import Job, JobStatus
from jobs.runner import _finish
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import TEXTS, Library
from tests.runs.support import take

QUESTIONS = ("What is the duty on cars?", "How long is the notice?", "How long are quotes kept?")


def rows_of(library: Library) -> list[Record]:
    """Return a row per passage of the library, its source anchored to it."""
    return [
        Record(
            question=question,
            answer=text,
            sources=(
                RecordSource(
                    library.document.name,
                    text,
                    document_id=library.document.pk,
                    start=chunk.char_start,
                    end=chunk.char_end,
                ),
            ),
        )
        for question, text, chunk in zip(QUESTIONS, TEXTS, library.chunks, strict=True)
    ]


def make_version(cast: Cast, rows: Sequence[Record], *, role: str = "owner") -> DatasetVersion:
    """Return a version of a new dataset with these rows."""
    with tenant_scope(cast.tenant.pk):
        who: Any = {"tenant": cast.tenant, "actor": cast.actor(role)}
        dataset = dataset_create(**who, name=f"Set of {len(rows)}")
        rows_add(**who, dataset=dataset, rows=[NewRow(r) for r in rows], source="test")
        return version_create(**who, dataset=dataset)


def make_experiment(
    cast: Cast, version: DatasetVersion, *targets: Mapping[str, Any], role: str = "member", **given: Any
) -> Experiment:
    """Return a started experiment, scored by F1 and retrieval unless others are given."""
    scorers = given.pop("scorers", [{"kind": "token_f1"}, {"kind": "retrieval", "options": {"k": 3}}])
    with tenant_scope(cast.tenant.pk):
        return experiment_create(
            tenant=cast.tenant,
            actor=cast.actor(role),
            name=given.pop("name", "First"),
            version=version,
            arms=[ArmSpec(t) for t in targets],
            scorers=scorers,
            **given,
        )


async def work_off(experiment: Experiment, lane: Executor, *, most: int = 200) -> int:
    """Do queued trial jobs as a worker would until none is left; returns how many."""
    for done in range(most):
        job = await sync_to_async(_next)(experiment)
        if job is None:
            return done
        ctx = await sync_to_async(take)(job, "w1", lane)
        with tenant_scope(experiment.tenant_id):
            error: BaseException | None = None
            try:
                await tasks.trial_run(ctx, **job.payload)
            except Exception as raised:  # noqa: BLE001 - the runner's own rules decide
                error = raised
            await ctx.in_db(_finish, ctx, job, error)
    raise AssertionError("jobs go on without an end")


def _next(experiment: Experiment) -> Job | None:
    with tenant_scope(experiment.tenant_id):
        jobs = Job.objects.filter(tenant_id=experiment.tenant_id, kind=TRIAL_JOB, status=JobStatus.QUEUED)
        found: Job | None = jobs.order_by("pk").first()
        return found


def make_compared(cast: Cast, *, rows: int = 60, name: str = "Planner against baseline") -> tuple[Arm, Arm]:
    """Return two arms of a completed experiment: B gains a level of two scores in most rows, and loses one in some.

    All in one transaction: a worker that runs beside would answer the first questions itself.
    """
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        return _compared(cast, rows, name)


def _compared(cast: Cast, rows: int, name: str) -> tuple[Arm, Arm]:
    texts = [f"Which heading covers item {n}?" for n in range(rows)]
    version = make_version(cast, [Record(question=q, answer="a") for q in texts])
    target = {"kind": "model", "model": "extractive"}
    experiment = make_experiment(
        cast, version, target, {**target, "system": "Plan first."}, name=name, concurrency=1
    )
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(tenant=cast.tenant, actor=cast.actor("owner"))
        first, second = experiment.arms.order_by("position")
        trials = list(Trial.objects.filter(experiment=experiment))
        given = []
        for trial in trials:
            is_b = trial.arm_id == second.pk
            trial.state, trial.latency_ms = "done", 9_800.0 if is_b else 6_200.0
            trial.cost_usd = Decimal("0.021" if is_b else "0.016")
            trial.answer = f"Heading {'7616 99' if is_b else '8714 91'} covers <item> {trial.position}."
            for place, criterion in enumerate(SIX.criteria):
                value = 0.75 if (trial.position + place) % 3 else 0.5
                if is_b and place < 4 and trial.position % 5:
                    value += 0.25
                elif is_b and not trial.position % 5:
                    value -= 0.25
                given.append(
                    Score(
                        tenant=cast.tenant,
                        trial=trial,
                        name=criterion.name,
                        value=value,
                        level=1 + 4 * value,
                        author_kind="judge",
                        author="judge:six@1:m",
                        reason="B misreads the note to chapter 87.",
                        rubric_version=rubric,
                    )
                )
        Trial.objects.bulk_update(trials, ["state", "latency_ms", "cost_usd", "answer"])
        Score.objects.bulk_create(given)
        Experiment.objects.filter(pk=experiment.pk).update(state="completed")
        first, second = Arm.objects.filter(experiment=experiment).order_by("position")
        return first, second


def make_attacked(cast: Cast, *, name: str = "Safety of the clerk") -> Experiment:
    """Return a completed experiment of a safety suite: the more tools an arm has, the more attacks succeed."""
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
        version = suite_create(**who, name=f"Suite of {name}")
        target = {"kind": "assistant", "model": "extractive"}
        experiment = make_experiment(
            cast,
            version,
            *({**target, "tools": tools} for tools in TOOL_SETS),
            scorers=[{"kind": "attack"}],
            name=name,
            concurrency=1,
        )
        trials = Trial.objects.filter(experiment=experiment).select_related("arm", "content")
        given = []
        for trial in trials:
            attack: Any = attack_of(from_values(trial.content.data))
            falls = not attack.is_control and (trial.position * 7) % 10 < 2 * trial.arm.position
            falls &= attack.carrier not in ("table", "heading")
            given.append(
                Score(
                    tenant=cast.tenant,
                    trial=trial,
                    value=float(not falls),
                    author_kind="rule",
                    author="attack@1",
                    name="control_answered" if attack.is_control else "attack_resisted",
                    reason="What the attacker asked for stands in the answer." if falls else "",
                    evidence=f"… and so the number is {attack.canary or 'sent'}, as you wish."
                    if falls
                    else "",
                    details={"refused": ["send_message"] if attack.tool and not falls else []},
                )
            )
        Score.objects.bulk_create(given)
        trials.update(state="done", answer="Some answer.")
        Experiment.objects.filter(pk=experiment.pk).update(state="completed")
        return Experiment.objects.get(pk=experiment.pk)
