"""Applications that members connect by OAuth: allowed, given tokens, ended.

An application is an ``ApiKey`` of its member without a secret. Its tokens are single-use but for the access token: who
shows a code or a refresh token twice shows that it was copied, and that ends the connection with all its tokens (RFC 6749
section 4.1.2, RFC 9700 section 4.14.2).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from basics.texts import gettext as _
from tenancy import tokens
from tenancy.actors import Actor, system_actor
from tenancy.losses import loss_tell
from tenancy.models import ApiKey, OAuthToken, Tenant
from tenancy.permissions import APP_SCOPES
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import key_actor
from tenancy.services.audit import audit_record

CODE_LIFE = timedelta(minutes=5)  # PKCE guards it; a slow phone must not fail
ACCESS_LIFE = timedelta(minutes=15)
REFRESH_LIFE = timedelta(days=30)
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z")  # RFC 7636, section 4.1
Kind = OAuthToken.Kind


class GrantRefused(DomainError):
    """A code or refresh token opens nothing; which of the reasons it was is in the audit trail alone."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_grant", "This code or token is unknown, used or expired. Ask the person again."
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an application is handed, once.

    Attributes:
        expires_s: seconds that the access token is good for.
        scopes: what was allowed; a call's rights are these cut to the person's role of that moment.
    """

    access: str
    refresh: str
    expires_s: int
    scopes: tuple[str, ...]


@transaction.atomic
def connection_allow(
    *,
    tenant: Tenant,
    actor: Actor,
    client_id: str,
    name: str,
    scopes: Collection[str],
    redirect_uri: str,
    challenge: str,
) -> str:
    """Connect an application that acts for the actor's person from now on; returns the code to send it.

    Args:
        redirect_uri: where the code goes; checked by the caller against what the client registered.
        challenge: PKCE, S256.

    Raises:
        Denied: the actor is no person, or a scope is beyond their rights.
        Invalid: no scope, or one that applications are not given.
    """
    actor.require("app.connect")
    if actor.kind != "user":
        raise Denied("permission_denied", _("Only a person can connect an application."))
    chosen = sorted(set(scopes))
    if not chosen or set(chosen) - set(APP_SCOPES):
        raise Invalid("invalid", _("Choose what the application can do."), data={"field": "scopes"})
    if beyond := set(chosen) - actor.actions:
        raise Denied(
            "scope_above_own",
            _("It can't do what you aren't allowed to do: %(actions)s.")
            % {"actions": ", ".join(sorted(beyond))},
        )
    _secret, prefix, digest = tokens.make()  # nobody is given this secret
    with tenant_scope(tenant.pk):
        row = ApiKey.objects.create(
            tenant=tenant,
            name=name[:80],
            prefix=prefix,
            secret_sha256=digest,
            scopes=chosen,
            user_id=actor.user_id,
            client_id=client_id,
        )
        code, sha256 = tokens.make_token()
        OAuthToken.objects.create(
            tenant=tenant,
            api_key=row,
            kind=Kind.CODE,
            sha256=sha256,
            redirect_uri=redirect_uri,
            challenge=challenge,
            expires_at=timezone.now() + CODE_LIFE,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="connection.allow",
            object=row,
            data={"scopes": chosen, "client_id": client_id[:500], "redirect_uri": redirect_uri},
        )
    return code


def code_redeem(*, tenant: Tenant, client_id: str, code: str, redirect_uri: str, verifier: str) -> Tokens:
    """Give tokens for a code. Whatever is wrong with how it is shown ends the connection: only a thief shows it so.

    Raises:
        GrantRefused: unknown, used, expired, or not of this client, address or verifier.
    """
    with transaction.atomic(), tenant_scope(tenant.pk):
        token, row = _taken(tenant, Kind.CODE, code)
        tokens = None
        if token is not None and row is not None:
            wrong = _code_fault(token, row, client_id, redirect_uri, verifier)
            if wrong:
                _end(tenant, row, wrong)
            else:
                tokens = _issue(tenant, row, token)
                audit_record(tenant=tenant, actor=_acting(row), action="connection.begin", object=row)
    if tokens is None:
        raise GrantRefused
    return tokens


def tokens_refresh(*, tenant: Tenant, client_id: str, refresh: str) -> Tokens:
    """Give new tokens for a refresh token, which is used up by it.

    Raises:
        GrantRefused: unknown, expired, of another client, of somebody who left; or used before, which ends the connection.
    """
    with transaction.atomic(), tenant_scope(tenant.pk):
        token, row = _taken(tenant, Kind.REFRESH, refresh)
        tokens = None
        if token is not None and row is not None and row.client_id == client_id:
            if token.used_at is not None:
                _end(tenant, row, "refresh token used twice")
            elif token.expires_at > timezone.now() and key_actor(row) is not None:
                tokens = _issue(tenant, row, token)
    if tokens is None:
        raise GrantRefused
    return tokens


@transaction.atomic
def connection_forget(*, tenant: Tenant, client_id: str, token: str) -> None:
    """End a connection at its application's wish (RFC 7009); nothing happens for a token that is none of it."""
    with tenant_scope(tenant.pk):
        for kind in (Kind.REFRESH, Kind.ACCESS):
            _, row = _taken(tenant, kind, token)
            if row is not None and row.client_id == client_id:
                _end(tenant, row, "the application signed out")


