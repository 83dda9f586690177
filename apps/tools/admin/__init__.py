"""Tools in the admin: sources and versions, what is stated about tools, sets of them, and who may call what."""

from apps.tools.admin import catalog, grants, kits, limits, sources, versions

__all__ = ["catalog", "grants", "kits", "limits", "sources", "versions"]
