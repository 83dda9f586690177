"""REST of experiments and their trials. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.models import DatasetVersion
from apps.evaluations.compare.shapes import JudgeCheckOutput
from apps.evaluations.experiments import services
from apps.evaluations.experiments.shapes import (
    ExperimentDetailOutput,
    ExperimentInput,
    ExperimentOutput,
    StateInput,
    TrialOutput,
)
from apps.evaluations.judges.drift import check_list
from apps.evaluations.results import selectors
from basics.errors import Missing
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_READ, _WRITE = "evaluation.read", "evaluation.write"
_TAGS = ["evaluations"]
_ACTS = {
    "pause": services.experiment_pause,
    "resume": services.experiment_resume,
    "stop": services.experiment_stop,
}


class _Base(TenantAPIView):
    """What the views of evaluations share."""

    def _experiment(self, pk: int) -> dict[str, Any]:
        row: Any = selectors.experiment_get(actor=self.actor, pk=pk)
        row.batch = selectors.experiment_batch(actor=self.actor, experiment=row)
        return dict(ExperimentDetailOutput(row).data)


class ExperimentsView(_Base):
    """The workspace's experiments."""

    actions = {"GET": _READ, "POST": _WRITE}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="experiments_list", tags=_TAGS, responses=ExperimentOutput(many=True))
    def get(self, request: Request) -> Response:
        """List experiments, newest first."""
        rows = selectors.experiment_list(actor=self.actor).prefetch_related("arms")
        return self.paginated(rows, ExperimentOutput)

    @extend_schema(
        operation_id="experiments_create",
        tags=_TAGS,
        request=ExperimentInput,
        responses={201: ExperimentDetailOutput},
    )
    def post(self, request: Request) -> Response:
        """Start an experiment: every arm answers every row of the version, and the answers are scored."""
        values = valid(ExperimentInput, request.data)
        version = DatasetVersion.objects.visible_to(self.actor).filter(pk=values["version"]).first()
        if version is None:
            raise Missing("version")
        row = services.experiment_create(
            tenant=self.tenant,
            actor=self.actor,
            name=values["name"],
            version=version,
            arms=[services.ArmSpec(arm["target"], arm["name"]) for arm in values["arms"]],
            scorers=values["scorers"],
            split=values["split"],
            repeats=values["repeats"],
            judge_repeats=values["judge_repeats"],
            stops_dominated=values["stops_dominated"],
            same_documents=values["same_documents"],
            concurrency=values["concurrency"],
            delivery=values["delivery"],
            budget_usd=values["budget_usd"],
        )
        return Response(self._experiment(row.pk), status=status.HTTP_201_CREATED)


class ExperimentView(_Base):
    """One experiment."""

    actions = {"GET": _READ, "POST": _WRITE}

    @extend_schema(operation_id="experiments_get", tags=_TAGS, responses=ExperimentDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an experiment with its arms and counts."""
        return Response(self._experiment(pk))

    @extend_schema(
        operation_id="experiments_act", tags=_TAGS, request=StateInput, responses=ExperimentDetailOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Pause, resume or stop an experiment."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        act = _ACTS[valid(StateInput, request.data)["do"]]
        act(tenant=self.tenant, actor=self.actor, experiment=row)
        return Response(self._experiment(pk))


class TrialsView(_Base):
    """The answers of an experiment."""

    actions = {"GET": _READ}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="experiment_trials_list", tags=_TAGS, responses=TrialOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List answers with their scores, in the order of the rows."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        return self.paginated(selectors.trial_list(actor=self.actor, experiment=row), TrialOutput)


class JudgeChecksView(_Base):
    """How the judges of an experiment graded gold answers before its start."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(operation_id="experiment_judge_checks", tags=_TAGS, responses=JudgeCheckOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the judge checks with their findings; a judge that has drifted can't block a release here."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        found = check_list(actor=self.actor, experiment=row)
        return self.paginated(found, JudgeCheckOutput)
