"""Writes of private collections: files of one person, which nobody else ever sees, searches or counts."""

from __future__ import annotations

from collections.abc import Iterable

from apps.collections.collection.services import collection_delete
from apps.collections.documents.services import Uploaded, document_delete, document_put
from apps.collections.index.embedding import space_default
from apps.collections.models import Collection, Document, DocumentAccess
from basics.errors import Denied
from basics.texts import gettext as _
from blobs import services as blobs
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.selectors import limited_collections
from tenancy.services import key_collection_add


def private_document_put(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    name: str,
    received: blobs.ReceivedFile,
    is_read: bool = True,
) -> Uploaded:
    """Keep received bytes in a private collection of the actor's person, in the current transaction.

    Two files of one name stay two documents: neither becomes a version of the other.

    Args:
        collection: private, and the person's; see ``private_collection_create``.
        name: checked by ``document_name`` before.
        received: after ``original_keep``.
        is_read: as for ``document_put``.

    Raises:
        Denied: the actor stands for no person, or the collection is another's.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("collection.read")
    if actor.user_id is None or collection.owner_id != actor.user_id:
        raise _person_needed()
    put = document_put(
        tenant=tenant,
        actor=actor,
        collection=collection,
        path=f"{received.sha256[:16]}/{name}",
        received=received,
        is_read=is_read,
    )
    if put.created:
        Document.objects.filter(pk=put.document.pk).update(is_restricted=True)
        put.document.is_restricted = True
        DocumentAccess.objects.create(tenant=tenant, document=put.document, user_id=actor.user_id)
    return put


def private_collection_create(*, tenant: Tenant, actor: Actor, name: str) -> Collection:
    """Make a private collection of the actor's person, in the current transaction; several may share a name.

    One that a limited key makes joins the collections that it sees.

    Raises:
        Denied: the actor stands for no person.
    """
    actor.require("collection.read")
    if actor.user_id is None:
        raise _person_needed()
    collection: Collection = Collection.objects.create(
        tenant=tenant,
        owner_id=actor.user_id,
        created_by_id=actor.user_id,
        name=name,
        space=space_default(tenant=tenant),
        chunk_overlap=0,  # its passages are also given one after the other, as the whole text
    )
    if actor.collections is not None:
        key_collection_add(tenant=tenant, actor=actor, collection=collection.pk)
    return collection


def private_collection_forget(*, tenant: Tenant, actor: Actor, collection: Collection) -> None:
    """Delete a private collection that was made for a file that did not come; one that holds a document stays."""
    if not Document.objects.filter(tenant=tenant, collection=collection).exists():
        collection_delete(tenant=tenant, actor=system_actor(tenant.pk, actor.user_id), collection=collection)


def _person_needed() -> Denied:
    return Denied("person_needed", _("A private file belongs to a person. Use a key that acts for a person."))


def private_documents_remove(*, tenant: Tenant, actor: Actor, documents: Iterable[int]) -> None:
    """Delete documents of private collections, and those collections that hold nothing else; others are passed over.

    That of a limited key stays: it may be giving the next file right now.

    Whoever removes what the files belong to needs no right over documents for it.
    """
    system = system_actor(tenant.pk, actor.user_id)
    wanted = set(documents)
    rows = Document.objects.filter(tenant=tenant, pk__in=wanted, collection__owner__isnull=False)
    for collection in Collection.objects.filter(pk__in=rows.values("collection_id")).order_by("pk"):
        held = Document.objects.filter(tenant=tenant, collection=collection)
        of_key = collection.pk in limited_collections(tenant.pk, collection.owner_id)
        if not of_key and not held.exclude(pk__in=wanted).exists():
            collection_delete(tenant=tenant, actor=system, collection=collection)
            continue
        for document in held.filter(pk__in=wanted).order_by("pk"):
            document_delete(tenant=tenant, actor=system, document=document)
