"""The Django admin, with the platform's name and the scope of whoever is signed in (see ``tenancy.middleware``)."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from tenancy.admin_scope import admin_tenant
from tenancy.models import User
from tenancy.selectors import owned_tenants


class GroundworkAdminSite(AdminSite):
    """Open to superusers (every tenant) and to owners of a workspace (that workspace only)."""

    site_header = "Groundwork"
    site_title = "Groundwork"
    index_title = "Administration"
    enable_nav_sidebar = True

    def has_permission(self, request: Any) -> bool:
        """Allow active superusers and anyone whose admin scope the middleware has set."""
        user = request.user
        if not (user.is_active and user.is_authenticated):
            return False
        return bool(user.is_superuser or admin_tenant(request))

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Send people to the one sign-in page, which asks for the second factor too.

        Raises:
            PermissionDenied: they are signed in, and have no business here.
        """
        target = request.GET.get("next") or reverse("admin:index", current_app=self.name)
        if request.user.is_authenticated:
            if self.has_permission(request):
                return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
            raise PermissionDenied("The administration is for owners of a workspace and for the operator.")
        return HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': target})}")

    def get_urls(self) -> list[Any]:
        return [
            path("workspace/", self.admin_view(self.switch_tenant), name="switch_tenant"),
            *super().get_urls(),
        ]

    @method_decorator(require_POST)
    def switch_tenant(self, request: HttpRequest) -> HttpResponse:
        """Let an owner of several workspaces choose the one to administer.

        The session keeps the choice; the middleware checks at each request that it is still theirs.
        """
        chosen = next(
            (
                t
                for t in owned_tenants(user=cast("User", request.user))
                if str(t.pk) == request.POST.get("tenant")
            ),
            None,
        )
        if chosen is None:
            raise Http404
        request.session["admin_tenant"] = chosen.pk
        return HttpResponseRedirect(reverse("admin:index", current_app=self.name))

    def get_app_list(self, request: Any, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return groups by what an operator does; of one app, its models as they are."""
        from config.operate.admin_groups import groups_of  # models, which aren't loaded when the site is

        found: list[dict[str, Any]] = super().get_app_list(request, app_label)
        return found if app_label is not None else groups_of(found)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the groups, and above them what needs a person."""
        from config.operate.admin_groups import needs_now

        return super().index(request, {**(extra_context or {}), "needs": needs_now()})

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the workspace that is administered (None: all) and the owner's others."""
        tenant = admin_tenant(request)
        others = owned_tenants(user=cast("User", request.user)) if tenant is not None else []
        return {**super().each_context(request), "admin_tenant": tenant, "admin_tenants": others}
