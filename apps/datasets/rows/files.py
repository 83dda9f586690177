"""Files of datasets: uploads that are imported, exports to download. Each workspace has keys of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from apps.datasets.models import DatasetCheck, DatasetExport, DatasetImport
from basics.errors import DomainError
from basics.texts import gettext as _
from blobs import services as blobs
from blobs.errors import BlobMissing
from blobs.leases import blob_open, lease

MAX_EXPORT_BYTES = 1 << 36
_KEY = re.compile(r"datasets/t\d+/(\d+)/(export|import|errors|splits)-[0-9a-f]+(?:-[0-9a-f]+)?(?:\.[a-z]+)?")


def dataset_file_key(tenant_id: int, dataset_id: int, name: str) -> str:
    """Return the key of a file; ``name`` is ours, never a person's."""
    return f"datasets/t{tenant_id}/{dataset_id}/{name}"


def written_key(work: DatasetExport | DatasetImport | DatasetCheck, kind: str) -> str:
    """Return a new key for a file that some work writes: one that is done again never writes over what it wrote before.

    Args:
        kind: ``export``, ``errors`` or ``splits``.
    """
    return dataset_file_key(work.tenant_id, work.dataset_id, f"{kind}-{work.pk}-{uuid4().hex[:16]}")


def dataset_files_named(tenant_id: int, keys: Collection[str]) -> set[str]:
    """Return those of the keys that an export, an import or a division names."""
    kinds: dict[str, list[str]] = {}
    datasets: set[int] = set()  # every key says its own (``dataset_file_key``), and rows are found by it
    for key in keys:
        if found := _KEY.fullmatch(key):
            datasets.add(int(found[1]))
            kinds.setdefault(found[2], []).append(key)
    named: set[str] = set()
    for kind, model, column in (
        ("export", DatasetExport, "file"),
        ("import", DatasetImport, "file"),
        ("errors", DatasetImport, "errors_file"),
        ("splits", DatasetCheck, "options__moves"),
    ):
        if kind in kinds:
            rows = model.objects.filter(
                tenant_id=tenant_id, dataset_id__in=datasets, **{f"{column}__in": kinds[kind]}
            )
            named.update(rows.values_list(column, flat=True))
    return named


def dataset_file_write(tenant_id: int, key: str, chunks: Iterable[bytes]) -> blobs.ReceivedFile:
    """Write a stream to the key; it is there whole or not at all.

    Returns:
        What was written: the caller names it in the transaction that names the key, and discards it in any case.
    """
    received = blobs.receive(chunks, max_bytes=MAX_EXPORT_BYTES)
    try:
        blobs.keep(tenant_id, key, received)
    except BaseException:
        received.discard()
        raise
    return received


@contextmanager
def dataset_file(key: str) -> Iterator[Path]:
    """Give the block a kept file to read. Raises DomainError ``file_gone`` when it is not kept any more."""
    try:
        with lease(key) as path:
            yield path
    except BlobMissing:
        raise _gone() from None


def dataset_file_open(key: str) -> BinaryIO:
    """Open a kept file. Raises DomainError ``file_gone``."""
    try:
        return blob_open(key)
    except BlobMissing:
        raise _gone() from None


def _gone() -> DomainError:
    return DomainError("file_gone", _("This file has been deleted. Create it again."), status=410)
