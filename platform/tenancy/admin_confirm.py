"""Actions of the admin that cannot be taken back: they ask first, on a page that names the rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

MOST_ROWS = 500
"""Rows of one action; their ids come back as fields of a form, of which Django takes 1,000."""


def confirmed_action(*, description: str, lost: str) -> Callable[[Any], Any]:
    """Return a decorator for an action of ``TenantScopedAdmin`` that is done once somebody has confirmed it.

    Args:
        description: what the list of actions says.
        lost: a sentence about what cannot be brought back.
    """

    def decorate(act: Callable[[Any, HttpRequest, QuerySet[Any]], None]) -> Any:
        @admin.action(description=f"{description}…")
        @functools.wraps(act)
        def asked(page: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
            if request.POST.get("post") == "yes":  # as Django's own deletion has it
                act(page, request, queryset)
                return None
            rows = list(queryset[: MOST_ROWS + 1])
            if len(rows) > MOST_ROWS:
                page.message_user(request, f"Choose at most {MOST_ROWS} rows at once.", messages.ERROR)
                return None
            template = "admin/confirm_action.html"
            context = {"rows": rows, "lost": lost, "action": act.__name__}
            made: HttpResponse = page.own_page(request, template, description, **context)
            return made

        return asked

    return decorate
