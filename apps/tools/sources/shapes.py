"""What the REST API of tool sources takes and gives. A secret goes in and never comes out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.tools.models import ContractTest, ToolCredential, ToolSource, ToolVersion
from apps.tools.sources.credentials import MAX_SECRET
from apps.tools.sources.services import MAX_DOCUMENT
from apps.tools.sources.versions import MAX_AT_ONCE

_BIGINT = 2**63 - 1


class SourceUpdate(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=120)
    url = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Where calls go; can be empty if the OpenAPI document names a server.",
    )
    document_url = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Address from which the OpenAPI document is read again.",
    )
    document = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_DOCUMENT,
        trim_whitespace=False,
        help_text="The OpenAPI document itself.",
    )
    settings = serializers.DictField(required=False, help_text="Settings for this kind; no secrets.")
    allowed_hosts = serializers.ListField(
        child=serializers.CharField(max_length=253),
        required=False,
        max_length=50,
        help_text="Additional hosts that calls can go to.",
    )
    is_enabled = serializers.BooleanField(required=False)

    class Meta:
        ref_name = "ToolSourceUpdate"


class SourceInput(SourceUpdate):
    kind = serializers.ChoiceField(choices=ToolSource.Kind.choices)
    name = serializers.CharField(
        max_length=24,
        help_text="Lower-case letters, digits and hyphens; rules use it as the group of its tools.",
    )
    accept_all = serializers.BooleanField(required=False, help_text="Accept all tools found right away.")

    class Meta:
        ref_name = "ToolSourceInput"


class SourceOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=ToolSource.Kind.choices)
    name = serializers.CharField()
    title = serializers.CharField()
    url = serializers.CharField()
    document_url = serializers.CharField()
    settings = serializers.DictField(
        help_text="For an OpenAPI document also `security` (how to authenticate) and `skipped` (operations left out)."
    )
    allowed_hosts = serializers.ListField(child=serializers.CharField())
    is_enabled = serializers.BooleanField()
    status = serializers.ChoiceField(choices=ToolSource.Status.choices)
    problem = serializers.CharField(help_text="Why it could not be read, and what to do.")
    current = serializers.IntegerField(source="current_count", help_text="Tools that can be called.")
    waiting = serializers.IntegerField(source="waiting_count", help_text="Versions waiting to be accepted.")
    gone = serializers.IntegerField(source="gone_count", help_text="Tools the source no longer has.")
    refreshed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "ToolSource"


class RefreshInput(serializers.Serializer[Any]):
    accept_all = serializers.BooleanField(
        default=False, help_text="Accept new tools right away; changed ones wait."
    )

    class Meta:
        ref_name = "ToolSourceRefresh"


class RefreshOutput(serializers.Serializer[Any]):
    job = serializers.IntegerField(help_text="The job that reads it; the source shows the result.")

    class Meta:
        ref_name = "ToolSourceRefreshing"


class VersionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    tool_name = serializers.CharField()
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=ToolVersion.State.choices)
    is_gone = serializers.BooleanField(help_text="The source no longer has this tool.")
    digest = serializers.CharField()
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "ToolVersion"


class FieldChangeOutput(serializers.Serializer[Any]):
    field = serializers.CharField()
    old = serializers.JSONField()
    new = serializers.JSONField()
    is_risk = serializers.BooleanField(help_text="The new version can do more, or calls a different address.")
    why = serializers.CharField()

    class Meta:
        ref_name = "ToolFieldChange"


class ParameterChangeOutput(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Dotted path: `order.lines[].sku`.")
    change = serializers.ChoiceField(choices=["changed", "added", "removed"])
    type_old = serializers.CharField()
    type_new = serializers.CharField()
    required_old = serializers.BooleanField(allow_null=True)
    required_new = serializers.BooleanField(allow_null=True)
    what = serializers.ListField(child=serializers.CharField(), help_text="Schema keywords that differ.")
    breaks = serializers.BooleanField(help_text="Calls that were valid before are no longer valid.")

    class Meta:
        ref_name = "ToolParameterChange"


class DiffOutput(serializers.Serializer[Any]):
    old_number = serializers.IntegerField(help_text="0 if there is no older version.")
    new_number = serializers.IntegerField()
    risks = serializers.ListField(child=serializers.CharField())
    fields_ = FieldChangeOutput(many=True, source="fields")
    parameters = ParameterChangeOutput(many=True)

    def get_fields(self) -> dict[str, Any]:
        """Return the fields; one is named as the serializer's own attribute."""
        fields = super().get_fields()
        fields["fields"] = fields.pop("fields_")
        fields["fields"].source = None
        return fields

    class Meta:
        ref_name = "ToolVersionDiff"


class VersionDetail(VersionOutput):
    spec = serializers.DictField(help_text="The tool as its source described it.")
    diff = DiffOutput(help_text="From the current version, or from the one before.")

    class Meta:
        ref_name = "ToolVersionDetail"


class DecisionInput(serializers.Serializer[Any]):
    versions = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        min_length=1,
        max_length=MAX_AT_ONCE,
        help_text="Version ids, one per tool.",
    )

    class Meta:
        ref_name = "ToolVersionsInput"


class AcceptInput(DecisionInput):
    force = serializers.BooleanField(
        default=False, help_text="Accept them even if contract tests fail; this is recorded in the audit log."
    )

    class Meta:
        ref_name = "ToolVersionsAccept"


class CredentialInput(serializers.Serializer[Any]):
    placement = serializers.ChoiceField(choices=ToolCredential.Placement.choices)
    parameter = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=80,
        help_text="Name of the header or parameter; the user's name for basic.",
    )
    secret = serializers.CharField(max_length=MAX_SECRET, write_only=True)

    class Meta:
        ref_name = "ToolCredentialInput"


class CredentialOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    placement = serializers.ChoiceField(choices=ToolCredential.Placement.choices)
    parameter = serializers.CharField()
    last_four = serializers.CharField(help_text="Last characters of the secret; empty for a short one.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "ToolCredential"


class ContractTestInput(serializers.Serializer[Any]):
    tool_name = serializers.CharField(max_length=64)
    name = serializers.CharField(max_length=80)
    arguments = serializers.DictField(help_text="Arguments of the sample call.")
    expected = serializers.DictField(required=False, help_text="JSON Schema of the result.")

    class Meta:
        ref_name = "ContractTestInput"


class ContractTestOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    tool_name = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.DictField()
    expected = serializers.DictField()
    last_outcome = serializers.ChoiceField(choices=["", *ContractTest.Outcome.values])
    last_problem = serializers.CharField()
    last_version = serializers.IntegerField(allow_null=True)
    last_run_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "ContractTest"


class RunInput(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_BIGINT,
        help_text="Id of a version of its tool; default: the waiting one, otherwise the current one.",
    )

    class Meta:
        ref_name = "ContractTestRun"
