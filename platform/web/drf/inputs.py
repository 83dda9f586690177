"""What a REST view reads of a request."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from web.drf.shared import shared


def valid(shape: type[serializers.Serializer[Any]], data: Any, **options: Any) -> dict[str, Any]:
    """Return a request's data in the form of a serializer; ``options`` are the serializer's. Raises ValidationError."""
    if not options and data is not None:
        values: dict[str, Any] = shared(shape).run_validation(data)
        return values
    serializer = shape(data=data, **options)
    serializer.is_valid(raise_exception=True)
    values = serializer.validated_data
    return values
