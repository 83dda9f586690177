"""Reads of a workspace's rules for document types."""

from __future__ import annotations

from typing import Any

from apps.collections.models import DocumentTypeRules
from tenancy.actors import Actor


def type_rules_get(*, actor: Actor) -> Any:
    """Return the workspace's rules for document types as data, None when it has none."""
    actor.require("collection.read")
    row = DocumentTypeRules.objects.visible_to(actor).first()
    return None if row is None else row.rules
