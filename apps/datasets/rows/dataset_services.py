"""Create, change and delete datasets."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from apps.datasets.models import JOB_ACTIVE, Dataset, GenerationJob
from apps.datasets.rows.files import dataset_file_key
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from batches.delivery import Delivery
from batches.services import batches_end
from blobs import services as blobs
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_NAME, MAX_SLUG = 120, 60


def slug_of(name: str) -> str:
    """Return what a dataset of this name is called in the API."""
    return (slugify(name) or "dataset")[:MAX_SLUG].strip("-")


def dataset_name_free(*, actor: Actor, wanted: str) -> str:
    """Return a name that no dataset has: the wanted one, or that with a number; the wanted one where all are taken."""
    actor.require("dataset.read")
    taken = set(Dataset.objects.visible_to(actor).values_list("slug", flat=True))
    names = [wanted, *(f"{wanted[:50].rstrip()} {n}" for n in range(2, 100))]
    return next((name for name in names if slug_of(name) not in taken), wanted)


def dataset_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    slug: str = "",
    description: str = "",
    needs_two_people: bool = False,
) -> Dataset:
    """Create an empty dataset.

    Args:
        slug: its name in the API; made of the name when empty.

    Raises:
        Invalid: no name, or the slug is taken.
    """
    actor.require("dataset.write")
    name = _name_checked(name)
    slug = slug_of(slug or name)
    try:
        with transaction.atomic():
            dataset: Dataset = Dataset.objects.create(
                tenant=tenant,
                slug=slug,
                name=name,
                description=description.strip(),
                needs_two_people=needs_two_people,
                created_by_id=actor.user_id,
            )
            audit_record(tenant=tenant, actor=actor, action="dataset.create", object=dataset)
    except IntegrityError as error:
        raise _refused(
            "slug",
            "slug_taken",
            _("A dataset named “%(slug)s” already exists. Choose another name.") % {"slug": slug},
        ) from error
    return dataset


def dataset_update(*, tenant: Tenant, actor: Actor, dataset: Dataset, changes: dict[str, Any]) -> Dataset:
    """Change name, description or the two-person rule. Raises Invalid."""
    actor.require("dataset.write")
    unknown = set(changes) - {"name", "description", "needs_two_people"}
    if unknown:
        raise Invalid("unknown_field", f"A dataset has no {', '.join(sorted(unknown))} to change.")
    if "name" in changes:
        changes = {**changes, "name": _name_checked(changes["name"])}
    with transaction.atomic():
        row: Dataset = Dataset.objects.visible_to(actor).select_for_update().get(pk=dataset.pk)
        for field, value in changes.items():
            setattr(row, field, value)
        row.save(update_fields=[*changes, "updated_at"])
        audit_record(tenant=tenant, actor=actor, action="dataset.update", object=row, data=changes)
    return row


def dataset_delete(*, tenant: Tenant, actor: Actor, dataset: Dataset, action: str = "dataset.delete") -> None:
    """Delete a dataset with its rows, versions and jobs.

    Args:
        action: what the audit event is called.

    Raises:
        Conflict: a generation job of it is under way.
    """
    actor.require("dataset.delete")
    with transaction.atomic():
        row = Dataset.objects.visible_to(actor).select_for_update().get(pk=dataset.pk)
        if GenerationJob.objects.filter(dataset=row, state__in=JOB_ACTIVE).exists():
            raise Conflict("dataset_busy", _("Rows are being generated; stop the job first."))
        audit_record(tenant=tenant, actor=actor, action=action, object=row)
        batched = GenerationJob.objects.filter(dataset=row, options__delivery=Delivery.BATCH)
        for job in batched:
            batches_end(tenant=tenant, actor=actor, owner=job.topic, ends=True)
        blobs.drop(tenant.pk, dataset_file_key(tenant.pk, row.pk, ""))
        row.delete()


def _name_checked(name: str) -> str:
    name = " ".join(str(name).split())
    if not name:
        raise _refused("name", "name_empty", _("Enter a name."))
    if len(name) > MAX_NAME:
        raise _refused(
            "name", "name_long", _("A name has at most %(max_name)s characters.") % {"max_name": MAX_NAME}
        )
    return name


def _refused(field: str, code: str, message: str) -> Invalid:
    return Invalid(code, message, data={"field": field, "fields": {field: [message]}})
