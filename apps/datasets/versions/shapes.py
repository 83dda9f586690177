"""What the REST API of versions takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.models import (
    RowStatus,
)


class RowChangeOutput(serializers.Serializer[Any]):
    row = serializers.IntegerField()
    kind = serializers.CharField()
    names = serializers.ListField(
        child=serializers.CharField(), help_text="Fields that differ in a changed row."
    )
    before = serializers.DictField(allow_null=True, help_text="The row before.")
    after = serializers.DictField(allow_null=True, help_text="The row after.")

    class Meta:
        ref_name = "DatasetRowChange"


class DiffOutput(serializers.Serializer[Any]):
    added = serializers.IntegerField()
    removed = serializers.IntegerField()
    changed = serializers.IntegerField()
    same = serializers.IntegerField()
    changes = RowChangeOutput(many=True, help_text="Changes of the requested kind, at most 50.")
    next = serializers.IntegerField(
        allow_null=True, help_text="Row to continue after in the next request; null at the end."
    )

    class Meta:
        ref_name = "DatasetVersionDiff"


class VersionInput(serializers.Serializer[Any]):
    status = serializers.ChoiceField(
        choices=RowStatus.choices,
        required=False,
        allow_blank=True,
        default="",
        help_text="Only rows with this status.",
    )
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")

    class Meta:
        ref_name = "DatasetVersionCreate"


class VersionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="The id to use in experiments, exports and safety suites.")
    number = serializers.IntegerField(help_text="From 1, within the dataset.")
    content_hash = serializers.CharField(help_text="SHA-256 over the rows' hashes, in order.")
    row_count = serializers.IntegerField()
    manifest = serializers.DictField()
    signature = serializers.CharField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "DatasetVersion"
