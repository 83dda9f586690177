"""The permission rows of experiments, annotation and sampling."""

from __future__ import annotations

from django.utils import timezone

from apps.evaluations.models import Example
from tenancy.scope import platform_scope
from tests.permissions.rows.common import Row, pk_of, send
from tests.permissions.world import Side

EXPERIMENT = {"pk": "evaluations.Experiment"}
ARM = {"pk": "evaluations.Arm"}
QUEUE = {"pk": "evaluations.AnnotationQueue"}
SAMPLING = {"pk": "evaluations.SamplingRule"}
RUBRIC = {"pk": "evaluations.Rubric"}
SAMPLE = {"collection_pk": "collections.Collection"}
_CRITERION = {"name": "tone", "question": "Is it kind?", "anchors": ["a", "b", "c", "d", "e"]}


def _measured(side: Side, role: str) -> None:
    """The arm's experiment is completed."""
    experiment = side.row("evaluations.Arm", role).experiment
    experiment.state = "completed"
    with platform_scope():
        experiment.save()


def _paired(side: Side, role: str) -> None:
    """The experiment judges pairs."""
    experiment = side.row("evaluations.Experiment", role)
    experiment.scorers = [{"kind": "pairwise"}]
    with platform_scope():
        experiment.save()


def _sampled(side: Side, role: str) -> None:
    """The collection is a sample."""
    collection = side.row("collections.Collection", role)
    with platform_scope():
        Example.objects.get_or_create(tenant=side.tenant, collection=collection)


def _attacked(side: Side, role: str) -> None:
    """The experiment scores attacks."""
    experiment = side.row("evaluations.Experiment", role)
    experiment.scorers = [{"kind": "attack"}]
    with platform_scope():
        experiment.save()


def _versioned_rubric(side: Side, role: str) -> None:
    """The rubric has a version."""
    side.row("evaluations.RubricVersion", role)


def _graded(side: Side, role: str) -> None:
    """The person has skipped an answer of the queue."""
    row = side.row("evaluations.Assignment", role)
    row.state, row.finished_at = "skipped", timezone.now()
    with platform_scope():
        row.save()


