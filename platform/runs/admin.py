"""Runs and their journal in the admin: to look at, for nobody to change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from erasure.retention import MOST_DAYS
from runs.call_export import calls_file
from runs.call_log import PRIVATE, WITHHELD, calls_withhold
from runs.models import (
    ChunkRead,
    PendingDecision,
    Run,
    RunEvent,
    RunRetention,
    RunStep,
    ToolCall,
    UsageRecord,
)
from runs.retention import retention_set
from tenancy.admin_scope import JournalAdmin, JournalInline, TenantScopedAdmin, admin_actor, admin_tenant
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.masking import MASK, masked


def _shown(value: Any) -> str:
    """Return a JSON value as text, its secrets masked."""
    return json.dumps(masked(value), indent=2, ensure_ascii=False)


class ToolCallInline(JournalInline):
    model = ToolCall
    fields = ("step", "name", "status", "duration_ms", "attempts", "started_at")
    readonly_fields = fields


@admin.register(Run)
class RunAdmin(JournalAdmin):
    list_display = ("id", "kind", "model", "status", "error_code", "user", "created_at", "finished_at")
    list_filter = ("status", "kind", "created_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("=id", "model", "error_code", "error_message")
    date_hierarchy = "created_at"
    inlines = (ToolCallInline,)
    hidden_fields = frozenset({"request"})
    readonly_fields = ("request_as_shown",)

    @admin.display(description="request")
    def request_as_shown(self, run: Run) -> str:
        hidden = {"history"} if run.request.get(PRIVATE) else set()
        return _shown({key: value for key, value in run.request.items() if key not in hidden})


@admin.register(ToolCall)
class ToolCallAdmin(JournalAdmin):
    """The call log. Arguments are shown masked; the true ones, which the journal needs, never leave the database."""

    list_display = (
        "name",
        "run",
        "step",
        "path",
        "decision",
        "status",
        "error_code",
        "attempts",
        "duration_ms",
        "result_size",
        "started_at",
    )
    list_filter = ("status", "decision", "path", "has_side_effects", "name", "started_at")
    list_select_related = ("run",)
    search_fields = ("name", "call_id", "decision_why", "error_code", "=run__id", "=user_id")
    date_hierarchy = "started_at"
    hidden_fields = frozenset({"arguments", "arguments_masked", "content", "payload"})
    readonly_fields = ("arguments_as_shown", "content_as_shown", "payload_as_shown")
    actions = ("export_csv", "export_jsonl")

    @admin.display(description="arguments")
    def arguments_as_shown(self, call: ToolCall) -> str:
        return _shown(call.arguments_shown)

    @admin.display(description="content")
    def content_as_shown(self, call: ToolCall) -> str:
        return str(WITHHELD) if call.run.request.get(PRIVATE) else call.content

    @admin.display(description="payload")
    def payload_as_shown(self, call: ToolCall) -> str:
        return str(WITHHELD) if call.run.request.get(PRIVATE) else _shown(call.payload)

    @admin.action(description="Export as CSV", permissions=["view"])
    def export_csv(self, request: HttpRequest, rows: QuerySet[ToolCall]) -> StreamingHttpResponse:
        return self._export(request, rows, "csv")

    @admin.action(description="Export as JSON lines", permissions=["view"])
    def export_jsonl(self, request: HttpRequest, rows: QuerySet[ToolCall]) -> StreamingHttpResponse:
        return self._export(request, rows, "jsonl")

    def _export(self, request: HttpRequest, rows: QuerySet[ToolCall], form: str) -> StreamingHttpResponse:
        for tenant_id in rows.order_by().values_list("tenant_id", flat=True).distinct():
            tenant = Tenant.objects.get(pk=tenant_id)
            audit_record(
                tenant=tenant,
                actor=admin_actor(request, tenant_id),
                action="call.export",
                object=tenant,
                data={"form": form, "from": "admin"},
            )
        return calls_file(
            rows.order_by("-pk"), reader=partial(admin_actor, request), form=form, name="tool-calls"
        )

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return a call as who looks may see it."""
        call = super().get_object(request, *args, **kwargs)
        if call is not None:
            calls_withhold(admin_actor(request, call.tenant_id), [call])
        return call


@admin.register(RunStep)
class RunStepAdmin(JournalAdmin):
    list_display = ("run", "index", "created_at")
    list_select_related = ("run",)
    search_fields = ("=run__id",)
    hidden_fields = frozenset({"turn"})
    readonly_fields = ("turn_as_shown",)

    @admin.display(description="turn")
    def turn_as_shown(self, step: RunStep) -> str:
        return _without_masked(step)


