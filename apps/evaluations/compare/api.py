"""REST of comparisons and the gate. The views hold no rules: they are computed by ``comparison`` and ``gate``."""

from __future__ import annotations

from dataclasses import fields

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations.compare import services
from apps.evaluations.compare.comparison import arms_compare, verdict
from apps.evaluations.compare.dominance import front_of
from apps.evaluations.compare.gate import advisory_names, gate_run
from apps.evaluations.compare.gate_reports import to_sarif
from apps.evaluations.compare.pairs import pairs_summary
from apps.evaluations.compare.repeats import arm_repeats
from apps.evaluations.compare.shapes import (
    BaselineInput,
    BaselineOutput,
    CalibratedInput,
    ComparisonOutput,
    FrontPointOutput,
    GateInput,
    GateOutput,
    PairSummaryOutput,
    RepeatsOutput,
)
from apps.evaluations.judges.calibrations import arms_read
from apps.evaluations.results import selectors
from basics.errors import Invalid, Missing
from web.drf.inputs import valid
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView

_READ, _WRITE = "evaluation.read", "evaluation.write"
_TAGS = ["evaluations"]
_MOST_ROWS = 500


class PairsView(TenantAPIView):
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


class FrontView(TenantAPIView):
    """The arms of an experiment by quality and cost."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(operation_id="experiment_front", tags=_TAGS, responses=FrontPointOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """Return every arm's quality and cost; no other arm is better than those on the front at no higher cost."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        points = front_of(selectors.arms_summary(actor=self.actor, experiment=row))
        return self.paginated(points, FrontPointOutput)


class RepeatsView(TenantAPIView):
    """What an arm's repeats show."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="arms_repeats",
        tags=_TAGS,
        responses=RepeatsOutput,
        parameters=[
            OpenApiParameter("score", str, description="The score to show; default: the weighted mean.")
        ],
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return how an arm's scores vary: between rows, answers and judgements, and which rows are flaky."""
        score = request.query_params.get("score", "")
        found = arm_repeats(actor=self.actor, arm=selectors.arm_get(actor=self.actor, pk=pk), score=score)
        return Response(RepeatsOutput(found).data)


class ComparisonView(TenantAPIView):
    """An arm compared with another."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="arms_compare",
        tags=_TAGS,
        responses=ComparisonOutput,
        parameters=[
            OpenApiParameter("against", int, required=True, description="Id of the arm to compare with (A)."),
            OpenApiParameter("score", str, description="The score that decides; default: the weighted mean."),
            OpenApiParameter(
                "calibrated",
                bool,
                description="Adjust judges' scores to people's grades, using the newest calibration.",
            ),
        ],
    )
    def get(self, request: Request, pk: int) -> Response:
        """Compare this arm (B) with another (A) over the rows that both have."""
        b = selectors.arm_get(actor=self.actor, pk=pk)
        text = request.query_params.get("against", "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Invalid("against_invalid", "Choose the arm to compare with: ?against=<id>.")
        a = selectors.arm_get(actor=self.actor, pk=int(text))
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


class GateView(TenantAPIView):
    """The gate."""

    actions = {"POST": _READ}

    @extend_schema(operation_id="arms_gate", tags=_TAGS, request=GateInput, responses=GateOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Decide whether an arm can be released, compared with its dataset's baseline. Nothing is changed."""
        result = gate_run(
            actor=self.actor, arm=selectors.arm_get(actor=self.actor, pk=pk), **valid(GateInput, request.data)
        )
        return Response(GateOutput(result).data)


class GateSarifView(TenantAPIView):
    """The gate, as code hosts read it."""

    actions = {"POST": _READ}

    @extend_schema(
        operation_id="arms_gate_sarif", tags=_TAGS, request=GateInput, responses={200: OpenApiTypes.OBJECT}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Decide as the gate does, and return the decision as a SARIF 2.1.0 log."""
        result = gate_run(
            actor=self.actor, arm=selectors.arm_get(actor=self.actor, pk=pk), **valid(GateInput, request.data)
        )
        return Response(to_sarif(result))


class BaselineView(TenantAPIView):
    """What gates compare with."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="arms_promote", tags=_TAGS, request=BaselineInput, responses={201: BaselineOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Make an arm the baseline of its dataset from now on."""
        values = valid(BaselineInput, request.data)
        row = services.baseline_set(
            tenant=self.tenant, actor=self.actor, arm=selectors.arm_get(actor=self.actor, pk=pk), **values
        )
        row.refresh_from_db()
        return Response(BaselineOutput(row).data, status=status.HTTP_201_CREATED)
