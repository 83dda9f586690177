"""What keeps collections well, in the admin: imports, file changes, moves to other embedding models, cases, snapshots."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.collections.collection import swaps
from apps.collections.files import undo as files_undo
from apps.collections.imports import services as imports_services
from apps.collections.models import CollectionSnapshot, FileBatch, FileRevision, Import, SearchCase, SpaceSwap
from apps.collections.search import cases
from tenancy.admin_confirm import confirmed_action
from tenancy.admin_scope import JournalAdmin, JournalInline

COLLECTION = ("collection", admin.RelatedOnlyFieldListFilter)
PERSON = ("created_by", admin.RelatedOnlyFieldListFilter)


@admin.register(Import)
class ImportAdmin(JournalAdmin):
    """Archives, folders, repositories and web pages, and what became of their entries; started in the portal."""

    list_display = (
        "name",
        "source",
        "collection",
        "status",
        "error_code",
        "created_by",
        "created_at",
        "finished_at",
    )
    list_filter = ("status", "source", COLLECTION, PERSON)
    list_select_related = ("collection", "created_by")
    search_fields = ("name", "error_code", "error_message", "collection__name")
    ordering = ("-pk",)
    actions = ("cancel", "retry")

    @admin.action(description="Cancel the selected imports")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Stop imports that wait or run."""
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: imports_services.import_cancel(tenant=tenant, actor=actor, row=row),
            "cancelled",
        )

    @admin.action(description="Retry the selected imports")
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Queue imports that failed or were cancelled."""
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: imports_services.import_retry(tenant=tenant, actor=actor, row=row),
            "queued again",
        )


class RevisionInline(JournalInline):
    model = FileRevision
    fields = ("path", "before", "after", "is_indexed", "is_restricted")
    readonly_fields = fields


@admin.register(FileBatch)
class FileBatchAdmin(JournalAdmin):
    """Changes of files that were made together; one is taken back as a whole."""

    list_display = ("__str__", "collection", "user", "run", "note", "is_undone", "created_at")
    list_filter = ("action", "is_undone", COLLECTION, ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("collection", "user", "run")
    search_fields = ("note", "revisions__path")
    ordering = ("-pk",)
    inlines = (RevisionInline,)
    actions = ("undo",)

    @admin.action(description="Undo the selected changes")
    def undo(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Take them back, the newest first."""
        self.each(
            request,
            queryset.select_related("tenant", "collection").order_by("-pk"),
            lambda tenant, actor, row: files_undo.batch_undo(
                tenant=tenant, actor=actor, collection=row.collection, batch=row
            ),
            "undone",
        )


@admin.register(FileRevision)
class FileRevisionAdmin(JournalAdmin):
    """One file's part in a change; its text is read in the portal."""

    list_display = ("path", "collection", "batch", "before", "after", "is_restricted")
    list_filter = (COLLECTION, "is_restricted")
    list_select_related = ("collection", "batch", "before", "after")
    search_fields = ("path", "=batch__id")
    ordering = ("-pk",)
    actions = ("restore",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave the bytes of the files where they are."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("before__content", "after__content")

    @admin.action(description="Restore this content in the selected files")
    def restore(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Restore each file as it was after its revision."""
        self.each(
            request,
            queryset.select_related("tenant", "collection"),
            lambda tenant, actor, row: files_undo.revision_restore(
                tenant=tenant, actor=actor, collection=row.collection, revision=row
            ),
            "restored",
        )


@admin.register(SpaceSwap)
class SpaceSwapAdmin(JournalAdmin):
    """Moves of a collection to another embedding model; started in the portal, where both are compared."""

    list_display = ("collection", "from_space", "to_space", "status", "progress", "created_at", "switched_at")
    list_filter = ("status", COLLECTION)
    list_select_related = ("collection", "from_space", "to_space")
    search_fields = ("collection__name", "error_message")
    ordering = ("-pk",)
    actions = ("switch", "undo", "drop", "cancel", "retry")

    @admin.display(description="progress")
    def progress(self, row: SpaceSwap) -> str:
        return f"{row.done:,} of {row.total:,}"

    @admin.action(description="Switch to the new model")
    def switch(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Search with the new vectors from now on."""
        self._step(request, queryset, swaps.swap_switch, "switched")

    @admin.action(description="Switch back to the old model")
    def undo(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Search with the old vectors again."""
        self._step(request, queryset, swaps.swap_undo, "undone")

    @confirmed_action(
        description="Remove the old vectors",
        lost="Switching back to the old embedding model would mean embedding everything again.",
    )
    def drop(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Remove them for good."""
        self._step(request, queryset, swaps.swap_drop, "scheduled to have their old vectors removed")

    @admin.action(description="Cancel")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Stop building."""
        self._step(request, queryset, swaps.swap_cancel, "cancelled")

    @admin.action(description="Try again")
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Build again after a failure."""
        self._step(request, queryset, swaps.swap_retry, "queued again")

    def _step(self, request: HttpRequest, queryset: QuerySet[Any], service: Any, done: str) -> None:
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: service(tenant=tenant, actor=actor, swap=row),
            done,
        )


@admin.register(SearchCase)
class SearchCaseAdmin(JournalAdmin):
    """Questions with the passages that should answer them; saved in the search test bench."""

    list_display = ("query", "collection", "k", "created_by", "created_at")
    list_filter = (COLLECTION, PERSON)
    list_select_related = ("collection", "created_by")
    search_fields = ("query", "note", "collection__name")
    ordering = ("-pk",)
    actions = ("remove",)

    @confirmed_action(
        description="Delete the selected cases",
        lost="Their questions and expected passages are permanently deleted.",
    )
    def remove(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete cases."""
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: cases.search_case_delete(tenant=tenant, actor=actor, case=row),
            "deleted",
        )


@admin.register(CollectionSnapshot)
class CollectionSnapshotAdmin(JournalAdmin):
    """Named moments that a collection can be searched as of."""

    list_display = ("name", "collection", "at", "created_by")
    list_filter = (COLLECTION, PERSON)
    list_select_related = ("collection", "created_by")
    search_fields = ("name", "collection__name")
    ordering = ("-pk",)
    actions = ("remove",)

    @confirmed_action(
        description="Delete the selected snapshots", lost="The named moments are deleted; the documents stay."
    )
    def remove(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete names; the documents stay."""
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: cases.snapshot_delete(tenant=tenant, actor=actor, snapshot=row),
            "deleted",
        )
