"""REST of tools. The views hold no rules: the policy decides, services act."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.api_shapes import ExecuteInput, ExecuteOutput, SystemQuery, ToolsOutput
from apps.tools.offer import offer_guard, offer_tools
from apps.tools.services import calls_execute
from apps.tools.services.calls import MAX_OUTPUT, call_parse
from basics.errors import Invalid
from toolloop.errors import ConfigurationError
from toolloop.interop.langchain import call_run_langchain, functions_of, langchain_require
from toolloop.tools.runtime import call_run, output_cut
from web.drf.views import TenantAPIView

_COLLECTION = OpenApiParameter(
    "collection", int, many=True, description="Id of a collection the calls will be about; all if not given."
)  # fmt: skip


def _is_langchain(request: Request) -> bool:
    """Tell whether LangChain should carry it out, which the operator may not have installed."""
    query = SystemQuery(data=request.query_params)
    query.is_valid(raise_exception=True)
    if not query.validated_data["is_langchain"]:
        return False
    try:
        langchain_require()
    except ConfigurationError as error:
        raise Invalid("langchain_missing", error.message, data={"field": "system"}) from None
    return True


class ToolsView(TenantAPIView):
    """The tools that the caller may use."""

    actions = {"GET": "tool.run"}

    @extend_schema(operation_id="tools_list", tags=["tools"], parameters=[_COLLECTION, SystemQuery], responses=ToolsOutput)  # fmt: skip
    def get(self, request: Request) -> Response:
        """List the tools some call of which the policy could allow, in the function format of OpenAI."""
        given = request.query_params.getlist("collection")
        if not all(g.isascii() and g.isdecimal() and len(g) < 19 for g in given):
            raise Invalid("invalid", "A collection is named by its id.", data={"fields": {"collection": ["Give an id."]}})  # fmt: skip
        guard = offer_guard(actor=self.actor, collections=[int(g) for g in given] or None)
        toolset = offer_tools(guard)
        if _is_langchain(request):
            return Response({"tools": functions_of(toolset)})
        tools = [
            {
                "type": "function",
                "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": dict(spec.parameters),
                },
            }
            for spec in toolset.specs()
        ]
        return Response({"tools": tools})


class ToolsExecuteView(TenantAPIView):
    """Calls of tools."""

    actions = {"POST": "tool.run"}
    waits = True

    @extend_schema(operation_id="tools_execute", tags=["tools"], parameters=[SystemQuery], request=ExecuteInput, responses=ExecuteOutput)  # fmt: skip
    def post(self, request: Request) -> Response:
        """Run calls that a model made elsewhere: allowed ones at once, denied ones not, and some wait for approval."""
        shape = ExecuteInput(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        calls = [
            call_parse(c["id"], c["function"]["name"], c["function"]["arguments"])
            for c in values["tool_calls"]
        ]
        runner = call_run_langchain if _is_langchain(request) else call_run
        done = calls_execute(
            tenant=self.tenant, actor=self.actor, calls=calls, collections=values.get("collections"), runner=runner
        )  # fmt: skip
        if (refusal := done.refusal()) is not None:
            raise refusal
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
