"""What the log of reads shows: rows of ``runs.reads`` with names, as far as their reader may know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy

from apps.collections.display.selectors import versions_readable
from apps.collections.models import Document
from basics.errors import Invalid
from runs.call_log import people_named
from runs.models import ChunkRead
from tenancy.actors import Actor

FILTERS = ("document", "chunk", "who", "run")
HIDDEN = gettext_lazy("a document you can't read")
_BIGINT = 2**63 - 1


def reads_choice(given: Mapping[str, Any]) -> dict[str, int]:
    """Read the filters from the parameters of an address.

    Raises:
        Invalid: one of them is no id.
    """
    found: dict[str, int] = {}
    for name in FILTERS:
        text = str(given.get(name) or "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _BIGINT):
            raise Invalid(
                "invalid",
                "An id must be a whole number.",
                data={"fields": {name: ["An id must be a whole number."]}},
            )
        found[name] = int(text)
    return found


def reads_shown(actor: Actor, rows: Sequence[ChunkRead]) -> list[dict[str, Any]]:
    """Return rows as pages and the API tell them, in three queries.

    The name of a document that is there and that the actor may not read is withheld; one that is gone keeps the name it
    had when it was read.
    """
    pks = {row.document_id for row in rows}
    seen: Mapping[int, int] = {}
    if actor.can("collection.read"):
        seen = versions_readable(actor=actor, pks=pks)
    there = set(Document.objects.filter(tenant_id=actor.tenant_id, pk__in=pks).values_list("pk", flat=True))
    names = people_named(row.user_id for row in rows)
    return [
        {
            "id": row.pk,
            "at": row.at,
            "run": row.run_id,
            "user": row.user_id,
            "user_name": names.get(row.user_id or 0, ""),
            "chunk": row.chunk_id,
            "document": row.document_id,
            "document_name": row.document_name
            if row.document_id in seen or row.document_id not in there
            else HIDDEN,
            "version": row.version,
            "collection_name": row.collection_name,
            "tool": row.tool,
            "is_gone": row.document_id not in there,
        }
        for row in rows
    ]
