"""What can go wrong with the embedded database."""

from __future__ import annotations


class EmbeddedPostgresError(Exception):
    """The embedded database cannot be used; the message says why and what to do."""
