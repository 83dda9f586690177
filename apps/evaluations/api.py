"""REST of experiments, their trials, comparisons and the gate. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.models import DatasetVersion
from apps.evaluations import selectors, services
from apps.evaluations.api_shapes import (
    BaselineInput,
    CalibratedInput,
    ExperimentDetailOutput,
    ExperimentInput,
    ExperimentOutput,
    GateInput,
    StateInput,
    TrialOutput,
)
from apps.evaluations.calibrations import arms_read
from apps.evaluations.comparison import arms_compare, verdict
from apps.evaluations.comparison_shapes import (
    BaselineOutput,
    ComparisonOutput,
    FrontPointOutput,
    GateOutput,
    JudgeCheckOutput,
    PairSummaryOutput,
    RepeatsOutput,
)
from apps.evaluations.dominance import front_of
from apps.evaluations.drift import check_list
from apps.evaluations.gate import advisory_names, gate_run
from apps.evaluations.gate_reports import to_sarif
from apps.evaluations.models import Arm
from apps.evaluations.pairs import pairs_summary
from apps.evaluations.repeats import arm_repeats
from basics.errors import Invalid, Missing
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_READ, _WRITE = "evaluation.read", "evaluation.write"
_TAGS = ["evaluations"]
_MOST_ROWS = 500
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

    def _arm(self, pk: int) -> Arm:
        return selectors.arm_get(actor=self.actor, pk=pk)


class ExperimentsView(_Base):
    """The workspace's experiments."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="experiments_list", tags=_TAGS, responses=ExperimentOutput(many=True))
    def get(self, request: Request) -> Response:
        """List experiments, the newest first."""
        rows = selectors.experiment_list(actor=self.actor).prefetch_related("arms")
        return self.paginated(rows, ExperimentOutput)

    @extend_schema(
        operation_id="experiments_create",
        tags=_TAGS,
        request=ExperimentInput,
        responses={201: ExperimentDetailOutput},
    )
    def post(self, request: Request) -> Response:
        """Start an experiment: every row of the version is asked of every arm, and the answers are scored."""
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
    pagination_class = Pagination

    @extend_schema(operation_id="experiment_trials_list", tags=_TAGS, responses=TrialOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List answers with their scores, in the order of the rows."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        return self.paginated(selectors.trial_list(actor=self.actor, experiment=row), TrialOutput)


class PairsView(_Base):
    """The pairwise verdicts of an experiment."""

    actions = {"GET": _READ}

    @extend_schema(operation_id="experiment_pairs", tags=_TAGS, responses=PairSummaryOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return wins, ties and flips of every pair of arms, and the arms' strengths. 404 where no pairs are judged."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        found = pairs_summary(actor=self.actor, experiment=row)
        if found is None:
            raise Missing("pairwise verdict")
        return Response(PairSummaryOutput(found).data)


class FrontView(_Base):
    """The arms of an experiment by quality and cost."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(operation_id="experiment_front", tags=_TAGS, responses=FrontPointOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """Return every arm's quality and cost; those on the front are beaten by none that costs no more."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        points = front_of(selectors.arms_summary(actor=self.actor, experiment=row))
        return self.paginated(points, FrontPointOutput)


class JudgeChecksView(_Base):
    """How the judges of an experiment graded gold answers before its start."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(operation_id="experiment_judge_checks", tags=_TAGS, responses=JudgeCheckOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the checks with what they found; a judge that has drifted gates nothing in this experiment."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        found = check_list(actor=self.actor, experiment=row)
        return self.paginated(found, JudgeCheckOutput)


class RepeatsView(_Base):
    """What an arm's repeats show."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="arms_repeats",
        tags=_TAGS,
        responses=RepeatsOutput,
        parameters=[
            OpenApiParameter("score", str, description="The score to look at; left out, the weighted mean.")
        ],
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return how an arm's scores vary: between rows, answers and judgements, and which rows are flaky."""
        score = request.query_params.get("score", "")
        found = arm_repeats(actor=self.actor, arm=self._arm(pk), score=score)
        return Response(RepeatsOutput(found).data)


class ComparisonView(_Base):
    """An arm compared with another."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="arms_compare",
        tags=_TAGS,
        responses=ComparisonOutput,
        parameters=[
            OpenApiParameter("against", int, required=True, description="Id of the arm to compare with (A)."),
            OpenApiParameter(
                "score", str, description="The score that decides; left out, the weighted mean."
            ),
            OpenApiParameter(
                "calibrated",
                bool,
                description="Read judges' scores on the scale of people, by their newest calibration.",
            ),
        ],
    )
    def get(self, request: Request, pk: int) -> Response:
        """Compare this arm (B) with another (A) over the rows that both have."""
        b = self._arm(pk)
        text = request.query_params.get("against", "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Invalid("against_invalid", "Name the arm to compare with: ?against=<id>.")
        a = self._arm(int(text))
        is_calibrated = valid(CalibratedInput, request.query_params)["calibrated"]
        read = arms_read(actor=self.actor, a=a, b=b, is_calibrated=is_calibrated)
        found = arms_compare(read.a, read.b, leading=request.query_params.get("score", ""))
        headline, sentence = verdict(found)
        advisory = advisory_names(actor=self.actor, arm=b, scores=read.b, found=found)
        shown = {
            "criteria": [
                {
                    **{f.name: getattr(c, f.name) for f in fields(c)},
                    "is_shown": c.is_shown,
                    "may_gate": c.name not in advisory,
                    "calibrated": read.readings.get(c.name, ()),
                }
                for c in found.criteria
            ],
            **{
                name: getattr(found, name)
                for name in (
                    "wins",
                    "ties",
                    "losses",
                    "smallest",
                    "needed",
                    "left_out",
                    "solved_cost",
                    "notes",
                )
            },
            "needs": [{"change": change, "rows": rows} for change, rows in found.needs],
            "headline": headline,
            "sentence": sentence,
            "rows": found.rows[:_MOST_ROWS],
        }
        return Response(ComparisonOutput(shown).data)


class GateView(_Base):
    """The gate."""

    actions = {"POST": _READ}

    @extend_schema(operation_id="arms_gate", tags=_TAGS, request=GateInput, responses=GateOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Decide whether an arm may be released, by the baseline of its dataset. Nothing is changed."""
        result = gate_run(actor=self.actor, arm=self._arm(pk), **valid(GateInput, request.data))
        return Response(GateOutput(result).data)


class GateSarifView(_Base):
    """The gate, as code hosts read it."""

    actions = {"POST": _READ}

    @extend_schema(
        operation_id="arms_gate_sarif", tags=_TAGS, request=GateInput, responses={200: OpenApiTypes.OBJECT}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Decide as the gate does, and return the decision as a SARIF 2.1.0 log."""
        result = gate_run(actor=self.actor, arm=self._arm(pk), **valid(GateInput, request.data))
        return Response(to_sarif(result))


class BaselineView(_Base):
    """What gates compare with."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="arms_promote", tags=_TAGS, request=BaselineInput, responses={201: BaselineOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Make an arm the baseline of its dataset from now on."""
        values = valid(BaselineInput, request.data)
        row = services.baseline_set(tenant=self.tenant, actor=self.actor, arm=self._arm(pk), **values)
        row.refresh_from_db()
        return Response(BaselineOutput(row).data, status=status.HTTP_201_CREATED)
