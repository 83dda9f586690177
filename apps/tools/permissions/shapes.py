"""What the REST API of tool permissions takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.tools.calls.services import MAX_ARGUMENTS
from apps.tools.catalog.services import MAX_TIMEOUT_S
from apps.tools.models import ToolGrant
from apps.tools.toolkits.services import MAX_MEMBERS

_BIGINT = 2**63 - 1
_EFFECTS = [(e.value, e.value) for e in ToolGrant.Effect]
SUBJECT_HELP = "`role:viewer`, `member:<user id>` or `api_key:<id>`; default: yourself."


class GrantInput(serializers.Serializer[Any]):
    effect = serializers.ChoiceField(choices=_EFFECTS)
    target_kind = serializers.ChoiceField(choices=ToolGrant.Target.choices)
    target = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=120,
        help_text="Name of the tool or group, or a pattern in which * matches any text; empty for a toolkit.",
    )
    toolkit = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=_BIGINT, help_text="Id, for a toolkit."
    )
    calls = serializers.ChoiceField(choices=ToolGrant.Calls.choices, required=False)
    subject_kind = serializers.ChoiceField(choices=ToolGrant.SubjectKind.choices, required=False)
    subject = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=20,
        help_text="The role, or the id of the person or key; empty for everyone.",
    )
    collection = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_BIGINT,
        help_text="Id of the one collection it is about; default: all.",
    )
    arguments = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        max_length=20,
        help_text='Conditions that must all hold: `{"kind": "path_under", "argument": "path", "value": "reports"}`; kinds: equals, not_equals, in, not_in, below, at_most, above, at_least, path_under, matches, select_only (no value), and `{"kind": "schema", "schema": {...}}` for the arguments as a whole.',
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    note = serializers.CharField(required=False, allow_blank=True, max_length=200)

    class Meta:
        ref_name = "ToolGrantInput"


class GrantOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    effect = serializers.ChoiceField(choices=_EFFECTS)
    target_kind = serializers.ChoiceField(choices=ToolGrant.Target.choices)
    target = serializers.CharField()
    toolkit = serializers.IntegerField(source="toolkit_id", allow_null=True)
    calls = serializers.ChoiceField(choices=ToolGrant.Calls.choices)
    subject_kind = serializers.ChoiceField(choices=ToolGrant.SubjectKind.choices)
    subject = serializers.CharField()
    collection = serializers.IntegerField(source="collection_id", allow_null=True)
    arguments = serializers.JSONField()
    expires_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField()
    created_at = serializers.DateTimeField()
    warning = serializers.SerializerMethodField(
        help_text="A warning if the rule currently matches no tool, or its role, member or key no longer "
        "exists; otherwise empty."
    )

    class Meta:
        ref_name = "ToolGrant"

    def get_warning(self, row: ToolGrant) -> str:
        """Return what the view found out about all rows at once."""
        found: dict[int, str] = self.context["warnings"]
        return found.get(row.pk, "")


class ToolkitChange(serializers.Serializer[Any]):
    tools = serializers.ListField(
        child=serializers.CharField(max_length=64),
        max_length=MAX_MEMBERS,
        help_text="Tool names; replaces the previous ones.",
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=2_000)

    class Meta:
        ref_name = "ToolkitChange"


class ToolkitInput(ToolkitChange):
    name = serializers.CharField(max_length=80)

    class Meta:
        ref_name = "ToolkitInput"


class ToolkitOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    tools = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Toolkit"

    def get_tools(self, kit: Any) -> list[str]:
        """Return the names of its tools."""
        return [member.tool_name for member in kit.members.all()]


class EntryChange(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=120)
    description = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=8_000,
        help_text="What models read instead of the tool's own description.",
    )
    category = serializers.CharField(required=False, allow_blank=True, max_length=60)
    tags = serializers.ListField(child=serializers.CharField(max_length=40), required=False, max_length=20)
    is_enabled = serializers.BooleanField(required=False)
    cost_hint = serializers.CharField(required=False, allow_blank=True, max_length=60)
    timeout_s = serializers.FloatField(
        required=False, allow_null=True, min_value=0.001, max_value=MAX_TIMEOUT_S, help_text="Seconds."
    )

    class Meta:
        ref_name = "ToolEntryChange"


class EntryInput(EntryChange):
    name = serializers.CharField(max_length=64, help_text="Name of the tool.")

    class Meta:
        ref_name = "ToolEntryInput"


class EntryOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    is_enabled = serializers.BooleanField()
    cost_hint = serializers.CharField()
    timeout_s = serializers.FloatField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "ToolEntry"


class AccessSubjectOutput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["user", "api_key", "system"])
    name = serializers.CharField()
    role = serializers.CharField(help_text="Empty for a key.")
    rights = serializers.ListField(child=serializers.CharField())

    class Meta:
        ref_name = "AccessSubject"


class AccessCollectionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    documents = serializers.IntegerField(help_text="Documents the subject can read.")
    limited = serializers.IntegerField(
        allow_null=True, help_text="Documents limited to others; null unless you manage tools."
    )

    class Meta:
        ref_name = "AccessCollection"


class AccessToolOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    group = serializers.CharField()
    effect = serializers.ChoiceField(choices=_EFFECTS)
    rule = serializers.IntegerField(allow_null=True, help_text="Id of the rule that decides.")
    why = serializers.CharField()
    elsewhere = serializers.CharField(
        help_text="A more permissive effect for calls about some collections; empty for none."
    )

    class Meta:
        ref_name = "AccessTool"


class AccessKeyOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "AccessKey"


class AccessOutput(serializers.Serializer[Any]):
    subject = AccessSubjectOutput()
    collections = AccessCollectionOutput(many=True)
    tools = AccessToolOutput(many=True)
    keys = AccessKeyOutput(many=True, help_text="Usable keys that act for the same person.")

    class Meta:
        ref_name = "Access"


class AccessTryInput(serializers.Serializer[Any]):
    tool = serializers.CharField(max_length=64)
    arguments = serializers.DictField(
        required=False, help_text=f"JSON of at most {MAX_ARGUMENTS:,} characters."
    )
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=500,
        help_text="Ids of the collections the call is about; default: all.",
    )
    subject = serializers.CharField(required=False, allow_blank=True, max_length=40, help_text=SUBJECT_HELP)

    class Meta:
        ref_name = "AccessTryInput"


class AccessTryOutput(serializers.Serializer[Any]):
    effect = serializers.ChoiceField(choices=_EFFECTS)
    rule = serializers.IntegerField(allow_null=True, help_text="Id of the rule that decides.")
    why = serializers.CharField()
    sentence = serializers.CharField(help_text="The rule that decides, in words; can be empty.")
    problems = serializers.ListField(
        child=serializers.CharField(),
        help_text="Why the arguments don't fit the tool; such a call is refused before the policy is "
        "checked.",
    )

    class Meta:
        ref_name = "AccessTry"
