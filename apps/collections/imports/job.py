"""The job of an import: every entry of the source becomes a document or a listed problem.

It is safe to run again from the start, after a crash as on purpose: what is here with the same bytes is found by its hash,
and counted as what it was when this import brought it. Each document is committed by itself, with the job held.
"""

from __future__ import annotations

import errno
import time
from contextlib import ExitStack
from typing import Any, Protocol

from django.db import transaction
from django.utils import timezone

from apps.collections.documents import services as documents_services
from apps.collections.files.imports import BATCH_BYTES, BATCH_FILES, files_import
from apps.collections.imports.limits import import_limits
from apps.collections.imports.sources import source_items
from apps.collections.imports.tally import Tally
from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.sources.base import (
    Entry,
    EntryFailure,
    Problem,
    Reason,
    SourceFailure,
    shown,
)
from apps.collections.ingestion.sources.prepared import PREPARED
from apps.collections.ingestion.sources.web import Unchanged
from apps.collections.ingestion.types import FailureCode, ReadFailure
from apps.collections.models import Document, DocumentSource, DocumentStatus, Import, ImportStatus, Repository
from apps.collections.repositories import services as repositories_services
from basics.errors import Conflict, Denied, DomainError, Invalid, Missing, TryAgain
from basics.texts import gettext as _
from blobs import services as blobs
from jobs.context import JobCancelled
from jobs.notify import notify
from notices.services import notice_put
from tenancy.actors import Actor, system_actor
from tenancy.models import ApiKey, Membership
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.selectors import user_actor

REPORT_EVERY_S = 0.5
_SKIPPED_CODES = {FailureCode.UNSUPPORTED_TYPE: Reason.UNSUPPORTED, FailureCode.EMPTY_FILE: Reason.EMPTY}


