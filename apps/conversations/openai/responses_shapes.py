"""What a request to ``/responses`` may hold; see ``shapes`` for the fields of OpenAI's that are not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.openai.responses import Previous
from apps.conversations.openai.responses_wire import input_read, invalid
from apps.conversations.openai.services import CompletionRequest
from apps.conversations.openai.shapes import (
    MAX_CHARS,
    MAX_MESSAGES,
    ExtensionShape,
    FunctionShape,
    SettingsShape,
    choice_read,
    collections_read,
    options_read,
    refuse_given,
    schema_read,
    tools_check,
)
from apps.conversations.openai.wire import messages_read

_NOT_HERE = {
    "background": "Leave it out; stream the answer or wait for it.",
    "conversation": "Leave it out and send previous_response_id.",
    "top_logprobs": "Leave it out; probabilities aren't available.",
    "prompt": "Leave it out and send instructions.",
}


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "object", "additionalProperties": True}},
        ]
    }
)
class InputField(serializers.Field[Any, Any, Any, Any]):
    """A text, or items as OpenAI documents them."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            if len(data) > MAX_CHARS:
                raise serializers.ValidationError(f"Send at most {MAX_CHARS} characters.")
            return data
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise serializers.ValidationError("Send a text or a list of items.")
        if not 0 < len(data) <= MAX_MESSAGES:
            raise serializers.ValidationError(f"Send 1 to {MAX_MESSAGES} items.")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class FunctionToolShape(FunctionShape):
    type = serializers.ChoiceField(choices=["function"])
    description = serializers.CharField(default="", allow_blank=True, allow_null=True, max_length=20_000)
    parameters = serializers.DictField(default=dict, allow_null=True)


