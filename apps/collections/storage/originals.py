"""Originals on disk: received under a temporary name while they are hashed, then moved to where their hash says.

The key is ``t<tenant>/<collection>/<first two of sha256>/<sha256>``: the same bytes uploaded twice are one file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Q

from apps.collections.models import Document, Import, RepositoryPack
from basics.errors import DomainError, Invalid
from tenancy.scope import tenant_scope

_ABANDONED_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """Bytes that have arrived and have no document yet.

    Attributes:
        path: where they lie for now.
        size: in bytes.
        sha256: of all of them, in hex.
    """

    path: Path
    size: int
    sha256: str

    def discard(self) -> None:
        """Delete the bytes unless they were kept."""
        self.path.unlink(missing_ok=True)


def file_receive(chunks: Iterable[bytes], *, max_bytes: int) -> ReceivedFile:
    """Write a stream to disk while hashing it.

    Args:
        chunks: the bytes, in pieces of any size.
        max_bytes: refuse more, as soon as it is known.

    Raises:
        Invalid: ``too_large`` (413).
    """
    folder = Path(default_storage.path("incoming"))
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder, prefix="upload-", delete=False) as target:
        path = Path(target.name)
        try:
            for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise too_large(max_bytes)
                digest.update(chunk)
                target.write(chunk)
            target.flush()  # here, where a full disk is noticed in time to take the piece away again
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return ReceivedFile(path, size, digest.hexdigest())


def _sweep(folder: Path) -> None:
    """Remove what uploads left behind that were killed in the middle."""
    for path in folder.glob("upload-*"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue  # its upload ended meanwhile


def too_large(max_bytes: int) -> Invalid:
    """Return the refusal of a file beyond the limit."""
    return Invalid(
        "too_large",
        f"The file has more than {max_bytes // 1_000_000} MB, which is the limit here. Split it, or ask the "
        "operator to raise GROUNDWORK_MAX_UPLOAD_MB.",
        status=413,
        data={"max_bytes": max_bytes},
    )


def file_key(tenant_id: int, collection_id: int, sha256: str) -> str:
    """Return the key under which a file is kept."""
    return f"t{tenant_id}/{collection_id}/{sha256[:2]}/{sha256}"


def file_lock(key: str) -> None:
    """Take the lock on a key until the transaction ends: placing a file and removing it never cross."""
    if not connection.in_atomic_block:
        raise RuntimeError("file_lock() belongs into a transaction")
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def file_place(received: ReceivedFile, key: str) -> None:
    """Move received bytes to their key; the caller holds ``file_lock(key)``."""
    target = Path(default_storage.path(key))
    target.parent.mkdir(parents=True, exist_ok=True)
    received.path.chmod(0o600)
    received.path.replace(target)


def file_exists(key: str) -> bool:
    """Tell whether a key has its bytes."""
    return Path(default_storage.path(key)).is_file()


def file_path(key: str) -> Path:
    """Return the path of a kept file.

    Raises:
        DomainError: ``file_missing`` when it is gone.
    """
    path = Path(default_storage.path(key))
    if not path.is_file():
        raise DomainError(
            "file_missing",
            "The original file is missing from storage. Delete this document and upload the file again.",
            status=410,
        )
    return path


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_remove(*, tenant_id: int, key: str, sha256: str) -> None:
    """Delete a file and the page images made of it, unless a document, an import or a repository needs them.

    Call it after the commit that deleted the document.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        file_lock(key)
        packs = RepositoryPack.objects.filter(Q(file=key) | Q(index=key), tenant_id=tenant_id)
        is_needed = packs.exists() or Import.objects.filter(tenant_id=tenant_id, file=key).exists()
        if not is_needed and not Document.objects.filter(tenant_id=tenant_id, file=key).exists():
            Path(default_storage.path(key)).unlink(missing_ok=True)
        if not Document.objects.filter(tenant_id=tenant_id, sha256=sha256).exists():
            shutil.rmtree(page_cache(tenant_id, sha256), ignore_errors=True)


def files_remove(*, tenant_id: int, collection_id: int, sha256s: Iterable[str]) -> None:
    """Delete everything a deleted collection kept on disk; its id is never used again."""
    shutil.rmtree(default_storage.path(f"t{tenant_id}/{collection_id}"), ignore_errors=True)
    with tenant_scope(tenant_id):
        wanted = set(sha256s)
        kept = Document.objects.filter(tenant_id=tenant_id, sha256__in=wanted)
        for sha256 in wanted - set(kept.values_list("sha256", flat=True)):
            shutil.rmtree(page_cache(tenant_id, sha256), ignore_errors=True)


def page_cache(tenant_id: int, sha256: str) -> Path:
    """Return the folder of what was made of a file's pages: images, places of passages, results of text recognition."""
    return Path(settings.DATA_DIR) / "cache" / "pages" / f"t{tenant_id}" / sha256[:2] / sha256


def cache_write(target: Path, data: bytes) -> None:
    """Write a file in one step: two that do so at once leave a whole one, whoever was first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as stream:
        try:
            stream.write(data)
            stream.flush()
        except OSError:
            os.unlink(stream.name)
            raise
    os.replace(stream.name, target)
