"""What a chat completion request may hold. Fields of OpenAI's that change nothing here are taken and left alone, but for
those without which the answer would be another than the client takes it for: these are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.openai.services import ASSISTANT, CompletionRequest
from apps.conversations.openai.wire import ToolChoice, messages_read
from basics.errors import Invalid
from toolloop.errors import ConfigurationError
from toolloop.mcp.schemas import SchemaRefused, schema_answer, schema_safe
from toolloop.output import output_of
from toolloop.service import tier_used
from toolloop.tools.meta_tools import META_TOOLS

MAX_MESSAGES, MAX_TOOLS, MAX_STOPS, MAX_CHARS = 2_000, 128, 4, 8_000_000
_BIGINT = 2**63 - 1
_NOT_HERE = {
    "functions": "Send tools.",
    "function_call": "Send tool_choice.",
    "logprobs": "Leave it out; probabilities aren't available.",
    "logit_bias": "Leave it out.",
    "audio": "Leave it out; answers are text.",
    "web_search_options": "Leave it out; the workspace's tools can search if its rules allow it.",
}


class FunctionShape(serializers.Serializer[Any]):
    name = serializers.RegexField(r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    description = serializers.CharField(default="", allow_null=True, allow_blank=True, max_length=20_000)
    parameters = serializers.DictField(default=dict, allow_null=True)


class ToolShape(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=["function"])
    function = FunctionShape()


class ExtensionShape(serializers.Serializer[Any]):
    collections = serializers.JSONField(default=None)
    events = serializers.BooleanField(
        default=False, help_text="Stream the run's events too, under `groundwork`."
    )


class SettingsShape(serializers.Serializer[Any]):
    """Settings of the model that both APIs have."""

    service_tier = serializers.ChoiceField(
        choices=["auto", "default", "flex", "priority", "fast"],
        default=None,
        allow_null=True,
        help_text="The provider's tier: flex is slow and costs about half, priority (also called fast) is "
        "quick and costs more. The response says which was used. Refused if the model doesn't have it.",
    )

    temperature = serializers.FloatField(default=None, allow_null=True, min_value=0, max_value=2)
    top_p = serializers.FloatField(default=None, allow_null=True, min_value=0, max_value=1)
    parallel_tool_calls = serializers.BooleanField(
        default=True,
        allow_null=True,
        help_text="False: the model calls one tool at a time, if its provider supports this.",
    )


@extend_schema_field(
    {
        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": MAX_STOPS}],
        "nullable": True,
    }
)
class StopField(serializers.Field[Any, Any, Any, Any]):
    """A text, or up to four."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        is_right = isinstance(texts, list) and len(texts) <= MAX_STOPS
        if not is_right or not all(isinstance(t, str) and 0 < len(t) <= 200 for t in texts):
            raise serializers.ValidationError(
                f"Send a text of 1 to 200 characters, or a list of up to {MAX_STOPS}."
            )
        found: list[str] = texts
        return found

    def to_representation(self, value: Any) -> Any:
        return value


