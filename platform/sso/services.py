"""What owners set: the identity provider, roles of groups, what is asked of sessions, tokens of SCIM."""

from __future__ import annotations

import re
import secrets
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from sso.fetching import ProviderFailed, address_checked
from sso.models import GroupRole, Protocol, ScimToken, SsoConnection, SsoDomain
from tenancy import crypto, tokens
from tenancy.actors import Actor
from tenancy.models import Membership, Role, Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from tenancy.services.members import lock_members
from tenancy.sign_in_rules import SignInRules

MAX_CONNECTIONS = 5
MAX_GROUPS = 500
MAX_TOKENS = 10
MAX_HOURS = 24 * 90
TOKEN_PREFIX = "gws_"  # noqa: S105 - no password
_CLAIM = re.compile(r"[A-Za-z0-9_:/.\-]{1,200}\Z")


def connection_set(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    issuer: str,
    client_id: str,
    secret: str = "",
    groups_claim: str = "groups",
    creates_members: bool = True,
    takes_unstated_email: bool = False,
    is_enabled: bool = True,
    pk: int | None = None,
) -> SsoConnection:
    """Add an OpenID provider, or change one.

    Args:
        secret: of the client; "" keeps the stored one, or none for a client without.
        pk: which one is changed; None adds one. Another issuer or client needs its secret again.

    Raises:
        Denied: without the right ``tenant.manage``.
        Missing: no such provider here.
        Invalid: a value can't be used.
        Conflict: it would leave the workspace without the only way in that its rules allow.
    """
    actor.require("tenant.manage")
    issuer, client_id = issuer.strip(), client_id.strip()
    if not client_id or len(client_id) > 200 or not client_id.isprintable():
        raise invalid("client_id", _("Enter the client id that the provider shows."))
    if len(secret) > 500 or not secret.isprintable():
        raise invalid("secret", _("This isn't a client secret."))
    if len(issuer) > 300 or "?" in issuer or "#" in issuer:
        raise invalid("issuer", _("An issuer is an address without ? or #, of at most 300 characters."))
    try:
        address_checked(issuer, "Issuer")
    except ProviderFailed as error:
        raise invalid("issuer", error.message) from error
    return connection_save(
        tenant=tenant,
        actor=actor,
        protocol=Protocol.OIDC,
        pk=pk,
        secret=secret,
        values={
            "name": name, "issuer": issuer, "client_id": client_id, "groups_claim": groups_claim,
            "creates_members": creates_members, "takes_unstated_email": takes_unstated_email,
            "is_enabled": is_enabled,
        },
    )  # fmt: skip


