"""Legal holds: while a workspace has one, nothing of it is erased, and no retention rule removes anything."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from erasure.models import Erasure, LegalHold
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_REASON = 300


def hold_place(*, tenant: Tenant, actor: Actor, reason: str) -> LegalHold:
    """Stop retention and erasure in a workspace until the hold is released.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: no reason, or too long a one.
        Conflict: ``legal_hold``, there is one already; ``erasure_begun``, the workspace is being erased.
    """
    actor.require("tenant.manage")
    reason = " ".join(reason.split())
    if not 1 <= len(reason) <= MAX_REASON:
        raise Invalid(
            "invalid",
            _("Give a reason of 1 to %(most)s characters.") % {"most": MAX_REASON},
            data={"field": "reason"},
        )
    try:
        with tenant_scope(tenant.pk), transaction.atomic():
            # Locked: an erasure that begins at this moment looks for holds under the same lock.
            asked = Erasure.objects.select_for_update().filter(
                kind=Erasure.Kind.WORKSPACE, subject=tenant.pk, state=Erasure.State.WAITING
            )
            list(asked)
            if _is_begun(tenant.pk):
                raise Conflict("erasure_begun", _("This workspace is being erased, which can't be stopped."))
            hold = LegalHold.objects.create(tenant=tenant, reason=reason, placed_by=actor.user_id)
            audit_record(tenant=tenant, actor=actor, action="hold.place", object=hold)
    except IntegrityError:
        raise Conflict("legal_hold", _("This workspace is already under a legal hold.")) from None
    return hold


def hold_release(*, tenant: Tenant, actor: Actor) -> None:
    """End a workspace's legal hold; retention and erasures that waited continue.

    Raises:
        Denied: without the right ``tenant.manage``.
        Conflict: ``no_hold``.
    """
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk), transaction.atomic():
        hold = _open().select_for_update().filter(tenant=tenant).first()
        if hold is None:
            raise Conflict("no_hold", _("This workspace isn't under a legal hold."))
        hold.released_at, hold.released_by = timezone.now(), actor.user_id
        hold.save(update_fields=["released_at", "released_by"])
        audit_record(tenant=tenant, actor=actor, action="hold.release", object=hold)


def hold_of(tenant_id: int) -> LegalHold | None:
    """Return a workspace's open hold."""
    with tenant_scope(tenant_id):
        return _open().filter(tenant_id=tenant_id).first()


def tenants_held() -> QuerySet[LegalHold, Any]:
    """Return the numbers of all workspaces that are held, as a query; in the platform's scope."""
    return _open().values("tenant_id")


def hold_refuse(tenant_id: int) -> None:
    """Raise Conflict, ``legal_hold``, where a workspace is held."""
    if hold_of(tenant_id) is not None:
        raise Conflict(
            "legal_hold",
            _(
                "This workspace is under a legal hold, so nothing in it can be erased. An owner can release the hold."
            ),
        )


def removal_lock(tenant_id: int, *, waits: bool = True) -> bool:
    """Take the lock under which retention rules remove a workspace's things, until the transaction ends.

    Who places a hold or changes a rule takes it too: once that is saved, nothing more goes by the old state.

    Args:
        waits: False gives up when another transaction has it.

    Returns:
        Whether it was taken.
    """
    name = "pg_advisory_xact_lock" if waits else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {name}(hashtext('erasure_retentionrule'), %s)", [tenant_id % 2**31])
        return waits or bool(cursor.fetchone()[0])


def _is_begun(tenant_id: int) -> bool:
    running = Erasure.objects.filter(
        kind=Erasure.Kind.WORKSPACE, subject=tenant_id, state=Erasure.State.RUNNING
    )
    return running.exists()


def _open() -> QuerySet[LegalHold]:
    found: QuerySet[LegalHold] = LegalHold.objects.filter(released_at=None)
    return found
