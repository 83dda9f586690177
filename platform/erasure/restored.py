"""Erase again what a restored backup brought back, before anybody can open it."""

from __future__ import annotations

from django.conf import settings

from erasure.ledger import Entry, ledger_read
from erasure.services import ledger_apply


def restored_check(url: str) -> None:
    """Make sure that the ledger can be read before rows are there. Raises as ``ledger_read``."""
    _entries(url)


def restored_erase(url: str) -> str:
    """Apply the ledger beside a backup, and that of this server, to rows that were just restored.

    Args:
        url: of the place that the backup came from.

    Returns:
        What was done, in a sentence; "" for nothing.
    """
    again = ledger_apply(_entries(url))
    return (
        f"Erased again what was erased after this backup: {again} workspaces, people, documents and conversations."
        if again
        else ""
    )


def _entries(url: str) -> list[Entry]:
    return ledger_read(dict.fromkeys(filter(None, [url, settings.BACKUP_URL])))
