"""Reads of tenants, memberships and keys. Sign-in looks across tenants, each time in one marked place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import signing
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from basics.errors import Conflict
from basics.texts import gettext as _
from tenancy import crypto, tokens
from tenancy.actors import Actor
from tenancy.database.columns import Columns
from tenancy.database.replica import primary_reads
from tenancy.models import (
    ApiKey,
    Invite,
    Membership,
    ModelEntry,
    OAuthToken,
    ProviderCredential,
    Role,
    Tenant,
    User,
)
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.scope import platform_scope, tenant_scope

_MEMBER, _TENANT, _KEY = Columns(Membership, "m"), Columns(Tenant, "t"), Columns(ApiKey, "k")
# By hand, for they are asked at every request and before every answer.
_MEMBERSHIP = f"""
SELECT {_MEMBER}, {_TENANT} FROM tenancy_membership m JOIN tenancy_tenant t ON t.id = m.tenant_id
WHERE m.user_id = %s AND t.slug = %s AND t.is_active
"""  # noqa: S608 - names of columns
_LIVE_KEYS = f"""
SELECT {_KEY}, {_TENANT}, (SELECT m.role FROM tenancy_membership m JOIN tenancy_user u ON u.id = m.user_id
    WHERE m.tenant_id = k.tenant_id AND m.user_id = k.user_id AND u.is_active) AS role
FROM tenancy_apikey k JOIN tenancy_tenant t ON t.id = k.tenant_id
WHERE k.revoked_at IS NULL AND t.is_active AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
"""  # noqa: S608 - names of columns
_KEY_OF_PREFIX = f"{_LIVE_KEYS} AND k.prefix = %s"
_KEY_OF_TOKEN = f"""{_LIVE_KEYS} AND t.slug = %s AND EXISTS (
    SELECT FROM tenancy_oauthtoken o WHERE o.tenant_id = k.tenant_id AND o.api_key_id = k.id
    AND o.sha256 = %s AND o.kind = 'access' AND o.expires_at > statement_timestamp()
)"""
_CREDENTIAL, _ENTRY = Columns(ProviderCredential, "c"), Columns(ModelEntry, "e")
_CREDENTIALS_AND_ENTRIES = f"""
SELECT {_CREDENTIAL}, {_ENTRY}
FROM (SELECT * FROM tenancy_providercredential WHERE tenant_id = %(tenant)s) c
    FULL JOIN (SELECT * FROM tenancy_modelentry WHERE tenant_id = %(tenant)s) e ON false
ORDER BY c.provider, c.endpoint, e.name
"""  # noqa: S608 - names of columns

INVITE_SALT = "tenancy.invite"


@dataclass(frozen=True, slots=True)
class Credential:
    """A provider's key as a workspace stored it, ready to use; ``secret`` never shows itself."""

    provider: str
    secret: crypto.Secret
    base_url: str
    model_names: tuple[str, ...]
    label: str
    endpoint: str = ""


def tenant_find(*, slug: str) -> Tenant | None:
    """Return the active workspace of a slug, for what proves by itself that it belongs there."""
    return Tenant.objects.filter(slug=slug, is_active=True).first()


def membership_find(*, user: User, slug: str) -> Membership | None:
    """Return the user's membership in an active tenant of that slug, or None (unknown and foreign look alike)."""
    with platform_scope(), connection.cursor() as cursor:
        cursor.execute(_MEMBERSHIP, [user.pk, slug])
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    membership = _MEMBER.take(values)
    membership.tenant = _TENANT.take(values)
    return membership


def membership_list(*, user: User) -> list[Membership]:
    """Return the user's memberships in active tenants, by workspace name."""
    with primary_reads(), platform_scope():
        return list(
            Membership.objects.select_related("tenant")
            .filter(user=user, tenant__is_active=True)
            .order_by("tenant__name")
        )


def owned_tenants(*, user: User) -> list[Tenant]:
    """Return the active tenants this user owns (the scope of their admin)."""
    return [m.tenant for m in membership_list(user=user) if m.role == Role.OWNER]


def user_actor(membership: Membership) -> Actor:
    """Return the actor a membership stands for."""
    user: Any = membership.user
    return member_actor(membership.tenant_id, membership.user_id, membership.role, user.email)


def member_actor(tenant_id: int, user_id: int | None, role: str, email: str) -> Actor:
    """Return the actor that a person with this role is in a workspace."""
    return Actor("user", tenant_id, ROLE_ACTIONS[role], user_id=user_id, role=role, name=email)


