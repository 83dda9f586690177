"""Is this web process able to serve: what its /readyz and the doctor ask. What is said about workers is the doctor's."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from django.conf import settings

from tenancy.health import Check, database_checks, guarded

STORAGE_TRUSTED_S = 30.0
"""How long a write that went well counts: /readyz is public, and each look writes a file."""
_stored_at = -STORAGE_TRUSTED_S


def readiness() -> list[Check]:
    """Return the checks of /readyz: database, its direct line, migrations, storage. Others than the last need the first."""
    return [
        *database_checks(),
        guarded(
            "storage", check_storage, "Let this process write into its data directory (GROUNDWORK_DATA_DIR)."
        ),
    ]


def check_storage() -> Check:
    """A small file can be written where uploads arrive, and removed again.

    Whether a bucket answers is for the doctor: without it people still chat and search.
    """
    global _stored_at
    if time.monotonic() - _stored_at >= STORAGE_TRUSTED_S:
        folder = Path(settings.MEDIA_ROOT) / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="upload-") as file:
            file.write(b"ready")
            file.flush()
        _stored_at = time.monotonic()
    return Check("storage", True, "writable")
