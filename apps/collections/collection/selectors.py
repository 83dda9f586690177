"""Reads of a collection's moves to other embedding models, and checks as one may see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from apps.collections.collection.reconcile import Check
from apps.collections.display.selectors import row_get
from apps.collections.models import (
    Collection,
    Document,
    SpaceSwap,
)
from tenancy.actors import Actor


def check_shown(*, actor: Actor, collection: Collection | None, check: Check) -> Check:
    """Return a check without the paths of documents that are limited to others, in one query."""
    rows = Document.objects.visible_to(actor)
    hidden = Document.objects.filter(tenant_id=actor.tenant_id).exclude(pk__in=rows.values("pk"))
    if collection is not None:
        hidden = hidden.filter(collection=collection)
    subjects = {finding.subject for finding in check.findings}
    paths = set(hidden.filter(path__in=subjects).values_list("path", flat=True))
    findings = [
        replace(finding, subject=_("A document you don't have access to"))
        if finding.subject in paths
        else finding
        for finding in check.findings
    ]
    return replace(check, findings=findings)


def swap_list(*, actor: Actor, collection: Collection) -> QuerySet[SpaceSwap]:
    """Return the moves of a collection to other embedding models, newest first."""
    actor.require("collection.read")
    rows = SpaceSwap.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[SpaceSwap]", rows.select_related("from_space", "to_space").order_by("-pk"))


def swap_get(*, actor: Actor, pk: int) -> SpaceSwap:
    """Return one move to another embedding model. Raises Missing."""
    actor.require("collection.read")
    rows: Any = SpaceSwap.objects.visible_to(actor).select_related("from_space", "to_space")
    return cast("SpaceSwap", row_get(rows, pk, "swap"))
