"""The file tools of collections, held against the policy: where a call may look and what it may change.

Their group stands below ``collections``, so the grants that every workspace starts with cover them: reading is allowed,
and somebody approves each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.collections.file_tools.toolset import FILE_SCOPE, FILE_TOOLS, FileScope
from apps.collections.models import Collection
from apps.tools.toolset.bundles import COLLECTIONS, Bundle, CallScope
from tenancy.actors import Actor


def _context(call: CallScope) -> Mapping[str, Any]:
    def collections(actor: Actor) -> list[Collection]:
        actor.require("collection.read")
        rows = Collection.objects.visible_to(actor).order_by("name")
        if call.only is not None:
            rows = rows.filter(pk__in=call.only)
        return call.guard.collections(rows, lambda row: row.pk)

    return {FILE_SCOPE: FileScope(call.tenant, call.run, collections, call.in_db)}


FILE_BUNDLE = Bundle(
    f"{COLLECTIONS}.files",
    lambda: FILE_TOOLS,
    _context,
    # Each call finds its collection through ``collections`` above, which leaves out what the policy denies.
    filtering=frozenset(FILE_TOOLS.names()),
    changes_need="document.write",
)
