"""The workspace as an MCP server, at ``/t/<slug>/mcp`` (streamable HTTP).

``view`` is the edge: key, address, rate, size. ``exchange`` hands one request to the official SDK, without a session, so that any
web process can answer any request and a restart loses nothing. ``server`` says what is offered: ``calls`` (tools),
``resources`` (collections, documents, passages, search, runs) and ``prompts``.

Only ``view`` is imported when the platform starts: the SDK's server takes a second and memory that most processes never
need.
"""
