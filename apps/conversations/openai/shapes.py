"""What a chat completion request may hold; fields of OpenAI's that change nothing here are taken and left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from apps.conversations.openai.services import WORKSPACE, CompletionRequest
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
    if len(values["tools"]) > MAX_TOOLS:
        raise _invalid("tools", f"Send at most {MAX_TOOLS} tools.")
    tools = [dict(tool["function"]) for tool in values["tools"]]
    if len({tool["name"] for tool in tools}) != len(tools):
        raise _invalid("tools", "Two tools have one name.")
    choice, only = _choice(values["tool_choice"])
    if only:
        tools = [tool for tool in tools if tool["name"] == only]
    if choice == "required" and not tools:
        raise _invalid("tool_choice", "It names a tool that is not among the tools.")
    return CompletionRequest(
        model=values["model"],
        asked=messages_read(values["messages"]),
        tools=tools,
        tool_choice=choice,
        collections=_collections(values),
        schema=_schema(values["response_format"]),
        max_tokens=values["max_completion_tokens"] or values["max_tokens"],
        temperature=values["temperature"],
    )


def _choice(given: Any) -> tuple[ToolChoice, str]:
    if given in (None, "auto"):
        return "auto", ""
    if given == "none":
        return "none", ""
    if given == "required":
        return "required", ""
    function = given.get("function") if isinstance(given, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        return "required", function["name"]
    raise _invalid("tool_choice", "Send auto, none, required or {type: function, function: {name}}.")  # fmt: skip


def _collections(values: Mapping[str, Any]) -> list[int] | None:
    given = (values["groundwork"] or {}).get("collections")
    if given is None:
        return None if values["model"] == WORKSPACE else []
    if given == "all":
        return None
    if isinstance(given, list) and all(type(pk) is int and 0 < pk <= _BIGINT for pk in given):
        return given
    raise _invalid("groundwork.collections", "Send a list of ids, or “all”.")


def _schema(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    kind = (given or {}).get("type", "text")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return {}
    wrapper = given.get("json_schema")
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    if kind != "json_schema" or not isinstance(schema, dict):
        raise _invalid("response_format", "Send text, json_object, or json_schema with a schema.")
    try:
        output_of(schema)
    except ConfigurationError as error:
        raise _invalid("response_format", str(error)) from error
    return schema


def _invalid(field: str, problem: str) -> Invalid:
    return Invalid("invalid", f"{field}: {problem}", data={"fields": {field: [problem]}})
