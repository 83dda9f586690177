"""Names in the audit trail that its reader may not see: of documents limited to others, and titles made of people's words.

The trail keeps every name as it was, chained and unchanged; who reads it sees those that they may see at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tenancy.actors import Actor
from tenancy.models import AuditEvent
from tenancy.shown_rows import ShownRows

Judge = Callable[[Actor, Collection[int]], Collection[int]]
_judges: dict[str, Judge] = {}


def audit_names_judged_by(object_type: str, judge: Judge) -> None:
    """Have the room that keeps objects say whose names are withheld, at start-up.

    Args:
        object_type: as events have it, such as ``collections.document``.
        judge: gets who reads and ids of such objects; returns those whose names they may not see.
    """
    _judges[object_type] = judge


def audit_names_judged() -> Collection[str]:
    """Return the types of objects whose names may be withheld."""
    return _judges.keys()


class ShownEvents(ShownRows[AuditEvent]):
    """Events of the trail without the names that their reader may not see; kind and id of the object stay."""

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take the names out of fetched events."""
        if reader.kind == "system":
            return
        for object_type, judge in _judges.items():
            of_type = [row for row in rows if row.object_type == object_type]
            ids = {int(row.object_id) for row in of_type if row.object_id.isdecimal()}
            hidden = {str(pk) for pk in judge(reader, ids)} if ids else set()
            for row in of_type:
                if row.object_id in hidden:
                    row.object_name = ""
