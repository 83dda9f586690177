"""App configuration."""

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "apps.tools"
    label = "tools"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.tools.connectors import mcp, openapi, plugin
        from apps.tools.connectors.base import kind_register
        from apps.tools.connectors.mcp_sessions import sessions_close
        from apps.tools.permissions.services import default_grants
        from apps.tools.toolset.bundles import bundle_register
        from apps.tools.toolset.file_bundle import FILE_BUNDLE
        from jobs.registry import before_exit
        from tenancy.services.tenants import on_tenant_create

        bundle_register(FILE_BUNDLE)
        on_tenant_create(default_grants)
        for kind in (openapi.KIND, mcp.KIND, plugin.KIND):
            kind_register(kind)
        before_exit(sessions_close)
