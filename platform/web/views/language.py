"""The language and the time zone that somebody chooses: kept in their browser, and for whoever is signed in with their account."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import override
from django.views.decorators.http import require_POST

from web.forms import LanguageForm
from web.reader_language import request_language


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Keep a choice, and go back to the page that it was made on; what isn't offered changes nothing."""
    form = LanguageForm(request.POST)
    response = HttpResponseRedirect(_back(request))
    if not form.is_valid():
        return response
    chosen = form.cleaned_data["language"]
    _keep(response, chosen)
    if request.user.is_authenticated:
        user = request.user
        user.language = chosen
        if "time_zone" in request.POST:  # the switch of pages for strangers has none
            user.time_zone = form.cleaned_data["time_zone"]
        user.save(update_fields=["language", "time_zone"])
        request.COOKIES.pop(settings.LANGUAGE_COOKIE_NAME, None)
        with override(request_language(request)):
            messages.success(request, _("Saved."))
    return response


def _keep(response: HttpResponse, chosen: str) -> None:
    """Let the browser keep a language for pages before a sign-in; "" makes it forget one."""
    where: dict[str, Any] = {
        "path": settings.LANGUAGE_COOKIE_PATH,
        "domain": settings.LANGUAGE_COOKIE_DOMAIN,
        "samesite": settings.LANGUAGE_COOKIE_SAMESITE,
    }
    if not chosen:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, **where)
        return
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        chosen,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        **where,
    )


def _back(request: HttpRequest) -> str:
    given = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        given, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return given if is_ours else "/"
