"""The base of every admin page over tenant tables: one workspace for its owners, all of them for superusers.

The middleware has put the request into the right scope already, and row-level security holds beneath; what is here makes
the pages right: lists, choices, autocompletion, inlines, actions, and which tenant a new row belongs to.

Use ``TenantScopedAdmin`` for what owners may work on (name it in ``owner_may``) and ``JournalAdmin`` for tables that
tell what happened, which nobody edits. Filters over shared tables (people) must be ``RelatedOnlyFieldListFilter``: the
plain one would list every person of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse

from basics.errors import DomainError
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant, TenantModel, User
from tenancy.permissions import ACTIONS
from tenancy.selectors import user_actor
from tenancy.services import audit_record


def admin_tenant(request: HttpRequest) -> Tenant | None:
    """Return the one workspace that the request's admin is limited to, None for a superuser's."""
    return getattr(request, "admin_tenant", None)


def is_operator(request: HttpRequest) -> bool:
    """Tell whether the request is a superuser's, who sees every workspace."""
    user = request.user
    return bool(user.is_active and getattr(user, "is_superuser", False))


def admin_actor(request: HttpRequest, tenant_id: int) -> Actor:
    """Return who acts in the admin: an owner with their role, or the operator with every right."""
    user: Any = request.user
    if is_operator(request):
        return Actor("system", tenant_id, ACTIONS, user_id=user.pk, role="system", name=user.email)
    membership = Membership.objects.select_related("tenant").get(tenant_id=tenant_id, user=user)
    membership.user = user
    return user_actor(membership)


def page_tenant(request: HttpRequest) -> Tenant | None:
    """Return the workspace that an admin page of its own is about: the owner's, or the one a superuser names in ``tenant``.

    Returns:
        None when a superuser has named none.

    Raises:
        Http404: there is none of that id.
    """
    tenant = admin_tenant(request)
    if tenant is not None or not is_operator(request):
        return tenant
    named = request.POST.get("tenant") or request.GET.get("tenant") or ""
    if not named:
        return None
    is_id = named.isascii() and named.isdecimal() and len(named) < 19
    found = Tenant.objects.filter(pk=int(named)).first() if is_id else None
    if found is None:
        raise Http404
    return found


