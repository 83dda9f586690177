"""REST of approvals. The views hold no rules: ``runs.approvals.deciders`` says who decides, services act."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.approvals.shapes import DecisionOutput, HandOverInput
from runs.approvals.selectors import BOXES, approval_get, approval_list
from runs.approvals.services import call_hand_over
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_BOX = OpenApiParameter(
    "box",
    str,
    enum=BOXES,
    default="to_decide",
    description="`to_decide`: waiting for your decision; `waiting`: your calls, waiting for others; "
    "`decided`: already decided; `all`: everything you can see.",
)
_TOOL = OpenApiParameter("tool", str, description="Only calls of this tool.")


class ApprovalsView(TenantAPIView):
    """Calls that wait for somebody's decision, over all runs."""

    actions = {"GET": "run.read"}
    pagination_class = Pagination

    @extend_schema(
        operation_id="approvals_list",
        tags=["runs"],
        parameters=[_BOX, _TOOL],
        responses=DecisionOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """List approvals, newest first; decide about one with `POST /runs/{run_id}/decisions/{id}`."""
        box = request.query_params.get("box") or "to_decide"
        tool = request.query_params.get("tool", "")
        return self.paginated(approval_list(actor=self.actor, box=box, tool=tool), DecisionOutput)


class ApprovalHandOverView(TenantAPIView):
    """Delegation of one decision."""

    actions = {"POST": "conversation.write"}

    @extend_schema(
        operation_id="approvals_hand_over", tags=["runs"], request=HandOverInput, responses=DecisionOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Hand a decision over to another member who can decide; those who could before still can."""
        shape = HandOverInput(data=request.data)
        shape.is_valid(raise_exception=True)
        row = approval_get(actor=self.actor, pk=pk)
        call_hand_over(
            tenant=self.tenant, actor=self.actor, run=row.run, decision_id=pk, to=shape.validated_data["to"]
        )
        return Response(DecisionOutput(approval_get(actor=self.actor, pk=pk)).data)
