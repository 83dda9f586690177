"""What the REST API gives of a measured value."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class EstimateOutput(serializers.Serializer[Any]):
    """A mean with its 95 % interval."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
