"""The move of a collection to another embedding model with no downtime: build beside, compare, switch, undo or drop.

While a swap is open every new chunk gets a vector in both spaces, so that switching, and switching back, is one update
of the collection's row. A search reads that row once and then looks at vectors of one space only.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.collections.embedders.base import EmbeddingError
from apps.collections.index.embedding import space_for
from apps.collections.index.spaces import vectors_missing
from apps.collections.models import Collection, EmbeddingSpace, SpaceSwap
from apps.collections.storage.job_locks import collection_lock
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from jobs.models import ACTIVE, Job
from jobs.notify import notify
from jobs.services import job_cancel, job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BUILD, DROP = "collections.space_build", "collections.space_drop"
Status = SpaceSwap.Status


def swap_start(*, tenant: Tenant, actor: Actor, collection: Collection, embedder: str) -> SpaceSwap:
    """Begin to make vectors of another embedding model beside the live ones.

    Args:
        embedder: ``provider/model[@dims]``.

    Raises:
        Invalid: ``embedder_invalid``, it names no embedder, or its provider has no key.
        Conflict: ``swap_open`` while another is open; ``swap_same`` when nothing would change.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("collection.write")
    try:
        space = space_for(embedder, tenant=tenant)
    except EmbeddingError as error:
        raise Invalid(
            "embedder_invalid", error.message, data={"fields": {"embedder": [error.message]}}
        ) from error
    try:
        with transaction.atomic():
            row = collection_lock(tenant, collection.pk)
            if row.space_id == space.pk:
                raise Conflict("swap_same", _("This collection already uses %(space)s.") % {"space": space})
            swap: SpaceSwap = SpaceSwap.objects.create(
                tenant=tenant,
                collection=row,
                from_space_id=row.space_id,
                to_space=space,
                created_by_id=actor.user_id,
            )
            _enqueue(tenant, actor, swap, BUILD)
            _record(tenant, actor, swap, "collection.swap_start")
    except IntegrityError as error:
        if "space_swap_one_open" not in str(error):
            raise
        raise Conflict(
            "swap_open",
            _(
                "This collection is already switching to another embedding model. Finish or cancel that first."
            ),
        ) from error
    return swap


def swap_switch(*, tenant: Tenant, actor: Actor, swap: SpaceSwap) -> SpaceSwap:
    """Search the new vectors from now on; the old ones stay, so that it can be undone.

    Raises:
        Conflict: ``swap_not_ready`` while chunks lack a vector in the new space (they are being made).
    """
    actor.require("collection.write")
    return _turn(tenant, actor, swap, expected=[Status.READY], to=Status.SWITCHED)


def swap_undo(*, tenant: Tenant, actor: Actor, swap: SpaceSwap) -> SpaceSwap:
    """Search the old vectors again and remove the new ones in the background.

    Raises:
        Conflict: ``swap_not_ready`` when it was not switched, or when chunks lack a vector in the old space.
    """
    actor.require("collection.write")
    return _turn(tenant, actor, swap, expected=[Status.SWITCHED], to=Status.UNDONE)


def swap_drop(*, tenant: Tenant, actor: Actor, swap: SpaceSwap) -> SpaceSwap:
    """End a switched swap: the old vectors are removed in the background and it cannot be undone any more.

    Raises:
        Conflict: ``swap_not_ready`` when it was not switched.
    """
    actor.require("collection.write")
    with transaction.atomic():
        collection_lock(tenant, swap.collection_id)
        row = _locked(tenant, swap, [Status.SWITCHED])
        row.status = Status.DROPPED
        _enqueue(tenant, actor, row, DROP)
        _record(tenant, actor, row, "collection.swap_drop")
    return row


