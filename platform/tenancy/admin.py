"""Admin of workspaces and people. What has rules goes through the services, as everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.forms import UserChangeForm as BaseUserChangeForm
from django.core.exceptions import ValidationError
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest

from basics.net_hosts import host_pattern
from tenancy import services
from tenancy.admin_confirm import confirmed_action
from tenancy.admin_scope import (
    JournalAdmin,
    ReadOnly,
    TenantScopedAdmin,
    TenantScopedInline,
    admin_actor,
    admin_tenant,
    is_operator,
)
from tenancy.models import (
    ApiKey,
    AuditEvent,
    Invite,
    Membership,
    ModelEntry,
    OutgoingHost,
    ProviderCredential,
    RateLimit,
    Role,
    Tenant,
    User,
)
from tenancy.permissions import rank


class MembershipInline(ReadOnly, TenantScopedInline):
    """The members of a workspace, to look at: changes are made on the membership's own page, by its rules."""

    model = Membership
    fields = ("user", "role", "created_at")
    readonly_fields = fields
    can_delete = False
    show_change_link = True


@admin.register(Tenant)
class TenantAdmin(TenantScopedAdmin):
    """Workspaces. They are switched off, never deleted here: their audit trail must outlive a click."""

    owner_may = frozenset({"view", "change"})
    list_display = ("name", "slug", "members", "is_active", "created_at")
    list_filter = ("is_active",)
    search_fields = ("name", "slug")
    readonly_fields = ("created_at",)
    inlines = (MembershipInline,)
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        members = Membership.objects.filter(tenant=OuterRef("pk")).order_by()
        counted = members.values("tenant").annotate(count=Count("pk")).values("count")
        rows: QuerySet[Any] = super().get_queryset(request).annotate(member_count=Subquery(counted))
        return rows

    @admin.display(description="members", ordering="member_count")
    def members(self, obj: Any) -> int:
        return obj.member_count or 0

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """An owner renames the workspace; its address and whether it is on are the operator's."""
        fields = [*super().get_readonly_fields(request, obj)]
        return fields if is_operator(request) else [*fields, "slug", "is_active"]


class _RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    """Offer the roles that the person at the page may give."""

    own_rank: ClassVar[int] = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "role" in self.fields:
            choices = [(v, label) for v, label in Role.choices if rank(v) <= self.own_rank]
            self.fields["role"].choices = choices  # type: ignore[attr-defined]


