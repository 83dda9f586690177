"""REST of evaluations (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.evaluations.annotation import api as annotation_api
from apps.evaluations.compare import api as comparison_api
from apps.evaluations.experiments import api
from apps.evaluations.failures import api as failure_api
from apps.evaluations.judges import api as rubric_api
from apps.evaluations.safety import api as safety_api
from apps.evaluations.sampling import api as sampling_api

urlpatterns = [
    path("experiments", api.ExperimentsView.as_view(), name="experiments-list"),
    path("experiments/<int:pk>", api.ExperimentView.as_view(), name="experiments-detail"),
    path("experiments/<int:pk>/trials", api.TrialsView.as_view(), name="experiment-trials"),
    path("experiments/<int:pk>/pairs", comparison_api.PairsView.as_view(), name="experiment-pairs"),
    path("experiments/<int:pk>/safety", safety_api.SafetyView.as_view(), name="experiment-safety"),
    path("safety-suites", safety_api.SuitesView.as_view(), name="safety-suites-list"),
    path("experiments/<int:pk>/front", comparison_api.FrontView.as_view(), name="experiment-front"),
    path("experiments/<int:pk>/judge-checks", api.JudgeChecksView.as_view(), name="experiment-judge-checks"),
    path("arms/<int:pk>/failures", failure_api.FailuresView.as_view(), name="arms-failures"),
    path(
        "arms/<int:pk>/failures/groups", failure_api.FailureGroupsView.as_view(), name="arms-failure-groups"
    ),
    path("trials/<int:pk>/failure-tags", failure_api.TrialTagsView.as_view(), name="trials-failure-tags"),
    path("failure-tags", failure_api.FailureTagsView.as_view(), name="failure-tags-list"),
    path("arms/<int:pk>/repeats", comparison_api.RepeatsView.as_view(), name="arms-repeats"),
    path("arms/<int:pk>/comparison", comparison_api.ComparisonView.as_view(), name="arms-compare"),
    path("arms/<int:pk>/gate", comparison_api.GateView.as_view(), name="arms-gate"),
    path("arms/<int:pk>/gate/sarif", comparison_api.GateSarifView.as_view(), name="arms-gate-sarif"),
    path("arms/<int:pk>/baseline", comparison_api.BaselineView.as_view(), name="arms-baseline"),
    path("annotation-queues", annotation_api.QueuesView.as_view(), name="annotation-queues-list"),
    path("annotation-queues/<int:pk>", annotation_api.QueueView.as_view(), name="annotation-queues-detail"),
    path(
        "annotation-queues/<int:pk>/progress",
        annotation_api.QueueProgressView.as_view(),
        name="annotation-queues-progress",
    ),
    path(
        "annotation-queues/<int:pk>/next",
        annotation_api.QueueNextView.as_view(),
        name="annotation-queues-next",
    ),
    path(
        "annotation-queues/<int:pk>/undo",
        annotation_api.QueueUndoView.as_view(),
        name="annotation-queues-undo",
    ),
    path("assignments/<int:pk>", annotation_api.AssignmentView.as_view(), name="assignments-detail"),
    path("sampling-rules", sampling_api.RulesView.as_view(), name="sampling-rules-list"),
    path("sampling-rules/<int:pk>", sampling_api.RuleView.as_view(), name="sampling-rules-detail"),
    path("sampling-rules/<int:pk>/trend", sampling_api.TrendView.as_view(), name="sampling-rules-trend"),
    path("rubrics", rubric_api.RubricsView.as_view(), name="rubrics-list"),
    path("rubrics/<int:pk>/versions", rubric_api.RubricVersionsView.as_view(), name="rubric-versions"),
    path(
        "rubric-versions/<int:pk>/agreement",
        rubric_api.AgreementView.as_view(),
        name="rubric-versions-agreement",
    ),
    path(
        "rubric-versions/<int:pk>/calibrations",
        rubric_api.CalibrationsView.as_view(),
        name="rubric-versions-calibrations",
    ),
]