class ImportContext(Protocol):
    """What an import needs of ``jobs.context.JobContext``."""

    job_id: int

    def check(self) -> None:
        """Raise when the job must stop."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""

    def complete(self) -> None:
        """End the job in the current transaction."""


def import_run(ctx: ImportContext, *, import_id: int) -> None:
    """Bring in what an import names, and end it.

    Raises:
        DomainError: the source cannot be read (any further); what came before is kept and counted.
        JobCancelled: it was deleted, or another job took it over.
    """
    with transaction.atomic():
        ctx.hold()
        row: Import | None = (
            Import.objects.select_for_update(no_key=True)
            .select_related("tenant", "collection__space")
            .filter(pk=import_id, job_id=ctx.job_id)
            .first()
        )
        if row is None:
            raise JobCancelled(f"import {import_id} is gone or has another job")
        row.status = ImportStatus.RUNNING
        row.save(update_fields=["status"])
    actor = _actor_now(row)
    actor.require("document.write")
    work = _Work(ctx, row, actor)
    with ExitStack() as stack:
        try:
            for item in source_items(row, stack, on_tick=ctx.check, on_fact=work.fact):
                ctx.check()
                work.take(item)
            work.files_keep()
        except OSError as error:
            raise _no_space(error) from error
        finally:
            work.report(is_last=True)
    if row.options.get("sync"):
        work.remove_gone()
    work.settle()
    work.complete()


def _actor_now(row: Import) -> Actor:
    """Return who the import acts for, with the rights of this moment.

    Raises:
        Denied: the person has left, or the key is no longer valid.
    """
    facts = row.options.get("by", {})
    if facts.get("kind") == "system":
        return system_actor(row.tenant_id, row.created_by_id)
    membership = (
        Membership.objects.select_related("user")
        .filter(tenant_id=row.tenant_id, user_id=row.created_by_id or 0, user__is_active=True)
        .first()
    )
    if facts.get("kind") != "api_key":
        if membership is None:
            raise Denied("actor_gone", _("The person who started this import is no longer a member."))
        return user_actor(membership)
    key = ApiKey.objects.filter(tenant_id=row.tenant_id, pk=facts.get("api_key_id"), revoked_at=None).first()
    is_over = key is not None and key.expires_at is not None and key.expires_at <= timezone.now()
    if key is None or is_over or (key.user_id is not None and membership is None):
        raise Denied("actor_gone", _("The API key that started this import is no longer valid."))
    actions = expand_scopes(key.scopes)
    if membership is not None:
        actions &= ROLE_ACTIONS[membership.role]
    return Actor("api_key", row.tenant_id, actions, row.created_by_id, key.pk, name=f"key {key.name}")


def _no_space(error: OSError) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    return DomainError(
        "storage_full",
        _(
            "The server's storage is full. What was imported so far is kept; retry the import when "
            "there is space again."
        ),
        status=507,
    )


class _Work:
    """What one attempt brings in, and the paths that it met."""

    def __init__(self, ctx: ImportContext, row: Import, actor: Actor) -> None:
        self._ctx, self._row, self._actor = ctx, row, actor
        self._limits = import_limits()
        self._tally = Tally()
        self._seen: set[str] = set()
        self._repositories: list[Repository] = []
        self._files: dict[str, bytes] = {}
        self._told_at = 0.0

    def fact(self, facts: Any) -> None:
        """Keep what a source tells of itself (a repository's commit)."""
        self._tally.facts["commit"] = str(facts["commit"])

    def take(self, item: Entry | Problem | Unchanged | repositories_services.History) -> None:
        """Bring in one entry, or list why not."""
        if isinstance(item, Problem):
            self._list(item)
        elif isinstance(item, repositories_services.History):
            self._keep(item)
        elif isinstance(item, Unchanged):
            self._tally.counts.update(found=1, unchanged=1)
            self._seen.add(item.path)
        else:
            self._tally.counts["found"] += 1
            try:
                self._bring(item)
            except (EntryFailure, ReadFailure) as failure:
                reason = (
                    failure.reason
                    if isinstance(failure, EntryFailure)
                    else _SKIPPED_CODES.get(FailureCode(failure.code), Reason.DAMAGED)
                )
                self._list(Problem(shown(item.path), reason, failure.message), is_found=True)
            except (Missing, Denied, SourceFailure, TryAgain):
                raise  # the collection, the right to write to it, the rest of the source or the file store is gone
            except DomainError as refusal:
                self._list(Problem(shown(item.path), Reason.REFUSED, refusal.message), is_found=True)
        self.report()

    def _keep(self, history: repositories_services.History) -> None:
        """Keep the history of a repository; what is said of it is listed."""
        row = self._row
        packs = [one for pair in history.packs for one in pair]
        try:
            repositories_services.packs_keep(row.tenant, row.collection, packs)
            with transaction.atomic():
                self._ctx.hold()
                kept, said = repositories_services.history_keep(
                    tenant=row.tenant, actor=self._actor, collection=row.collection, history=history
                )
        except Invalid as refusal:
            said = [_("Its history was not kept: %(message)s") % {"message": refusal.message}]
        else:
            self._repositories.append(kept)
            if history.facts["head"] in history.facts["refs"]:
                self._tally.facts["branch"] = history.facts["head"].removeprefix("refs/heads/")
            self._tally.facts["refs"] = len(history.facts["refs"])
        for sentence in said:
            self._list(Problem(".git", Reason.HISTORY, sentence))

    def settle(self) -> None:
        """Tell repositories which of their files the import left out."""
        for kept in self._repositories:
            is_whole = self._row.source == DocumentSource.GIT
            try:
                repositories_services.left_out_settle(
                    tenant=self._row.tenant,
                    collection=self._row.collection,
                    row=kept,
                    is_seen=None
                    if is_whole
                    else lambda path: path in self._seen or self._is_under_seen(path),
                )
            except TryAgain:
                raise
            except DomainError as refusal:
                self._list(
                    Problem(
                        ".git",
                        Reason.HISTORY,
                        _("Its last commit cannot be read: %(message)s") % {"message": refusal.message},
                    )
                )

    def _list(self, problem: Problem, *, is_found: bool = False) -> None:
        self._tally.list(problem, is_found=is_found)
        self._seen.add(self._path(problem.path.rstrip("/")))

    def _path(self, path: str) -> str:
        into = self._row.options.get("into", "")
        return f"{into}/{path}" if into else path

    def _bring(self, entry: Entry) -> None:
        row = self._row
        path = documents_services.document_path(row.options.get("keep_path") or self._path(entry.path))
        self._seen.add(path)
        received = blobs.receive(entry.read(), max_bytes=self._limits.max_file_bytes)
        is_prepared = row.source == DocumentSource.CHROMA
        try:
            if not is_prepared and not self._is_searchable(received, path):
                self._files[path] = received.path.read_bytes()
                if len(self._files) >= BATCH_FILES or sum(map(len, self._files.values())) >= BATCH_BYTES:
                    self.files_keep()
                return
            documents_services.original_keep(row.tenant, row.collection, received)
            with transaction.atomic():
                self._ctx.hold()
                put = documents_services.document_put(
                    tenant=row.tenant,
                    actor=self._actor,
                    collection=row.collection,
                    path=path,
                    received=received,
                    source=DocumentSource(row.source),
                    source_url=entry.facts.get("url", ""),
                    batch=row,
                )
                self._note(put, entry, is_prepared=is_prepared)
                if put.created:
                    self._ctx.advanced()
        finally:
            received.discard()
        self._count(put)

    def _is_searchable(self, received: blobs.ReceivedFile, path: str) -> bool:
        """Tell whether a file becomes a document; a damaged one does, and says so itself.

        Raises:
            ReadFailure: it can't be read, and the import leaves such files out.
        """
        try:
            detect(received.path, path, max_bytes=self._limits.max_file_bytes)
        except ReadFailure as failure:
            if FailureCode(failure.code) in _SKIPPED_CODES:
                if not self._row.options.get("with_unsearchable"):
                    raise
                return False
        return True

    def files_keep(self) -> None:
        """Write the files that wait and are no documents, and list those that the collection refuses.

        A worker that has lost this import in the meantime writes the same bytes once more, which changes nothing.
        """
        waiting, self._files = self._files, {}
        kept = files_import(
            tenant=self._row.tenant,
            actor=self._actor,
            collection=self._row.collection,
            entries=waiting.items(),
            note=self._row.name,
            source=DocumentSource(self._row.source),
            batch=self._row,
        )
        self._tally.counts["files_kept"] += len(waiting) - len(kept.skipped)
        for path, message in kept.skipped:
            self._list(Problem(shown(path), Reason.REFUSED, message), is_found=True)

    def _note(self, put: documents_services.Uploaded, entry: Entry, *, is_prepared: bool) -> None:
        document = put.document
        if not put.created and document.status != DocumentStatus.READY:
            return  # its ingestion writes the row just now
        changed = []
        if is_prepared and document.media_type != PREPARED:
            document.media_type = PREPARED
            changed.append("media_type")
        web = {key: value for key, value in entry.facts.items() if value}
        if web and document.metadata.get("web") != web:
            document.metadata = {**document.metadata, "web": web}
            changed.append("metadata")
        if changed:
            document.save(update_fields=[*changed, "updated_at"])

    def _count(self, put: documents_services.Uploaded) -> None:
        document = put.document
        # A crash came between: it was this import that brought it.
        is_ours = put.created or document.batch_id == self._row.pk
        if is_ours:
            self._tally.counts["created" if document.version == 1 else "updated"] += 1
            return
        failed = document.status in (DocumentStatus.FAILED, DocumentStatus.CANCELLED)
        if failed and (document.finished_at or document.updated_at) < self._row.created_at:
            try:
                documents_services.document_retry(
                    tenant=self._row.tenant, actor=self._actor, document=document
                )
            except Conflict:
                failed = False  # somebody else was first
            self._tally.counts["retried" if failed else "unchanged"] += 1
            return
        self._tally.counts["unchanged"] += 1

    def remove_gone(self) -> None:
        """Delete what earlier imports of the same source brought and what is not in it any more."""
        row = self._row
        mine = (
            Document.objects.visible_to(self._actor)
            .current()
            .filter(
                collection_id=row.collection_id,
                source=row.source,
                batch__name=row.name,
                batch__source=row.source,
            )
        )
        for document in list(mine):
            if document.path in self._seen or self._is_under_seen(document.path):
                continue
            self._ctx.check()
            try:
                documents_services.document_delete(tenant=row.tenant, actor=self._actor, document=document)
            except Missing:
                continue  # somebody has deleted it since we looked
            self._tally.counts["removed"] += 1
            self.report()

    def _is_under_seen(self, path: str) -> bool:
        """Tell whether a folder above was left out as a whole: its files are not gone, they are not looked at."""
        parts = path.split("/")
        return any("/".join(parts[:count]) in self._seen for count in range(1, len(parts)))

    def report(self, *, is_last: bool = False) -> None:
        """Store how far it is, at most twice a second."""
        now = time.monotonic()
        if not is_last and now - self._told_at < REPORT_EVERY_S:
            return
        self._told_at = now
        with transaction.atomic():
            Import.objects.filter(pk=self._row.pk, job_id=self._ctx.job_id).update(
                entries=self._tally.entries(), problems=self._tally.problems
            )
            notify(self._row.tenant_id, f"collection:{self._row.collection_id}")

    def complete(self) -> None:
        """End import and job together; the archive goes when nothing needs it any more."""
        row = self._row
        with transaction.atomic():
            self._ctx.hold()
            locked = (
                Import.objects.select_for_update(no_key=True)
                .filter(pk=row.pk, job_id=self._ctx.job_id)
                .first()
            )
            if locked is None:
                raise JobCancelled(f"import {row.pk} is gone")
            locked.status, locked.finished_at = ImportStatus.COMPLETED, timezone.now()
            locked.error_code = locked.error_message = ""
            locked.entries, locked.problems = self._tally.entries(), self._tally.problems
            key, locked.file = locked.file, ""
            locked.save()
            notice_put(
                tenant_id=row.tenant_id,
                people=[row.created_by_id],
                kind="import",
                pk=row.pk,
                state=locked.status.value,
            )
            notify(row.tenant_id, f"collection:{row.collection_id}")
            if key:
                blobs.drop(row.tenant_id, key)
            self._ctx.complete()