PORTAL: tuple[Row, ...] = (
    Row("evaluations:list", action="evaluation.read"),
    Row("evaluations:create", action="evaluation.write"),
    Row("evaluations:create", "POST", "evaluation.write", data=send(name="First"), ok=422),
    Row("evaluations:detail", "GET", "evaluation.read", EXPERIMENT),
    Row("evaluations:act", "POST", "evaluation.write", EXPERIMENT, data=send(do="stop"), ok=302),
    Row("evaluations:safety", "GET", "evaluation.read", EXPERIMENT, before=_attacked),
    Row("evaluations:example-remove", "GET", "collection.delete", SAMPLE, before=_sampled),
    Row("evaluations:example-remove", "POST", "collection.delete", SAMPLE, before=_sampled, ok=302),
    Row("evaluations:suite-create", action="dataset.write", also=("evaluation.write",)),
    Row(
        "evaluations:suite-create",
        "POST",
        "dataset.write",
        data=send(name="First"),
        ok=422,
        also=("evaluation.write",),
    ),
    Row("evaluations:failures", "GET", "evaluation.read", ARM),
    Row(
        "evaluations:failures-split",
        "POST",
        "dataset.write",
        ARM,
        data=send(into="test"),
        ok=302,
        also=("evaluation.read",),
    ),
    Row("evaluations:failures-group", "POST", "evaluation.write", ARM, ok=302, also=("evaluation.read",)),
    Row(
        "evaluations:trial-tags",
        "POST",
        "evaluation.write",
        {"pk": "evaluations.Trial"},
        data=send(remove="odd"),
        ok=302,
        also=("evaluation.read",),
    ),
    Row("evaluations:failures-collect", "POST", "dataset.write", ARM, ok=302, also=("evaluation.read",)),
    Row("evaluations:repeats", "GET", "evaluation.read", ARM),
    Row("evaluations:gate", "GET", "evaluation.read", ARM),
    Row("evaluations:trial", "GET", "evaluation.read", {"pk": "evaluations.Trial"}),
    Row("evaluations:compare", action="evaluation.read"),
    Row(
        "evaluations:promote",
        "POST",
        "evaluation.write",
        data=send(arm=pk_of("evaluations.Arm")),
        ok=302,
        body_ids=404,
    ),
    Row("evaluations:queues", action="evaluation.read"),
    Row("evaluations:queue-create", action="evaluation.write"),
    Row("evaluations:queue-create", "POST", "evaluation.write", data=send(name="First"), ok=422),
    Row("evaluations:queue", "GET", "evaluation.read", QUEUE),
    Row("evaluations:queue-act", "POST", "evaluation.write", QUEUE, data=send(do="close"), ok=302),
    Row("evaluations:annotate", "GET", "evaluation.write", QUEUE),
    Row(
        "evaluations:annotate",
        "POST",
        "evaluation.write",
        QUEUE,
        data=send(do="undo"),
        before=_graded,
        ok=302,
    ),
    Row("evaluations:trust", action="evaluation.read"),
    Row(
        "evaluations:calibrate",
        "POST",
        "evaluation.write",
        {"pk": "evaluations.RubricVersion"},
        data=send(score="accuracy", judge="judge:six@1:m"),
        ok=302,
        also=("evaluation.read",),
    ),
    Row("evaluations:live", action="evaluation.read"),
    Row("evaluations:live-create", action="tool.manage"),
    Row("evaluations:live-create", "POST", "tool.manage", data=send(name="First"), ok=422),
    Row("evaluations:live-rule", "GET", "evaluation.read", SAMPLING),
    Row("evaluations:live-act", "POST", "tool.manage", SAMPLING, data=send(do="pause"), ok=302),
    Row("evaluations:rubrics", action="evaluation.read"),
    Row("evaluations:rubric", "GET", "evaluation.read", RUBRIC, before=_versioned_rubric),
    Row("evaluations:rubric-create", action="evaluation.write"),
    Row("evaluations:rubric-create", "POST", "evaluation.write", data=send(name="First"), ok=422),
    Row("evaluations:rubric-change", "GET", "evaluation.write", RUBRIC),
    Row("evaluations:rubric-change", "POST", "evaluation.write", RUBRIC, data=send(note="First"), ok=422),
)