@transaction.atomic
def connection_save(
    *,
    tenant: Tenant,
    actor: Actor,
    protocol: str,
    values: dict[str, Any],
    pk: int | None,
    secret: str = "",
) -> SsoConnection:
    """Write a provider whose own values were checked; the rest of ``connection_set`` and ``saml_connection_set``.

    Args:
        values: of the row's columns, with ``issuer`` and ``client_id``, which say whose subjects its people are.

    Raises:
        Denied, Missing, Invalid, Conflict: as theirs.
    """
    actor.require("tenant.manage")
    name, issuer, client_id = " ".join(values["name"].split()), values["issuer"], values["client_id"]
    if not 1 <= len(name) <= 80:
        raise invalid("name", _("A name of 1 to 80 characters is needed."))
    if not _CLAIM.match(values["groups_claim"]):
        raise invalid("groups_claim", _("Enter the name of the claim, for example groups."))
    with tenant_scope(tenant.pk):
        tenant = lock_members(tenant)
        rows = SsoConnection.objects.filter(tenant=tenant)
        row: SsoConnection | None
        if pk is None:
            row = SsoConnection(tenant=tenant, protocol=protocol)
        else:
            row = rows.filter(pk=pk, protocol=protocol).first()
        if row is None:
            raise Missing("identity provider")
        if pk is None and rows.count() >= MAX_CONNECTIONS:
            raise invalid(
                "name",
                _("There are already %(most)s providers. Remove one first.") % {"most": MAX_CONNECTIONS},
            )
        if rows.filter(issuer=issuer, client_id=client_id).exclude(pk=pk or 0).exists():
            if not issuer:
                raise invalid("name", _("Finish the SAML provider that has no metadata yet, or remove it."))
            field = "client_id" if client_id else "issuer"
            raise invalid(field, _("This client of this provider has already been added."))
        is_other = pk is None or (row.issuer, row.client_id) != (issuer, client_id)
        for column, value in {**values, "name": name}.items():
            setattr(row, column, value)
        if secret or is_other:  # a stored secret belongs to the issuer it was entered for
            row.secret_encrypted = crypto.encrypt(secret.strip(), tenant_id=tenant.pk, purpose=row.purpose)
        if is_other:
            row.tested_at = None
        row.save()
        if is_other and pk is not None:  # its subjects are other people
            row.identities.all().delete()
            row.sign_ins.all().delete()
            row.answers.all().delete()
        _keep_a_way_in(tenant)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="sso.connection_set",
            object=row,
            data={
                "protocol": protocol,
                "issuer": issuer,
                "client_id": client_id,
                "is_new": pk is None,
                "secret_changed": bool(secret),
            },
        )
    return row


