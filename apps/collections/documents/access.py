"""Who may see a document: everybody in the workspace, or the roles and members listed."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from apps.collections.models import Document, DocumentAccess
from apps.collections.storage.job_locks import document_lock
from apps.collections.storage.lost import document_lost_tell
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from jobs.notify import notify
from tenancy.actors import Actor
from tenancy.models import Membership, Role, Tenant
from tenancy.services import audit_record


def document_access_set(
    *,
    tenant: Tenant,
    actor: Actor,
    document: Document,
    is_restricted: bool,
    roles: Sequence[str] = (),
    users: Sequence[int] = (),
) -> Document:
    """Limit a document, with all its versions, to roles and members, or open it to the workspace again.

    Search, counts, titles, citations and tools obey it from the commit on. Whoever limits a document must still see it
    afterwards, so that nobody locks it away from everyone.

    Args:
        roles: of ``Role``; each named alone (owners are not included by themselves).
        users: ids of members.

    Raises:
        Invalid: ``access_invalid`` for an unknown role, a person who is no member, or a list that shuts the actor out.
        Missing: it was deleted, or the actor may not see it.
        Conflict: ``document_private``, it lies in a private collection.
    """
    actor.require("collection.delete")
    roles, users = list(dict.fromkeys(roles)), list(dict.fromkeys(users))
    if not Document.objects.visible_to(actor).filter(pk=document.pk).exists():
        raise Missing("document")
    _check(tenant, actor, is_restricted, roles, users)
    with transaction.atomic():
        row = document_lock(tenant, document)
        if row.collection.owner_id is not None:
            raise Conflict(
                "document_private",
                _(
                    "This file was attached to a conversation, so only its owner can see it. To share it, "
                    "upload it to a collection."
                ),
            )
        versions = list(
            Document.objects.filter(tenant=tenant, collection_id=row.collection_id, path=row.path).order_by(
                "pk"
            )
        )
        Document.objects.filter(pk__in=[v.pk for v in versions]).update(is_restricted=is_restricted)
        DocumentAccess.objects.filter(document__in=versions).delete()
        if is_restricted:
            DocumentAccess.objects.bulk_create(
                DocumentAccess(tenant=tenant, document=version, role=role, user_id=user)
                for version in versions
                for role, user in [*((r, None) for r in roles), *(("", u) for u in users)]
            )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="document.access",
            object=row,
            data={"is_restricted": is_restricted, "roles": roles, "users": users},
        )
        for version in versions if is_restricted else ():
            document_lost_tell(tenant=tenant, actor=actor, document=version.pk)
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
        row.refresh_from_db()
    return row


def _check(tenant: Tenant, actor: Actor, is_restricted: bool, roles: list[str], users: list[int]) -> None:
    fields: dict[str, list[str]] = {}
    if unknown := set(roles) - set(Role.values):
        fields["roles"] = [_("There is no role %(roles)s.") % {"roles": ", ".join(sorted(unknown))}]
    members = set(
        Membership.objects.filter(tenant=tenant, user_id__in=users).values_list("user_id", flat=True)
    )
    if strangers := set(users) - members:
        fields["users"] = [
            _("These aren't members: %(members)s.") % {"members": ", ".join(map(str, sorted(strangers)))}
        ]
    sees = actor.kind == "system" or actor.role in roles or actor.user_id in users
    if is_restricted and not sees and not fields:
        fields["roles"] = [_("Include yourself or your role, so that you can still see it.")]
    if fields:
        raise Invalid("access_invalid", _("Some values are not right; see details."), data={"fields": fields})
