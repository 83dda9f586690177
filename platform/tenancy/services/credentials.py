"""A workspace's own keys for model providers: set and forgotten, never shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext_lazy

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.models import ProviderCredential, Tenant
from tenancy.provider_urls import checked_url
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# The providers that take a key; a test holds this against toolloop's registry, which this room does not know.
PROVIDERS: dict[str, StrOrPromise] = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "google": "Google Gemini",
    "xai": "xAI",
    "compatible": gettext_lazy("OpenAI-compatible server"),
}
# Names of compatible endpoints stand in routing names (compatible/<endpoint>/<model>), where these mean something else;
# the same test holds this against toolloop's rule.
_ENDPOINT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
_RESERVED = frozenset({*PROVIDERS, "default", "gemini", "extractive", "scripted"})
MAX_ENDPOINTS = 20


def is_endpoint_name(name: str) -> bool:
    """Tell whether a compatible endpoint may have this name."""
    return _ENDPOINT_NAME.fullmatch(name) is not None and name not in _RESERVED


@transaction.atomic
def credential_set(
    *,
    tenant: Tenant,
    actor: Actor,
    provider: str,
    secret: str,
    endpoint: str = "",
    base_url: str = "",
    label: str = "",
    model_names: Sequence[str] = (),
    is_enabled: bool = True,
) -> ProviderCredential:
    """Store a provider's key for the workspace, encrypted; an earlier one of the same endpoint is replaced.

    Args:
        endpoint: name of a further compatible server, "" for the default one; see ``is_endpoint_name``.
        secret: the key; "" keeps the stored one (or none, for a compatible server that wants none).
        base_url: another endpoint; needed for a compatible server.
        model_names: models to offer; empty offers the usual ones.

    Raises:
        Denied: the actor may not manage credentials.
        Invalid: unknown provider, missing key or URL, a URL that is not allowed, or a name that an endpoint cannot have.
    """
    actor.require("credential.manage")
    if provider not in PROVIDERS:
        raise Invalid(
            "invalid",
            _("Unknown provider “%(provider)s”: use one of %(known)s.")
            % {"provider": provider, "known": ", ".join(PROVIDERS)},
        )
    _check_endpoint(provider, endpoint)
    secret = secret.strip()
    if not secret.isprintable() or " " in secret or len(secret) > 500:
        raise Invalid(
            "invalid", _("This isn't a key: keys have no spaces or line breaks."), data={"field": "secret"}
        )
    url = checked_url(base_url)
    if provider == "compatible" and not url:
        raise Invalid(
            "invalid",
            _("An OpenAI-compatible server needs its address, for example https://llm.example.org/v1."),
            data={"field": "base_url"},
        )
    with tenant_scope(tenant.pk):
        rows = ProviderCredential.objects.select_for_update(of=("self",))
        own = {r.endpoint: r for r in rows.filter(tenant=tenant, provider=provider)}
        row = own.get(endpoint)
        if endpoint and row is None:
            _check_room(endpoint, own)
        if not secret and row is None and provider != "compatible":
            raise Invalid("invalid", _("Enter the provider's key."), data={"field": "secret"})
        # A stored key belongs to the host it was entered for: moving the URL alone would send it elsewhere.
        if not secret and row is not None and row.last_four and url != row.base_url:
            raise Invalid(
                "invalid", _("Enter the key again to use it with another address."), data={"field": "secret"}
            )
        is_new = row is None
        row = row or ProviderCredential(tenant=tenant, provider=provider, endpoint=endpoint)
        if secret or is_new:
            row.secret_encrypted = crypto.encrypt(secret, tenant_id=tenant.pk, purpose=row.purpose)
            row.last_four = secret[-4:] if len(secret) >= 12 else ""
        row.base_url, row.label, row.is_enabled = url, label.strip()[:80], is_enabled
        row.model_names = [n for n in dict.fromkeys(m.strip() for m in model_names) if n]
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="credential.set",
            object=row,
            object_name=row.name,
            data={"is_new": is_new, "key_changed": bool(secret), "base_url": url},
        )
    return row


@transaction.atomic
def credential_delete(*, tenant: Tenant, actor: Actor, provider: str, endpoint: str = "") -> None:
    """Forget the workspace's key of a provider, or of one of its compatible endpoints.

    Raises:
        Denied, Missing: without the right; there is none.
    """
    actor.require("credential.manage")
    with tenant_scope(tenant.pk):
        row = ProviderCredential.objects.filter(tenant=tenant, provider=provider, endpoint=endpoint).first()
        if row is None:
            raise Missing("credential")
        audit_record(tenant=tenant, actor=actor, action="credential.delete", object=row, object_name=row.name)
        row.delete()


def _check_endpoint(provider: str, endpoint: str) -> None:
    if not endpoint:
        return
    if provider != "compatible":
        raise Invalid(
            "invalid",
            _("Only OpenAI-compatible servers can have several endpoints; leave the name empty."),
            data={"field": "endpoint"},
        )
    if not is_endpoint_name(endpoint):
        raise Invalid(
            "invalid",
            _(
                "An endpoint's name can have at most 30 lower-case letters, digits and hyphens, and can't be "
                "“default” or a provider's name."
            ),
            data={"field": "endpoint"},
        )


def _check_room(endpoint: str, own: dict[str, ProviderCredential]) -> None:
    """Refuse a new endpoint that is one too many, or whose name begins a model name of the default server."""
    if len(own) >= MAX_ENDPOINTS:
        raise Invalid(
            "invalid",
            _("There are already %(most)s endpoints. Remove one first.") % {"most": MAX_ENDPOINTS},
            data={"field": "endpoint"},
        )
    default = own.get("")
    if default is not None and any(n.startswith(f"{endpoint}/") for n in default.model_names):
        raise Invalid(
            "invalid",
            _(
                "Models of the default server begin with “%(endpoint)s/”, so they would be sent to this "
                "endpoint. Choose another name."
            )
            % {"endpoint": endpoint},
            data={"field": "endpoint"},
        )
