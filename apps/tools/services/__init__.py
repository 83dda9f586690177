"""Writes of tool permissions."""

from apps.tools.services.calls import calls_execute
from apps.tools.services.entries import entry_delete, entry_set
from apps.tools.services.grants import default_grants, grant_create, grant_delete, grants_change
from apps.tools.services.toolkits import toolkit_delete, toolkit_set

__all__ = [
    "calls_execute",
    "default_grants",
    "entry_delete",
    "entry_set",
    "grant_create",
    "grant_delete",
    "grants_change",
    "toolkit_delete",
    "toolkit_set",
]
