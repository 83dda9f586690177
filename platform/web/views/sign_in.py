"""The sign-in page: allauth's, whose refusals are told to audit logs after its answer."""

from __future__ import annotations

from allauth.account.views import login as login_page
from django.http import HttpRequest, HttpResponse

from web.sign_in_trail import after_answer


def login(request: HttpRequest) -> HttpResponse:
    """Show the form, and take it."""
    response: HttpResponse = login_page(request)
    after_answer(request, response)
    return response
