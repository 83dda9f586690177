"""Writes of collections."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from apps.collections.documents.versions import collection_reindex
from apps.collections.index.embedding import space_default
from apps.collections.index.large import indexes_drop
from apps.collections.ingestion.lexical import LANGUAGES
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    Embedding,
    EmbeddingSpace,
    LinkOrigin,
    Page,
    RerankerChoice,
    TermFrequency,
)
from apps.collections.search.rerank.choice import reranker_problems
from apps.collections.storage import originals as files
from apps.collections.storage.job_locks import active_jobs, cancel_quietly, collection_lock
from apps.collections.tree.purge import revisions_remove
from apps.collections.tree.store import collection_tree_remove
from basics.errors import Conflict, DomainError, Invalid
from basics.texts import gettext as _
from blobs import services as blobs
from jobs.notify import notify
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

CHUNK_SIZES = (200, 4000)
MAX_VERSIONS = 1000
_FIELDS = (
    "name",
    "description",
    "chunk_size",
    "chunk_overlap",
    "language",
    "links_by",
    "links_model",
    "reranker",
    "reranker_model",
    "keep_versions",
)


_RERANKING = ("reranker", "reranker_model")


def collection_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    description: str = "",
    chunk_size: int = 1200,
    chunk_overlap: int = 200,
    space: EmbeddingSpace | None = None,
    **settings: Any,
) -> Collection:
    """Create an empty collection.

    Args:
        chunk_size: characters per chunk at most, 200 to 4000.
        chunk_overlap: characters two neighbours share; less than half of the size.
        space: vectors of its chunks; the default embedder's if None.
        settings: ``language``, ``links_by``, ``links_model``, ``reranker``, ``reranker_model``, ``keep_versions``, as
            ``collection_update`` takes them.

    Raises:
        Invalid: ``collection_invalid`` with the fields in ``data``.
        Conflict: ``collection_name_taken``.
    """
    actor.require("collection.write")
    _reranker_check(tenant, **{name: settings[name] for name in _RERANKING if name in settings})
    values = _collection_values(
        name=name, description=description, chunk_size=chunk_size, chunk_overlap=chunk_overlap, **settings
    )
    try:
        with transaction.atomic():
            collection: Collection = Collection.objects.create(
                tenant=tenant,
                space=space or space_default(tenant=tenant),
                created_by_id=actor.user_id,
                **values,
            )
            audit_record(tenant=tenant, actor=actor, action="collection.create", object=collection)
    except IntegrityError as error:
        raise _name_taken(error, name) from error
    return collection


def collection_update(*, tenant: Tenant, actor: Actor, collection: Collection, **changes: Any) -> Collection:
    """Change name, description, chunk sizes, language, who writes key points and links, the reranker, or how many
    versions are kept.

    Sizes and the makers of links count for documents read from now on. Words of another language have other stems, so
    a change of language reads every document again; those that wait are found by meaning and by exact codes meanwhile.

    Raises:
        Invalid: ``collection_invalid``.
        Conflict: ``collection_name_taken``.
        Missing: it was deleted meanwhile.
    """
    actor.require("collection.write")
    known = set(_FIELDS)
    if unknown := set(changes) - known:
        raise Invalid(
            "collection_invalid",
            _("These cannot be changed: %(unknown)s.") % {"unknown": ", ".join(sorted(unknown))},
            data={"fields": {name: [_("This cannot be changed.")] for name in unknown}},
        )
    reranking = {name: getattr(collection, name) for name in _RERANKING}
    wanted = reranking | {name: changes[name] for name in _RERANKING if name in changes}
    if wanted != reranking:  # what was chosen once may stay, also where it is gone meanwhile
        _reranker_check(tenant, **wanted)
    try:
        with transaction.atomic():
            row = collection_lock(tenant, collection.pk)
            values = _collection_values(**{name: changes.get(name, getattr(row, name)) for name in known})
            changed = {k: v for k, v in values.items() if v != getattr(row, k)}
            for name, value in changed.items():
                setattr(row, name, value)
            if changed:
                row.save(update_fields=[*changed, "updated_at"])
                audit_record(tenant=tenant, actor=actor, action="collection.update", object=row, data=changed)
                notify(tenant.pk, f"collection:{row.pk}")
    except IntegrityError as error:
        raise _name_taken(error, str(changes.get("name", ""))) from error
    if "language" in changed:
        collection_reindex(tenant=tenant, actor=actor, collection=row)
    return row


def collection_delete(*, tenant: Tenant, actor: Actor, collection: Collection) -> None:
    """Delete a collection with all documents, pages, chunks, vectors and files.

    Raises:
        Missing: it was deleted meanwhile.
    """
    actor.require("collection.delete")
    with transaction.atomic():
        for job in active_jobs(tenant, Document.objects.filter(collection=collection)):
            cancel_quietly(tenant, actor, job)
        row = collection_lock(tenant, collection.pk, for_delete=True)
        documents = Document.objects.filter(tenant=tenant, collection=row)
        count = documents.count()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="collection.delete",
            object=row,
            data={"documents": count, "chunks": row.chunk_total},
        )
        notify(tenant.pk, f"collection:{row.pk}")
        # Set by set: the database's own cascade would look up the rows of each chunk one by one.
        for model in (Embedding, ChunkTerms, TermFrequency):
            rows = model.objects.filter(tenant=tenant, collection=row)
            rows._raw_delete(rows.db)
        Chunk.objects.filter(tenant=tenant, collection=row).delete()
        Page.objects.filter(tenant=tenant, document__in=documents).delete()
        documents.delete()
        revisions_remove(tenant=tenant, collection=row)
        pk, tenant_id = row.pk, tenant.pk
        blobs.drop(tenant_id, files.files_prefix(tenant_id, pk))
        row.delete()
        transaction.on_commit(lambda: collection_tree_remove(tenant_id, pk))
        transaction.on_commit(lambda: indexes_drop(collection_id=pk))


def _collection_values(
    *,
    name: str,
    description: str,
    chunk_size: int,
    chunk_overlap: int,
    language: str = "english",
    links_by: str = LinkOrigin.RULE,
    links_model: str = "",
    reranker: str = RerankerChoice.DEFAULT,
    reranker_model: str = "",
    keep_versions: int = 10,
) -> dict[str, Any]:
    fields: dict[str, list[str]] = {}
    name = " ".join(str(name).split())
    if not name or len(name) > 120:
        fields["name"] = [_("Enter a name of 1 to 120 characters.")]
    low, high = CHUNK_SIZES
    if not low <= chunk_size <= high:
        fields["chunk_size"] = [_("Enter %(low)s to %(high)s characters.") % {"low": low, "high": high}]
    if not 0 <= chunk_overlap < chunk_size / 2:
        fields["chunk_overlap"] = [_("It must be 0 or more and less than half of the passage size.")]
    if language not in LANGUAGES:
        fields["language"] = [_("Choose one of %(languages)s.") % {"languages": ", ".join(LANGUAGES)}]
    if links_by not in LinkOrigin.values:
        fields["links_by"] = [_("Choose one of %(values)s.") % {"values": ", ".join(LinkOrigin.values)}]
    links_model = str(links_model).strip()
    if links_by == LinkOrigin.MODEL and not links_model:
        fields["links_model"] = [_("Enter the model that writes key points and links.")]
    if len(links_model) > 120 or not links_model.isprintable():
        fields["links_model"] = [_("A model's name has at most 120 characters.")]
    if not 0 <= keep_versions <= MAX_VERSIONS:
        fields["keep_versions"] = [_("Choose from 0 to %(max_versions)s.") % {"max_versions": MAX_VERSIONS}]
    if "\x00" in name or "\x00" in description:
        fields["name"] = [_("Text can't contain NUL characters.")]
    if fields:
        raise Invalid(
            "collection_invalid", _("Some values are invalid; see details."), data={"fields": fields}
        )
    return {
        "name": name,
        "description": str(description).strip(),
        "chunk_size": chunk_size,
        "chunk_overlap": chunk_overlap,
        "language": language,
        "links_by": links_by,
        "links_model": links_model,
        "reranker": reranker,
        "reranker_model": str(reranker_model).strip(),
        "keep_versions": keep_versions,
    }


def _reranker_check(tenant: Tenant, reranker: str = RerankerChoice.DEFAULT, reranker_model: str = "") -> None:
    if problems := reranker_problems(tenant, reranker, reranker_model.strip()):
        raise Invalid(
            "collection_invalid", _("This reranker cannot be used; see details."), data={"fields": problems}
        )


def _name_taken(error: IntegrityError, name: str) -> DomainError:
    if "collection_name_once" not in str(error):
        raise error
    return Conflict(
        "collection_name_taken",
        _("A collection named “%(name)s” already exists. Choose another name.") % {"name": name.strip()},
        data={"fields": {"name": [_("This name is already taken.")]}},
    )
