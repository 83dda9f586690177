"""Whom a provider's claims stand for, and whether they may come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from basics.errors import Denied
from basics.texts import gettext
from sso.domains import domain_is_verified
from sso.models import SsoConnection, SsoIdentity
from sso.roles import is_provisioned_out, membership_sync, provisioned_groups
from sso.sign_ins import sign_in_begin
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant, User
from tenancy.permissions import ACTIONS
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor
from tenancy.services import audit_record
from tenancy.services.members import lock_members
from web.accounts import is_unconfirmed

MAX_GROUPS = 2000


def provider_actor(tenant: Tenant, name: str) -> Actor:
    """Return who acts when a provider says who belongs to the workspace: an owner has given it that word."""
    return Actor("system", tenant.pk, ACTIONS, role="system", name=name[:150])


def company_enter(*, connection: SsoConnection, claims: Mapping[str, Any]) -> tuple[Membership, str]:
    """Let somebody in whom the provider has shown to be who they are.

    Args:
        claims: of an ID token that was checked (``sso.oidc``).

    Returns:
        Their membership, and the token of the sign-in for their session.

    Raises:
        Denied: ``sso_...``: why they can't come in, for them to read.
    """
    found = _entered(connection, claims)
    if found is None:
        raise _no_role(connection)
    return found


@transaction.atomic
def _entered(connection: SsoConnection, claims: Mapping[str, Any]) -> tuple[Membership, str] | None:
    """Do ``company_enter``; None for somebody whose groups have just lost them their membership, which has to stay so."""
    tenant = connection.tenant
    email = _address(connection, claims)
    with tenant_scope(tenant.pk):
        tenant = connection.tenant = lock_members(tenant)
        if not domain_is_verified(tenant, email):
            raise _refused(
                "domain",
                gettext_noop("%(workspace)s has not verified the domain of %(email)s."),
                workspace=tenant.name,
                email=email,
            )
        identity = SsoIdentity.objects.filter(
            tenant=tenant, connection=connection, subject=claims["sub"]
        ).first()
        user = identity.user if identity is not None else User.objects.filter(email__iexact=email).first()
        if identity is None and user is not None:
            _link_check(connection, user)
        is_new = user is None
        if user is None:
            if not connection.creates_members:
                raise _refused(
                    "stranger",
                    gettext_noop("Nobody has invited %(email)s to %(workspace)s yet."),
                    email=email,
                    workspace=tenant.name,
                )
            user = User.objects.create_user(email)
        if not user.is_active:
            raise _refused("inactive", gettext_noop("This account is deactivated."))
        if not domain_is_verified(tenant, user.email):
            raise _refused(
                "domain",
                gettext_noop("%(workspace)s has not verified the domain of %(email)s."),
                workspace=tenant.name,
                email=user.email,
            )
        if is_provisioned_out(tenant, user):
            raise _refused(
                "deprovisioned",
                gettext_noop("Your access to %(workspace)s has been withdrawn."),
                workspace=tenant.name,
            )
        if not is_new and is_unconfirmed(user):
            _hijack_undo(user)
        member = membership_sync(
            tenant=tenant,
            actor=provider_actor(tenant, connection.name),
            user=user,
            groups=_groups(connection, claims) | provisioned_groups(tenant, user),
            creates=connection.creates_members,
        )
        if member is None and is_new:
            raise _no_role(connection)  # and no account was made
        if member is None:
            return None
        now = timezone.now()
        identity = identity or SsoIdentity(
            tenant=tenant, connection=connection, subject=claims["sub"], user=user
        )
        identity.last_at = now
        identity.save()
        SsoConnection.objects.filter(pk=connection.pk, tenant=tenant).update(tested_at=now)
        token = sign_in_begin(connection=connection, user=user)
        member.tenant, member.user = tenant, user
        audit_record(
            tenant=tenant,
            actor=user_actor(member),
            action="sso.sign_in",
            object=connection,
            data={"is_new": is_new, "protocol": connection.protocol},
        )
    return member, token


def _address(connection: SsoConnection, claims: Mapping[str, Any]) -> str:
    email = claims.get("email")
    if not isinstance(email, str) or not email.isascii():
        raise _refused(
            "no_email", gettext_noop("The identity provider didn't send an email address for you.")
        )
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise _refused(
            "no_email", gettext_noop("The identity provider didn't send an email address for you.")
        ) from None
    stated = claims.get("email_verified")
    is_unstated = stated is None and connection.takes_unstated_email
    if stated is not True and not is_unstated:
        raise _refused(
            "email_unverified",
            gettext_noop("The identity provider has not verified the address %(email)s."),
            email=email,
        )
    return email


def _link_check(connection: SsoConnection, user: User) -> None:
    """Refuse an address that another subject of the provider has had here: it may have gone to another person."""
    others = SsoIdentity.objects.filter(tenant_id=connection.tenant_id, connection=connection, user=user)
    if others.exists():
        raise _refused(
            "other_person",
            gettext_noop(
                "This address belonged to another account of the identity provider. An owner can remove the member "
                "with this address first."
            ),
        )


def _hijack_undo(user: User) -> None:
    """Take from an account what a stranger has set who registered the address before its person came."""
    user.set_unusable_password()
    user.save(update_fields=["password"])
    EmailAddress.objects.filter(user=user, verified=False).delete()


def _groups(connection: SsoConnection, claims: Mapping[str, Any]) -> set[str]:
    said = claims.get(connection.groups_claim)
    said = [said] if isinstance(said, str) else said
    return {one for one in said[:MAX_GROUPS] if isinstance(one, str)} if isinstance(said, list) else set()


def _no_role(connection: SsoConnection) -> Denied:
    return _refused(
        "no_role",
        gettext_noop("You aren't in a group that has access to %(workspace)s."),
        workspace=connection.tenant.name,
    )


def _refused(code: str, message: str, **values: object) -> Denied:
    """Return a refusal in the person's language, with ``stored`` in English for the audit log: ``message`` is marked only."""
    return Denied(f"sso_{code}", gettext(message) % values, data={"stored": message % values})
