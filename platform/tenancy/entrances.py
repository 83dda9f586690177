"""Whether a browser's session may enter a workspace: membership says who may, this says how they must have signed in.

A session that was begun through a workspace's identity provider opens that workspace alone: the provider answers to its
owners, and must not open what the same person has elsewhere. It is like any other once its person has also entered their
password, and their code where they have a second factor.

A passkey for which the authenticator has verified its person (PIN, fingerprint, face) is both: what one has, and what one
knows or is. Without that it is only a second factor, after the password.

API keys and connected applications don't sign in; they end with the membership.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal

from allauth.account.authentication import get_authentication_records
from allauth.mfa.utils import is_mfa_enabled
from django.utils import timezone

from tenancy.models import Membership, Tenant, User
from tenancy.selectors import membership_list
from tenancy.sign_in_rules import SignInRules

SIGN_INS = "company_sign_ins"
"""In the session: workspace's id -> token of the sign-in through its identity provider."""
COMPANY_ONLY = "company_only"
"""In the session: it was begun by such a sign-in."""
CLOSED = re.compile(
    r"^/(?:accounts/(?!logout/|reauthenticate/|2fa/reauthenticate/|2fa/webauthn/reauthenticate/)|admin/|operate/|profile/erasure/|workspaces/)"
)
"""What a session that was begun so can't open: everything that changes or uses the account beyond its workspace."""

_PASSKEY = "webauthn"  # allauth's word

Problem = Literal["company", "second_factor", "again", "password"]
"""What a session lacks: sign-in by the company's provider, a code, a newer sign-in, the person's password."""
LookUp = Callable[[Tenant, User, str], datetime | None]
_looked_up_by: list[LookUp] = []


def sign_ins_looked_up_by(function: LookUp) -> None:
    """Have the room that keeps sign-ins say when one was made, None for one that has ended; call it in ``AppConfig.ready``."""
    _looked_up_by[:] = [function]


def entrance_problem(request: Any, membership: Membership) -> Problem | None:
    """Return why a signed-in member's session may not enter the workspace now, None when it may.

    Args:
        request: with a session, and ``user`` the member.
        membership: with its workspace.
    """
    rules = SignInRules.of(membership.tenant)
    is_company_only = COMPANY_ONLY in request.session
    if not rules.binds and not is_company_only:
        return None
    made = _company_sign_in(request, membership)
    if made is not None:
        is_old = rules.session_hours is not None and made < timezone.now() - _hours(rules)
        return "company" if is_old else None
    if is_company_only and not _has_proven(request):
        was_in = str(membership.tenant_id) in request.session.get(SIGN_INS, {})
        return "company" if rules.requires_sso or was_in else "password"
    is_break_glass = membership.user_id == rules.break_glass
    if rules.requires_sso and not is_break_glass:
        return "company"
    records = get_authentication_records(request, request.user)
    needs_code = rules.requires_second_factor or rules.requires_sso
    if needs_code and not _shows_second_factor(records):
        return "second_factor"
    if rules.session_hours is not None:
        newest = max((one["at"] for one in records), default=0.0)
        if newest < time.time() - _hours(rules).total_seconds():
            return "again"
    return None


def is_contained(request: Any) -> bool:
    """Tell whether a session was begun by a company's sign-in and its person has not proven their password since."""
    return COMPANY_ONLY in request.session and not _has_proven(request)


def memberships_shown(request: Any) -> list[Membership]:
    """Return the memberships that a session may know of: of one begun by a company's sign-in no others."""
    rows = membership_list(user=request.user)
    if not rows or not is_contained(request):
        return rows
    return [row for row in rows if str(row.tenant_id) in request.session.get(SIGN_INS, {})]


def _has_proven(request: Any) -> bool:
    records = get_authentication_records(request, request.user)
    if any(_is_verified_passkey(one) for one in records):
        return True
    methods = {one["method"] for one in records}
    return "password" in methods and ("mfa" in methods or not is_mfa_enabled(request.user))


def _shows_second_factor(records: list[dict[str, Any]]) -> bool:
    """Tell whether a session's person has shown two factors: a code, or a passkey that counts as or follows another."""
    has_password = any(one["method"] == "password" for one in records)
    return any(
        one["method"] == "mfa" and (one.get("type") != _PASSKEY or has_password or _is_verified_passkey(one))
        for one in records
    )


def _is_verified_passkey(record: dict[str, Any]) -> bool:
    return record["method"] == "mfa" and record.get("type") == _PASSKEY and record.get("verified") is True


def _company_sign_in(request: Any, membership: Membership) -> datetime | None:
    token = request.session.get(SIGN_INS, {}).get(str(membership.tenant_id))
    if token is None or not _looked_up_by:
        return None
    return _looked_up_by[0](membership.tenant, request.user, token)


def _hours(rules: SignInRules) -> timedelta:
    return timedelta(hours=rules.session_hours or 0)
