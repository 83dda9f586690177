"""A workspace's SAML provider: how owners set it, and the way of an assertion from the provider's form to the session."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from basics.errors import Invalid
from basics.texts import gettext as _
from sso.fetching import ProviderFailed, address_checked
from sso.models import Protocol, SamlAnswer, SsoConnection
from sso.saml.certificates import certificates_read, certificates_text, expires_at
from sso.saml.metadata import metadata_read
from sso.saml.responses import MAX_AGE, SKEW, Expected, Said
from sso.services import connection_save, invalid
from tenancy import tokens
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope

KEPT = MAX_AGE + 3 * SKEW
"""How long an assertion is known: afterwards it is refused for its age."""


def saml_connection_set(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    metadata: str = "",
    issuer: str = "",
    sso_url: str = "",
    certificates: str = "",
    email_claim: str = "",
    groups_claim: str = "groups",
    creates_members: bool = True,
    is_enabled: bool = True,
    pk: int | None = None,
) -> SsoConnection:
    """Add a SAML provider, or change one.

    Args:
        metadata: of the provider: XML, or an address, which is fetched now. It takes the place of the next three.
        issuer: the provider's entity ID. "" with no metadata adds a provider that isn't ready: nobody can use it yet.
        sso_url: where requests are sent.
        certificates: PEM; several while the provider changes its key.
        email_claim: attribute with the address; "" takes the usual ones.
        pk: which one is changed; None adds one. With another entity ID its subjects are other people.

    Raises:
        Denied: without the right ``tenant.manage``.
        Missing: no such SAML provider here.
        Invalid: a value can't be used.
        Conflict: it would leave the workspace without the only way in that its rules allow.
    """
    actor.require("tenant.manage")  # before anything is fetched
    if metadata.strip():
        try:
            said = metadata_read(metadata)
        except ProviderFailed as error:
            raise invalid("metadata", error.message) from error
        issuer, sso_url, certificates = said.entity_id, said.sso_url, said.certificates
    issuer, sso_url = issuer.strip(), sso_url.strip()
    is_draft = not (issuer or sso_url or certificates.strip())
    if is_draft and pk is not None:
        raise invalid("metadata", _("Enter the provider's metadata."))
    if not is_draft:
        certificates = _provider_check(issuer, sso_url, certificates)
    if len(email_claim) > 200 or not email_claim.isprintable():
        raise invalid("email_claim", _("Enter the name of the attribute."))
    return connection_save(
        tenant=tenant,
        actor=actor,
        protocol=Protocol.SAML,
        pk=pk,
        values={
            "name": name, "issuer": issuer, "client_id": "", "sso_url": sso_url, "certificates": certificates,
            "email_claim": email_claim.strip(), "groups_claim": groups_claim, "creates_members": creates_members,
            "is_enabled": is_enabled,
            # SAML has no word for a verified address: the provider's administrators set them.
            "takes_unstated_email": True,
        },
    )  # fmt: skip


def _provider_check(issuer: str, sso_url: str, certificates: str) -> str:
    if not 1 <= len(issuer) <= 300 or not issuer.isprintable():
        raise invalid("issuer", _("Enter the provider's entity ID, of at most 300 characters."))
    if not 1 <= len(sso_url) <= 1000 or "#" in sso_url:
        raise invalid("sso_url", _("Enter the provider's sign-in address, of at most 1,000 characters."))
    try:
        address_checked(sso_url, "Sign-in address")
    except ProviderFailed as error:
        raise invalid("sso_url", error.message) from error
    try:
        found = certificates_read(certificates)
    except ProviderFailed as error:
        raise invalid("certificates", error.message) from error
    if all(expires_at(one) <= timezone.now() for one in found):
        raise invalid(
            "certificates", _("Certificates: all of them have expired. Enter the provider's new one.")
        )
    return certificates_text(found)


def expected_of(connection: SsoConnection, *, audience: str, address: str) -> Expected:
    """Return what a response must be for, to be taken at a connection."""
    return Expected(
        issuer=connection.issuer,
        audience=audience,
        address=address,
        email_name=connection.email_claim,
        groups_name=connection.groups_claim,
        certificates=certificates_read(connection.certificates),
    )


@transaction.atomic
def answer_keep(*, connection: SsoConnection, said: Said) -> str:
    """Keep an assertion that was believed; returns the token to fetch it with.

    Raises:
        ProviderFailed: ``sso_replay``: the assertion was here before, on this machine or another one.
    """
    token = secrets.token_urlsafe(32)
    with tenant_scope(connection.tenant_id):
        try:
            with transaction.atomic():
                SamlAnswer.objects.create(
                    tenant_id=connection.tenant_id,
                    connection=connection,
                    assertion_sha256=hashlib.sha256(said.assertion_id.encode()).hexdigest(),
                    request_id=said.request_id[:100],
                    token_sha256=tokens.digest(token),
                    claims=said.claims,
                    expires_at=timezone.now() + KEPT,
                )
        except IntegrityError as error:
            raise ProviderFailed("sso_replay", "This assertion was used before.") from error
    return token


@transaction.atomic
def answer_take(*, connection: SsoConnection, token: str, request_id: str) -> dict[str, Any]:
    """Return the claims of an assertion, once.

    Args:
        request_id: of the request that this browser made.

    Raises:
        Invalid: ``sso_state``: there is none, it was taken, or it answers another browser's request.
    """
    with tenant_scope(connection.tenant_id):
        row = (
            SamlAnswer.objects.select_for_update()
            .filter(
                tenant_id=connection.tenant_id,
                connection=connection,
                token_sha256=tokens.digest(token),
                request_id=request_id,
                taken_at=None,
                expires_at__gt=timezone.now(),
            )
            .first()
        )
        if row is None:
            raise not_ours()
        claims: dict[str, Any] = row.claims
        row.claims, row.taken_at = {}, timezone.now()
        row.save(update_fields=["claims", "taken_at"])
    return claims


def not_ours() -> Invalid:
    """Return the refusal of an answer that no sign-in of this browser waits for, with ``stored`` for the audit log."""
    message = gettext_noop("This answer doesn't belong to a sign-in in this browser. Start again.")
    return Invalid("sso_state", _(message), data={"stored": message})


def answers_expire() -> int:
    """Forget assertions that are too old to count; returns how many."""
    with platform_scope():
        return int(SamlAnswer.objects.filter(expires_at__lte=timezone.now()).delete()[0])


def certificate_ends(connection: SsoConnection) -> list[datetime]:
    """Return when each certificate of a SAML provider ends; none of another provider, or one that isn't ready."""
    if not connection.certificates:
        return []
    return sorted(expires_at(one) for one in certificates_read(connection.certificates))


def ends_soon(connection: SsoConnection, *, days: int = 30) -> bool:
    """Tell whether all certificates of a SAML provider have ended within so many days from now."""
    ends = certificate_ends(connection)
    return bool(ends) and ends[-1] < timezone.now() + timedelta(days=days)
