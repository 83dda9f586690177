"""What is kept about searching a collection: questions with the passages that should answer them, and named moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.collections.models import Chunk, Collection, CollectionSnapshot, SearchCase
from apps.collections.search import MAX_K, MAX_QUERY_CHARS, parse_filters
from apps.collections.storage.job_locks import collection_lock
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_EXPECTED = 100
_MAX_NOTE = 2000


def search_case_save(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    query: str,
    chunks: Sequence[int] = (),
    filters: Mapping[str, Any] | None = None,
    k: int = 10,
    note: str = "",
) -> SearchCase:
    """Save a question with the passages that should answer it, as an evaluation case.

    The passages are kept as places in their documents, so that the case outlives another chunking.

    Args:
        chunks: ids of chunks of the collection that the actor may see; at most 100.
        filters: as ``parse_filters`` takes them.
        k: among how many hits they should be, 1 to 100.

    Raises:
        Invalid: ``case_invalid``, ``filter_unknown`` or ``filter_invalid``.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("collection.write")
    query = " ".join(query.replace("\x00", " ").split())
    parse_filters(filters)
    found = list(
        Chunk.objects.visible_to(actor)
        .filter(collection=collection, pk__in=list(chunks)[: MAX_EXPECTED + 1])
        .select_related("document")
        .order_by("document_id", "index")
    )
    fields: dict[str, list[str]] = {}
    if not 0 < len(query) <= MAX_QUERY_CHARS:
        fields["query"] = [
            _("Enter a question of at most %(max_query_chars)s characters.")
            % {"max_query_chars": MAX_QUERY_CHARS}
        ]
    if not 1 <= k <= MAX_K:
        fields["k"] = [_("Choose from 1 to %(max_k)s.") % {"max_k": MAX_K}]
    if len(set(chunks)) > MAX_EXPECTED or len(found) != len(set(chunks)):
        fields["chunks"] = [
            _("Choose at most %(max_expected)s passages, all from this collection.")
            % {"max_expected": MAX_EXPECTED}
        ]
    if len(note) > _MAX_NOTE or "\x00" in note:
        fields["note"] = [_("At most %(max_note)s characters.") % {"max_note": _MAX_NOTE}]
    if fields:
        raise Invalid("case_invalid", _("Some values are not right; see details."), data={"fields": fields})
    with transaction.atomic():
        row = collection_lock(tenant, collection.pk)
        case: SearchCase = SearchCase.objects.create(
            tenant=tenant,
            collection=row,
            query=query,
            filters=dict(filters or {}),
            k=k,
            expected=[
                {"path": c.document.path, "char_start": c.char_start, "char_end": c.char_end} for c in found
            ],
            note=note.strip(),
            created_by_id=actor.user_id,
        )
        audit_record(tenant=tenant, actor=actor, action="search_case.save", object=case)
    return case


def search_case_delete(*, tenant: Tenant, actor: Actor, case: SearchCase) -> None:
    """Delete a saved question; deleting one that is gone does nothing."""
    actor.require("collection.write")
    with transaction.atomic():
        audit_record(tenant=tenant, actor=actor, action="search_case.delete", object=case)
        SearchCase.objects.filter(tenant=tenant, pk=case.pk).delete()


def snapshot_create(
    *, tenant: Tenant, actor: Actor, collection: Collection, name: str, at: datetime | None = None
) -> CollectionSnapshot:
    """Give a moment of a collection a name, to search it as it was then.

    Args:
        at: the moment; now if None. As far back as versions are kept.

    Raises:
        Invalid: ``snapshot_invalid``.
        Conflict: ``snapshot_name_taken``.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("collection.write")
    name = " ".join(name.split())
    fields: dict[str, list[str]] = {}
    if not 0 < len(name) <= 120 or not name.isprintable():
        fields["name"] = [_("Give it a name of 1 to 120 characters.")]
    if at is not None and at > timezone.now():
        fields["at"] = [_("This moment is in the future.")]
    if fields:
        raise Invalid(
            "snapshot_invalid", _("Some values are not right; see details."), data={"fields": fields}
        )
    try:
        with transaction.atomic():
            row = collection_lock(tenant, collection.pk)
            snapshot: CollectionSnapshot = CollectionSnapshot.objects.create(
                tenant=tenant, collection=row, name=name, at=at or timezone.now(), created_by_id=actor.user_id
            )
            audit_record(tenant=tenant, actor=actor, action="snapshot.create", object=snapshot)
    except IntegrityError as error:
        if "snapshot_name_once" not in str(error):
            raise
        raise Conflict(
            "snapshot_name_taken",
            _("A named moment “%(name)s” already exists. Choose another name.") % {"name": name},
            data={"fields": {"name": [_("This name is taken.")]}},
        ) from error
    return snapshot


def snapshot_delete(*, tenant: Tenant, actor: Actor, snapshot: CollectionSnapshot) -> None:
    """Forget the name of a moment; documents and their versions stay."""
    actor.require("collection.write")
    with transaction.atomic():
        audit_record(tenant=tenant, actor=actor, action="snapshot.delete", object=snapshot)
        CollectionSnapshot.objects.filter(tenant=tenant, pk=snapshot.pk).delete()
