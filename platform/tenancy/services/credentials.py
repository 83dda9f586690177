"""A workspace's own keys for model providers: set and forgotten, never shown."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from basics.errors import Invalid, Missing
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.models import ProviderCredential, Tenant
from tenancy.provider_urls import checked_url
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record

# The providers that take a key; a test holds this against toolloop's registry, which this room does not know.
PROVIDERS: dict[str, str] = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "google": "Google Gemini",
    "xai": "xAI",
    "compatible": "OpenAI-compatible server",
}


@transaction.atomic
def credential_set(
    *,
    tenant: Tenant,
    actor: Actor,
    provider: str,
    secret: str,
    base_url: str = "",
    label: str = "",
    model_names: Sequence[str] = (),
    is_enabled: bool = True,
) -> ProviderCredential:
    """Store a provider's key for the workspace, encrypted; an earlier one is replaced.

    Args:
        secret: the key; "" keeps the stored one (or none, for a compatible server that wants none).
        base_url: another endpoint; needed for a compatible server.
        model_names: models to offer; empty offers the usual ones.

    Raises:
        Denied: the actor may not manage credentials.
        Invalid: unknown provider, missing key or URL, or a URL that is not allowed.
    """
    actor.require("credential.manage")
    if provider not in PROVIDERS:
        raise Invalid(
            "invalid", f"Unknown provider “{provider}”: use one of {', '.join(PROVIDERS)}."
        )
    secret = secret.strip()
    if not secret.isprintable() or " " in secret or len(secret) > 500:
        raise Invalid(
            "invalid",
            "This is no key: keys have no spaces or line breaks.",
            data={"field": "secret"},
        )
    url = checked_url(base_url)
    if provider == "compatible" and not url:
        raise Invalid(
            "invalid",
            "An OpenAI-compatible server needs its address, for example https://llm.example.org/v1.",
            data={"field": "base_url"},
        )
    with tenant_scope(tenant.pk):
        row = (
            ProviderCredential.objects.select_for_update(of=("self",))
            .filter(tenant=tenant, provider=provider)
            .first()
        )
        if not secret and row is None and provider != "compatible":
            raise Invalid("invalid", "Enter the provider's key.", data={"field": "secret"})
        # A stored key belongs to the host it was entered for: moving the URL alone would send it elsewhere.
        if not secret and row is not None and row.last_four and url != row.base_url:
            raise Invalid(
                "invalid",
                "Enter the key again to use it with another address.",
                data={"field": "secret"},
            )
        is_new = row is None
        row = row or ProviderCredential(tenant=tenant, provider=provider)
        if secret or is_new:
            row.secret_encrypted = crypto.encrypt(
                secret, tenant_id=tenant.pk, purpose=f"credential:{provider}"
            )
            row.last_four = secret[-4:] if len(secret) >= 12 else ""
        row.base_url, row.label, row.is_enabled = url, label.strip()[:80], is_enabled
        row.model_names = [n for n in dict.fromkeys(m.strip() for m in model_names) if n]
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="credential.set",
            object=row,
            object_name=provider,
            data={"is_new": is_new, "key_changed": bool(secret), "base_url": url},
        )
    return row


@transaction.atomic
def credential_delete(*, tenant: Tenant, actor: Actor, provider: str) -> None:
    """Forget the workspace's key of a provider.

    Raises:
        Denied, Missing: without the right; there is none.
    """
    actor.require("credential.manage")
    with tenant_scope(tenant.pk):
        row = ProviderCredential.objects.filter(tenant=tenant, provider=provider).first()
        if row is None:
            raise Missing("credential")
        audit_record(
            tenant=tenant,
            actor=actor,
            action="credential.delete",
            object=row,
            object_name=provider,
        )
        row.delete()
