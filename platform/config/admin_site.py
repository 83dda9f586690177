"""The Django admin, with the platform's name and the scope of whoever is signed in (see ``tenancy.middleware``)."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig


class GroundworkAdminConfig(AdminConfig):
    default_site = "config.admin_site.GroundworkAdminSite"


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
        return bool(user.is_superuser or getattr(request, "admin_tenant", None))
