"""What the admin pages of tools share: writes are the services' work, and earlier states can be brought back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse

from apps.tools.catalog.selectors import catalog_bundles
from apps.tools.exchange.history import change_get, change_list, fields_changed
from apps.tools.exchange.restoring import state_now, state_restore
from apps.tools.toolset.bundles import bundle_list
from basics.errors import DomainError
from tenancy.actors import Actor
from tenancy.admin_scope import TenantScopedAdmin, admin_actor, admin_tenant, page_tenant, scoped
from tenancy.models import AuditEvent, Tenant
from tenancy.scope import tenant_scope


def refusal_show(form: forms.BaseForm, error: DomainError) -> None:
    """Show what a service refused at the fields it names, else above the form."""
    named = dict(error.data.get("fields", {}))
    if "field" in error.data:
        named[error.data["field"]] = [error.message]
    for field, texts in named.items():
        form.add_error(field if field in form.fields else None, texts)
    if not named:
        form.add_error(None, error.message)


def attempt(form: forms.BaseForm, write: Callable[[], Any]) -> None:
    """Do a write and undo it; what a service refuses becomes an error of the form, before anything is saved."""
    try:
        with transaction.atomic():
            write()
            transaction.set_rollback(True)
    except DomainError as error:
        refusal_show(form, error)


def tools_known(request: HttpRequest, tenant: Tenant | None) -> list[str]:
    """Return names of tools to choose from: those of the workspace, or without one those of the code."""
    if tenant is None:
        return sorted(tool.name for bundle in bundle_list() for tool in bundle.tools())
    with tenant_scope(tenant.pk):
        bundles = catalog_bundles(actor=admin_actor(request, tenant.pk))
        return sorted(tool.name for bundle in bundles for tool in bundle.tools())


class ServiceAdmin(TenantScopedAdmin):
    """Pages whose writes a service does: it validates, writes and audits, here as everywhere.

    A subclass says in ``write`` and ``remove`` which service that is. The write is tried while the form is checked, so
    that a refusal stands at its field and nothing that was typed is lost.
    """

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> models.Model:
        """Write what a checked form says.

        Args:
            row: the row that is changed, None for a new one.
            values: the form's.

        Returns:
            The row as it is afterwards.

        Raises:
            DomainError: the service refuses.
        """
        raise NotImplementedError

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        """Delete a row by its service. Raises DomainError."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        base: Any = super().get_form(request, obj, change=change, **kwargs)
        page = self

        class TriedForm(base):  # type: ignore[misc]
            def clean(self) -> Any:
                data = super().clean() or self.cleaned_data
                if not self.errors:
                    tenant = page.tenant_of(request, obj, data)
                    attempt(self, lambda: page.write(request, tenant, obj, data))
                return data

            def _post_clean(self) -> None:
                """Leave what a model could check to the service, which says it better."""

        return TriedForm

    def tenant_of(self, request: HttpRequest, row: Any, values: dict[str, Any]) -> Tenant:
        """Return the workspace that a row is or will be in."""
        tenant: Tenant = admin_tenant(request) or (row.tenant if row else values["tenant"])
        return tenant

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        row = obj if change else None
        tenant = self.tenant_of(request, row, form.cleaned_data)
        made = self.write(request, tenant, row, form.cleaned_data)
        for field in made._meta.concrete_fields:
            setattr(obj, field.attname, getattr(made, field.attname))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.remove(obj.tenant, admin_actor(request, obj.tenant_id), obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset.select_related("tenant"):
            self.delete_model(request, row)

    def add_view(self, request: Any, form_url: str = "", extra_context: Any = None) -> Any:
        """Let a superuser name the workspace first: what a form offers is that workspace's."""
        if self.has_add_permission(request) and page_tenant(request) is None:
            title = f"Add {self.opts.verbose_name}"
            tenants = Tenant.objects.order_by("name")
            return self.own_page(request, "admin/choose_workspace.html", title, tenants=tenants)
        return super().add_view(request, form_url, extra_context)

    def changeform_view(
        self,
        request: Any,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        tenant = self.get_object(request, object_id).tenant if object_id else page_tenant(request)
        context = {"tools_known": tools_known(request, tenant)} | (extra_context or {})
        return super().changeform_view(request, object_id, form_url, context)


class HistoryAdmin(ServiceAdmin):
    """Pages over what has a history in the audit trail, with a way back. ``by_name``: rows are known by their name."""

    by_name: ClassVar[bool] = True

    def get_urls(self) -> list[Any]:
        stem = f"{self.opts.app_label}_{self.opts.model_name}"
        wrap = self.admin_site.admin_view
        return [
            path("changes/", wrap(self.changes_view), name=f"{stem}_changes"),
            path("changes/<int:event>/", wrap(self.restore_view), name=f"{stem}_restore"),
            *super().get_urls(),
        ]

    @property
    def kind(self) -> str:
        """Return what the audit trail calls this kind of object."""
        return self.opts.label_lower

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the changes of one row."""
        row = self.get_object(request, object_id)
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        narrow = {"name": row.name} if self.by_name else {"object_id": str(row.pk)}
        with tenant_scope(row.tenant_id):
            actor = admin_actor(request, row.tenant_id)
            changes = change_list(actor=actor, kind=self.kind, **narrow)
        return self.own_page(
            request, "admin/tools/history.html", f"History of {row}", changes=changes, original=row
        )

    def changes_view(self, request: HttpRequest) -> HttpResponse:
        """Show the changes of all rows of a workspace, those of removed ones too."""
        tenant = page_tenant(request)
        title = f"Changes of {self.opts.verbose_name_plural}"
        if tenant is None:
            return self.own_page(
                request, "admin/choose_workspace.html", title, tenants=Tenant.objects.order_by("name")
            )
        with tenant_scope(tenant.pk):
            changes = change_list(actor=admin_actor(request, tenant.pk), kind=self.kind)
        return self.own_page(request, "admin/tools/history.html", title, changes=changes, original=None)

    def restore_view(self, request: HttpRequest, event: int) -> HttpResponse:
        """Show what bringing back a state would change, and do it."""
        rows = scoped(request, AuditEvent._default_manager.all())
        found = rows.filter(pk=event, object_type=self.kind).select_related("tenant").first()
        if found is None:
            raise Http404
        tenant, actor = found.tenant, admin_actor(request, found.tenant_id)
        changes = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changes")
        back = HttpResponseRedirect(changes if admin_tenant(request) else f"{changes}?tenant={tenant.pk}")
        try:
            with tenant_scope(tenant.pk):
                change = change_get(actor=actor, event=event)
                if request.method == "POST":
                    state_restore(tenant=tenant, actor=actor, event=event)
                    name = change.object_name
                    self.message_user(request, f"{name}: restored.", messages.SUCCESS)
                    return back
                fields = fields_changed(state_now(actor=actor, change=change), change.state)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return back
        return self.own_page(
            request,
            "admin/tools/restore.html",
            "Restore an earlier state",
            change=change,
            fields=fields,
            back=back.url,
        )