@transaction.atomic
def connection_revoke(*, tenant: Tenant, actor: Actor, key_id: int) -> ApiKey:
    """End a connection at once: one's own, or anybody's with ``key.manage``.

    Raises:
        Missing: there is no such connection for the actor.
        Conflict: ``key_revoked``, it was ended before.
    """
    actor.require("app.connect")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, key_id)
        is_own = row is not None and actor.user_id is not None and row.user_id == actor.user_id
        if row is None or not row.client_id or not (is_own or actor.can("key.manage")):
            raise Missing("connection")
        if row.revoked_at is not None:
            raise Conflict("key_revoked", _("This application was disconnected before."))
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])
        audit_record(tenant=tenant, actor=actor, action="connection.revoke", object=row)
        loss_tell(tenant_id=tenant.pk, user_id=row.user_id, api_key_id=row.pk)
    return row


def tokens_expire(limit: int = 1000) -> int:
    """Forget codes and tokens whose time is over, of every tenant; returns how many."""
    with platform_scope():
        due = OAuthToken.objects.filter(expires_at__lte=timezone.now())
        chosen = list(due.values_list("pk", flat=True)[:limit])
        count, _ = OAuthToken.objects.filter(pk__in=chosen).delete()
    return count


def _taken(tenant: Tenant, kind: str, text: str) -> tuple[OAuthToken | None, ApiKey | None]:
    """Find and lock a token and its connection, None where that has ended."""
    rows = OAuthToken.objects.select_for_update()
    token = rows.filter(tenant=tenant, kind=kind, sha256=tokens.digest(text)).first()
    row = None if token is None else _locked(tenant, token.api_key_id)
    return token, row if row is not None and row.revoked_at is None else None


def _locked(tenant: Tenant, key_id: int) -> ApiKey | None:
    rows = ApiKey.objects.select_for_update(of=("self",)).select_related("user")
    found: ApiKey | None = rows.filter(tenant=tenant, pk=key_id).first()
    return found


def _code_fault(token: OAuthToken, row: ApiKey, client_id: str, redirect_uri: str, verifier: str) -> str:
    if token.used_at is not None:
        return "code used twice"
    if token.expires_at <= timezone.now():
        return "code expired"
    if row.client_id != client_id:
        return "code of another client"
    if token.redirect_uri != redirect_uri:
        return "code for another address"
    if not _VERIFIER.match(verifier) or not hmac.compare_digest(_s256(verifier), token.challenge):
        return "wrong code verifier"
    return "" if key_actor(row) is not None else "its person has left"


def _s256(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def _issue(tenant: Tenant, row: ApiKey, used: OAuthToken) -> Tokens:
    now = timezone.now()
    used.used_at = now
    used.expires_at = max(used.expires_at, now + ACCESS_LIFE)  # known as used at least as long
    used.save(update_fields=["used_at", "expires_at"])
    made = {kind: tokens.make_token() for kind in (Kind.ACCESS, Kind.REFRESH)}
    lives = {Kind.ACCESS: ACCESS_LIFE, Kind.REFRESH: REFRESH_LIFE}
    OAuthToken.objects.bulk_create(
        OAuthToken(tenant=tenant, api_key=row, kind=kind, sha256=sha256, expires_at=now + lives[kind])
        for kind, (_, sha256) in made.items()
    )
    return Tokens(
        made[Kind.ACCESS][0], made[Kind.REFRESH][0], int(ACCESS_LIFE.total_seconds()), tuple(row.scopes)
    )


def _end(tenant: Tenant, row: ApiKey, reason: str) -> None:
    row.revoked_at = timezone.now()
    row.save(update_fields=["revoked_at"])
    audit_record(
        tenant=tenant, actor=_acting(row), action="connection.end", object=row, data={"reason": reason}
    )
    loss_tell(tenant_id=tenant.pk, user_id=row.user_id, api_key_id=row.pk)


def _acting(row: ApiKey) -> Actor:
    """Return the application as the actor of its own records, which are written even where it has no rights left."""
    found = key_actor(row)
    return found if found is not None else system_actor(row.tenant_id, row.user_id)
