"""Writes of tools: permissions, and a workspace's own tools."""

from apps.tools.services.calls import calls_execute
from apps.tools.services.cells import cell_set
from apps.tools.services.contract_tests import contract_test_delete, contract_test_run, contract_test_set
from apps.tools.services.entries import entry_delete, entry_set
from apps.tools.services.exchange import catalog_export, catalog_import
from apps.tools.services.grants import default_grants, grant_create, grant_delete, grants_change
from apps.tools.services.history import state_restore
from apps.tools.services.limits import tool_limit_remove, tool_limit_set
from apps.tools.services.source_credentials import credential_forget, credential_set
from apps.tools.services.sources import source_create, source_delete, source_refresh, source_update
from apps.tools.services.toolkits import collection_toolkit_set, toolkit_delete, toolkit_set
from apps.tools.services.versions import version_accept, version_reject

__all__ = [
    "calls_execute",
    "catalog_export",
    "catalog_import",
    "cell_set",
    "collection_toolkit_set",
    "contract_test_delete",
    "contract_test_run",
    "contract_test_set",
    "credential_forget",
    "credential_set",
    "default_grants",
    "entry_delete",
    "entry_set",
    "grant_create",
    "grant_delete",
    "grants_change",
    "source_create",
    "source_delete",
    "source_refresh",
    "source_update",
    "state_restore",
    "tool_limit_remove",
    "tool_limit_set",
    "toolkit_delete",
    "toolkit_set",
    "version_accept",
    "version_reject",
]