def _without_masked(step: RunStep) -> str:
    """Return a model's turn as text, without the values that the log of its calls masks, in whatever form a provider has them."""
    text = _shown(step.turn)
    calls = ToolCall.objects.filter(tenant_id=step.tenant_id, run_id=step.run_id, step=step.index)
    for call in calls.exclude(arguments_masked=None):
        for value in _masked_texts(call.arguments, call.arguments_masked):
            written = json.dumps(value, ensure_ascii=False)[1:-1]
            # Providers write arguments as JSON in a string, with or without other characters as \\u….
            for form in (value, written, json.dumps(value)[1:-1]):
                for once in (form, json.dumps(form, ensure_ascii=False)[1:-1]):
                    text = text.replace(once, MASK)
    return text


def _masked_texts(value: Any, shown: Any) -> Iterator[str]:
    """Yield the texts of a call's arguments that stand masked in what is shown of them, the longest first."""
    found = []
    waiting = [(value, shown)]
    while waiting:
        inner, seen = waiting.pop()
        if seen == MASK or (isinstance(inner, str) and inner != seen):  # or arguments that are no whole JSON
            found.append(inner if isinstance(inner, str) else json.dumps(inner))
        elif isinstance(inner, dict) and isinstance(seen, dict):
            waiting += [(inner[key], seen.get(key)) for key in inner]
        elif isinstance(inner, list) and isinstance(seen, list):
            waiting += zip(inner, seen, strict=False)
    yield from sorted(filter(None, found), key=len, reverse=True)


@admin.register(RunEvent)
class RunEventAdmin(JournalAdmin):
    list_display = ("run", "seq", "kind", "at")
    list_filter = ("kind",)
    list_select_related = ("run",)
    search_fields = ("=run__id",)


@admin.register(PendingDecision)
class PendingDecisionAdmin(JournalAdmin):
    list_display = ("name", "run", "step", "status", "decided_by", "created_at", "expires_at")
    list_filter = ("status", "kind", "name", "created_at")
    list_select_related = ("run", "decided_by")
    search_fields = ("name", "call_id", "=run__id")
    hidden_fields = frozenset({"state", "arguments", "edited_arguments"})
    readonly_fields = ("arguments_as_shown", "edits_as_shown")

    @admin.display(description="arguments")
    def arguments_as_shown(self, decision: PendingDecision) -> str:
        return _shown(decision.arguments)

    @admin.display(description="edited arguments")
    def edits_as_shown(self, decision: PendingDecision) -> str:
        return _shown(decision.edited_arguments)


@admin.register(UsageRecord)
class UsageRecordAdmin(JournalAdmin):
    list_display = (
        "at",
        "kind",
        "provider",
        "model",
        "service_tier",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "cost_usd",
        "user_id",
        "run_id",
    )
    list_filter = ("kind", "provider", "model", "service_tier", "at")
    search_fields = ("=run_id", "=user_id", "model")
    date_hierarchy = "at"


@admin.register(ChunkRead)
class ChunkReadAdmin(JournalAdmin):
    list_display = ("at", "document_name", "version", "chunk_id", "user_id", "run_id", "tool")
    list_filter = ("tool", "at")
    search_fields = ("document_name", "=chunk_id", "=document_id", "=user_id", "=run_id")
    date_hierarchy = "at"


class RetentionForm(forms.ModelForm):  # type: ignore[type-arg]
    days = forms.IntegerField(
        min_value=0, max_value=MOST_DAYS, help_text="0 keeps it forever. Removal is permanent."
    )


@admin.register(RunRetention)
class RunRetentionAdmin(TenantScopedAdmin):
    """How long what was said in runs is kept; a rule that is deleted leaves the server's default."""

    owner_may = frozenset({"view", "add", "change", "delete"})
    form = RetentionForm
    list_display = ("tenant", "days", "updated_at")
    fields = ("tenant", "days", "updated_at")
    readonly_fields = ("updated_at",)
    autocomplete_fields = ("tenant",)
    ordering = ("tenant",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        tenant = admin_tenant(request) or obj.tenant
        retention_set(tenant=tenant, actor=admin_actor(request, tenant.pk), days=form.cleaned_data["days"])
        row = RunRetention.objects.get(tenant=tenant)
        for field in row._meta.concrete_fields:
            setattr(obj, field.attname, getattr(row, field.attname))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        retention_set(tenant=obj.tenant, actor=admin_actor(request, obj.tenant_id), days=None)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset.select_related("tenant"):
            self.delete_model(request, row)
