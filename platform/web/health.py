"""Is this web process able to serve: what its /readyz and the doctor ask. What is said about workers is the doctor's."""

from __future__ import annotations

import os
import secrets
import time

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from tenancy.health import Check, database_checks, guarded

STORAGE_TRUSTED_S = 30.0
"""How long a write that went well counts: /readyz is public, and each look writes a file."""
_stored_at = -STORAGE_TRUSTED_S


def readiness() -> list[Check]:
    """Return the checks of /readyz: database, its direct line, migrations, storage. Others than the last need the first."""
    return [
        *database_checks(),
        guarded(
            "storage", check_storage, "Let this process write where files are kept (GROUNDWORK_DATA_DIR)."
        ),
    ]


def check_storage() -> Check:
    """A small file can be written where uploads go, and removed again."""
    global _stored_at
    if time.monotonic() - _stored_at >= STORAGE_TRUSTED_S:
        name = default_storage.save(f".readyz-{os.getpid()}-{secrets.token_hex(4)}", ContentFile(b"ready"))
        default_storage.delete(name)
        _stored_at = time.monotonic()
    return Check("storage", True, "writable")