def swap_cancel(*, tenant: Tenant, actor: Actor, swap: SpaceSwap) -> SpaceSwap:
    """Give up a swap that was not switched; what was made of it is removed in the background.

    Raises:
        Conflict: ``swap_not_ready`` when it was switched or has ended.
    """
    actor.require("collection.write")
    with transaction.atomic():
        job = Job.objects.filter(tenant=tenant, pk=swap.job_id or 0, status__in=ACTIVE).first()
        if job is not None:
            job_cancel(tenant=tenant, actor=actor, job=job)
        collection_lock(tenant, swap.collection_id)
        row = _locked(tenant, swap, [Status.BUILDING, Status.READY, Status.FAILED, Status.CANCELLED])
        row.status = Status.CANCELLED
        _enqueue(tenant, actor, row, DROP)
        _record(tenant, actor, row, "collection.swap_cancel")
    return row


def swap_retry(*, tenant: Tenant, actor: Actor, swap: SpaceSwap) -> SpaceSwap:
    """Go on with a swap whose build has failed; vectors that were made are kept.

    Raises:
        Conflict: ``swap_not_ready`` when it has not failed; ``swap_open`` when another was begun meanwhile.
    """
    actor.require("collection.write")
    try:
        with transaction.atomic():
            collection_lock(tenant, swap.collection_id)
            row = _locked(tenant, swap, [Status.FAILED])
            row.status, row.error_message = Status.BUILDING, ""
            _enqueue(tenant, actor, row, BUILD)
            _record(tenant, actor, row, "collection.swap_retry")
    except IntegrityError as error:
        if "space_swap_one_open" not in str(error):
            raise
        raise Conflict("swap_open", _("Another switch has started in the meantime.")) from error
    return row


def _turn(tenant: Tenant, actor: Actor, swap: SpaceSwap, *, expected: Sequence[str], to: Status) -> SpaceSwap:
    missing = 0
    with transaction.atomic():
        collection = collection_lock(tenant, swap.collection_id)
        row = _locked(tenant, swap, expected)
        target: EmbeddingSpace = row.to_space if to == Status.SWITCHED else row.from_space
        missing = vectors_missing(collection, target)
        if not missing:
            collection.space = target
            collection.save(update_fields=["space", "updated_at"])
            row.status = to
            if to == Status.SWITCHED:
                row.switched_at = timezone.now()
                row.save()
            else:
                _enqueue(tenant, actor, row, DROP)
            _record(tenant, actor, row, f"collection.swap_{to}")
        elif to == Status.SWITCHED:
            row.status = Status.BUILDING
            _enqueue(tenant, actor, row, BUILD)
    if missing:
        raise Conflict(
            "swap_not_ready",
            _(
                "%(missing)s passages have no vector from the new model yet. They are being built; try again when they are ready."
            )
            % {"missing": missing},
            data={"missing": missing},
        )
    return row


def _locked(tenant: Tenant, swap: SpaceSwap, expected: Sequence[str]) -> SpaceSwap:
    row: SpaceSwap | None = (
        SpaceSwap.objects.select_for_update(of=("self",))
        .select_related("from_space", "to_space")
        .filter(tenant=tenant, pk=swap.pk)
        .first()
    )
    if row is None:
        raise Missing("swap")
    if row.status not in expected:
        raise Conflict(
            "swap_not_ready",
            _("That isn't possible now: the switch is %(status)s.") % {"status": row.get_status_display()},
        )
    return row


def _enqueue(tenant: Tenant, actor: Actor, swap: SpaceSwap, kind: str) -> None:
    swap.job = job_enqueue(
        tenant=tenant,
        actor=actor,
        kind=kind,
        payload={"swap": swap.pk},
        dedupe_key=f"swap:{swap.pk}",
        topic=f"collection:{swap.collection_id}",
    )
    swap.save()


def _record(tenant: Tenant, actor: Actor, swap: SpaceSwap, action: str) -> None:
    audit_record(
        tenant=tenant,
        actor=actor,
        action=action,
        object=swap,
        data={"collection": swap.collection_id, "to": str(swap.to_space)},
    )
    notify(tenant.pk, f"collection:{swap.collection_id}")


__all__ = ["swap_cancel", "swap_drop", "swap_retry", "swap_start", "swap_switch", "swap_undo"]