@transaction.atomic
def connection_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove an identity provider; sign-ins through it end at once. Raises Denied, Missing, Conflict."""
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        tenant = lock_members(tenant)
        row = SsoConnection.objects.filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("identity provider")
        audit_record(tenant=tenant, actor=actor, action="sso.connection_remove", object=row)
        row.delete()
        _keep_a_way_in(tenant)


@transaction.atomic
def group_role_set(*, tenant: Tenant, actor: Actor, group: str, role: str) -> None:
    """Give a group a role, or none with ``role`` ""; it counts from its members' next sign-in or SCIM call.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: group or role can't be used.
    """
    actor.require("tenant.manage")
    group = group.strip()
    if not 1 <= len(group) <= 200 or not group.isprintable():
        raise invalid("group", _("Enter the group's name or id as the provider sends it."))
    if role and role not in Role.values:
        raise invalid("role", _("Choose a role."))
    with tenant_scope(tenant.pk):
        rows = GroupRole.objects.filter(tenant=tenant)
        if role and rows.count() >= MAX_GROUPS and not rows.filter(group=group).exists():
            raise invalid(
                "group", _("There are already %(most)s groups. Remove one first.") % {"most": MAX_GROUPS}
            )
        if role:
            rows.update_or_create(tenant=tenant, group=group, defaults={"role": role})
        else:
            rows.filter(group=group).delete()
        audit_record(
            tenant=tenant, actor=actor, action="sso.group_role_set", object_name=group, data={"role": role}
        )


@transaction.atomic
def rules_set(
    *,
    tenant: Tenant,
    actor: Actor,
    requires_sso: bool,
    requires_second_factor: bool,
    session_hours: int | None,
    break_glass: int | None,
    default_role: str,
) -> SignInRules:
    """Say what is asked of those who sign in; it holds from the next request of every session.

    Args:
        session_hours: 1 to 2,160; None: as long as the server's session.
        break_glass: id of the membership of the owner who can come in without the provider.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: a value can't be used, or company sign-in is required and would lock everybody out.
    """
    actor.require("tenant.manage")
    if session_hours is not None and not 1 <= session_hours <= MAX_HOURS:
        raise invalid(
            "session_hours", _("Enter 1 to %(most)s hours, or nothing.") % {"most": number_told(MAX_HOURS)}
        )
    if default_role and default_role not in {Role.VIEWER, Role.MEMBER, Role.ADMIN}:
        raise invalid("default_role", _("Choose viewer, member, admin or none."))
    with tenant_scope(tenant.pk):
        locked = lock_members(tenant)
        chosen = None
        if break_glass is not None:
            chosen = (
                Membership.objects.select_related("user")
                .filter(tenant=tenant, pk=break_glass, role=Role.OWNER, user__is_active=True)
                .first()
            )
            if chosen is None:
                raise invalid("break_glass", _("Choose an owner of this workspace."))
        if requires_sso:
            if chosen is None:
                raise invalid("break_glass", _("Choose the owner who can sign in if the provider fails."))
            if not is_mfa_enabled(chosen.user) or not chosen.user.has_usable_password():
                raise invalid(
                    "break_glass",
                    _("This owner needs a password and a passkey or authenticator app first (Your account)."),
                )
        rules = SignInRules(
            requires_sso=requires_sso,
            requires_second_factor=requires_second_factor,
            session_hours=session_hours,
            break_glass=chosen.user_id if chosen else None,
            default_role=default_role,
        )
        locked.sign_in_rules = rules.as_json()
        _keep_a_way_in(locked)
        before = SignInRules.of(tenant)
        Tenant.objects.filter(pk=tenant.pk).update(sign_in_rules=rules.as_json())
        tenant.sign_in_rules = rules.as_json()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="sso.rules_set",
            object=tenant,
            data={"before": before.as_json(), "after": rules.as_json()},
        )
    return rules


@transaction.atomic
def scim_token_create(*, tenant: Tenant, actor: Actor, name: str) -> tuple[ScimToken, str]:
    """Make a token to provision people with; returns the row, and the token to show once.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: the name can't be used, or there are too many.
    """
    actor.require("tenant.manage")
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise invalid("name", _("A name of 1 to 80 characters is needed."))
    with tenant_scope(tenant.pk):
        if ScimToken.objects.filter(tenant=tenant, revoked_at=None).count() >= MAX_TOKENS:
            raise invalid(
                "name", _("There are already %(most)s tokens. Revoke one first.") % {"most": MAX_TOKENS}
            )
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row: ScimToken = ScimToken.objects.create(tenant=tenant, name=name, token_sha256=tokens.digest(token))
        audit_record(tenant=tenant, actor=actor, action="sso.scim_token_create", object=row)
    return row, token


@transaction.atomic
def scim_token_revoke(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """End a token at once. Raises Denied, Missing."""
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = ScimToken.objects.filter(tenant=tenant, pk=pk, revoked_at=None).first()
        if row is None:
            raise Missing("token")
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])
        audit_record(tenant=tenant, actor=actor, action="sso.scim_token_revoke", object=row)


def _keep_a_way_in(tenant: Tenant) -> None:
    """Refuse rules that ask for a sign-in through a provider where none has ever worked."""
    if not SignInRules.of(tenant).requires_sso:
        return
    works = SsoConnection.objects.filter(tenant=tenant, is_enabled=True, tested_at__isnull=False)
    if not works.exists() or not SsoDomain.objects.filter(tenant=tenant, verified_at__isnull=False).exists():
        message = _("Verify a domain and sign in through a provider once before you require it.")
        raise Conflict("sso_untested", message, data={"field": "requires_sso"})


def invalid(field: str, message: str) -> Invalid:
    """Return a refusal to show at a field of a form."""
    return Invalid("invalid", message, data={"field": field, "fields": {field: [message]}})


def connection_secret(row: SsoConnection) -> crypto.Secret:
    """Return the client's secret, which may be empty.

    Raises:
        Conflict: ``credential_unreadable``, it was stored under an encryption key that is gone.
    """
    stored: Any = row.secret_encrypted
    try:
        return crypto.decrypt(stored, tenant_id=row.tenant_id, purpose=row.purpose)
    except crypto.DecryptionError as error:
        raise Conflict(
            "credential_unreadable",
            _(
                "The provider's client secret can no longer be read. An owner can enter it again under Settings, "
                "Sign-in."
            ),
        ) from error