class ResponseShape(SettingsShape):
    model = serializers.CharField(max_length=120)
    input = InputField()
    instructions = serializers.CharField(
        default=None, allow_null=True, allow_blank=True, max_length=MAX_CHARS
    )
    previous_response_id = serializers.CharField(default=None, allow_null=True, max_length=60)
    stream = serializers.BooleanField(
        default=False, allow_null=True, help_text="Answer with server-sent events, as OpenAI does."
    )
    store = serializers.BooleanField(
        default=True,
        allow_null=True,
        help_text="False: later requests can't refer to this response. The run is kept like any other.",
    )
    tools = FunctionToolShape(many=True, default=list, allow_null=True)
    tool_choice = serializers.JSONField(default=None, allow_null=True)
    text = serializers.DictField(default=None, allow_null=True)
    max_output_tokens = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=1_000_000
    )
    top_logprobs = serializers.JSONField(default=None, allow_null=True)
    reasoning = serializers.DictField(default=None, allow_null=True)
    metadata = serializers.DictField(
        child=serializers.CharField(max_length=512, allow_blank=True), default=None, allow_null=True
    )
    background = serializers.JSONField(default=None, allow_null=True)
    conversation = serializers.JSONField(default=None, allow_null=True)
    prompt = serializers.JSONField(default=None, allow_null=True)
    groundwork = ExtensionShape(default=None, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        refuse_given(attrs, _NOT_HERE)
        if len(attrs["metadata"] or {}) > 16:
            raise invalid("metadata", "Send at most 16 keys.")
        return attrs


class ResponseOutput(serializers.Serializer[Any]):
    """As OpenAI documents it; ``groundwork`` holds the run, its state, citations, and calls that wait for approval."""

    id = serializers.CharField()
    object = serializers.CharField(help_text="Always `response`.")
    created_at = serializers.IntegerField()
    status = serializers.CharField(help_text="completed, failed, in_progress, cancelled or incomplete.")
    model = serializers.CharField()
    output = serializers.ListField(child=serializers.DictField())
    usage = serializers.DictField(allow_null=True)
    error = serializers.DictField(allow_null=True)
    incomplete_details = serializers.DictField(allow_null=True)
    previous_response_id = serializers.CharField(allow_null=True)
    groundwork = serializers.DictField()

    class Meta:
        ref_name = "Response"


class ResponseDeletedOutput(serializers.Serializer[Any]):
    id = serializers.CharField()
    object = serializers.CharField(help_text="Always `response`.")
    deleted = serializers.BooleanField(help_text="Always true.")


class ResponseInputsFilter(serializers.Serializer[Any]):
    limit = serializers.IntegerField(default=20, min_value=1, max_value=100)
    order = serializers.ChoiceField(default="desc", choices=["asc", "desc"])
    after = serializers.CharField(default="", max_length=60, help_text="Continue after this item.")


class ResponseInputsOutput(serializers.Serializer[Any]):
    """As OpenAI documents it."""

    object = serializers.CharField(help_text="Always `list`.")
    data = serializers.ListField(child=serializers.DictField())  # type: ignore[assignment]
    first_id = serializers.CharField(allow_null=True)
    last_id = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


def items_page(items: list[dict[str, Any]], *, limit: int, order: str, after: str) -> dict[str, Any]:
    """Return a page of items as OpenAI lists them. Raises Invalid when ``after`` names none."""
    ordered = items if order == "asc" else items[::-1]
    if after:
        place = next((n for n, item in enumerate(ordered) if item["id"] == after), None)
        if place is None:
            raise invalid("after", "This item doesn't exist.")
        ordered = ordered[place + 1 :]
    data = ordered[:limit]
    ids = [item["id"] for item in data] or [None]
    return {
        "object": "list",
        "data": data,
        "first_id": ids[0],
        "last_id": ids[-1],
        "has_more": len(ordered) > limit,
    }


def response_request_read(values: Mapping[str, Any], previous: Previous | None) -> CompletionRequest:
    """Return what a checked body asks for.

    Raises:
        Invalid: something in it cannot be used; the error names the field.
    """
    tools = tools_check([dict(tool) for tool in values["tools"] or ()])
    mode, first, tools = choice_read(_choice(values["tool_choice"]), tools)
    messages, places = input_read(values["input"])
    asked = messages_read(messages, places=places, names=previous.calls if previous else None)
    developer = asked.system
    if previous is not None:
        open_ = set(previous.calls) - {m.get("tool_call_id") for m in messages}
        if open_:
            raise invalid("input", f"Send a function_call_output for {', '.join(sorted(open_))}.")
        developer = "\n\n".join(filter(None, [previous.developer, developer]))
        asked.history[:0] = previous.history
    asked = replace(asked, system="\n\n".join(filter(None, [values["instructions"], developer])))
    return CompletionRequest(
        model=values["model"],
        asked=asked,
        tools=tools,
        tool_choice=mode,
        first_tool=first,
        collections=collections_read(values),
        schema=schema_read(_form(values["text"]), "text.format"),
        max_tokens=values["max_output_tokens"],
        options=options_read(values, effort=(values["reasoning"] or {}).get("effort")),
        response={"asked": _repeated(values), "developer": developer},
    )


def _choice(given: Any) -> Any:
    """Return ``tool_choice`` as chat completions write it: what it names inside of an object."""
    if not isinstance(given, dict):
        return given
    if given.get("type") == "function":
        return {"type": "function", "function": {"name": given.get("name")}}
    entries = given.get("tools")
    named = [{"function": entry} for entry in entries] if isinstance(entries, list) else entries
    return {"type": given.get("type"), "allowed_tools": {"mode": given.get("mode"), "tools": named}}


def _form(text: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return ``text.format`` as chat completions write it: the schema inside of ``json_schema``."""
    form = (text or {}).get("format")
    if form is not None and not isinstance(form, dict):
        raise invalid("text.format", "Send an object with a type.")
    return form and {"type": form.get("type"), "json_schema": form}


def _repeated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a response repeats of its request."""
    return {
        "instructions": values["instructions"],
        "max_output_tokens": values["max_output_tokens"],
        "metadata": values["metadata"] or {},
        "parallel_tool_calls": values["parallel_tool_calls"] is not False,
        "previous_response_id": values["previous_response_id"],
        "service_tier": values["service_tier"] or "auto",
        "store": values["store"] is not False,
        "temperature": values["temperature"],
        "text": values["text"] or {"format": {"type": "text"}},
        "tool_choice": values["tool_choice"] or "auto",
        "tools": [{**tool, "strict": None} for tool in values["tools"] or ()],
        "top_p": values["top_p"],
    }
