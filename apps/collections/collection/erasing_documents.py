"""Erase a document: all its versions, with all that collections made of it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from apps.collections.documents.services import document_delete
from apps.collections.models import (
    Chunk,
    ChunkLink,
    ChunkRevision,
    ChunkTerms,
    CodeEdge,
    Document,
    DocumentAccess,
    Embedding,
    FileBatch,
    FileBlob,
    FileRevision,
    Import,
    Page,
    Repository,
    RepositoryPack,
    SearchCase,
    SearchIndex,
)
from apps.collections.repositories.services import pack_remove
from apps.collections.storage.originals import page_cache
from apps.collections.tree.purge import revisions_remove
from basics.errors import Missing
from basics.texts import gettext_noop
from blobs import services as blobs
from erasure.kinds import ContentKind, Erased
from erasure.models import Erasure
from erasure.reports import KEPT, REMOVED, REPLACED, Report
from jobs.models import Job
from tenancy.actors import system_actor
from tenancy.models import Tenant, TenantModel

_SAME_WHY = gettext_noop("the same bytes under another path, which is another document; erase that as well")
_HASH_WHY = gettext_noop(
    "numbers of passages, and no words, in indexes of large collections until they are built again"
)


def versions_of(row: TenantModel) -> QuerySet[Document]:
    """Return all versions of the file that a document is one of."""
    if not isinstance(row, Document):
        raise TypeError("this erases documents")
    found: QuerySet[Document] = Document.objects.filter(
        tenant_id=row.tenant_id, collection_id=row.collection_id, path=row.path
    )
    return found.order_by("pk")


def documents_erased(tenant: Tenant, rows: QuerySet[Document]) -> Erased:
    """Return what goes with documents, given all versions of each."""
    documents = {row.pk: row for row in rows}
    chunks = Chunk.objects.filter(tenant=tenant, document_id__in=documents)
    revisions = FileRevision.objects.filter(
        tenant=tenant,
        collection_id__in={row.collection_id for row in documents.values()},
        path__in={row.path for row in documents.values()},
    )
    names = {text for row in documents.values() for text in (row.name, row.path, row.title)}
    return Erased(
        tenant=tenant,
        documents=frozenset(documents),
        passages=dict(chunks.values_list("pk", "text")),
        names=frozenset(filter(None, names)),
        events={
            Document._meta.label_lower: frozenset(documents),
            Chunk._meta.label_lower: frozenset(chunks.values_list("pk", flat=True)),
            Import._meta.label_lower: frozenset(
                _imports_alone(tenant, documents).values_list("pk", flat=True)
            ),
        },
        naming={FileBatch._meta.label_lower: frozenset(revisions.values_list("batch_id", flat=True))},
    )


def document_erased(row: TenantModel) -> Erased:
    """Return what goes with a document."""
    return documents_erased(row.tenant, versions_of(row))


def document_erase(row: TenantModel, erased: Erased, report: Report) -> None:
    """Delete all versions of a document, and report what went; in a transaction.

    Raises:
        Missing: it was deleted meanwhile.
    """
    rows = list(versions_of(row).select_related("collection"))
    if not rows:
        raise Missing("document")
    first, tenant = rows[0], row.tenant
    documents_report(tenant, erased, report)
    report.add("collections.SearchCase", REMOVED, _cases_remove(first))
    _imports_forget(erased, report)
    _repositories_remove(first, report)
    # What is written about the deletion itself shall not name it again.
    name = f"{Erasure.Kind.DOCUMENT.value}-{row.pk}"
    versions_of(row).update(name=name, title="")
    actor = system_actor(tenant.pk)
    current = [one for one in rows if one.live_to is None]
    for one in current[:1] or rows:
        one.name, one.title = name, ""
        document_delete(tenant=tenant, actor=actor, document=one)
    revisions_remove(tenant=tenant, collection=first.collection, path=first.path)


def documents_report(tenant: Tenant, erased: Erased, report: Report) -> None:
    """Count what deleting documents takes along."""
    documents = Document.objects.filter(tenant=tenant, pk__in=erased.documents)
    chunks = list(erased.passages)
    mine = {"tenant": tenant, "document_id__in": erased.documents}
    below: tuple[type[TenantModel], ...] = (Page, Chunk, ChunkRevision, ChunkLink, CodeEdge, DocumentAccess)
    for model in below:
        report.add(model._meta.label, REMOVED, model._base_manager.filter(**mine).count())
    vectors = Embedding.objects.filter(tenant=tenant, chunk_id__in=chunks)
    report.add(Embedding._meta.label, REMOVED, vectors.count())
    terms = ChunkTerms.objects.filter(tenant=tenant, chunk_id__in=chunks)
    report.add(ChunkTerms._meta.label, REMOVED, terms.count())
    report.add("collections.Document", REMOVED, documents.count())
    files = dict(documents.values_list("file", "sha256"))
    others = Document.objects.filter(tenant=tenant).exclude(pk__in=erased.documents)
    shared = set(others.filter(file__in=files).values_list("file", flat=True))
    same = others.filter(sha256__in=set(files.values()))
    kept = set(same.values_list("sha256", flat=True))
    report.add("files", REMOVED, sum(1 for key in files if key and key not in shared))
    gone = {sha for sha in files.values() if sha not in kept and page_cache(tenant.pk, sha).is_dir()}
    report.add("page images and recognised text of this machine", REMOVED, len(gone))
    report.add("documents with the same bytes", KEPT, same.count(), _SAME_WHY)
    pks = set(documents.values_list("collection_id", flat=True))
    indexes = SearchIndex.objects.filter(tenant=tenant, collection_id__in=pks)
    report.add("collections.SearchIndex", KEPT, indexes.count(), _HASH_WHY)
    jobs = Job.objects.filter(tenant=tenant, pk__in=documents.values("job_id"))
    report.add("jobs.Job", REPLACED, jobs.update(progress_message="", error_message=""))
    revisions = FileRevision.objects.filter(
        tenant=tenant, collection_id__in=pks, path__in=documents.values("path")
    )
    report.add("collections.FileRevision", REMOVED, revisions.count())
    blobs_named = {pk for pair in revisions.values_list("before_id", "after_id") for pk in pair if pk}
    report.add(
        "collections.FileBlob", REMOVED, FileBlob.objects.filter(tenant=tenant, pk__in=blobs_named).count()
    )


def _cases_remove(first: Document) -> int:
    """Delete saved questions of the test bench whose right passages are in the document."""
    cases = SearchCase.objects.filter(
        tenant_id=first.tenant_id,
        collection_id=first.collection_id,
        expected__contains=[{"path": first.path}],
    )
    return int(cases.delete()[0])


def _imports(tenant: Tenant, documents: Iterable[int]) -> QuerySet[Import]:
    found: QuerySet[Import] = Import.objects.filter(tenant=tenant, documents__in=documents).distinct()
    return found


def _imports_alone(tenant: Tenant, documents: Iterable[int]) -> QuerySet[Import]:
    """Return the imports that brought nothing else that is still there: their names tell of the documents alone."""
    others = Document.objects.filter(tenant=tenant, batch__isnull=False).exclude(pk__in=list(documents))
    return _imports(tenant, list(documents)).exclude(pk__in=others.values("batch_id"))


def _imports_forget(erased: Erased, report: Report) -> None:
    """Delete imports that brought these documents alone; of others the archive, and what they say of the documents."""
    tenant = erased.tenant
    alone = set(_imports_alone(tenant, erased.documents).values_list("pk", flat=True))
    archives = 0
    for row in _imports(tenant, list(erased.documents)):
        archives += bool(row.file)
        key, row.file = row.file, ""
        row.problems = [one for one in row.problems if not any(name in str(one) for name in erased.names)]
        row.save(update_fields=["file", "problems"])
        blobs.drop(tenant.pk, key)
    report.add("archives of imports", REMOVED, archives)
    report.add("collections.Import", REMOVED, Import.objects.filter(tenant=tenant, pk__in=alone).delete()[0])


def _repositories_remove(first: Document, report: Report) -> None:
    """Delete the history of the repository that the file is in: its packs hold every version of the file."""
    rows = Repository.objects.filter(tenant_id=first.tenant_id, collection_id=first.collection_id)
    inside = [row.pk for row in rows if not row.folder or first.path.startswith(f"{row.folder.rstrip('/')}/")]
    packs = RepositoryPack.objects.filter(tenant_id=first.tenant_id, repository_id__in=inside)
    for pack in packs:
        report.add("collections.RepositoryPack", REMOVED, 1)
        pack_remove(pack)
    report.add("collections.Repository", REMOVED, rows.filter(pk__in=inside).delete()[0])


DOCUMENTS = ContentKind(
    kind=Erasure.Kind.DOCUMENT,
    model=Document,
    action="document.write",
    rows=lambda row: list(versions_of(row)),
    erased=document_erased,
    remove=document_erase,
)
