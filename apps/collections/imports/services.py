"""Imports of many files: start, cancel, retry. The work itself is ``apps.collections.imports.job``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.collections.documents.services import document_name, document_path
from apps.collections.ingestion.sources.archives import ARCHIVE_SUFFIXES, archive_stem, is_archive
from apps.collections.ingestion.sources.base import shown
from apps.collections.models import Collection, Document, DocumentSource, Import, ImportStatus
from apps.collections.storage import originals as files
from apps.collections.storage.job_locks import cancel_quietly
from basics.errors import Conflict, Invalid, Missing
from basics.net_policy import AddressRefused, url_check
from basics.texts import gettext as _
from blobs import services as blobs
from blobs.leases import is_kept
from jobs.models import ACTIVE, Job
from jobs.notify import notify
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.outgoing import outgoing_policy
from tenancy.services import audit_record

MAX_URLS = 200
MAX_PATTERNS = 100
KEPT = timedelta(days=7)  # how long the archive of an import that did not end well waits for a retry
UPLOADED = (DocumentSource.ARCHIVE, DocumentSource.GIT, DocumentSource.CHROMA)
ON_SERVER = (DocumentSource.FOLDER, DocumentSource.GIT, DocumentSource.CHROMA)
SOURCES = (*UPLOADED, DocumentSource.FOLDER, DocumentSource.URL)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How an import is done.

    Attributes:
        path: of a folder, repository or Chroma folder on the server.
        urls: of web pages.
        into: folder of the collection that everything goes into; None takes the source's own name, "" the top.
        ref: branch, tag or commit of a repository, "" for its HEAD.
        include, exclude: patterns as in .gitignore.
        with_hidden: take files whose names begin with a dot.
        with_unsearchable: take files whatever their names say; what search can't read (programs, empty files) is kept
            as a file of the collection without a document.
        sync: delete documents that an earlier import of the same source brought and that are gone from it.
        chroma_collection: name of the Chroma collection; "" when there is one only.
        source_key: metadata field that names a chunk's source file, "" to look for the usual ones.
        vectors_model: take the vectors over as this model's; they must be of the collection's own space.
    """

    path: str = ""
    urls: tuple[str, ...] = ()
    into: str | None = None
    ref: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    with_hidden: bool = False
    with_unsearchable: bool = False
    sync: bool = False
    chroma_collection: str = ""
    source_key: str = ""
    vectors_model: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def import_start(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    source: str,
    options: ImportOptions,
    name: str = "",
    chunks: Iterable[bytes] | None = None,
) -> Import:
    """Start an import; its job brings every entry in as a document or lists why not.

    Args:
        source: one of ``SOURCES``.
        name: of the uploaded archive.
        chunks: its bytes in pieces, None when the source is on the server or in the web.

    Raises:
        Invalid: an option is missing or wrong (``data["fields"]`` says which), or the archive is too large.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("document.write")
    _check(tenant, source, options, has_file=chunks is not None, name=name)
    shown_name = document_name(name) if chunks is not None else _name(source, options)
    kept = {
        "path": options.path,
        "urls": list(dict.fromkeys(url.strip() for url in options.urls)),
        "into": _into(source, options, shown_name),
        "ref": options.ref,
        "include": list(options.include),
        "exclude": list(options.exclude),
        "with_hidden": options.with_hidden,
        "with_unsearchable": options.with_unsearchable,
        "sync": options.sync,
        "chroma_collection": options.chroma_collection,
        "source_key": options.source_key,
        "vectors_model": options.vectors_model,
        "by": {"kind": actor.kind, "api_key_id": actor.api_key_id},
        **options.extra,
    }
    received = blobs.receive(chunks, max_bytes=settings.MAX_UPLOAD_BYTES) if chunks is not None else None
    try:
        if received is not None:
            blobs.keep(tenant.pk, files.file_key(tenant.pk, collection.pk, received.sha256), received)
        with transaction.atomic():
            if not Collection.objects.filter(tenant=tenant, pk=collection.pk).exists():
                raise Missing("collection")
            row: Import = Import.objects.create(
                tenant=tenant,
                collection_id=collection.pk,
                source=source,
                name=shown_name[:255],
                options=kept,
                created_by_id=actor.user_id,
            )
            if received is not None:
                row.file = files.file_key(tenant.pk, collection.pk, received.sha256)
                blobs.name(received, row.file)
            _archives_forget(tenant)
            _enqueue(tenant, actor, row)
            audit_record(
                tenant=tenant,
                actor=actor,
                action="import.start",
                object=row,
                data={"collection": collection.pk, "source": source, "name": row.name},
            )
    finally:
        if received is not None:
            received.discard()
    return row


def import_cancel(*, tenant: Tenant, actor: Actor, row: Import) -> Import:
    """Stop an import: at once while it waits, within a second while it runs. What it brought stays.

    Raises:
        Conflict: ``import_not_active`` when there is nothing to stop.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        for job in Job.objects.filter(tenant=tenant, pk=row.job_id or 0, status__in=ACTIVE):
            cancel_quietly(tenant, actor, job)
        locked = _lock(tenant, row)
        is_ours = locked.status in (ImportStatus.QUEUED, ImportStatus.RUNNING)
        if not is_ours and locked.status != ImportStatus.CANCELLED:
            raise Conflict("import_not_active", _("This import has already ended."))
        if is_ours and not Job.objects.filter(pk=locked.job_id or 0, status__in=ACTIVE).exists():
            locked.status, locked.finished_at = ImportStatus.CANCELLED, timezone.now()
            locked.save(update_fields=["status", "finished_at"])
        audit_record(tenant=tenant, actor=actor, action="import.cancel", object=locked)
        notify(tenant.pk, f"collection:{locked.collection_id}")
    return locked


