"""Where a workspace's own tools come from, in the admin: sources, their secrets and contract tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminURLFieldWidget
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from apps.tools.admin.base import HistoryAdmin, attempt
from apps.tools.admin.catalog import ALL
from apps.tools.models import ContractTest, ToolCredential, ToolSource
from apps.tools.sources.contract_tests import contract_test_delete, contract_test_set
from apps.tools.sources.credentials import credential_forget, credential_set
from apps.tools.sources.services import source_create, source_delete, source_refresh, source_update
from tenancy.actors import Actor
from tenancy.admin_scope import TenantScopedInline, admin_actor
from tenancy.models import Tenant


class _RowForm(forms.ModelForm):  # type: ignore[type-arg]
    """A row of an inline that a service writes: tried as it is checked, like the form above it."""

    request: HttpRequest
    parent: ToolSource
    write: Callable[[HttpRequest, ToolSource, dict[str, Any]], Any]
    kept: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():  # a row of a table has no labels of its own
            field.widget.attrs.setdefault("aria-label", field.label or name.replace("_", " "))
        for name in self.kept if self.instance.pk else ():
            self.fields[name].disabled = True

    def clean(self) -> Any:
        data = super().clean() or self.cleaned_data
        if not self.errors and self.has_changed() and not data.get("DELETE"):
            attempt(self, lambda: type(self).write(self.request, self.parent, data))
        return data

    def _post_clean(self) -> None:
        """Leave what a model could check to the service."""


class CredentialForm(_RowForm):
    """A credential: its secret goes in and never comes out."""

    kept = ("placement", "parameter")
    secret = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Never shown again. Empty keeps the stored one.",
    )

    class Meta:
        model = ToolCredential
        fields = ("placement", "parameter")

    @staticmethod
    def write(request: HttpRequest, source: ToolSource, values: dict[str, Any]) -> ToolCredential:
        return credential_set(
            tenant=source.tenant,
            actor=admin_actor(request, source.tenant_id),
            source=source.pk,
            placement=values["placement"],
            parameter=values["parameter"],
            secret=values["secret"],
        )


class ContractTestForm(_RowForm):
    """A sample call of a tool and what its result must look like."""

    kept = ("tool_name", "name")
    arguments = forms.JSONField(required=False, widget=forms.Textarea(attrs={"rows": 3}))

    class Meta:
        model = ContractTest
        fields = ("tool_name", "name", "arguments", "expected")
        widgets = {
            "tool_name": forms.TextInput(attrs={"list": "tools-known", "autocomplete": "off"}),
            "expected": forms.Textarea(attrs={"rows": 3}),
        }

    @staticmethod
    def write(request: HttpRequest, source: ToolSource, values: dict[str, Any]) -> ContractTest:
        return contract_test_set(
            tenant=source.tenant,
            actor=admin_actor(request, source.tenant_id),
            tool_name=values["tool_name"],
            name=values["name"],
            arguments=values["arguments"] or {},
            expected=values["expected"] or {},
        )


class _RowInline(TenantScopedInline):
    owner_may = ALL

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs["form"] = type(self.form.__name__, (self.form,), {"request": request, "parent": obj})
        return super().get_formset(request, obj, **kwargs)


class CredentialInline(_RowInline):
    model = ToolCredential
    form = CredentialForm
    hidden_fields = frozenset({"secret_encrypted"})
    fields = ("placement", "parameter", "secret", "stored")
    readonly_fields = ("stored",)

    @admin.display(description="stored")
    def stored(self, row: ToolCredential) -> str:
        if not row.pk:
            return ""
        return f"ends in {row.last_four}" if row.last_four else "yes"


class ContractTestInline(_RowInline):
    model = ContractTest
    form = ContractTestForm
    fields = ("tool_name", "name", "arguments", "expected", "outcome")
    readonly_fields = ("outcome",)
    show_change_link = True

    @admin.display(description="last run")
    def outcome(self, row: ContractTest) -> str:
        return outcome_shown(row)


def outcome_shown(row: ContractTest) -> str:
    """Return how a test ended, with a word and a sign."""
    if not row.last_outcome:
        return "not run yet"
    sign, kind = ("✓", "allow") if row.last_outcome == "passed" else ("✕", "deny")
    return format_html(
        '<span class="effect {}">{} {}</span> with v{} {}',
        kind,
        sign,
        row.last_outcome,
        row.last_version,
        row.last_problem,
    )


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A source; hosts one a line."""

    allowed_hosts = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Hosts that calls can go to, one per line. Empty: only the host of the address.",
    )
    url = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        widget=AdminURLFieldWidget(),
        help_text="Where calls go: the API's or the MCP server's address.",
    )
    document_url = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        widget=AdminURLFieldWidget(),
        help_text="Address from which the OpenAPI document is read again.",
    )
    accept_all = forms.BooleanField(
        required=False,
        label="Accept all its tools at once",
        help_text="Otherwise each tool must be accepted first.",
    )

    class Meta:
        model = ToolSource
        fields = (
            "tenant",
            "kind",
            "name",
            "title",
            "url",
            "document_url",
            "document",
            "settings",
            "is_enabled",
        )
        widgets = {
            "document": forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField"}),
            "settings": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["allowed_hosts"] = "\n".join(self.instance.allowed_hosts)
        if self.instance.pk and "document" in self.fields:
            # It may be larger than a form may send, and a browser changes its line ends.
            self.initial["document"] = ""
            self.fields["document"].help_text = "Paste another to replace the stored one; empty keeps it."

    def clean_allowed_hosts(self) -> list[str]:
        """Return them as a list."""
        return self.cleaned_data["allowed_hosts"].split()  # type: ignore[no-any-return]


@admin.register(ToolSource)
class ToolSourceAdmin(HistoryAdmin):
    """OpenAPI documents, MCP servers and plug-ins; each is the group of its tools. The document is read in a job."""

    owner_may = ALL
    form = SourceForm
    list_display = ("name", "title", "kind", "status", "is_enabled", "url", "refreshed_at")
    list_filter = ("kind", "status", "is_enabled")
    search_fields = ("name", "title", "url", "document_url")
    ordering = ("name",)
    inlines = (CredentialInline, ContractTestInline)
    actions = ("refresh", "switch_on", "switch_off")
    readonly_fields = ("status", "problem", "refreshed_at", "created_at", "updated_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        rows = rows.defer("document")
        return rows

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Offer credentials and tests once there is a source that they can be of."""
        return super().get_inlines(request, obj) if obj is not None else ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        own = [
            "tenant",
            "kind",
            "name",
            "title",
            "url",
            "document_url",
            "document",
            "settings",
            "allowed_hosts",
            "is_enabled",
        ]
        return [*own, *self.readonly_fields] if obj is not None else [*own, "accept_all"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        return [*fields, "kind", "name"] if obj is not None else fields

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> ToolSource:
        actor = admin_actor(request, tenant.pk)
        stated = {k: v for k, v in values.items() if k not in ("tenant", "accept_all")}
        stated["settings"] = stated["settings"] or {}
        if row is not None:
            if not stated["document"]:
                del stated["document"]
            return source_update(tenant=tenant, actor=actor, pk=row.pk, **stated)
        return source_create(tenant=tenant, actor=actor, accept_all=values.get("accept_all", False), **stated)

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        source_delete(tenant=tenant, actor=actor, pk=pk)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Write each row by its service."""
        formset.save(commit=False)
        source, actor = form.instance, admin_actor(request, form.instance.tenant_id)
        gone = credential_forget if formset.model is ToolCredential else contract_test_delete
        for row in formset.forms:
            if row in formset.deleted_forms:
                if row.instance.pk:
                    gone(tenant=source.tenant, actor=actor, pk=row.instance.pk)
            elif row.has_changed():
                type(row).write(request, source, row.cleaned_data)

    @admin.action(description="Read the selected sources again", permissions=["change"])
    def refresh(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Queue a reading of each; what changed waits to be accepted."""
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: source_refresh(tenant=tenant, actor=actor, pk=row.pk),
            "will be read again; changes must be accepted",
        )

    @admin.action(description="Switch the selected sources on", permissions=["change"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Offer their tools again."""
        self._switch(request, queryset, True)

    @admin.action(description="Switch the selected sources off", permissions=["change"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Offer none of their tools."""
        self._switch(request, queryset, False)

    def _switch(self, request: HttpRequest, queryset: QuerySet[Any], is_enabled: bool) -> None:
        self.each(
            request,
            queryset.exclude(is_enabled=is_enabled).select_related("tenant"),
            lambda tenant, actor, row: source_update(
                tenant=tenant, actor=actor, pk=row.pk, is_enabled=is_enabled
            ),
            "switched on" if is_enabled else "switched off",
        )
