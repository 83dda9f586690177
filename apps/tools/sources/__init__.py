"""Sources of a workspace's own tools: what each kind can do, and a found tool before it is a version.

A kind is one module here (``openapi``, ``mcp``, ``plugin``). It knows how to read a source (network, off the database)
and how to make callable tools of accepted versions. It decides nothing: ``apps.tools.services`` stores versions, the
guard holds each call against the grants.
"""

from apps.tools.sources.base import IN_DB, FoundTool, SourceError, SourceKind, kind_get, kind_register

__all__ = ["IN_DB", "FoundTool", "SourceError", "SourceKind", "kind_get", "kind_register"]
