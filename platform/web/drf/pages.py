"""The one page shape of the API."""

from __future__ import annotations

from rest_framework import pagination


class Pagination(pagination.CursorPagination):
    """Keyset pages, newest first: a row added meanwhile neither repeats nor hides another."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
    ordering = "-pk"
