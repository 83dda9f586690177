"""The one page shape of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework import exceptions, pagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param


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


class WholeList(pagination.BasePagination):
    """The same shape for lists that are short by their nature: one page with everything."""

    def paginate_queryset(self, queryset: Iterable[Any], request: Request, view: Any = None) -> list[Any]:
        """Return all there is."""
        return list(queryset)

    def get_paginated_response(self, data: Any) -> Response:
        """Return the one page."""
        return Response({"next": None, "previous": None, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the one page."""
        link = {
            "type": "string",
            "nullable": True,
            "format": "uri",
            "description": "Always null: this page is complete.",
        }
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }


def page_linked(request: Request, results: list[Any], following: Mapping[str, Any] | None) -> Response:
    """Return a page of rows that have no cursor of their own.

    Args:
        following: the parameters of the address that change for the next page, None when this is the last.
    """
    link = None
    if following is not None:
        link = request.build_absolute_uri()
        for name, value in following.items():
            link = replace_query_param(link, name, value)
    return Response({"next": link, "previous": None, "results": results})


def _is_id(position: str) -> bool:
    return position.isascii() and position.isdecimal() and len(position) < 19


def _unknown_cursor() -> exceptions.ValidationError:
    return exceptions.ValidationError({"cursor": ["Use the cursor of a next or previous link."]})
