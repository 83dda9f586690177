"""API keys: made, replaced and ended. The secret leaves this module once, to whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy import tokens
from tenancy.actors import Actor
from tenancy.losses import loss_tell
from tenancy.models import ApiKey, Tenant
from tenancy.permissions import LIMITED_SCOPES, expand_scopes
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record


@transaction.atomic
def api_key_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None = None,
    collections: Sequence[int] | None = None,
) -> tuple[ApiKey, str]:
    """Make a key that acts for the actor's person, never with more rights than theirs.

    Args:
        collections: ids of the only collections it shall see; the caller has checked them. None for no such limit.

    Returns:
        The row, and the key itself: show it once, it is not stored.

    Raises:
        Denied: the actor may not make keys, or a scope is beyond their own rights.
        Invalid: name, scopes or expiry cannot be used.
    """
    actor.require("key.manage")
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise Invalid("invalid", _("A key needs a name of 1 to 80 characters."), data={"field": "name"})
    chosen = sorted(set(scopes))
    if not chosen:
        raise Invalid(
            "invalid", _("Choose what the key can do: at least one scope."), data={"field": "scopes"}
        )
    try:
        actions = expand_scopes(chosen)
    except ValueError as error:
        raise Invalid(
            "invalid", _("Scopes: %(error)s") % {"error": error}, data={"field": "scopes"}
        ) from error
    if beyond := actions - actor.actions:
        raise Denied(
            "scope_above_own",
            _("A key can't do what you aren't allowed to do: %(actions)s.")
            % {"actions": ", ".join(sorted(beyond))},
            data={"scopes": sorted(beyond)},
        )
    if collections is not None:
        _limited_check(collections, actions)
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("invalid", _("The expiry date is in the past."), data={"field": "expires_at"})
    key, prefix, digest = tokens.make()
    with tenant_scope(tenant.pk):
        row = ApiKey.objects.create(
            tenant=tenant,
            name=name,
            prefix=prefix,
            secret_sha256=digest,
            scopes=chosen,
            user_id=actor.user_id,
            expires_at=expires_at,
            collections=None if collections is None else sorted(set(collections)),
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="key.create",
            object=row,
            data={
                "scopes": chosen,
                "expires_at": expires_at.isoformat() if expires_at else None,
                "collections": row.collections,
            },
        )
    return row, key


@transaction.atomic
def api_key_rotate(*, tenant: Tenant, actor: Actor, key_id: int) -> tuple[ApiKey, str]:
    """Give a key a new secret; the old one stops working at once.

    Only the key's own person may: the new secret acts for them.

    Raises:
        Denied, Missing: without the right or another person's; no such key here.
        Conflict: ``key_revoked``; ``key_of_app``, nobody holds its secret.
    """
    actor.require("key.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, key_id)
        if row.user_id is not None and row.user_id != actor.user_id:
            raise Denied(
                "key_of_another",
                _("This key acts for someone else. Revoke it and let them create a new one."),
            )
        if row.client_id:
            raise Conflict(
                "key_of_app", _("This is a connected application, which gets its tokens automatically.")
            )
        before = row.prefix
        key, row.prefix, row.secret_sha256 = tokens.make()
        row.last_used_at = None
        row.save(update_fields=["prefix", "secret_sha256", "last_used_at"])
        audit_record(
            tenant=tenant, actor=actor, action="key.rotate", object=row, data={"replaced_prefix": before}
        )
    return row, key


@transaction.atomic
def api_key_revoke(*, tenant: Tenant, actor: Actor, key_id: int) -> ApiKey:
    """End a key at once and for good.

    Raises:
        Denied, Missing: without the right; no such key here.
        Conflict: ``key_revoked``, it was before.
    """
    actor.require("key.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, key_id)
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])
        audit_record(tenant=tenant, actor=actor, action="key.revoke", object=row)
        loss_tell(tenant_id=tenant.pk, user_id=row.user_id, api_key_id=row.pk)
    return row


@transaction.atomic
def key_collection_add(*, tenant: Tenant, actor: Actor, collection: int) -> None:
    """Let a limited key see one more collection, which it has just made for its own files."""
    row = _locked(tenant, actor.api_key_id or 0)
    row.collections = [*(row.collections or ()), collection]
    row.save(update_fields=["collections"])
    audit_record(
        tenant=tenant, actor=actor, action="key.collection_add", object=row, data={"collection": collection}
    )


def _limited_check(collections: Sequence[int], actions: frozenset[str]) -> None:
    if not collections:
        raise Invalid("invalid", _("Choose at least one collection."), data={"field": "collections"})
    if beyond := actions - LIMITED_SCOPES:
        raise Invalid(
            "scope_not_limitable",
            _("A key limited to collections can't have %(scopes)s, because that reaches beyond them.")
            % {"scopes": ", ".join(sorted(beyond))},
            data={"field": "scopes", "scopes": sorted(beyond)},
        )


def _locked(tenant: Tenant, key_id: int) -> ApiKey:
    row = ApiKey.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=key_id).first()
    if row is None:
        raise Missing("API key")
    if row.revoked_at is not None:
        raise Conflict("key_revoked", _("This key was revoked. Create a new one."))
    return row
