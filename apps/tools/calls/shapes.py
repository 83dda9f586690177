"""What the REST API of tools takes and gives: the function format of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.tools.calls.services import MAX_ARGUMENTS, MAX_CALLS

_BIGINT = 2**63 - 1


class SystemQuery(serializers.Serializer[Any]):
    system = serializers.ChoiceField(
        choices=["native", "langchain"],
        required=False,
        default=None,
        allow_null=True,
        help_text="What carries the tools out: this platform itself, or langchain-core on it. The answer is the same.",
    )
    use_langchain = serializers.BooleanField(
        required=False, default=None, allow_null=True, help_text="true is the same as system=langchain."
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Refuse two answers to one question."""
        system, wanted = values["system"], values["use_langchain"]
        if system is not None and wanted is not None and wanted != (system == "langchain"):
            raise serializers.ValidationError(
                {"use_langchain": ["This contradicts `system`. Send only one of the two."]}
            )
        return {"is_langchain": bool(wanted) or system == "langchain"}


class FunctionOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON Schema of the arguments.")

    class Meta:
        ref_name = "ToolFunction"


class ToolOutput(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=["function"])
    function = FunctionOutput()

    class Meta:
        ref_name = "Tool"


class ToolsOutput(serializers.Serializer[Any]):
    tools = ToolOutput(many=True, help_text="Ready to be sent to a model as its tools.")

    class Meta:
        ref_name = "Tools"


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "maxLength": MAX_ARGUMENTS},
            {"type": "object", "additionalProperties": True},
        ]
    }
)
class ArgumentsField(serializers.Field[Any, Any, Any, Any]):
    """The arguments of a call: a JSON object, or its text as models write it. It gives the text."""

    def to_internal_value(self, data: Any) -> str:
        text = json.dumps(data, ensure_ascii=False) if isinstance(data, Mapping) else data
        if not isinstance(text, str):
            raise serializers.ValidationError("Send a JSON object, or its text.")
        if len(text) > MAX_ARGUMENTS:
            raise serializers.ValidationError(f"Send at most {MAX_ARGUMENTS:,} characters.")
        return text

    def to_representation(self, value: Any) -> Any:
        return value


class FunctionCallInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
    arguments = ArgumentsField(help_text="A JSON object, or its text.")

    class Meta:
        ref_name = "ToolFunctionCall"


class ToolCallInput(serializers.Serializer[Any]):
    id = serializers.CharField(max_length=200)
    type = serializers.ChoiceField(choices=["function"], default="function")
    function = FunctionCallInput()

    class Meta:
        ref_name = "ToolCallInput"


class ExecuteInput(serializers.Serializer[Any]):
    tool_calls = serializers.ListField(
        child=ToolCallInput(),
        min_length=1,
        max_length=MAX_CALLS,
        required=False,
        help_text="As a model wrote them; they run side by side.",
    )
    function_name = serializers.CharField(
        max_length=200, required=False, help_text="One call in place of `tool_calls`: the tool's name."
    )
    arguments = ArgumentsField(required=False, help_text="Of that one call: a JSON object, or its text.")
    tool_call_id = serializers.CharField(
        max_length=200, required=False, help_text="Of that one call; made if not given."
    )
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=500,
        help_text="Ids of the collections the calls are about; default: all.",
    )

    class Meta:
        ref_name = "ToolExecuteInput"

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Take one of the two forms. Raises ValidationError."""
        if ("tool_calls" in values) == ("function_name" in values):
            raise serializers.ValidationError(
                {"tool_calls": ["Send tool_calls, or function_name with arguments."]}
            )
        mixed = values.keys() & {"arguments", "tool_call_id"}
        if "tool_calls" in values and mixed:
            raise serializers.ValidationError({name: ["It goes with function_name."] for name in mixed})
        return values


class ToolMessageOutput(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=["tool"])
    tool_call_id = serializers.CharField()
    name = serializers.CharField()
    content = serializers.CharField(help_text="Text for the model; states if the call failed.")
    is_error = serializers.BooleanField()
    error_code = serializers.CharField(help_text="Empty without an error; “denied” by the policy.")

    class Meta:
        ref_name = "ToolMessage"


class ExecuteOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField(help_text="Every call has ended, and none in an error.")
    error = serializers.CharField(
        allow_null=True, help_text="What went wrong first, or that a call waits for approval; null without."
    )
    system = serializers.ChoiceField(choices=["native", "langchain"], help_text="What carried the calls out.")
    execution_time_ms = serializers.FloatField(help_text="Of all calls together, side by side as they ran.")
    run = serializers.IntegerField(allow_null=True, help_text="Records the calls that ended.")
    messages = ToolMessageOutput(
        many=True, help_text="Of the calls that ended, in their order; ready to be added to a history."
    )
    waiting_run = serializers.IntegerField(
        allow_null=True, help_text="The run that waits for approval of the others; see /runs/{id}/decisions."
    )
    waiting = serializers.ListField(child=serializers.CharField(), help_text="Ids of the calls that wait.")

    class Meta:
        ref_name = "ToolExecution"