def api_key_authenticate(*, key: str) -> tuple[Tenant, Actor] | None:
    """Return the tenant and actor of an API key, or None when it is unknown, revoked, expired or its maker has left.

    A key's rights are its scopes cut down to what its maker's role allows today. ``last_used_at`` moves at most once
    a minute, so that a busy key does not write at each request.
    """
    prefix, secret = tokens.split(key)
    if not prefix:
        return None
    with platform_scope():
        # The database keeps prefixes apart within a workspace only.
        found = _live_keys(_KEY_OF_PREFIX, prefix)
        one = next((one for one in found if tokens.matches(secret, one[0].secret_sha256)), None)
        return None if one is None else _opened(*one)


def access_token_authenticate(*, slug: str, token: str) -> tuple[Tenant, Actor] | None:
    """Return tenant and actor of a connected application's access token, or None when it opens nothing in this workspace.

    Its rights are worked out again at each request, as those of a key are.
    """
    with platform_scope():
        one = next(_live_keys(_KEY_OF_TOKEN, slug, tokens.digest(token)), None)
        return None if one is None else _opened(*one)


def _live_keys(statement: str, *values: str) -> Iterator[tuple[ApiKey, str | None]]:
    """Yield keys in force, each with its workspace, and the role that its person has now: None where they have left."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    for columns in map(iter, rows):
        key = _KEY.take(columns)
        key.tenant = _TENANT.take(columns)
        yield key, next(columns)


def _opened(key: ApiKey, role: str | None) -> tuple[Tenant, Actor] | None:
    actor = _acting(key, role)
    if actor is None:
        return None
    now = timezone.now()
    if key.last_used_at is None or (now - key.last_used_at).total_seconds() > 60:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key.tenant, actor


def key_actor(row: ApiKey) -> Actor | None:
    """Return the actor of a key that is in force, with the rights of this moment; None when its person has left."""
    if row.user_id is None:
        return _acting(row, None)
    people = Membership.objects.filter(tenant_id=row.tenant_id, user_id=row.user_id, user__is_active=True)
    return _acting(row, people.values_list("role", flat=True).first())


def _acting(row: ApiKey, role: str | None) -> Actor | None:
    if row.user_id is not None and role is None:
        return None
    actions = expand_scopes(row.scopes)
    if role is not None:
        actions &= ROLE_ACTIONS[role]
    return Actor(
        "api_key",
        row.tenant_id,
        actions,
        user_id=row.user_id,
        api_key_id=row.pk,
        collections=key_collections(row),
        name=row.actor_name,
    )


def key_collections(key: ApiKey) -> frozenset[int] | None:
    """Return the collections a key is limited to, None for one that is not."""
    return None if key.collections is None else frozenset(key.collections)


def limited_collections(tenant_id: int, user_id: int | None) -> set[int]:
    """Return all collections that keys of a person are limited to, revoked keys included."""
    if user_id is None:
        return set()
    keys = ApiKey.objects.filter(tenant_id=tenant_id, user_id=user_id, collections__isnull=False)
    with primary_reads():
        return {pk for limited in keys.values_list("collections", flat=True) for pk in limited or ()}


def role_of(actor: Actor) -> str:
    """Return the role of the person an actor is or acts for: a key has that of its person, "" where there is none."""
    if actor.kind != "api_key" or actor.user_id is None:
        return actor.role
    found = Membership.objects.filter(tenant_id=actor.tenant_id, user_id=actor.user_id)
    with primary_reads():
        return found.values_list("role", flat=True).first() or ""


def may_create_tenant(*, user: User) -> bool:
    """Tell whether a person may make workspaces: anyone on an open server, else superusers and owners of one."""
    if settings.SIGNUP == "open" or user.is_superuser:
        return True
    with platform_scope():
        return Membership.objects.filter(user=user, role=Role.OWNER, tenant__is_active=True).exists()


def member_list(*, actor: Actor) -> QuerySet[Membership]:
    """Return the members of the actor's workspace with their people, owners first."""
    actor.require("member.read")
    members: QuerySet[Membership] = Membership.objects.visible_to(actor)
    return members.select_related("user").order_by("created_at", "pk")


def invite_list(*, actor: Actor) -> QuerySet[Invite]:
    """Return the workspace's open invitations, newest first; expired ones too, so that they can be sent again."""
    actor.require("member.manage")
    invites: QuerySet[Invite] = Invite.objects.visible_to(actor)
    return (
        invites.select_related("invited_by")
        .filter(accepted_at=None, revoked_at=None)
        .order_by("-created_at", "-pk")
    )


