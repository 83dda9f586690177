"""What the REST API of assistants takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.selectors import VersionChange
from apps.conversations.assistants.spec import MAX_HELPERS, MAX_PROMPT
from apps.conversations.models import Assistant, AssistantVersion, Mode, Output

_BIGINT = 2**63 - 1


def _id(**more: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=_BIGINT, **more)


class SpecInput(serializers.Serializer[Any]):
    """What a version is made of; a field that is left out has its default."""

    mode = serializers.ChoiceField(choices=Mode.choices, default=Mode.TOOLS)
    model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=120,
        default="",
        help_text="An id from /models; empty for the workspace's default at the time of each question.",
    )
    prompt = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_PROMPT,
        default="",
        help_text="Added to the platform's own rules.",
    )
    collections = serializers.ListField(
        child=_id(),
        required=False,
        allow_null=True,
        default=None,
        max_length=500,
        help_text="Ids of the collections it searches; null for all, including future ones.",
    )
    toolkit = _id(
        required=False,
        allow_null=True,
        default=None,
        help_text="The only tools it can use, limited to what the person asking can call.",
    )
    has_toolkit = serializers.BooleanField(
        required=False,
        default=False,
        help_text="True without a toolkit: no tools at all. False: all tools that the person can use.",
    )
    output = serializers.ChoiceField(choices=Output.choices, default=Output.TEXT)
    output_name = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=64,
        default="",
        help_text="Schema name, for the output `schema`.",
    )
    output_schema = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        help_text="JSON Schema of type object, for the output `schema`.",
    )
    options = serializers.DictField(
        required=False,
        default=dict,
        help_text="Settings of the mode. All: max_tool_calls, memory_turns, temperature, effort, service_tier, cache_ttl, background; tools, code and planned: max_steps; planned: max_replans; quick: top_k, neighbours, document_types, filters.",
    )
    starters = serializers.ListField(
        child=serializers.CharField(max_length=200),
        required=False,
        default=list,
        max_length=6,
        help_text="Questions offered in a new conversation.",
    )
    helpers = serializers.ListField(
        child=_id(),
        required=False,
        default=list,
        max_length=MAX_HELPERS,
        help_text="Ids of assistants it can ask as tools.",
    )


SPEC_FIELDS = frozenset(SpecInput().fields)


def spec_of(values: dict[str, Any]) -> VersionSpec:
    """Return the spec among checked values."""
    return VersionSpec(**{name: values[name] for name in SPEC_FIELDS})


class AssistantInput(SpecInput):
    name = serializers.CharField(max_length=80)
    slug = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=60,
        default="",
        help_text="Its permanent name in the API; default: made from the name.",
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=300, default="")


class AssistantUpdate(serializers.Serializer[Any]):
    name = serializers.CharField(required=False, max_length=80)
    description = serializers.CharField(required=False, allow_blank=True, max_length=300)
    is_archived = serializers.BooleanField(required=False)


class AssistantOutput(serializers.Serializer[Assistant]):
    id = serializers.IntegerField()
    slug = serializers.CharField(help_text="The model `assistant/<slug>` for OpenAI clients.")
    name = serializers.CharField()
    description = serializers.CharField()
    published = serializers.IntegerField(
        source="published.number",
        default=None,
        allow_null=True,
        help_text="Number of the published version.",
    )
    newest = serializers.IntegerField(help_text="Number of the newest version.")
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Assistant"


class VersionInput(SpecInput):
    note = serializers.CharField(
        required=False, allow_blank=True, max_length=200, default="", help_text="What changed."
    )


class AssistantVersionOutput(serializers.Serializer[AssistantVersion]):
    number = serializers.IntegerField()
    mode = serializers.ChoiceField(choices=Mode.choices)
    model = serializers.CharField(help_text="Empty for the workspace's default.")
    prompt = serializers.CharField()
    collections = serializers.SerializerMethodField(help_text="Null for all.")
    toolkit = serializers.IntegerField(source="toolkit_id", allow_null=True)
    has_toolkit = serializers.BooleanField()
    output = serializers.ChoiceField(choices=Output.choices)
    output_name = serializers.CharField()
    output_schema = serializers.DictField(allow_null=True)
    options = serializers.DictField(help_text="Options that differ from the defaults.")
    starters = serializers.ListField(child=serializers.CharField())
    helpers = serializers.SerializerMethodField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "AssistantVersion"

    def get_collections(self, version: AssistantVersion) -> list[int] | None:
        if version.searches_all:
            return None
        return [row.collection_id for row in version.scope.all()]

    def get_helpers(self, version: AssistantVersion) -> list[int]:
        return [row.assistant_id for row in version.helpers.all()]


class ChangeOutput(serializers.Serializer[VersionChange]):
    """One thing in which two versions differ."""

    label = serializers.CharField()  # type: ignore[assignment]
    before = serializers.CharField()
    after = serializers.CharField()
    lines = serializers.SerializerMethodField(
        help_text="Changed lines; for longer texts, instead of `before` and `after`."
    )

    class Meta:
        ref_name = "AssistantChange"

    def get_lines(self, change: VersionChange) -> list[dict[str, str]]:
        return [{"kind": line.kind, "text": line.text} for line in change.lines]


class ChangesOutput(serializers.Serializer[Any]):
    before = serializers.IntegerField(help_text="Number of the older version.")
    after = serializers.IntegerField()
    changes = ChangeOutput(many=True)

    class Meta:
        ref_name = "AssistantChanges"


class PublishInput(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="Number of the version to publish."
    )