@admin.register(Membership)
class MembershipAdmin(TenantScopedAdmin):
    """Who is in a workspace. Owners invite people in the portal; only the operator adds them here."""

    owner_may = frozenset({"view", "change", "delete"})
    list_display = ("user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user",)
    search_fields = ("user__email", "user__first_name", "user__last_name")
    autocomplete_fields = ("user", "tenant")
    readonly_fields = ("created_at",)
    form = _RoleForm
    ordering = ("-created_at",)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        own = 5 if is_operator(request) else rank(Role.OWNER)
        kwargs["form"] = type("RoleForm", (_RoleForm,), {"own_rank": own})
        return super().get_form(request, obj, change, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = [*super().get_readonly_fields(request, obj)]
        return [*fields, "user"] if obj is not None else fields

    def get_actions(self, request: HttpRequest) -> Any:
        """Without the bulk deletion, which would pass by the rules."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        actor = admin_actor(request, obj.tenant_id)
        if change:
            services.member_role_change(tenant=obj.tenant, actor=actor, member_id=obj.pk, role=obj.role)
        else:
            added = services.member_add(tenant=obj.tenant, actor=actor, user=obj.user, role=obj.role)
            obj.pk, obj.created_at = added.pk, added.created_at

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.member_remove(tenant=obj.tenant, actor=admin_actor(request, obj.tenant_id), member_id=obj.pk)


@admin.register(Invite)
class InviteAdmin(JournalAdmin):
    """Invitations; made in the portal, where the link can be shown."""

    hidden_fields = frozenset({"token_sha256"})
    list_display = ("email", "role", "invited_by", "expires_at", "accepted_at", "revoked_at")
    list_filter = ("role", ("accepted_at", admin.EmptyFieldListFilter))
    list_select_related = ("invited_by",)
    search_fields = ("email",)
    ordering = ("-created_at",)
    actions = ("revoke",)

    @confirmed_action(
        description="Revoke the selected invitations",
        lost="Their links stop working, and can only be replaced by new invitations.",
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.filter(accepted_at=None, revoked_at=None).select_related("tenant"),
            lambda tenant, actor, row: services.invite_revoke(tenant=tenant, actor=actor, invite_id=row.pk),
            "revoked",
        )


@admin.register(ApiKey)
class ApiKeyAdmin(JournalAdmin):
    """API keys and connected applications; made in the portal or by ``api_key_create``, where the secret can be shown."""

    hidden_fields = frozenset({"secret_sha256"})
    list_display = ("name", "prefix", "user", "last_used_at", "expires_at", "revoked_at")
    list_filter = (
        ("revoked_at", admin.EmptyFieldListFilter),
        ("client_id", admin.EmptyFieldListFilter),
        ("user", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__email")
    ordering = ("-created_at",)
    actions = ("revoke",)

    @confirmed_action(
        description="Revoke the selected keys",
        lost="Programs that use them are refused from now on, and the keys cannot be restored.",
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.filter(revoked_at=None).select_related("tenant"),
            lambda tenant, actor, row: services.api_key_revoke(tenant=tenant, actor=actor, key_id=row.pk),
            "revoked",
        )


@admin.register(ProviderCredential)
class ProviderCredentialAdmin(JournalAdmin):
    """Model credentials; entered in the portal. The key itself is never shown."""

    hidden_fields = frozenset({"secret_encrypted"})
    list_display = ("provider", "endpoint", "label", "last_four", "base_url", "is_enabled", "updated_at")
    list_filter = ("provider", "is_enabled")
    search_fields = ("provider", "endpoint", "label", "base_url")
    ordering = ("provider", "endpoint")
    actions = ("forget",)

    @confirmed_action(
        description="Delete the selected keys",
        lost="The workspace can't use these providers until someone enters the keys again.",
    )
    def forget(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: services.credential_delete(
                tenant=tenant, actor=actor, provider=row.provider, endpoint=row.endpoint
            ),
            "forgotten",
        )


@admin.register(ModelEntry)
class ModelEntryAdmin(JournalAdmin):
    """What workspaces state about models; entered in the portal, under Settings, Models."""

    list_display = ("name", "label", "is_enabled", "context_window", "max_output_tokens", "updated_at")
    list_filter = ("is_enabled",)
    search_fields = ("name", "label")
    ordering = ("name",)
    actions = ("forget",)

    @confirmed_action(
        description="Reset the selected models",
        lost="Their limits and prices are removed, and models that only the workspace had added can no "
        "longer be used.",
    )
    def forget(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: services.model_entry_delete(tenant=tenant, actor=actor, name=row.name),
            "forgotten",
        )


@admin.register(RateLimit)
class RateLimitAdmin(TenantScopedAdmin):
    """How many REST requests a workspace allows itself, its members and its keys."""

    owner_may = frozenset({"view", "add", "change", "delete"})
    list_display = ("kind", "user", "api_key", "per_minute", "burst")
    list_filter = ("kind",)
    list_select_related = ("user", "api_key")
    autocomplete_fields = ("user", "api_key", "tenant")
    ordering = ("kind", "pk")


class OutgoingHostForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_pattern(self) -> str:
        """Return the pattern as it is compared with hosts."""
        try:
            return host_pattern(self.cleaned_data["pattern"])
        except ValueError as error:
            raise ValidationError(str(error)) from error


@admin.register(OutgoingHost)
class OutgoingHostAdmin(TenantScopedAdmin):
    """Hosts that a workspace's requests may go to; without any, every public host may be called."""

    owner_may = frozenset({"view", "add", "change", "delete"})
    form = OutgoingHostForm
    list_display = ("pattern", "created_at")
    search_fields = ("pattern",)
    readonly_fields = ("created_at",)
    autocomplete_fields = ("tenant",)
    ordering = ("pattern",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        tenant = admin_tenant(request) or obj.tenant
        before = {form.initial["pattern"]} if change else set()
        self._listed(request, tenant, add={obj.pattern}, remove=before)
        row = OutgoingHost.objects.get(tenant=tenant, pattern=obj.pattern)
        obj.pk, obj.tenant, obj.created_at = row.pk, tenant, row.created_at

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._listed(request, obj.tenant, remove={obj.pattern})

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset.select_related("tenant"):
            self.delete_model(request, row)

    def _listed(
        self, request: HttpRequest, tenant: Tenant, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> None:
        rows = OutgoingHost.objects.filter(tenant=tenant)
        hosts = set(rows.values_list("pattern", flat=True)) - set(remove) | set(add)
        services.outgoing_hosts_set(tenant=tenant, actor=admin_actor(request, tenant.pk), hosts=hosts)


@admin.register(AuditEvent)
class AuditEventAdmin(JournalAdmin):
    """The audit trail."""

    list_display = ("at", "action", "actor_name", "object_type", "object_name", "ip", "request_id")
    list_filter = ("actor_kind", "action", "object_type")
    search_fields = ("action", "actor_name", "object_name", "object_id", "request_id")
    date_hierarchy = "at"
    ordering = ("-at", "-pk")


class UserCreationForm(AdminUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("email",)


class UserChangeForm(BaseUserChangeForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = "__all__"


@admin.register(User)
class UserAdmin(TenantScopedAdmin, BaseUserAdmin):  # type: ignore[type-arg]
    """People. An owner sees the members of their workspace, and nothing that reaches beyond it."""

    hidden_fields = frozenset({"password"})
    form, add_form = UserChangeForm, UserCreationForm
    ordering = ("email",)
    list_display = ("email", "first_name", "last_name", "is_active", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("email", "first_name", "last_name")
    filter_horizontal = ("groups", "user_permissions")
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        ("Name", {"fields": ("first_name", "last_name")}),
        ("Rights on this server", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("email", "usable_password", "password1", "password2")}),
    )
    _owner_fields = ("email", "first_name", "last_name", "is_active")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if admin_tenant(request) is not None:
            return ((None, {"fields": self._owner_fields}),)
        return super().get_fieldsets(request, obj)

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        excluded = super().get_exclude(request, obj)
        return [f for f in excluded if f != "password"] if is_operator(request) else excluded

    def get_list_filter(self, request: HttpRequest) -> Any:
        return ("is_active",) if admin_tenant(request) is not None else self.list_filter

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._owner_fields if admin_tenant(request) is not None else self.list_display
