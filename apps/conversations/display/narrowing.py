"""What a question was limited to, in a few words under it: how many collections, documents or tools it named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import ngettext

NARROWED = "narrowed"
"""The key of a run's request that holds it; see ``turns.narrowing``."""


def limits_told(request: Mapping[str, Any]) -> list[str]:
    """Return what the question of a run was limited to; none where it was not. Names aren't kept, so none is told."""
    named = request.get(NARROWED) or {}
    collections, documents, tools = (len(named.get(k, ())) for k in ("collections", "documents", "tools"))
    told = [
        (collections, ngettext("%(count)s collection only", "%(count)s collections only", collections)),
        (documents, ngettext("%(count)s document only", "%(count)s documents only", documents)),
        (tools, ngettext("%(count)s tool only", "%(count)s tools only", tools)),
    ]
    return [text % {"count": count} for count, text in told if count]
