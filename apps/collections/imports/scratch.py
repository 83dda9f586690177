"""Temporary files of imports: unpacked repositories, archives inside archives. Gone when the import ends, however it ends."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings

from apps.collections.models import Import, ImportStatus


def import_scratch(row: Import, stack: ExitStack) -> Path:
    """Return an empty folder for this attempt at an import; it goes with the stack.

    What killed attempts left is removed first: those at this import, and those at the tenant's imports that have ended.
    """
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    running = Import.objects.filter(tenant_id=row.tenant_id, status=ImportStatus.RUNNING)
    kept = {str(pk) for pk in running.exclude(pk=row.pk).values_list("pk", flat=True)}
    for folder in root.glob(f"t{row.tenant_id}-*"):
        if folder.name.split("-")[1] not in kept:
            shutil.rmtree(folder, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"t{row.tenant_id}-{row.pk}-", dir=root))
    stack.callback(shutil.rmtree, made, ignore_errors=True)
    return made


def import_scratch_remove(*, tenant_id: int, import_id: int) -> None:
    """Remove what a killed worker left of an import that has ended."""
    for folder in _root().glob(f"t{tenant_id}-{import_id}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _root() -> Path:
    return Path(settings.DATA_DIR) / "cache" / "imports"
