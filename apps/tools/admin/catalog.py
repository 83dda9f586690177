"""What a workspace states about single tools, and its sets of tools, in the admin."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone

from apps.tools.admin.base import HistoryAdmin, refusal_show
from apps.tools.catalog.selectors import catalog_bundles
from apps.tools.catalog.services import FIELDS as ENTRY_FIELDS
from apps.tools.catalog.services import entry_delete, entry_set
from apps.tools.exchange.files import FIELDS, MAX_BYTES, rows_write_csv, rows_write_json
from apps.tools.exchange.services import catalog_export, catalog_import
from apps.tools.models import ToolEntry, Toolkit, ToolkitMember
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from basics.errors import Conflict, DomainError
from tenancy.actors import Actor
from tenancy.admin_scope import TenantScopedInline, admin_actor, is_operator, page_tenant
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

ALL = frozenset({"view", "add", "change", "delete"})
TOOL_NAME = forms.TextInput(attrs={"list": "tools-known", "autocomplete": "off", "class": "vTextField"})


class EntryForm(forms.ModelForm):  # type: ignore[type-arg]
    """What is stated about one tool; tags with commas between them."""

    tags = forms.CharField(required=False, help_text="Separate with commas.")

    class Meta:
        model = ToolEntry
        fields = ("tenant", "name", *ENTRY_FIELDS)
        widgets = {"name": TOOL_NAME}
        help_texts = {"name": "The name models call it by."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["tags"] = ", ".join(self.instance.tags)

    def clean_tags(self) -> list[str]:
        """Return them as a list."""
        return [tag.strip() for tag in self.cleaned_data["tags"].split(",") if tag.strip()]


@admin.register(ToolEntry)
class ToolEntryAdmin(HistoryAdmin):
    """How a workspace shows and limits a tool, and whether it is switched on."""

    owner_may = ALL
    form = EntryForm
    list_display = ("name", "title", "is_enabled", "category", "tag_list", "timeout_s", "updated_at")
    list_filter = ("is_enabled", "category")
    search_fields = ("name", "title", "description", "category")
    ordering = ("name",)
    fields = (
        "tenant",
        "name",
        "title",
        "description",
        "category",
        "tags",
        "is_enabled",
        "cost_hint",
        "timeout_s",
        "created_at",
        "updated_at",
    )
    readonly_fields = ("created_at", "updated_at")
    actions = ("switch_on", "switch_off")

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.exchange_view)
        return [path("exchange/", view, name="tools_exchange"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the settings, and below them the other tools of the workspace, so that the list has all there are."""
        context = {**(extra_context or {}), "plain_tools": self._plain(request)}
        return super().changelist_view(request, context)

    def _plain(self, request: HttpRequest) -> list[dict[str, str]]:
        """Return the tools without settings, of the workspace that the page is about or the only one that there is."""
        workspaces = list(Tenant.objects.all()[:2]) if is_operator(request) else []
        tenant = page_tenant(request) or (workspaces[0] if len(workspaces) == 1 else None)
        if tenant is None:
            return []
        add = reverse("admin:tools_toolentry_add")
        with tenant_scope(tenant.pk):
            stated = set(ToolEntry.objects.filter(tenant=tenant).values_list("name", flat=True))
            bundles = catalog_bundles(actor=admin_actor(request, tenant.pk))
            found = {tool.name: bundle.facts(tool).group for bundle in bundles for tool in bundle.tools()}
        return [
            {
                "name": name,
                "group": group,
                "url": f"{add}?{urlencode({'name': name, 'tenant': tenant.pk})}",
            }
            for name, group in sorted(found.items())
            if name not in stated
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        return [*fields, "name"] if obj is not None else fields

    @admin.display(description="tags")
    def tag_list(self, row: ToolEntry) -> str:
        return ", ".join(row.tags)

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> ToolEntry:
        name = row.name if row is not None else values["name"].strip()
        taken = ToolEntry.objects.filter(tenant=tenant, name=name)
        if row is None and taken.exists():
            raise Conflict(
                "entry_exists",
                f"“{name}” already has an entry. Open that one instead.",
                data={"field": "name"},
            )
        stated = {field: values[field] for field in ENTRY_FIELDS if field in values}
        return entry_set(tenant=tenant, actor=admin_actor(request, tenant.pk), name=name, **stated)

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        entry_delete(tenant=tenant, actor=actor, pk=pk)

    @admin.action(description="Switch the selected tools on", permissions=["change"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Switch tools on."""
        self._switch(request, queryset, True)

    @admin.action(description="Switch the selected tools off", permissions=["change"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Switch tools off for everyone in their workspace."""
        self._switch(request, queryset, False)

    def _switch(self, request: HttpRequest, queryset: QuerySet[Any], is_enabled: bool) -> None:
        rows = queryset.exclude(is_enabled=is_enabled).select_related("tenant")
        self.each(
            request,
            rows,
            lambda tenant, actor, row: entry_set(
                tenant=tenant, actor=actor, name=row.name, is_enabled=is_enabled
            ),
            "switched on" if is_enabled else "switched off",
        )

    def exchange_view(self, request: HttpRequest) -> HttpResponse:
        """Export what a workspace states about tools, try an import, and do what was tried."""
        tenant, title = page_tenant(request), "Import and export"
        if tenant is None:
            return self.own_page(
                request, "admin/choose_workspace.html", title, tenants=Tenant.objects.order_by("name")
            )
        step = request.POST.get("step", "")
        if request.method == "POST" and step == "export":
            return self._export(request, tenant)
        form = ImportForm(request.POST if step == "try" else None, request.FILES or None)
        found = None
        content, name = b"", ""
        if step == "try" and form.is_valid():
            content, name = form.cleaned_data["file"].read(), form.cleaned_data["file"].name
        elif step == "do":
            content, name = _content(request.POST.get("content", "")), request.POST.get("name", "")
        if content:
            try:
                found = catalog_import(
                    tenant=tenant,
                    actor=admin_actor(request, tenant.pk),
                    content=content,
                    expected=request.POST.get("digest", "") if step == "do" else "",
                    file_name=name,
                )
            except DomainError as error:
                if form.is_bound:
                    refusal_show(form, error)
                else:
                    self.message_user(request, error.message, messages.ERROR)
        if found is not None and found.is_done:
            counts = found.counts
            self.message_user(
                request,
                f"Imported: {counts['new']} new, {counts['changed']} changed, {counts['unchanged']} unchanged, {counts['refused']} refused.",
                messages.SUCCESS,
            )
            return HttpResponseRedirect(f"{reverse('admin:tools_exchange')}?tenant={tenant.pk}")
        if found is not None and step == "do":
            self.message_user(
                request,
                "The workspace has changed since the check, so nothing was imported. Review the changes and try again.",
                messages.WARNING,
            )
        return self.own_page(
            request,
            "admin/tools/exchange.html",
            title,
            workspace=tenant,
            form=form,
            kinds=list(FIELDS),
            found=found,
            content=base64.b64encode(content).decode() if found is not None else "",
            file_name=name,
            limit=MAX_BYTES,
        )

    def _export(self, request: HttpRequest, tenant: Tenant) -> HttpResponse:
        kinds = [kind for kind in request.POST.getlist("kind") if kind in FIELDS] or list(FIELDS)
        is_csv = request.POST.get("form") == "csv"
        kinds = kinds[:1] if is_csv else kinds
        rows = catalog_export(tenant=tenant, actor=admin_actor(request, tenant.pk), kinds=kinds)
        text = rows_write_csv(kinds[0], rows[kinds[0]]) if is_csv else rows_write_json(rows)
        stem = kinds[0] if len(kinds) == 1 else "tools"
        name = f"{tenant.slug}-{stem}-{timezone.now():%Y-%m-%d}.{'csv' if is_csv else 'json'}"
        response = HttpResponse(text, content_type="text/csv" if is_csv else "application/json")
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response


class ImportForm(forms.Form):
    """A file to be tried."""

    file = forms.FileField(
        label="File",
        help_text="An exported file: JSON, or CSV with column names in the first line.",
        widget=forms.ClearableFileInput(attrs={"accept": ".json,.csv,application/json,text/csv"}),
    )

    def clean_file(self) -> Any:
        """Refuse what is too big before it is read."""
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(f"A file can have at most {MAX_BYTES:,} bytes. Split it.")
        return file


def _content(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b"-"  # no file of tools: it is refused in words


class MemberInline(TenantScopedInline):
    """The tools of a toolkit, by name; what is there at the moment is offered while one types."""

    owner_may = ALL
    model = ToolkitMember
    extra = 3
    fields = ("tool_name",)
    verbose_name, verbose_name_plural = "tool", "tools"

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "tool_name":
            kwargs["widget"] = forms.TextInput(attrs={**TOOL_NAME.attrs, "aria-label": "Tool"})
        return super().formfield_for_dbfield(db_field, request, **kwargs)


@admin.register(Toolkit)
class ToolkitAdmin(HistoryAdmin):
    """Named sets of tools. The name stays, since rules and files know a toolkit by it."""

    owner_may = ALL
    list_display = ("name", "description", "tools", "created_at")
    search_fields = ("name", "description", "members__tool_name")
    ordering = ("name",)
    fields = ("tenant", "name", "description", "created_at")
    readonly_fields = ("created_at",)
    inlines = (MemberInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        rows = rows.annotate(tool_count=Count("members", distinct=True))
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        return [*fields, "name"] if obj is not None else fields

    @admin.display(description="tools", ordering="tool_count")
    def tools(self, row: Any) -> int:
        return int(row.tool_count)

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> Toolkit:
        """Write the toolkit with the tools that the inline has gathered; while the form is tried, with those it had."""
        name = row.name if row is not None else values["name"]
        if row is None and Toolkit.objects.filter(tenant=tenant, name=" ".join(name.split())).exists():
            raise Conflict(
                "toolkit_exists",
                f"The toolkit “{name}” already exists. Open that one instead.",
                data={"field": "name"},
            )
        had = row.members.values_list("tool_name", flat=True) if row is not None else ()
        return toolkit_set(
            tenant=tenant,
            actor=admin_actor(request, tenant.pk),
            name=name,
            description=values["description"],
            tools=values.get("tools", list(had)),
        )

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        toolkit_delete(tenant=tenant, actor=actor, pk=pk)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Wait for the inline: a toolkit and its tools are one change."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        (members,) = formsets
        members.save(commit=False)
        names = [
            row.cleaned_data["tool_name"]
            for row in members.forms
            if row not in members.deleted_forms and row.cleaned_data.get("tool_name")
        ]
        form.cleaned_data["tools"] = names
        super().save_model(request, form.instance, form, change)
