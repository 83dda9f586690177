"""REST of tool calls: the policy decides, services act."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.calls.file_shapes import file_call
from apps.tools.calls.services import MAX_OUTPUT, Executed, call_parse, calls_execute
from apps.tools.calls.shapes import ExecuteInput, ExecuteOutput, SystemQuery, ToolsOutput
from apps.tools.toolset.direct_calls import offer_guard, offer_tools
from basics.errors import Invalid
from toolloop.errors import ConfigurationError
from toolloop.interop.langchain import call_run_langchain, functions_of, langchain_require
from toolloop.messages import ToolCall
from toolloop.tools.runtime import call_run, output_cut
from web.drf.views import TenantAPIView

_COLLECTION = OpenApiParameter(
    "collection", int, many=True, description="Id of a collection the calls will be about; default: all."
)


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


def _problem(done: Executed) -> str | None:
    """Return what went wrong first among calls, None when all have ended well."""
    for result in done.results:
        if result is None:
            return f"A call waits for approval: see /runs/{done.waiting and done.waiting.pk}/decisions."
        if result.is_error:
            return output_cut(result.content, MAX_OUTPUT)
    return None


class ToolsView(TenantAPIView):
    """The tools that the caller may use."""

    actions = {"GET": "tool.run"}

    @extend_schema(
        operation_id="tools_list",
        tags=["tools"],
        parameters=[_COLLECTION, SystemQuery],
        responses=ToolsOutput,
    )
    def get(self, request: Request) -> Response:
        """List the tools that the policy could allow you to call, in OpenAI's function format."""
        given = request.query_params.getlist("collection")
        if not all(g.isascii() and g.isdecimal() and len(g) < 19 for g in given):
            raise Invalid(
                "invalid",
                "Identify the collection by its id.",
                data={"fields": {"collection": ["Give an id."]}},
            )
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
    """Tool calls."""

    actions = {"POST": "tool.run"}
    waits = True

    def _calls(self, values: Mapping[str, Any]) -> list[ToolCall]:
        """Return the calls of a body, in whichever of its forms they came."""
        if "function_name" not in values:
            return [
                call_parse(c["id"], c["function"]["name"], c["function"]["arguments"])
                for c in values["tool_calls"]
            ]
        call = file_call(
            actor=self.actor,
            name=values["function_name"],
            arguments=values.get("arguments", ""),
            call_id=values.get("tool_call_id", ""),
            collections=values.get("collections"),
        )
        return [call]

    @extend_schema(
        operation_id="tools_execute",
        tags=["tools"],
        parameters=[SystemQuery],
        request=ExecuteInput,
        responses=ExecuteOutput,
    )
    def post(self, request: Request) -> Response:
        """Run calls that a model made elsewhere: allowed ones run, denied ones don't, and some wait for approval."""
        shape = ExecuteInput(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        is_langchain = _is_langchain(request)
        began = time.perf_counter()
        calls = self._calls(values)
        done = calls_execute(
            tenant=self.tenant,
            actor=self.actor,
            calls=calls,
            collections=values.get("collections"),
            runner=call_run_langchain if is_langchain else call_run,
        )
        if (refusal := done.refusal()) is not None:
            raise refusal
        problem = _problem(done)
        return Response(
            {
                "success": problem is None,
                "error": problem,
                "system": "langchain" if is_langchain else "native",
                "execution_time_ms": round((time.perf_counter() - began) * 1000, 3),
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
