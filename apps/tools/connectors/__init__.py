"""Where tools come from: OpenAPI documents, MCP servers, installed packages; read and called.

A kind is one module here (``openapi``, ``mcp``, ``plugin``). It knows how to read a source (network, off the database)
and how to make callable tools of accepted versions. It decides nothing: ``apps.tools.sources`` stores versions, the guard
holds each call against the grants.
"""
