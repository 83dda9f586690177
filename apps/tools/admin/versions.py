"""Versions of a workspace's own tools and their contract tests in the admin: looked at, accepted, rejected, run."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.tools.admin.base import ServiceAdmin
from apps.tools.admin.sources import outcome_shown
from apps.tools.models import ContractTest, ToolVersion
from apps.tools.sources.contract_tests import contract_test_delete, contract_test_run
from apps.tools.sources.selectors import version_changes
from apps.tools.sources.versions import version_accept, version_reject
from basics.errors import DomainError
from tenancy.actors import Actor
from tenancy.admin_scope import JournalAdmin, admin_actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

MAX_AT_ONCE = 200


class _Chosen:
    """Pages that act on chosen rows outside of a transaction, because real calls are made."""

    def chosen(self, request: HttpRequest) -> list[Any]:
        """Return the rows that the address names, all of one workspace. Raises Http404."""
        given = [
            i for i in request.GET.get("ids", "").split(",") if i.isascii() and i.isdecimal() and len(i) < 19
        ]
        found = self.get_queryset(request).filter(pk__in=given[:MAX_AT_ONCE])  # type: ignore[attr-defined]
        rows = list(found.select_related("tenant", "source").order_by("pk"))
        if not rows or len(rows) != len(set(given)):
            raise Http404
        return rows

    def to_page(self, name: str, queryset: QuerySet[Any], **query: str) -> HttpResponseRedirect:
        """Send on to such a page with the rows that were chosen in the list."""
        ids = ",".join(str(pk) for pk in queryset.values_list("pk", flat=True)[: MAX_AT_ONCE + 1])
        more = "".join(f"&{key}={value}" for key, value in query.items())
        return HttpResponseRedirect(f"{reverse(name)}?ids={ids}{more}")


@admin.register(ToolVersion)
class ToolVersionAdmin(_Chosen, JournalAdmin):
    """Forms of tools as their sources described them; one that waits is not called until somebody accepts it."""

    change_form_template = "admin/tools/version.html"
    list_display = (
        "tool_name",
        "number",
        "state",
        "is_gone",
        "source",
        "created_at",
        "decided_at",
        "decided_by",
    )
    list_filter = ("state", "is_gone", ("source", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("source", "decided_by")
    search_fields = ("tool_name", "source__name", "source__title")
    ordering = ("tool_name", "-number")
    fields = (
        "source",
        "tool_name",
        "number",
        "state",
        "is_gone",
        "changes",
        "description",
        "parameters",
        "created_at",
        "decided_at",
        "decided_by",
    )
    readonly_fields = ("changes", "description", "parameters")
    actions = ("accept", "reject")

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.decide_view)
        return [path("decide/", view, name="tools_decide"), *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        with tenant_scope(row.tenant_id):
            row.diff = version_changes(actor=admin_actor(request, row.tenant_id), pk=row.pk)
        return row

    @admin.display(description="what changes")
    def changes(self, row: Any) -> SafeString:
        return render_to_string("admin/tools/_version_diff.html", {"diff": row.diff})

    @admin.display(description="description")
    def description(self, row: ToolVersion) -> str:
        return str(row.spec.get("description", ""))

    @admin.display(description="parameters")
    def parameters(self, row: ToolVersion) -> str:
        text = json.dumps(row.spec.get("parameters", {}), indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text)

    @admin.action(description="Accept the selected versions…")
    def accept(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        """Show what accepting them changes."""
        return self.to_page("admin:tools_decide", queryset, do="accept")

    @admin.action(description="Reject the selected versions…")
    def reject(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        """Show what is turned down."""
        return self.to_page("admin:tools_decide", queryset, do="reject")

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """Show how the chosen versions differ from the current ones; accept or reject them."""
        do = request.GET.get("do")
        rows = self.chosen(request)
        tenant: Tenant = rows[0].tenant
        if do not in ("accept", "reject"):
            raise Http404
        back = HttpResponseRedirect(reverse("admin:tools_toolversion_changelist"))
        if any(row.tenant_id != tenant.pk for row in rows):
            self.message_user(request, "Choose versions of one workspace.", messages.ERROR)
            return back
        actor = admin_actor(request, tenant.pk)
        problem: DomainError | None = None
        if request.method == "POST":
            try:
                self._decide(tenant, actor, [row.pk for row in rows], do, request)
            except DomainError as error:
                problem = error
            else:
                word = "accepted" if do == "accept" else "rejected"
                self.message_user(request, f"{len(rows)} {word}.", messages.SUCCESS)
                return back
        with tenant_scope(tenant.pk):
            names = [row.tool_name for row in rows]
            attached = ContractTest.objects.filter(tenant=tenant, tool_name__in=names)
            shown = [(row, version_changes(actor=actor, pk=row.pk)) for row in rows]
            tests = list(attached.order_by("tool_name", "name"))
        title = "Accept versions" if do == "accept" else "Reject versions"
        return self.own_page(
            request, "admin/tools/decide.html", title, do=do, shown=shown, tests=tests, problem=problem
        )

    def _decide(self, tenant: Tenant, actor: Actor, pks: list[int], do: str, request: HttpRequest) -> None:
        if do == "reject":
            version_reject(tenant=tenant, actor=actor, pks=pks)
        else:
            force = request.POST.get("force") == "yes"
            version_accept(tenant=tenant, actor=actor, pks=pks, force=force)


@admin.register(ContractTest)
class ContractTestAdmin(_Chosen, ServiceAdmin):
    """Sample calls of tools; made at their source."""

    owner_may = frozenset({"view", "delete"})
    list_display = ("name", "tool_name", "source", "outcome", "last_run_at")
    list_filter = ("last_outcome", ("source", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("source",)
    search_fields = ("name", "tool_name", "source__name")
    ordering = ("tool_name", "name")
    actions = ("run",)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.run_view)
        return [path("run/", view, name="tools_run_tests"), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="last run", ordering="last_outcome")
    def outcome(self, row: ContractTest) -> str:
        return outcome_shown(row)

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        contract_test_delete(tenant=tenant, actor=actor, pk=pk)

    @admin.action(description="Run the selected tests…")
    def run(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        """Show which calls would be made."""
        return self.to_page("admin:tools_run_tests", queryset)

    def run_view(self, request: HttpRequest) -> HttpResponse:
        """Show the calls that the chosen tests make; make them and show how they ended."""
        rows = self.chosen(request)
        if request.method == "POST":
            for row in rows:
                actor = admin_actor(request, row.tenant_id)
                try:
                    contract_test_run(tenant=row.tenant, actor=actor, pk=row.pk)
                except DomainError as error:
                    self.message_user(request, f"{row}: {error.message}", messages.ERROR)
            rows = self.chosen(request)
        shown = [(row, outcome_shown(row)) for row in rows]
        return self.own_page(
            request,
            "admin/tools/run_tests.html",
            "Run contract tests",
            shown=shown,
            is_run=request.method == "POST",
        )
