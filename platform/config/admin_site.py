"""The Django admin, with the platform's name and the scope of whoever is signed in (see ``tenancy.middleware``)."""

from __future__ import annotations

from functools import cache, wraps
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import get_script_prefix, path, reverse
from django.utils.decorators import method_decorator
from django.utils.text import capfirst
from django.views.decorators.http import require_POST

from config.admin_words import page_words, words_install
from tenancy.admin_scope import admin_tenant
from tenancy.models import User
from tenancy.selectors import owned_tenants

words_install()


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

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return Django's view of the admin, whose page is drawn with the portal's words."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def worded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            response = inner(request, *args, **kwargs)
            if isinstance(response, TemplateResponse) and response.context_data and not response.is_rendered:
                page_words(response.context_data)
            return response

        return worded

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

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return groups by what an operator does; of one app, its models as they are."""
        from config.operate.admin_groups import groups_of  # models, which aren't loaded when the site is

        found = self.apps_listed(request, app_label)
        return found if app_label is not None else groups_of(found)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the groups, and above them what needs a person."""
        from config.operate.admin_groups import needs_now

        return super().index(request, {**(extra_context or {}), "needs": needs_now()})

    def apps_listed(self, request: HttpRequest, app_label: str | None) -> list[dict[str, Any]]:
        """Return what Django's get_app_list does: the apps and models that may be seen, each by its name.

        Every page shows it, and Django looks up all of its addresses (80 models, two each) every time: a quarter of
        what a page takes. Here they are looked up once.
        """
        found: dict[str, dict[str, Any]] = {}
        for model, page in self._registry.items():
            label = model._meta.app_label
            if app_label not in (None, "", label) or not page.has_module_permission(request):
                continue
            allowed = page.get_model_perms(request)
            if not any(allowed.values()):
                continue
            addresses = _addresses(self.name, get_script_prefix(), model)
            app = found.setdefault(
                label,
                {
                    "name": apps.get_app_config(label).verbose_name,
                    "app_label": label,
                    "app_url": addresses.app,
                    "has_module_perms": True,
                    "models": [],
                },
            )
            row: dict[str, Any] = {
                "model": model,
                "name": capfirst(model._meta.verbose_name_plural),
                "object_name": model._meta.object_name,
                "perms": allowed,
                "admin_url": None,
                "add_url": addresses.add if allowed.get("add") else None,
            }
            if allowed.get("change") or allowed.get("view"):
                row |= {"admin_url": addresses.rows, "view_only": not allowed.get("change")}
            app["models"].append(row)
        for app in found.values():
            app["models"].sort(key=lambda row: row["name"])
        return sorted(found.values(), key=lambda app: app["name"].lower())

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the workspace that is administered (None: all) and the owner's others."""
        tenant = admin_tenant(request)
        others = owned_tenants(user=cast("User", request.user)) if tenant is not None else []
        return {**super().each_context(request), "admin_tenant": tenant, "admin_tenants": others}


class _Addresses(NamedTuple):
    """Where a model is administered."""

    app: str
    rows: str
    add: str


@cache
def _addresses(site: str, prefix: str, model: type[models.Model]) -> _Addresses:
    """Return the addresses of a model; ``prefix`` is the part of them that the server's operator chooses."""
    label, name = model._meta.app_label, model._meta.model_name
    return _Addresses(
        reverse("admin:app_list", kwargs={"app_label": label}, current_app=site),
        reverse(f"admin:{label}_{name}_changelist", current_app=site),
        reverse(f"admin:{label}_{name}_add", current_app=site),
    )