def invite_read(*, token: str) -> tuple[Invite | None, str]:
    """Return the invitation of a link's token and what stands against using it.

    Only who holds the signed token is told anything, so that the reasons may be told apart.

    Returns:
        (invitation, "") when it is open; else "unknown" (with None), "used", "revoked" or "expired".
    """
    try:
        signing.TimestampSigner(salt=INVITE_SALT).unsign(token)
    except signing.BadSignature:
        return None, "unknown"
    with platform_scope():
        invite = (
            Invite.objects.select_related("tenant", "invited_by")
            .filter(token_sha256=tokens.digest(token), tenant__is_active=True)
            .first()
        )
    return (None, "unknown") if invite is None else (invite, invite_problem(invite))


def invite_problem(invite: Invite) -> str:
    """Return "used", "revoked", "expired", or "" when the invitation is open."""
    if invite.accepted_at:
        return "used"
    if invite.revoked_at:
        return "revoked"
    return "expired" if invite.expires_at <= timezone.now() else ""


def api_key_list(*, actor: Actor) -> QuerySet[ApiKey]:
    """Return the workspace's keys, newest first; revoked ones stay in the list as history."""
    actor.require("key.manage")
    rows: QuerySet[ApiKey] = ApiKey.objects.visible_to(actor)
    return rows.select_related("user").order_by("-created_at", "-pk")


def connection_list(*, actor: Actor) -> QuerySet[ApiKey]:
    """Return the applications that the actor's person connected, or everybody's with ``key.manage``, newest first.

    ``is_open`` tells whether some token of it can still be used.

    Raises:
        Denied: without the right ``app.connect``.
    """
    actor.require("app.connect")
    rows: QuerySet[ApiKey] = ApiKey.objects.visible_to(actor).exclude(client_id="")
    if not actor.can("key.manage"):
        rows = rows.none() if actor.user_id is None else rows.filter(user_id=actor.user_id)
    tokens = OAuthToken.objects.filter(
        tenant_id=actor.tenant_id, api_key=OuterRef("pk"), used_at=None, expires_at__gt=timezone.now()
    )
    return rows.select_related("user").annotate(is_open=Exists(tokens)).order_by("-created_at", "-pk")


def credential_list(*, actor: Actor) -> QuerySet[ProviderCredential]:
    """Return the workspace's provider credentials without their secrets."""
    actor.require("credential.manage")
    rows: QuerySet[ProviderCredential] = ProviderCredential.objects.visible_to(actor)
    return rows.defer("secret_encrypted").order_by("provider", "endpoint")


def credential_for(*, tenant: Tenant, provider: str, endpoint: str = "") -> Credential | None:
    """Return the workspace's enabled credential of a provider or endpoint, decrypted, or None.

    Raises:
        Conflict: ``credential_unreadable``, it was stored under an encryption key that is gone.
    """
    with tenant_scope(tenant.pk):
        row = ProviderCredential.objects.filter(
            tenant=tenant, provider=provider, endpoint=endpoint, is_enabled=True
        ).first()
    return None if row is None else credential_open(row)


def credentials_and_entries(*, tenant: Tenant) -> tuple[list[ProviderCredential], list[ModelEntry]]:
    """Return all credentials of a workspace, disabled ones too, still encrypted, and what it states about models, by name.

    One statement, for what runs on its behalf: every answer begins with it, and every title.
    """
    with tenant_scope(tenant.pk), connection.cursor() as cursor:
        cursor.execute(_CREDENTIALS_AND_ENTRIES, {"tenant": tenant.pk})
        found = [(_CREDENTIAL.take(row), _ENTRY.take(row)) for row in map(iter, cursor.fetchall())]
    # Each row is one of the two, and has nothing of the other.
    return [c for c, _ in found if c.pk is not None], [e for _, e in found if e.pk is not None]


def credential_open(row: ProviderCredential) -> Credential:
    """Decrypt a stored credential.

    Raises:
        Conflict: ``credential_unreadable``, it was stored under an encryption key that is gone.
    """
    try:
        secret = crypto.decrypt(row.secret_encrypted, tenant_id=row.tenant_id, purpose=row.purpose)
    except crypto.DecryptionError as error:
        raise Conflict(
            "credential_unreadable",
            _("The stored %(provider)s key can no longer be read. Enter it again under Settings, Models.")
            % {"provider": row.provider},
        ) from error
    return Credential(row.provider, secret, row.base_url, tuple(row.model_names), row.label, row.endpoint)


def model_entry_list(*, actor: Actor) -> QuerySet[ModelEntry]:
    """Return what the workspace states about models, by name."""
    actor.require("credential.manage")
    rows: QuerySet[ModelEntry] = ModelEntry.objects.visible_to(actor)
    return rows.order_by("name")


def actor_person(*, actor: Actor) -> User | None:
    """Return the person an actor is or acts for, None for one that acts for nobody."""
    return None if actor.user_id is None else User.objects.filter(pk=actor.user_id).first()
