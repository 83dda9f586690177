"""Originals of documents, archives and packs: their keys, the rows that name them, and what was made of them on this machine.

The key is ``t<tenant>/<collection>/<first two of sha256>/<sha256>``: the same bytes uploaded twice are one file.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from apps.collections.models import Document, FileBlob, Import, RepositoryPack
from tenancy.scope import tenant_scope

_KEY = re.compile(r"t(\d+)/(\d+)/(?:[0-9a-f]{2}/([0-9a-f]{64}))?")


def file_key(tenant_id: int, collection_id: int, sha256: str) -> str:
    """Return the key under which a file is kept."""
    return f"t{tenant_id}/{collection_id}/{sha256[:2]}/{sha256}"


def files_prefix(tenant_id: int, collection_id: int) -> str:
    """Return what all keys of a collection begin with."""
    return f"t{tenant_id}/{collection_id}/"


@dataclass(frozen=True, slots=True)
class KeyParts:
    """What a key says.

    Attributes:
        sha256: of the file; "" for the prefix of a whole collection.
    """

    tenant: int
    collection: int
    sha256: str


def key_parts(key: str) -> KeyParts | None:
    """Return what a key, or the prefix of a collection, says; None for those of other apps."""
    found = _KEY.fullmatch(key)
    return KeyParts(int(found[1]), int(found[2]), found[3] or "") if found else None


def file_in_history(key: str) -> bytes | None:
    """Return the bytes of a key where the history of files holds them too."""
    parts = key_parts(key)
    if parts is None or not parts.sha256:
        return None
    with tenant_scope(parts.tenant):
        rows = FileBlob.objects.filter(tenant_id=parts.tenant, sha256=parts.sha256)
        content = rows.values_list("content", flat=True).first()
    return None if content is None else bytes(content)


def files_named(tenant_id: int, keys: Collection[str]) -> set[str]:
    """Return those of the keys that a document, an import or a repository names."""
    ours = {key: parts for key in keys if (parts := key_parts(key)) is not None}
    if not ours:
        return set()
    # What a key says is said by the columns of its row too, and these have indexes (``file_key`` makes every key).
    contents = {parts.sha256 for parts in ours.values()}
    collections = {parts.collection for parts in ours.values()}
    named: set[str] = set()
    for model, column, also in (
        (Document, "file", {"sha256__in": contents}),
        (Import, "file", {"collection_id__in": collections}),
        (RepositoryPack, "file", {}),
        (RepositoryPack, "index", {}),
    ):
        rows = model.objects.filter(tenant_id=tenant_id, **{f"{column}__in": ours}, **also)
        named.update(rows.values_list(column, flat=True))
    return named


def made_forget(tenant_id: int, keys: Collection[str]) -> None:
    """Delete what this machine made of removed originals, unless the workspace has the same bytes elsewhere.

    Args:
        keys: or prefixes of deleted collections.
    """
    parts = [part for part in map(key_parts, keys) if part is not None]
    if any(not part.sha256 for part in parts):
        _pages_compare(tenant_id)
        return
    gone = {part.sha256 for part in parts}
    known = Document.objects.filter(tenant_id=tenant_id, sha256__in=gone)
    for sha256 in gone.difference(known.values_list("sha256", flat=True)):
        shutil.rmtree(page_cache(tenant_id, sha256), ignore_errors=True)


def made_compare() -> None:
    """Delete what this machine keeps of pages whose document is gone, of every workspace."""
    for folder in page_caches().glob("t*"):
        if folder.name[1:].isdecimal():
            with tenant_scope(int(folder.name[1:])):
                _pages_compare(int(folder.name[1:]))


def _pages_compare(tenant_id: int) -> None:
    for folder in pages_orphaned(tenant_id):
        shutil.rmtree(folder, ignore_errors=True)


def pages_orphaned(tenant_id: int) -> Iterator[Path]:
    """Yield the folders of pages that this machine keeps of no document, in the workspace's scope."""
    root = page_caches() / f"t{tenant_id}"
    for group in sorted(root.glob("??")):
        folders = {folder.name: folder for folder in group.iterdir()}
        known = Document.objects.filter(tenant_id=tenant_id, sha256__in=folders)
        for name in sorted(set(folders) - set(known.values_list("sha256", flat=True))):
            yield folders[name]


def page_caches() -> Path:
    """Return the folder of what was made of all workspaces' pages."""
    return Path(settings.DATA_DIR) / "cache" / "pages"


def page_cache(tenant_id: int, sha256: str) -> Path:
    """Return the folder of what was made of a file's pages: images, places of passages, results of text recognition."""
    return page_caches() / f"t{tenant_id}" / sha256[:2] / sha256


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
