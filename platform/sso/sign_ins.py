"""Sign-ins through a provider: made, looked at by each request of such a session, ended with the membership."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.utils import timezone

from sso.models import SsoConnection, SsoIdentity, SsoSignIn
from tenancy import tokens
from tenancy.models import Membership, Tenant, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.sign_in_rules import SignInRules

USUAL_HOURS = 24
"""How long a sign-in holds where the workspace doesn't say: then the provider is asked again whether it still knows them."""


def sign_in_begin(*, connection: SsoConnection, user: User) -> str:
    """Keep that somebody has signed in; returns the token for their session. Call it in a transaction."""
    token = secrets.token_urlsafe(32)
    hours = SignInRules.of(connection.tenant).session_hours or USUAL_HOURS
    SsoSignIn.objects.create(
        tenant_id=connection.tenant_id,
        connection=connection,
        user=user,
        token_sha256=tokens.digest(token),
        expires_at=timezone.now() + timedelta(hours=hours),
    )
    return token


def sign_in_made(tenant: Tenant, user: User, token: str) -> datetime | None:
    """Return when the sign-in of a session's token was made, None when it has ended or is another person's."""
    with tenant_scope(tenant.pk):
        found: datetime | None = (
            SsoSignIn.objects.filter(
                tenant=tenant,
                user=user,
                token_sha256=tokens.digest(token),
                expires_at__gt=timezone.now(),
                connection__is_enabled=True,
            )
            .values_list("at", flat=True)
            .first()
        )
    return found


def sign_ins_end(tenant_id: int, user_id: int, api_key_id: int | None) -> None:
    """End the sign-ins of somebody who is no member any more, and forget which subject they were: part of ``on_loss``."""
    if api_key_id is not None or Membership.objects.filter(tenant_id=tenant_id, user_id=user_id).exists():
        return
    SsoSignIn.objects.filter(tenant_id=tenant_id, user_id=user_id).delete()
    SsoIdentity.objects.filter(tenant_id=tenant_id, user_id=user_id).delete()


def sign_ins_expire() -> int:
    """Forget sign-ins whose time is over; returns how many."""
    with platform_scope():
        return int(SsoSignIn.objects.filter(expires_at__lte=timezone.now()).delete()[0])
