"""Admin of jobs: a journal, with a way to cancel."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.models import ACTIVE, Job, Worker
from jobs.services import job_cancel
from tenancy.admin_scope import JournalAdmin, admin_actor


@admin.register(Job)
class JobAdmin(JournalAdmin):
    """Background work: what runs, what failed and why."""

    list_display = ("id", "kind", "status", "attempts", "progress", "error_code", "created_at", "finished_at")
    list_filter = ("status", "lane", "kind")
    search_fields = ("=id", "kind", "error_code", "error_message", "worker")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    actions = ("cancel",)

    @admin.display(description="progress")
    def progress(self, job: Job) -> str:
        return f"{job.progress_current}/{job.progress_total}" if job.progress_total else ""

    @admin.action(description="Cancel the selected jobs")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        count = 0
        for job in queryset.filter(status__in=ACTIVE).select_related("tenant"):
            job_cancel(tenant=job.tenant, actor=admin_actor(request, job.tenant_id), job=job)
            count += 1
        self.message_user(request, f"{count} cancelled or told to stop.", messages.SUCCESS)


@admin.register(Worker)
class WorkerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Worker commands that are or were alive; the whole server's, so for the operator alone."""

    list_display = ("name", "processes", "started_at", "seen_at")
    ordering = ("-seen_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
