"""Positions in lists: opaque to callers, and a wrong one is an error in words."""

from __future__ import annotations

import base64
import binascii

from basics.errors import Invalid

PAGE = 100
"""Entries of one page of any list."""


def cursor_write(position: str) -> str:
    """Return the cursor that stands for a position."""
    return base64.urlsafe_b64encode(position.encode()).decode()


def cursor_read(cursor: str) -> str:
    """Return the position, "" at the beginning.

    Raises:
        Invalid: it was not made by ``cursor_write``.
    """
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (UnicodeError, binascii.Error):
        raise cursor_unknown() from None


def cursor_unknown() -> Invalid:
    """Return the refusal of a cursor that names no position."""
    return Invalid(
        "invalid", "This cursor is unknown: use the nextCursor of the page before.", data={"field": "cursor"}
    )
