"""Collections in the admin: documents and their counts to look at and act on, never to edit by hand."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse

from apps.collections.collection import services as collection_services
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents import services as documents_services
from apps.collections.models import (
    Chunk,
    Collection,
    Document,
    DocumentStatus,
    EmbeddingSpace,
    InstalledEmbedder,
    Page,
)
from basics.errors import DomainError
from tenancy.admin_confirm import confirmed_action
from tenancy.admin_scope import JournalAdmin, TenantScopedAdmin, admin_actor, is_operator, page_tenant
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

MAX_CHECKED = 50


class _OperatorsRead(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shared by all tenants: an operator looks at it, and nobody changes it here."""

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


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(_OperatorsRead):
    """Made by the embedders themselves."""

    list_display = ("__str__", "provider", "model", "dimensions", "fingerprint", "created_at")
    search_fields = ("provider", "model", "fingerprint")
    readonly_fields = ("provider", "model", "dimensions", "fingerprint", "created_at")


@admin.register(InstalledEmbedder)
class InstalledEmbedderAdmin(_OperatorsRead):
    """Made by ``manage.py embedder_add``."""

    list_display = ("__str__", "folder", "dimensions", "fingerprint", "created_at")
    search_fields = ("name", "folder")


class _Shared:
    """Leaves out what belongs to one person alone: files attached to conversations.

    Attributes:
        private: look-up of the person.
    """

    private = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        return rows.filter(**{f"{self.private}__isnull": True})


@admin.register(Collection)
class CollectionAdmin(_Shared, TenantScopedAdmin):
    """Names and chunk sizes may be changed; counts and statistics belong to the pipeline."""

    owner_may = frozenset({"view", "change", "delete"})
    private = "owner"
    list_display = ("name", "space", "chunk_total", "chunk_size", "created_at", "updated_at")
    list_filter = ("space", "created_at")
    list_select_related = ("space",)
    search_fields = ("name", "description")
    ordering = ("name",)
    fields = (
        "tenant",
        "name",
        "description",
        "chunk_size",
        "chunk_overlap",
        "space",
        "created_by",
        "created_at",
        "updated_at",
        "chunk_total",
        "term_total",
        "average_length",
    )
    readonly_fields = (
        "space",
        "created_by",
        "created_at",
        "updated_at",
        "chunk_total",
        "term_total",
        "average_length",
    )

    actions = ("check_chosen",)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.check_view)
        return [path("check/", view, name="collections_check"), *super().get_urls()]

    @admin.action(description="Check the selected collections…")
    def check_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        """Show what is lost, doubled or orphaned."""
        ids = ",".join(str(pk) for pk in queryset.values_list("pk", flat=True)[:MAX_CHECKED])
        return HttpResponseRedirect(f"{reverse('admin:collections_check')}?ids={ids}")

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """Check chosen collections, or all of a workspace with its files on disk (no ``ids``); POST repairs."""
        title, named = "Ingestion check", request.GET.get("ids", "")
        chosen: list[Collection | None] = [None]
        tenant: Tenant | None
        if named:
            ids = [i for i in named.split(",") if i.isascii() and i.isdecimal() and len(i) < 19]
            rows = self.get_queryset(request).select_related("tenant").filter(pk__in=ids[:MAX_CHECKED])
            chosen = list(rows.order_by("pk"))
            if not chosen or len(chosen) != len(set(ids)):
                raise Http404
            tenant = chosen[0].tenant  # type: ignore[union-attr]
            if any(row is not None and row.tenant_id != tenant.pk for row in chosen):
                raise Http404
        else:
            tenant = page_tenant(request)
        if tenant is None:
            tenants = Tenant.objects.order_by("name")
            return self.own_page(request, "admin/choose_workspace.html", title, tenants=tenants)
        is_repair, found = request.method == "POST", []
        with tenant_scope(tenant.pk):
            for row in chosen:
                actor = admin_actor(request, tenant.pk)
                check = ingestion_check(tenant=tenant, actor=actor, collection=row, repair=is_repair)
                found.append((row, check))
        if is_repair:
            repaired = sum(f.is_repaired for _, check in found for f in check.findings)
            self.message_user(request, f"{repaired} repaired.", messages.SUCCESS)
        return self.own_page(
            request,
            "admin/collections/check.html",
            title,
            found=found,
            workspace=tenant,
            is_repair=is_repair,
            open=sum(len(check.open) for _, check in found),
        )

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Collection) -> None:
        """Delete by the service, so that files and jobs go too."""
        actor = admin_actor(request, obj.tenant_id)
        collection_services.collection_delete(tenant=obj.tenant, actor=actor, collection=obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete one by one by the service."""
        for row in queryset.select_related("tenant"):
            self.delete_model(request, row)


@admin.register(Document)
class DocumentAdmin(_Shared, JournalAdmin):
    """What became of each file; retry and delete are actions, which go through the services."""

    private = "collection__owner"

    list_display = (
        "name",
        "collection",
        "status",
        "stage",
        "page_count",
        "chunk_count",
        "size",
        "error_code",
        "created_at",
        "finished_at",
    )
    list_filter = ("status", "stage", "media_type", ("error_code", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("collection",)
    search_fields = ("name", "sha256", "title", "error_message", "collection__name", "error_code")
    date_hierarchy = "created_at"
    actions = ("retry", "delete_documents")

    @admin.action(description="Ingest again (failed and cancelled ones)")
    def retry(self, request: HttpRequest, queryset: Any) -> None:
        """Retry the chosen documents that failed."""
        again = (DocumentStatus.FAILED, DocumentStatus.CANCELLED)
        self._each(
            request, queryset.filter(status__in=again), documents_services.document_retry, "queued again"
        )

    @confirmed_action(
        description="Delete with text, vectors and file",
        lost="The documents and everything read from them are permanently deleted; answers keep the names "
        "and quotes they cite.",
    )
    def delete_documents(self, request: HttpRequest, queryset: Any) -> None:
        """Delete the chosen documents."""
        self._each(request, queryset, documents_services.document_delete, "deleted")

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
class PageAdmin(_Shared, JournalAdmin):
    """Pages as they were read."""

    private = "document__collection__owner"

    list_display = ("document", "number", "skip_reason", "char_start")
    list_filter = ("skip_reason",)
    list_select_related = ("document",)
    search_fields = ("document__name",)


@admin.register(Chunk)
class ChunkAdmin(_Shared, JournalAdmin):
    """Chunks as they are searched."""

    private = "collection__owner"

    list_display = ("id", "document", "collection", "index", "kind", "page_start", "page_end")
    list_filter = ("kind",)
    list_select_related = ("document", "collection")
    search_fields = ("=id", "document__name", "collection__name")
