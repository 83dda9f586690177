"""REST of tools. The views hold no rules: the policy decides, services act."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.api_shapes import ExecuteInput, ExecuteOutput, ToolsOutput
from apps.tools.offer import offer_guard, offer_tools
from apps.tools.services import calls_execute
from apps.tools.services.calls import MAX_OUTPUT, call_parse
from basics.errors import Invalid
from toolloop.tools.runtime import output_cut
from web.drf.views import TenantAPIView

_COLLECTION = OpenApiParameter(
    "collection", int, many=True, description="Id of a collection the calls will be about; all if not given."
)  # fmt: skip


class ToolsView(TenantAPIView):
    """The tools that the caller may use."""

    actions = {"GET": "tool.run"}

    @extend_schema(operation_id="tools_list", tags=["tools"], parameters=[_COLLECTION], responses=ToolsOutput)  # fmt: skip
    def get(self, request: Request) -> Response:
        """List the tools some call of which the policy could allow, in the function format of OpenAI."""
        given = request.query_params.getlist("collection")
        if not all(g.isascii() and g.isdecimal() and len(g) < 19 for g in given):
            raise Invalid("invalid", "A collection is named by its id.", data={"fields": {"collection": ["Give an id."]}})  # fmt: skip
        guard = offer_guard(actor=self.actor, collections=[int(g) for g in given] or None)
        tools = [
            {
                "type": "function",
                "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": dict(spec.parameters),
                },
            }
            for spec in offer_tools(guard).specs()
        ]
        return Response({"tools": tools})


class ToolsExecuteView(TenantAPIView):
    """Calls of tools."""

    actions = {"POST": "tool.run"}

    @extend_schema(operation_id="tools_execute", tags=["tools"], request=ExecuteInput, responses=ExecuteOutput)  # fmt: skip
    def post(self, request: Request) -> Response:
        """Run calls that a model made elsewhere: allowed ones at once, denied ones not, and some wait for approval."""
        shape = ExecuteInput(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        calls = [
            call_parse(c["id"], c["function"]["name"], c["function"]["arguments"])
            for c in values["tool_calls"]
        ]
        done = calls_execute(
            tenant=self.tenant, actor=self.actor, calls=calls, collections=values.get("collections")
        )
        return Response(
            {
                "run": done.run and done.run.pk,
                "messages": [
                    {
                        "role": "tool",
                        "tool_call_id": result.call_id,
                        "name": result.name,
                        "content": output_cut(result.content, MAX_OUTPUT),
                        "is_error": result.is_error,
                        "error_code": result.error_code,
                    }
                    for result in done.results
                    if result is not None
                ],
                "waiting_run": done.waiting and done.waiting.pk,
                "waiting": [c.id for c, r in zip(calls, done.results, strict=True) if r is None],
            }
        )
