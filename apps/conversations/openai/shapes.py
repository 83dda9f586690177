"""What a chat completion request may hold; fields of OpenAI's that change nothing here are taken and left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from apps.conversations.openai.services import ASSISTANT, CompletionRequest
from apps.conversations.openai.wire import ToolChoice, messages_read
from basics.errors import Invalid
from toolloop.errors import ConfigurationError
from toolloop.output import output_of

MAX_MESSAGES, MAX_TOOLS, MAX_CHARS = 2_000, 128, 8_000_000
_BIGINT = 2**63 - 1


class FunctionShape(serializers.Serializer[Any]):
    name = serializers.RegexField(r"^[A-Za-z0-9_-]{1,64}$")
    description = serializers.CharField(default="", allow_blank=True, max_length=20_000)
    parameters = serializers.DictField(default=dict)


class ToolShape(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=["function"])
    function = FunctionShape()


class ExtensionShape(serializers.Serializer[Any]):
    collections = serializers.JSONField(default=None)
    events = serializers.BooleanField(
        default=False, help_text="Stream the run's events too, under `groundwork`."
    )


class ChatCompletionShape(serializers.Serializer[Any]):
    model = serializers.CharField(max_length=120)
    messages = serializers.ListField(
        child=serializers.DictField(), min_length=1, max_length=MAX_MESSAGES
    )
    stream = serializers.BooleanField(
        default=False, help_text="Answer with server-sent events, as OpenAI does."
    )
    stream_options = serializers.DictField(default=dict, allow_null=True)
    tools = ToolShape(many=True, default=list)
    tool_choice = serializers.JSONField(default=None)
    response_format = serializers.DictField(default=None, allow_null=True)
    max_tokens = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=1_000_000)  # fmt: skip
    max_completion_tokens = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=1_000_000)  # fmt: skip
    temperature = serializers.FloatField(default=None, allow_null=True, min_value=0, max_value=2)
    n = serializers.IntegerField(default=1, allow_null=True, min_value=1, max_value=1)
    groundwork = ExtensionShape(default=None)


class ChatCompletionOutput(serializers.Serializer[Any]):
    """As OpenAI documents it; ``groundwork`` holds the run, its state, citations, and calls that wait for approval."""

    id = serializers.CharField()
    object = serializers.ChoiceField(choices=["chat.completion"])
    created = serializers.IntegerField()
    model = serializers.CharField()
    choices = serializers.ListField(child=serializers.DictField())
    usage = serializers.DictField()
    groundwork = serializers.DictField()

    class Meta:
        ref_name = "ChatCompletion"


def request_read(values: Mapping[str, Any]) -> CompletionRequest:
    """Return what a checked body asks for.

    Raises:
        Invalid: something in it cannot be used; the error names the field.
    """
    tools = tools_check([dict(tool["function"]) for tool in values["tools"]])
    choice, tools = choice_read(values["tool_choice"], tools)
    return CompletionRequest(
        model=values["model"],
        asked=messages_read(values["messages"]),
        tools=tools,
        tool_choice=choice,
        collections=collections_read(values),
        schema=schema_read(values["response_format"], "response_format"),
        max_tokens=values["max_completion_tokens"] or values["max_tokens"],
        temperature=values["temperature"],
    )


def tools_check(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the client's tools if they can be told apart and are not too many; raises Invalid."""
    if len(tools) > MAX_TOOLS:
        raise _invalid("tools", f"Send at most {MAX_TOOLS} tools.")
    if len({tool["name"] for tool in tools}) != len(tools):
        raise _invalid("tools", "Two tools have one name.")
    return tools


def choice_read(given: Any, tools: list[dict[str, Any]]) -> tuple[ToolChoice, list[dict[str, Any]]]:
    """Return how tools are to be used, and which of them; raises Invalid."""
    if given in (None, "auto"):
        return "auto", tools
    if given == "none":
        return "none", tools
    if given != "required":
        function = given.get("function") if isinstance(given, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str):
            raise _invalid("tool_choice", "Send auto, none, required or {type: function, function: {name}}.")  # fmt: skip
        tools = [tool for tool in tools if tool["name"] == name]
    if not tools:
        raise _invalid("tool_choice", "It names a tool that is not among the tools.")
    return "required", tools


def collections_read(values: Mapping[str, Any]) -> list[int] | None:
    """Return which collections are searched, None for all of them; raises Invalid."""
    given = (values["groundwork"] or {}).get("collections")
    if given is None:
        return None if values["model"].startswith(ASSISTANT) else []
    if given == "all":
        return None
    if isinstance(given, list) and all(type(pk) is int and 0 < pk <= _BIGINT for pk in given):
        return given
    raise _invalid("groundwork.collections", "Send a list of ids, or “all”.")


def schema_read(given: Mapping[str, Any] | None, field: str) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer, {} for any object, None for text; raises Invalid, which names the field."""
    kind = (given or {}).get("type", "text")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return {}
    wrapper = given.get("json_schema")
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    if kind != "json_schema" or not isinstance(schema, dict):
        raise _invalid(field, "Send text, json_object, or json_schema with a schema.")
    try:
        output_of(schema)
    except ConfigurationError as error:
        raise _invalid(field, str(error)) from error
    return schema


def _invalid(field: str, problem: str) -> Invalid:
    return Invalid("invalid", f"{field}: {problem}", data={"fields": {field: [problem]}})