def import_retry(*, tenant: Tenant, actor: Actor, row: Import) -> Import:
    """Do an import again, as the actor; what is here already with the same bytes is left as it is.

    Raises:
        Conflict: ``import_active`` while it runs; ``import_file_gone`` for an archive that was imported whole and is not
            kept any more.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    is_there = bool(row.file) and is_kept(row.file)
    with transaction.atomic():
        locked = _lock(tenant, row)
        if locked.status in (ImportStatus.QUEUED, ImportStatus.RUNNING):
            raise Conflict("import_active", _("This import is still running."))
        is_uploaded = not locked.options.get("path") and locked.source != DocumentSource.URL
        if is_uploaded and not (locked.file and is_there):
            raise Conflict(
                "import_file_gone",
                _(
                    "The uploaded archive is deleted after a successful import, and %(days)s days after a failed one. Upload it again."
                )
                % {"days": KEPT.days},
            )
        locked.status, locked.finished_at = ImportStatus.QUEUED, None
        locked.error_code = locked.error_message = ""
        locked.created_by_id = actor.user_id
        locked.options = locked.options | {"by": {"kind": actor.kind, "api_key_id": actor.api_key_id}}
        locked.save()
        _enqueue(tenant, actor, locked)
        audit_record(tenant=tenant, actor=actor, action="import.retry", object=locked)
    return locked


def document_refetch(*, tenant: Tenant, actor: Actor, document: Document) -> Import:
    """Fetch a web page again; a new version comes only when its bytes have changed.

    Raises:
        Invalid: ``not_a_web_page``.
        Missing: the collection was deleted meanwhile.
    """
    if document.source != DocumentSource.URL or not document.source_url:
        raise Invalid("not_a_web_page", _("This document did not come from a web page."))
    return import_start(
        tenant=tenant,
        actor=actor,
        collection=document.collection,
        source=DocumentSource.URL,
        options=ImportOptions(urls=(document.source_url,), into="", extra={"keep_path": document.path}),
    )


def _archives_forget(tenant: Tenant) -> None:
    """Drop the archives of imports that failed or were cancelled so long ago that nobody will retry them."""
    ended = (ImportStatus.FAILED, ImportStatus.CANCELLED)
    old = Import.objects.filter(
        tenant=tenant, status__in=ended, finished_at__lt=timezone.now() - KEPT
    ).exclude(file="")
    for row in old.select_for_update(skip_locked=True, no_key=True):
        key, row.file = row.file, ""
        row.save(update_fields=["file"])
        blobs.drop(tenant.pk, key)


def _enqueue(tenant: Tenant, actor: Actor, row: Import) -> None:
    row.job = job_enqueue(
        tenant=tenant,
        actor=actor,
        kind="collections.import_run",
        payload={"import_id": row.pk},
        dedupe_key=f"import:{row.pk}",
        topic=f"collection:{row.collection_id}",
    )
    row.save()
    notify(tenant.pk, f"collection:{row.collection_id}")


def _lock(tenant: Tenant, row: Import) -> Import:
    locked: Import | None = (
        Import.objects.select_for_update(no_key=True).filter(tenant=tenant, pk=row.pk).first()
    )
    if locked is None:
        raise Missing("import")
    return locked


def _wrong(name: str, message: str) -> Invalid:
    return Invalid("import_invalid", message, data={"fields": {name: [message]}})


def _check(tenant: Tenant, source: str, options: ImportOptions, *, has_file: bool, name: str) -> None:
    if source not in SOURCES:
        raise _wrong("source", _("Choose one of: %(sources)s.") % {"sources": ", ".join(SOURCES)})
    if source == DocumentSource.URL:
        _check_urls(tenant, options.urls)
    elif has_file:
        if source not in UPLOADED:
            raise _wrong("file", _("This source can't be uploaded. Give a path on the server."))
        if not is_archive(name):
            raise _wrong(
                "file",
                _("This kind of archive can't be opened. Use one of these: %(archive_suffixes)s.")
                % {"archive_suffixes": ", ".join(ARCHIVE_SUFFIXES)},
            )
    elif source not in ON_SERVER:
        raise _wrong("file", _("Choose the archive to import."))
    elif not options.path.startswith("/"):
        raise _wrong("path", _("Give the absolute path of the folder on the server, or upload an archive."))
    if len(options.path) > 1000 or not options.path.isprintable():
        raise _wrong("path", _("This isn't a folder path."))
    for field_name in ("include", "exclude"):
        patterns = getattr(options, field_name)
        if len(patterns) > MAX_PATTERNS or any(len(one) > 200 or not one.isprintable() for one in patterns):
            raise _wrong(
                field_name,
                _("Use at most %(max_patterns)s patterns of at most 200 characters.")
                % {"max_patterns": MAX_PATTERNS},
            )
    for field_name in ("ref", "chroma_collection", "source_key", "vectors_model"):
        text = getattr(options, field_name)
        if len(text) > 200 or not text.isprintable():
            raise _wrong(field_name, _("Use at most 200 printable characters."))


def _check_urls(tenant: Tenant, urls: tuple[str, ...]) -> None:
    if not urls:
        raise _wrong("urls", _("Give at least one address."))
    if len(urls) > MAX_URLS:
        raise _wrong("urls", _("Enter at most %(max_urls)s addresses at once.") % {"max_urls": MAX_URLS})
    policy = outgoing_policy(tenant.pk)
    try:
        for url in urls:
            url_check(url.strip(), policy)
    except AddressRefused as error:
        raise _wrong("urls", f"{shown(url)[:200]}: {error.message}") from error


def _name(source: str, options: ImportOptions) -> str:
    if source != DocumentSource.URL:
        return shown(options.path)
    more = len(options.urls) - 1
    return shown(options.urls[0])[:200] + (f" and {more} more" if more else "")


def _into(source: str, options: ImportOptions, name: str) -> str:
    """Return the folder that documents go into: by default the source's own, so that two sources never overwrite."""
    if options.into is not None:
        return document_path(options.into) if options.into.strip("/ ") else ""
    if source == DocumentSource.URL:
        return ""  # each page has its host as folder
    bare = options.path.rstrip("/").rpartition("/")[2] if options.path else archive_stem(name)
    return document_path(bare.removesuffix(".git") or "import")
