"""The one page shape of the API."""

from __future__ import annotations

from typing import Any

from rest_framework import exceptions, pagination
from rest_framework.request import Request


class Pagination(pagination.CursorPagination):
    """Keyset pages, newest first: a row added meanwhile neither repeats nor hides another."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
    ordering = "-pk"  # what a cursor's position is

    def decode_cursor(self, request: Request) -> Any:
        """Return the position that ``?cursor=`` names; one that was not made here is bad input, not a missing page."""
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound:
            raise _unknown_cursor() from None
        if cursor is not None and cursor.position is not None and not _is_id(str(cursor.position)):
            raise _unknown_cursor()
        return cursor


def _is_id(position: str) -> bool:
    return position.isascii() and position.isdecimal() and len(position) < 19


def _unknown_cursor() -> exceptions.ValidationError:
    return exceptions.ValidationError({"cursor": ["Use the cursor of a next or previous link."]})
