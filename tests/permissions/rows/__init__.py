"""The permission matrix as data: for each URL the method, the right it needs, and what to send so that it works.

A URL without a row fails tests/permissions/test_matrix.py. Add the row with the URL, in the module of its room.
"""

from __future__ import annotations

from tests.permissions.rows import collections, conversations, datasets, evaluations, platform, tools
from tests.permissions.rows.common import Row
from tests.permissions.rows.site import ADMIN_SITE, KEYED, PERSONAL, PUBLIC

__all__ = ["ADMIN_SITE", "API", "KEYED", "PERSONAL", "PORTAL", "PUBLIC", "Row", "room_of"]

_ROOMS = (collections, conversations, datasets, evaluations, platform, tools)
PORTAL: tuple[Row, ...] = tuple(row for room in _ROOMS for row in room.PORTAL)
API: tuple[Row, ...] = tuple(row for room in _ROOMS for row in room.API)
_ROOM_OF = {id(row): room.__name__.rpartition(".")[2] for room in _ROOMS for row in (*room.PORTAL, *room.API)}


def room_of(row: Row) -> str:
    """Return the name of the module that a row of PORTAL or API stands in."""
    return _ROOM_OF[id(row)]
