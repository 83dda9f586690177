"""Collections in the admin: documents and their counts to look at and act on, never to edit by hand."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from apps.collections import services
from apps.collections.models import (
    Chunk,
    Collection,
    Document,
    DocumentStatus,
    EmbeddingSpace,
    Page,
)
from basics.errors import DomainError
from tenancy.admin_scope import JournalAdmin, TenantScopedAdmin, admin_actor, is_operator


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shared by all tenants and made by the embedders themselves."""

    list_display = ("__str__", "provider", "model", "dimensions", "fingerprint", "created_at")
    search_fields = ("provider", "model", "fingerprint")
    readonly_fields = ("provider", "model", "dimensions", "fingerprint", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_operator(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_operator(request)


@admin.register(Collection)
class CollectionAdmin(TenantScopedAdmin):
    """Names and chunk sizes may be changed; counts and statistics belong to the pipeline."""

    owner_may = frozenset({"view", "change", "delete"})
    list_display = ("name", "space", "chunk_total", "chunk_size", "created_at", "updated_at")
    list_filter = ("space", "created_at")
    list_select_related = ("space",)
    search_fields = ("name", "description")
    fields = (
        "tenant", "name", "description", "chunk_size", "chunk_overlap", "space", "created_by", "created_at",
        "updated_at", "chunk_total", "term_total", "average_length",
    )  # fmt: skip
    readonly_fields = (
        "space", "created_by", "created_at", "updated_at", "chunk_total", "term_total", "average_length",
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Collection) -> None:
        """Delete by the service, so that files and jobs go too."""
        actor = admin_actor(request, obj.tenant_id)
        services.collection_delete(tenant=obj.tenant, actor=actor, collection=obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete one by one by the service."""
        for row in queryset.select_related("tenant"):
            self.delete_model(request, row)


@admin.register(Document)
class DocumentAdmin(JournalAdmin):
    """What became of each file; retry and delete are actions, which go through the services."""

    list_display = (
        "name", "collection", "status", "stage", "page_count", "chunk_count", "size", "error_code", "created_at",
        "finished_at",
    )  # fmt: skip
    list_filter = (
        "status",
        "stage",
        "media_type",
        ("error_code", admin.EmptyFieldListFilter),
        "created_at",
    )
    list_select_related = ("collection",)
    search_fields = ("name", "sha256", "title", "error_message", "collection__name", "error_code")
    date_hierarchy = "created_at"
    actions = ("retry", "delete_documents")

    @admin.action(description="Ingest again (failed and cancelled ones)")
    def retry(self, request: HttpRequest, queryset: Any) -> None:
        """Retry the chosen documents that failed."""
        again = (DocumentStatus.FAILED, DocumentStatus.CANCELLED)
        self._each(
            request, queryset.filter(status__in=again), services.document_retry, "queued again"
        )

    @admin.action(description="Delete with text, vectors and file")
    def delete_documents(self, request: HttpRequest, queryset: Any) -> None:
        """Delete the chosen documents."""
        self._each(request, queryset, services.document_delete, "deleted")

    def _each(self, request: HttpRequest, queryset: Any, service: Any, word: str) -> None:
        done = 0
        for row in queryset.select_related("tenant"):
            try:
                service(tenant=row.tenant, actor=admin_actor(request, row.tenant_id), document=row)
            except DomainError as error:
                self.message_user(request, f"{row.name}: {error.message}", messages.ERROR)
            else:
                done += 1
        self.message_user(request, f"{done} documents {word}.")


@admin.register(Page)
class PageAdmin(JournalAdmin):
    """Pages as they were read."""

    list_display = ("document", "number", "skip_reason", "char_start")
    list_filter = ("skip_reason",)
    list_select_related = ("document",)
    search_fields = ("document__name",)


@admin.register(Chunk)
class ChunkAdmin(JournalAdmin):
    """Chunks as they are searched."""

    list_display = ("id", "document", "collection", "index", "kind", "page_start", "page_end")
    list_filter = ("kind",)
    list_select_related = ("document", "collection")
    search_fields = ("=id", "document__name", "collection__name")
