"""Files of datasets on disk: uploads that are imported, exports to download. Each workspace has a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from django.core.files.storage import default_storage

from apps.collections.storage.originals import ReceivedFile, file_receive
from apps.datasets.models import DatasetExport
from basics.errors import DomainError

MAX_EXPORT_BYTES = 1 << 36


def dataset_file_key(tenant_id: int, dataset_id: int, name: str) -> str:
    """Return the key of a file; ``name`` is ours, never a person's."""
    return f"datasets/t{tenant_id}/{dataset_id}/{name}"


def export_key(export: DatasetExport) -> str:
    """Return the key of the file that an export writes."""
    return dataset_file_key(export.tenant_id, export.dataset_id, f"export-{export.pk}")


def dataset_file_write(key: str, chunks: Iterable[bytes]) -> ReceivedFile:
    """Write a stream to the key; it is there whole or not at all."""
    received = file_receive(chunks, max_bytes=MAX_EXPORT_BYTES)
    dataset_file_place(received, key)
    return received


def dataset_file_place(received: ReceivedFile, key: str) -> None:
    """Move received bytes to their key."""
    target = Path(default_storage.path(key))
    target.parent.mkdir(parents=True, exist_ok=True)
    received.path.chmod(0o600)
    received.path.replace(target)


def dataset_file_path(key: str) -> Path:
    """Return the path of a kept file. Raises DomainError ``file_gone`` when it is not kept any more."""
    path = Path(default_storage.path(key)) if key else None
    if path is None or not path.is_file():
        raise DomainError("file_gone", "This file has been deleted. Create it again.", status=410)
    return path


def dataset_file_is_there(key: str) -> bool:
    """Tell whether a file is kept."""
    return Path(default_storage.path(key)).is_file()


def dataset_file_remove(key: str) -> None:
    """Delete a file, if it is there."""
    if key:
        Path(default_storage.path(key)).unlink(missing_ok=True)


def dataset_files_remove(tenant_id: int, dataset_id: int) -> None:
    """Delete everything that a deleted dataset kept on disk; its id is never used again."""
    folder = default_storage.path(f"datasets/t{tenant_id}/{dataset_id}")
    shutil.rmtree(folder, ignore_errors=True)
