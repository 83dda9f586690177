"""App configuration."""

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "apps.tools"
    label = "tools"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "ToolSource": (
            "names: name title url document_url settings allowed_hosts problem; content: document; codes:"
            " kind status"
        ),
        "ToolVersion": "names: tool_name; content: spec; codes: state digest",
        "ToolCredential": "names: parameter; codes: placement secret_encrypted last_four",
        "ContractTest": "names: tool_name name arguments expected last_problem; codes: last_outcome",
        "ToolEntry": "names: name title description category tags cost_hint",
        "Toolkit": "names: name description",
        "ToolkitMember": "names: tool_name",
        "ToolGrant": (
            "names: target subject arguments note approver; codes: effect target_kind calls subject_kind "
            "approver_kind"
        ),
        "ToolLimit": "names: target; codes: kind target_kind period",
        "ToolLimitUse": "names: subject",
        "ToolVector": "codes: digest vector",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "ToolCredential": "stays: secret",
        "ToolVector": "stays: computed",
        "ToolLimitUse": "stays: passing",
        "ToolLimit": "without: kind=key",
        "ToolGrant": (
            "without: subject_kind=api_key; by: subject subject_kind member=tenancy.User; "
            "by: approver approver_kind member=tenancy.User"
        ),
        "ToolVersion": "plain: spec",
    }

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
