"""Read what a REST request says: a body by its shape, and single parameters of the address."""

from __future__ import annotations

from collections.abc import Collection as Container

from rest_framework import serializers
from rest_framework.request import Request

_TEXT = 1000
_BIGINT = 2**63 - 1


def text(request: Request, name: str) -> str:
    """Return a parameter as text, "" without it. Raises ValidationError."""
    value = request.query_params.get(name, "")
    if "\x00" in value or len(value) > _TEXT:
        raise serializers.ValidationError({name: [f"Enter text of at most {_TEXT} characters."]})
    return value


def choice(request: Request, name: str, known: Container[str], default: str = "") -> str:
    """Return a parameter that is one of some words. Raises ValidationError."""
    value = request.query_params.get(name, "") or default
    if value and value not in known:
        raise serializers.ValidationError({name: [f"Choose one of {', '.join(known)}."]})
    return value


def number(
    request: Request, name: str, *, low: int = 0, high: int = _BIGINT, default: int | None = None
) -> int | None:
    """Return a parameter as a whole number, None without it. Raises ValidationError."""
    value = request.query_params.get(name, "").strip()
    if not value:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20) or not low <= int(value) <= high:
        raise serializers.ValidationError({name: [f"Enter a whole number from {low} to {high}."]})
    return int(value)


def flag(request: Request, name: str) -> bool | None:
    """Return a parameter as true or false, None without it. Raises ValidationError."""
    value = choice(request, name, ("true", "false", "1", "0"))
    return None if not value else value in {"true", "1"}
