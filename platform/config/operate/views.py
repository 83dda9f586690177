"""The operator's page: for superusers; others are told that there is no such page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from basics.errors import DomainError
from config.operate.selectors import (
    FAILED_DAYS,
    USAGE_DAYS,
    check_word,
    installation_read,
    worker_is_alive,
)
from config.operate.services import failed_retry
from web.requests import UserRequest, signed_in

P = ParamSpec("P")


def operators_only(
    view: Callable[Concatenate[UserRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let active superusers in; people who aren't signed in go to sign in, others get 404."""

    @wraps(view)
    def checked(request: UserRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not (request.user.is_active and request.user.is_superuser):
            raise Http404
        return view(request, *args, **kwargs)

    return cast("Callable[Concatenate[HttpRequest, P], HttpResponse]", signed_in(checked))


@never_cache
@require_GET
@operators_only
def overview(request: UserRequest) -> HttpResponse:
    """Show how the installation is; htmx asks for the figures alone every few seconds."""
    now = installation_read()
    context = {
        "now": now,
        "checks": [(check_word(check), check) for check in now.checks],
        "workers": [(worker, worker_is_alive(worker)) for worker in now.workers],
        "failed_days": FAILED_DAYS,
        "usage_days": USAGE_DAYS,
    }
    return render(request, "operate/_figures.html" if request.htmx else "operate/overview.html", context)


@operators_only
def retry(request: UserRequest) -> HttpResponse:
    """Retry the failed job that the form names, and come back to the page."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    named = request.POST.get("job", "")
    if not (named.isascii() and named.isdecimal() and len(named) < 19):
        raise Http404
    try:
        job = failed_retry(user=request.user, pk=int(named))
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request, _("%(kind)s #%(number)s is being retried.") % {"kind": job.kind, "number": job.pk}
        )
    return redirect("operate:overview")
