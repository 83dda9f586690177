"""Serializers that are made once for all requests.

Django REST framework copies every field of a shape for each use, so that a view could change them; none here does. For what
is asked for most that takes longer than reading or writing the values. A serializer keeps nothing of what it reads and writes
in these two ways; ``data=`` and an instance given to it would be kept, so they need one of their own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rest_framework import serializers


@cache
def shared(shape: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """Return the one serializer of a shape, for ``run_validation`` and ``to_representation`` alone."""
    return shape()


def shown(shape: type[serializers.Serializer[Any]], row: Any) -> dict[str, Any]:
    """Return what the API shows of a row in a shape that needs no context."""
    told: dict[str, Any] = shared(shape).to_representation(row)
    return told
