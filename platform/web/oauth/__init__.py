"""OAuth 2.1 for MCP clients: each workspace is an authorization server of its own, ``/t/<slug>``, for its one resource.

``metadata`` tells clients where to go, ``clients`` who they are, ``requests`` what they ask for, ``views`` answers. Tokens and
what they open belong to ``tenancy.services.connections``.
"""
