"""What the REST API of sources takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.licences.services import MAX_LICENSE


class SourceOutput(serializers.Serializer[Any]):
    document = serializers.CharField()
    licenses = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="An empty text means that the licence is unknown.",
    )
    rows = serializers.IntegerField()

    class Meta:
        ref_name = "DatasetSource"


class SourcesOutput(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True, help_text="The next page; null at the end.")
    previous = serializers.URLField(allow_null=True, help_text="Always null: pages are read forwards.")
    results = SourceOutput(many=True)

    class Meta:
        ref_name = "DatasetSources"


class SourceLicenseInput(serializers.Serializer[Any]):
    document = serializers.CharField(
        max_length=1000, help_text="Name of the document, as in the list of sources."
    )
    license = serializers.CharField(
        max_length=MAX_LICENSE, allow_blank=True, help_text="SPDX name or free text; empty: unknown."
    )

    class Meta:
        ref_name = "DatasetSourceLicense"


class SourceLicenseOutput(serializers.Serializer[Any]):
    changed = serializers.IntegerField(help_text="Number of rows changed.")

    class Meta:
        ref_name = "DatasetSourceLicensed"
