"""Sign-ins with a password, sign-outs and refusals, in the audit log of each workspace of their person.

An account belongs to no workspace, and signing in opens every workspace that its person is a member of: each is told.
Company sign-ins and passkeys write their own events (``sso``, ``web.passkeys``). An address that has no account is only
counted (``web.attempts``), or strangers could fill the trails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from allauth.account.authentication import get_authentication_records
from allauth.mfa.signals import authentication_failed
from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from tenancy.database.waiting import connections_let_go
from tenancy.entrances import SIGN_INS, is_contained
from tenancy.models import User
from tenancy.origin import origin_scope
from tenancy.scope import tenant_scope
from tenancy.selectors import membership_list, user_actor
from tenancy.services import audit_record
from web.middleware import client_ip

log = structlog.get_logger(__name__)
_AFTER = "_after_answer"


@transaction.atomic
def trail_record(
    *, user: User, action: str, object_name: str = "", only: frozenset[int] | None = None, **data: str | bool
) -> None:
    """Write an event of a person to the audit log of each workspace of theirs.

    Args:
        only: ids of workspaces, where not all of them are concerned.
    """
    for membership in sorted(membership_list(user=user), key=lambda one: one.tenant_id):
        if only is not None and membership.tenant_id not in only:
            continue
        membership.user = user
        with tenant_scope(membership.tenant_id):
            audit_record(
                tenant=membership.tenant,
                actor=user_actor(membership),
                action=action,
                object_name=object_name,
                data=data,
            )


def sign_in_record(request: HttpRequest, user: User) -> None:
    """Write that somebody has signed in with a password, and with which second factor."""
    steps = get_authentication_records(request, user)
    if not any(step["method"] == "password" for step in steps):
        return  # a passkey alone: it has told of itself
    factor = next((str(step.get("type", "")) for step in steps if step["method"] == "mfa"), "")
    trail_record(user=user, action="session.sign_in", method="password", second_factor=factor)


def password_refused(request: HttpRequest, email: str) -> None:
    """Write a wrong password once the answer is sent: its time must not tell whether an address has an account."""
    if not request.user.is_authenticated:
        setattr(request, _AFTER, partial(_password_refused, email.strip().lower()))


def _password_refused(email: str) -> None:
    user = User.objects.filter(email=email, is_active=True).first()
    if user is not None:
        trail_record(user=user, action="session.refuse", method="password", reason="password")


def after_answer(request: HttpRequest, response: HttpResponse) -> None:
    """Have what ``password_refused`` left to be written be written when the answer is sent."""
    if work := getattr(request, _AFTER, None):
        ip, number = client_ip(request), str(getattr(request, "request_id", ""))
        response._resource_closers.append(partial(_after, work, ip, number))  # type: ignore[attr-defined]


def _after(work: Callable[[], None], ip: str, request_id: str) -> None:
    try:
        with origin_scope(ip=ip, request_id=request_id):
            work()
    except Exception:  # Django drops what closing an answer raises: else nobody would learn of the gap
        log.exception("refusal_not_recorded", request_id=request_id)
    finally:
        connections_let_go()


def _code_refused(*, user: User, reauthentication: bool, **_: Any) -> None:
    if not reauthentication:
        trail_record(user=user, action="session.refuse", method="password", reason="second factor")


def _signed_out(*, request: HttpRequest, user: Any, **_: Any) -> None:
    if not isinstance(user, User):
        return
    only = None
    if is_contained(request):  # it opened these workspaces and no others, which aren't told of it
        only = frozenset(int(pk) for pk in request.session.get(SIGN_INS, {}))
    trail_record(user=user, action="session.sign_out", only=only)


def trail_start() -> None:
    """Hear of sign-outs and refused codes from now on."""
    user_logged_out.connect(_signed_out, dispatch_uid="web.sign_in_trail")
    authentication_failed.connect(_code_refused, dispatch_uid="web.sign_in_trail")