class ChatCompletionShape(SettingsShape):
    model = serializers.CharField(max_length=120)
    messages = serializers.ListField(child=serializers.DictField(), min_length=1, max_length=MAX_MESSAGES)
    stream = serializers.BooleanField(
        default=False, allow_null=True, help_text="Answer with server-sent events, as OpenAI does."
    )
    stream_options = serializers.DictField(default=dict, allow_null=True)
    tools = ToolShape(many=True, default=list, allow_null=True)
    tool_choice = serializers.JSONField(default=None, allow_null=True)
    response_format = serializers.DictField(default=None, allow_null=True)
    max_tokens = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=1_000_000)
    max_completion_tokens = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=1_000_000
    )
    stop = StopField(default=None, allow_null=True)
    seed = serializers.IntegerField(default=None, allow_null=True, min_value=-_BIGINT - 1, max_value=_BIGINT)
    reasoning_effort = serializers.CharField(default=None, allow_null=True, max_length=20)
    n = serializers.IntegerField(default=1, allow_null=True, min_value=1, max_value=1)
    functions = serializers.JSONField(default=None, allow_null=True)
    function_call = serializers.JSONField(default=None, allow_null=True)
    logprobs = serializers.JSONField(default=None, allow_null=True)
    logit_bias = serializers.JSONField(default=None, allow_null=True)
    audio = serializers.JSONField(default=None, allow_null=True)
    web_search_options = serializers.JSONField(default=None, allow_null=True)
    groundwork = ExtensionShape(default=None, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_searching = attrs["web_search_options"] is not None  # {} asks for a search as it is
        refuse_given({**attrs, "web_search_options": is_searching}, _NOT_HERE)
        return attrs


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
    tools = tools_check([dict(tool["function"]) for tool in values["tools"] or ()], ".function")
    choice, first, tools = choice_read(values["tool_choice"], tools)
    return CompletionRequest(
        model=values["model"],
        asked=messages_read(values["messages"]),
        tools=tools,
        tool_choice=choice,
        first_tool=first,
        collections=collections_read(values),
        schema=schema_read(values["response_format"], "response_format"),
        max_tokens=values["max_completion_tokens"] or values["max_tokens"],
        options=options_read(
            values, stop=values["stop"], seed=values["seed"], effort=values["reasoning_effort"]
        ),
    )


def refuse_given(values: Mapping[str, Any], why: Mapping[str, str]) -> None:
    """Refuse fields that hold something: field -> what to do instead. Raises Invalid."""
    for name, problem in why.items():
        if values[name]:
            raise _invalid(name, problem)


def options_read(values: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the settings of the model that are given: those of both APIs, and ``more``."""
    given = {
        "temperature": values["temperature"],
        "top_p": values["top_p"],
        "parallel_tool_calls": False if values["parallel_tool_calls"] is False else None,
        "service_tier": tier_used(values["service_tier"] or ""),
        **more,
    }
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def tools_check(tools: list[dict[str, Any]], inside: str = "") -> list[dict[str, Any]]:
    """Return the client's tools as any model can be told of them.

    Args:
        tools: each with ``name``, and perhaps ``description`` and ``parameters``.
        inside: where in an entry of ``tools`` these stand, for errors.

    Raises:
        Invalid: too many, two of one name, one that has the name of a tool which finds others here, or parameters that
            are no JSON Schema of an object.
    """
    if len(tools) > MAX_TOOLS:
        raise _invalid("tools", f"Send at most {MAX_TOOLS} tools.")
    if len({tool["name"] for tool in tools}) != len(tools):
        raise _invalid("tools", "Two tools have one name.")
    checked = []
    for number, tool in enumerate(tools):
        where = f"tools[{number}]{inside}"
        if tool["name"] in META_TOOLS:
            raise _invalid(
                f"{where}.name", f"“{tool['name']}” is already the name of a tool here. Rename yours."
            )
        try:
            parameters = schema_safe(tool["parameters"] or {})
        except SchemaRefused as error:
            raise _invalid(f"{where}.parameters", f"This cannot be used: {error}.") from error
        # No model is told of a tool without a word, though OpenAI lets clients leave it out.
        words = (tool["description"] or "").strip() or tool["name"].replace("_", " ")
        checked.append({"name": tool["name"], "description": words, "parameters": parameters})
    return checked


def choice_read(given: Any, tools: list[dict[str, Any]]) -> tuple[ToolChoice, str, list[dict[str, Any]]]:
    """Return how tools are to be used, the one to begin with ("" for any), and which there are; raises Invalid."""
    if given in (None, "auto"):
        return "auto", "", tools
    if given == "none":
        return "none", "", tools
    if given == "required":
        if not tools:
            raise _invalid("tool_choice", "A tool is required, but none is given.")
        return "required", "", tools
    kind = given.get("type") if isinstance(given, dict) else None
    inner = given.get(kind) if kind in ("function", "allowed_tools") else None
    if kind == "allowed_tools" and isinstance(inner, dict) and isinstance(inner.get("tools"), list):
        mode, entries = inner.get("mode"), inner["tools"]
        names = [_named(entry.get("function")) for entry in entries if isinstance(entry, dict)]
        if mode not in ("auto", "required") or not names:
            raise _invalid(
                "tool_choice", "Allowed tools have a mode, auto or required, and a list of at least one tool."
            )
        return mode, "", [_among(name, tools) for name in dict.fromkeys(names)]
    if not (name := _named(inner)):
        raise _invalid(
            "tool_choice", "Send auto, none, required, {type: function, function: {name}}, or allowed_tools."
        )
    _among(name, tools)
    return "required", name, tools


def _named(function: Any) -> str:
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _among(name: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    found = next((tool for tool in tools if tool["name"] == name), None)
    if found is None:
        raise _invalid("tool_choice", "It names a tool that isn't in tools.")
    return found


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
        safe = schema_answer(schema)
        output_of(safe)
    except (SchemaRefused, ConfigurationError) as error:
        raise _invalid(field, f"This cannot be used: {error}.") from error
    return safe


def _invalid(field: str, problem: str) -> Invalid:
    return Invalid("invalid", f"{field}: {problem}", data={"fields": {field: [problem]}})


class PriceTierOutput(serializers.Serializer[Any]):
    """USD per million tokens for prompts above a size."""

    input = serializers.FloatField()
    output = serializers.FloatField()
    cached_read = serializers.FloatField(allow_null=True)
    cache_write = serializers.FloatField(allow_null=True)
    above_tokens = serializers.IntegerField()

    class Meta:
        ref_name = "PriceTier"


class ModelOutput(serializers.Serializer[Any]):
    """A model: the fields that OpenAI's clients read, and the facts we know."""

    id = serializers.CharField(help_text="The id to use in requests.")
    object = serializers.SerializerMethodField()
    created = serializers.SerializerMethodField(help_text="Always 0: not known.")
    owned_by = serializers.CharField(source="provider")
    provider = serializers.CharField()
    model = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    context_window = serializers.IntegerField(allow_null=True, help_text="Tokens.")
    max_output_tokens = serializers.IntegerField(allow_null=True)
    is_language_model = serializers.BooleanField(help_text="False: answers only quote, no text is generated.")
    endpoint = serializers.CharField(help_text="Named compatible server, empty for the default.")
    capabilities = serializers.ListField(child=serializers.CharField())
    prompt_cache = serializers.CharField(help_text="automatic, marked or none.")
    prices = PriceTierOutput(many=True, help_text="By prompt size; empty when unknown.")
    deprecated_on = serializers.CharField(help_text="Announced end date, empty for none.")
    replaced_by = serializers.CharField(help_text="Its successor, empty when unknown.")

    class Meta:
        ref_name = "Model"

    def get_object(self, model: Any) -> str:
        return "model"

    def get_created(self, model: Any) -> int:
        return 0


class ModelsOutput(serializers.Serializer[Any]):
    object = serializers.ChoiceField(choices=["list"])
    data = ModelOutput(many=True)  # type: ignore[assignment]

    class Meta:
        ref_name = "Models"