def scoped(request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """Return the rows of a queryset that this admin may know of; tables without a tenant are given whole."""
    tenant = admin_tenant(request)
    if tenant is None:
        return queryset if is_operator(request) else queryset.none()
    model = queryset.model
    if issubclass(model, TenantModel):
        return queryset.filter(tenant=tenant)
    if model is Tenant:
        return queryset.filter(pk=tenant.pk)
    if model is User:
        return queryset.filter(memberships__tenant=tenant)
    return queryset


class _Scoped:
    """What pages and inlines share."""

    owner_may: ClassVar[frozenset[str]] = frozenset({"view"})
    hidden_fields: ClassVar[frozenset[str]] = frozenset()

    def _allowed(
        self, request: HttpRequest, what: str, by_permission: Callable[..., bool], *about: Any
    ) -> bool:
        # Asked of the operator alone: a page asks two hundred times, and an owner's answer is not in the permissions.
        if is_operator(request):
            return by_permission(request, *about)
        return admin_tenant(request) is not None and what in self.owner_may

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._allowed(request, "view", super().has_view_permission, obj)  # type: ignore[misc]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return self._allowed(request, "add", super().has_add_permission, *args)  # type: ignore[misc]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._allowed(request, "change", super().has_change_permission, obj)  # type: ignore[misc]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._allowed(request, "delete", super().has_delete_permission, obj)  # type: ignore[misc]

    def has_view_or_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj) or self.has_change_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return scoped(request, super().get_queryset(request))  # type: ignore[misc]

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        self._limit(db_field, request, kwargs)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        self._limit(db_field, request, kwargs)
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]

    def _limit(self, db_field: Any, request: HttpRequest, kwargs: dict[str, Any]) -> None:
        choices = kwargs.get("queryset")
        if choices is None:
            choices = db_field.remote_field.model._default_manager.all()
        kwargs["queryset"] = scoped(request, choices)

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Leave out secrets, and for an owner the tenant, which is theirs."""
        excluded = set(super().get_exclude(request, obj) or ()) | self.hidden_fields  # type: ignore[misc]
        if admin_tenant(request) is not None:
            excluded.add("tenant")
        return sorted(excluded)


class TenantScopedInline(_Scoped, admin.TabularInline):  # type: ignore[type-arg]
    """Rows below a row of the same tenant; new ones get its tenant."""

    extra = 0

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return sorted({*super().get_exclude(request, obj), "tenant"})


class TenantScopedAdmin(_Scoped, admin.ModelAdmin):  # type: ignore[type-arg]
    """Pages over a tenant table.

    Attributes:
        owner_may: what owners of a workspace may do: some of view, add, change, delete. Superusers may do it all.
        hidden_fields: columns that are never shown, sent or searched through a URL.
    """

    list_per_page = 50
    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._allowed(request, "view", super().has_module_permission)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Name the tenant in each line where several are listed."""
        columns = list(super().get_list_display(request))
        if admin_tenant(request) is None and "tenant" not in columns and self._has_tenant():
            columns.insert(1, "tenant")
        return columns

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        filters = [f for f in super().get_list_filter(request) if f != "tenant"]
        if admin_tenant(request) is None and self._has_tenant():
            filters.append("tenant")
        return filters

    def get_list_select_related(self, request: HttpRequest) -> Any:
        related = super().get_list_select_related(request)
        if isinstance(related, (list, tuple)) and self._has_tenant():
            return [*related, "tenant"]
        return related

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A row never changes its tenant."""
        fields = list(super().get_readonly_fields(request, obj))
        if obj is not None and self._has_tenant() and admin_tenant(request) is None:
            fields.append("tenant")
        return fields

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        if lookup.split("__", 1)[0] in self.hidden_fields:
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Refuse references into another tenant in words; the database would refuse them with an error."""
        base: Any = super().get_form(request, obj, change=change, **kwargs)
        tenant = admin_tenant(request)

        class OneTenantForm(base):  # type: ignore[misc]
            def clean(self) -> Any:
                data = super().clean() or self.cleaned_data
                own = tenant or data.get("tenant") or getattr(obj, "tenant", None)
                for name, value in data.items():
                    if isinstance(value, TenantModel) and own is not None and value.tenant_id != own.pk:
                        self.add_error(name, ValidationError("This belongs to another workspace."))
                return data

        return OneTenantForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Drop from the page what ``get_exclude`` leaves out of the form, wherever a class names it.

        What is only read is dropped from the page of a new row too: until the row is stored, there is nothing in it but
        the object that stands for a default of the database.
        """
        hidden = set(self.get_exclude(request, obj))
        if obj is None:
            hidden.update(self.get_readonly_fields(request))

        def shown(fields: Any) -> list[Any]:
            kept: list[Any] = []
            for entry in fields:
                if isinstance(entry, (list, tuple)):
                    if line := tuple(f for f in entry if f not in hidden):
                        kept.append(line)
                elif entry not in hidden:
                    kept.append(entry)
            return kept

        return [
            (name, {**options, "fields": shown(options["fields"])})
            for name, options in super().get_fieldsets(request, obj)
        ]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row; one that is not in this admin's scope does not exist (Django would redirect and say so)."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        tenant = admin_tenant(request)
        if tenant is not None and self._has_tenant() and not change:
            obj.tenant = tenant
        super().save_model(request, obj, form, change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        for row in formset.save(commit=False):
            if isinstance(row, TenantModel):
                row.tenant_id = form.instance.tenant_id
            row.save()
        for row in formset.deleted_objects:
            row.delete()
        formset.save_m2m()

    def changeform_view(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self._said(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self._said(request, super().delete_view, *args, **kwargs)

    def changelist_view(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self._said(request, super().changelist_view, *args, **kwargs)

    def _said(self, request: HttpRequest, view: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a view; what a service refuses is undone and said on the page it came from."""
        if request.method != "POST":
            return view(request, *args, **kwargs)
        try:
            with transaction.atomic():  # an action and its audit rows, which Django does not wrap
                return view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._audit(request, "admin.add", [obj])
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._audit(request, "admin.change", [obj], getattr(request, "_changed", None))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        self._audit(request, "admin.delete", queryset)
        return super().log_deletions(request, queryset)

    def construct_change_message(self, request: Any, form: Any, formsets: Any, add: bool = False) -> Any:
        request._changed = list(form.changed_data)
        return super().construct_change_message(request, form, formsets, add)

    def _audit(self, request: HttpRequest, action: str, rows: Iterable[Any], changed: Any = None) -> None:
        for row in rows:
            tenant = row if isinstance(row, Tenant) else getattr(row, "tenant", None)
            if isinstance(tenant, Tenant):
                audit_record(
                    tenant=tenant,
                    actor=admin_actor(request, tenant.pk),
                    action=action,
                    object=row,
                    data={"fields": changed} if changed else None,
                )

    def each(
        self, request: HttpRequest, rows: Iterable[Any], write: Callable[[Tenant, Actor, Any], Any], done: str
    ) -> None:
        """Do an action row by row; what is refused is said, and the others are done."""
        count = 0
        for row in rows:
            try:
                with transaction.atomic():
                    write(row.tenant, admin_actor(request, row.tenant_id), row)
            except DomainError as error:
                self.message_user(request, f"{row}: {error.message}", messages.ERROR)
            else:
                count += 1
        if count:
            self.message_user(request, f"{count} {done}.", messages.SUCCESS)

    def own_page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        """Return a page of its own beside those of rows, in the admin's frame (``admin/own_page.html``)."""
        frame = self.admin_site.each_context(request)
        return TemplateResponse(
            request, template, {**frame, "title": title, "opts": self.model._meta, **context}
        )

    def _has_tenant(self) -> bool:
        return issubclass(self.model, TenantModel)


class ReadOnly:
    """Rows of an admin page that are there to look at: nobody adds, changes or deletes one."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class JournalAdmin(ReadOnly, TenantScopedAdmin):
    """Pages over a table that tells what happened."""


class JournalInline(ReadOnly, TenantScopedInline):
    """Journal rows below another row."""

    can_delete = False
    show_change_link = True
