"""What a page calls the reasons for which something of a source became no document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext_lazy

from apps.collections.ingestion.sources.base import Reason
from apps.collections.models import Import

_NAMES = {
    Reason.HIDDEN: gettext_lazy("hidden"),
    Reason.IGNORED: gettext_lazy("ignored"),
    Reason.EXCLUDED: gettext_lazy("excluded"),
    Reason.BINARY: gettext_lazy("no text"),
    Reason.EMPTY: gettext_lazy("empty"),
    Reason.UNSUPPORTED: gettext_lazy("unsupported"),
    Reason.UNSAFE_PATH: gettext_lazy("unsafe name"),
    Reason.BAD_NAME: gettext_lazy("bad name"),
    Reason.LINK: gettext_lazy("link"),
    Reason.SPECIAL: gettext_lazy("special file"),
    Reason.ENCRYPTED: gettext_lazy("encrypted"),
    Reason.DUPLICATE: gettext_lazy("duplicate"),
    Reason.DAMAGED: gettext_lazy("damaged"),
    Reason.TOO_LARGE: gettext_lazy("too large"),
    Reason.BOMB: gettext_lazy("unpacks to too much"),
    Reason.OVERLAP: gettext_lazy("overlapping"),
    Reason.TOO_DEEP: gettext_lazy("nested too deep"),
    Reason.SUBMODULE: gettext_lazy("submodule"),
    Reason.LFS: gettext_lazy("Git LFS"),
    Reason.UNCOMMITTED: gettext_lazy("uncommitted"),
    Reason.HISTORY: gettext_lazy("history"),
    Reason.UNREADABLE: gettext_lazy("unreadable"),
    Reason.CHANGED: gettext_lazy("changed"),
    Reason.ADDRESS: gettext_lazy("address refused"),
    Reason.FETCH: gettext_lazy("not fetched"),
    Reason.REFUSED: gettext_lazy("refused"),
    Reason.NO_TEXT: gettext_lazy("no text"),
}


def problems_named(row: Import) -> Iterator[dict[str, Any]]:
    """Yield what became no document, each with the ``name`` of its reason; a code of another release is its own name."""
    for problem in row.problems:
        yield problem | {"name": _NAMES.get(problem["reason"], problem["reason"])}