API: tuple[Row, ...] = (
    Row("api:experiments-list", action="evaluation.read"),
    Row(
        "api:experiments-list",
        "POST",
        "evaluation.write",
        data=send(
            name="First",
            version=pk_of("datasets.DatasetVersion"),
            arms=[{"target": {"kind": "model", "model": "extractive"}}],
            scorers=[{"kind": "nope"}],
        ),
        ok=400,
        also=("dataset.read",),
        body_ids=404,
    ),
    Row("api:experiments-detail", "GET", "evaluation.read", EXPERIMENT),
    Row(
        "api:experiments-detail",
        "POST",
        "evaluation.write",
        EXPERIMENT,
        data=send(do="stop"),
        also=("evaluation.read",),
    ),
    Row("api:experiment-trials", "GET", "evaluation.read", EXPERIMENT),
    Row("api:experiment-pairs", "GET", "evaluation.read", EXPERIMENT, before=_paired),
    Row("api:experiment-safety", "GET", "evaluation.read", EXPERIMENT, before=_attacked),
    Row(
        "api:safety-suites-list",
        "POST",
        "dataset.write",
        data=send(name="First", carriers=["passage"], categories=["task"]),
        ok=201,
        also=("evaluation.write", "dataset.read"),
    ),
    Row("api:experiment-front", "GET", "evaluation.read", EXPERIMENT),
    Row("api:experiment-judge-checks", "GET", "evaluation.read", EXPERIMENT),
    Row("api:arms-failures", "GET", "evaluation.read", ARM),
    Row(
        "api:arms-failures",
        "POST",
        "dataset.write",
        ARM,
        data=send(name=""),
        ok=400,
        also=("evaluation.read",),
    ),
    Row("api:arms-failure-groups", "POST", "evaluation.write", ARM, ok=202, also=("evaluation.read",)),
    Row(
        "api:trials-failure-tags",
        "POST",
        "evaluation.write",
        {"pk": "evaluations.Trial"},
        data=send(remove=["odd"]),
        also=("evaluation.read",),
    ),
    Row("api:failure-tags-list", action="evaluation.read"),
    Row("api:arms-repeats", "GET", "evaluation.read", ARM),
    Row("api:arms-compare", "GET", "evaluation.read", ARM, ok=400),
    Row("api:arms-gate", "POST", "evaluation.read", ARM),
    Row("api:arms-gate-sarif", "POST", "evaluation.read", ARM),
    Row(
        "api:arms-baseline",
        "POST",
        "evaluation.write",
        ARM,
        before=_measured,
        ok=201,
        also=("evaluation.read",),
    ),
    Row("api:annotation-queues-list", action="evaluation.read"),
    Row(
        "api:annotation-queues-list",
        "POST",
        "evaluation.write",
        data=send(name="First", rubric_version=pk_of("evaluations.RubricVersion")),
        ok=400,
        also=("evaluation.read",),
        body_ids=404,
    ),
    Row("api:annotation-queues-detail", "GET", "evaluation.read", QUEUE),
    Row(
        "api:annotation-queues-detail",
        "POST",
        "evaluation.write",
        QUEUE,
        data=send(do="close"),
        also=("evaluation.read",),
    ),
    Row("api:annotation-queues-progress", "GET", "evaluation.read", QUEUE),
    Row("api:annotation-queues-next", "POST", "evaluation.write", QUEUE, also=("evaluation.read",)),
    Row(
        "api:annotation-queues-undo",
        "POST",
        "evaluation.write",
        QUEUE,
        before=_graded,
        also=("evaluation.read",),
    ),
    Row(
        "api:assignments-detail",
        "POST",
        "evaluation.write",
        {"pk": "evaluations.Assignment"},
        data=send(do="skip"),
        also=("evaluation.read",),
    ),
    Row("api:sampling-rules-list", action="evaluation.read"),
    Row(
        "api:sampling-rules-list",
        "POST",
        "tool.manage",
        data=send(name="First", rate=0.1, budget_usd="1", scorers=[{"kind": "faithfulness"}]),
        ok=201,
        also=("evaluation.write",),
    ),
    Row("api:sampling-rules-detail", "GET", "evaluation.read", SAMPLING),
    Row(
        "api:sampling-rules-detail",
        "POST",
        "tool.manage",
        SAMPLING,
        data=send(do="pause"),
        also=("evaluation.read",),
    ),
    Row("api:sampling-rules-detail", "DELETE", "tool.manage", SAMPLING, ok=204, also=("evaluation.read",)),
    Row("api:sampling-rules-trend", "GET", "evaluation.read", SAMPLING),
    Row("api:rubrics-list", action="evaluation.read"),
    Row(
        "api:rubrics-list", "POST", "evaluation.write", data=send(name="Tone", criteria=[_CRITERION]), ok=201
    ),
    Row(
        "api:rubric-versions",
        "POST",
        "evaluation.write",
        RUBRIC,
        data=send(criteria=[_CRITERION]),
        ok=201,
        also=("evaluation.read",),
    ),
    Row("api:rubric-versions-agreement", "GET", "evaluation.read", {"pk": "evaluations.RubricVersion"}),
    Row("api:rubric-versions-calibrations", "GET", "evaluation.read", {"pk": "evaluations.RubricVersion"}),
    Row(
        "api:rubric-versions-calibrations",
        "POST",
        "evaluation.write",
        {"pk": "evaluations.RubricVersion"},
        data=send(name="", author=""),
        ok=400,
        also=("evaluation.read",),
    ),
)
