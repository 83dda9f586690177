"""What files a collection has, by the database, and its folder on disk kept in line with that.

The database is the truth: a file is the newest version of a document, or, where it is no document (hidden, empty, binary),
the last revision at its path. The folder under ``trees/`` holds copies. A copy counts only when its checksum is the one the
database names; else it is written anew from the kept original. So a crash between commit and disk, a lost disk, a change
made behind our back: all end the same way, at the next access. What the database no longer has leaves the disk as soon as
the two marks differ. The history of a repository is no part of it (``repositories``).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from apps.collections.models import Document, FileBlob, FileRevision
from apps.collections.tree.paths import PathRefused, path_parts
from apps.collections.tree.rules import is_git
from apps.collections.tree.tree import SourceTree, TreeRefused, tree_open, tree_remove
from basics.errors import Missing
from blobs.leases import blob_read

if TYPE_CHECKING:
    from tenancy.actors import Actor

logger = logging.getLogger(__name__)
_MARK = ".mark"
_MARK_BYTES = 200


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the database knows it.

    Attributes:
        path: from the collection's root.
        sha256: of its bytes, in hex.
        size: in bytes.
        media_type: as far as it is known, else "".
        changed_at: when this content came.
        document_id: its document, None for a file that is none.
        is_restricted: whether the document is limited to some.
        key: of the original in the file storage, "" for a file that is no document.
        blob_id: of its bytes in the database, None for a document.
    """

    path: str
    sha256: str
    size: int
    media_type: str
    changed_at: datetime
    document_id: int | None = None
    is_restricted: bool = False
    key: str = ""
    blob_id: int | None = None

    def content(self) -> bytes:
        """Return the bytes from where they are kept.

        Raises:
            DomainError: ``file_missing`` when a document's original is gone.
            Missing: the revision was removed meanwhile.
        """
        if self.key:
            return blob_read(self.key)
        blob = FileBlob.objects.filter(pk__in=[self.blob_id or 0]).values_list("content", flat=True).first()
        if blob is None:
            raise Missing("file")
        return bytes(blob)


def files_stored(
    actor: Actor, collection_id: int, *, folder: str = "", path: str | None = None
) -> dict[str, StoredFile]:
    """Return the files of a collection by path, without documents that the actor may not see.

    Args:
        folder: only what is below it.
        path: only this one.
    """
    if not is_storable(path or folder):
        return {}
    newest = Document.objects.filter(tenant_id=actor.tenant_id, collection_id=collection_id)
    latest = FileRevision.objects.filter(tenant_id=actor.tenant_id, collection_id=collection_id)
    if path is not None:
        newest, latest = newest.filter(path=path), latest.filter(path=path)
    elif folder:
        newest = newest.filter(path__startswith=f"{folder}/")
        latest = latest.filter(path__startswith=f"{folder}/")
    newest = newest.current().order_by("path", "-version").distinct("path")
    rows = newest.values_list(
        "pk", "path", "sha256", "size", "media_type", "created_at", "is_restricted", "file"
    )
    documents = {
        row[1]: StoredFile(row[1], row[2], row[3], row[4], row[5], row[0], row[6], row[7]) for row in rows
    }
    seen = dict(documents)
    if any(file.is_restricted for file in documents.values()):
        restricted = [f.document_id or 0 for f in documents.values() if f.is_restricted]
        visible = set(
            Document.objects.visible_to(actor).filter(pk__in=restricted).values_list("pk", flat=True)
        )
        seen = {k: f for k, f in documents.items() if not f.is_restricted or f.document_id in visible}
    revisions = latest.order_by("path", "-id").distinct("path")
    found = revisions.values_list(
        "path", "after_id", "after__sha256", "after__size", "batch__created_at", "is_indexed"
    )
    for one, blob_id, sha256, size, changed_at, is_indexed in found:
        if blob_id is not None and not is_indexed and one not in documents:
            seen[one] = StoredFile(one, sha256, size, "", changed_at, blob_id=blob_id)
    return seen


def is_storable(text: str) -> bool:
    """Tell whether the database can hold a text at all: no NUL, no half of a character."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def file_bytes(collection_id: int, tenant_id: int, file: StoredFile) -> bytes:
    """Return a file's bytes from the folder on disk, which is put right first where it must be."""
    try:
        parts = path_parts(file.path)
    except PathRefused:
        return file.content()  # a document's name that no folder should hold
    if is_git(file.path):
        return file.content()
    try:
        with collection_tree(tenant_id, collection_id) as tree:
            found = _intact(tree, parts, file)
            if found is not None:
                return found
            content = file.content()
            tree.write(parts, content)
            return content
    except (TreeRefused, OSError) as error:
        # Nothing on the disk may keep people from what the database has.
        logger.warning("tree of collection %s cannot hold %r: %s", collection_id, file.path, error)
        return file.content()


def _intact(tree: SourceTree, parts: tuple[str, ...], file: StoredFile) -> bytes | None:
    try:
        found = tree.read(parts, max_bytes=file.size)
    except FileNotFoundError:
        return None
    except TreeRefused as error:
        logger.warning("found in a collection's tree and replaced: %s", error)
        tree.clear(parts)
        return None
    return found if hashlib.sha256(found).hexdigest() == file.sha256 else None


def trees_folder() -> Path:
    """Return the folder that holds all collections' trees."""
    return Path(settings.DATA_DIR) / "trees"


def collection_tree(tenant_id: int, collection_id: int) -> SourceTree:
    """Open a collection's folder, made on demand."""
    return tree_open(trees_folder(), (f"t{tenant_id}", str(collection_id)))


def collection_tree_remove(tenant_id: int, collection_id: int) -> None:
    """Delete the folder of a deleted collection."""
    tree_remove(trees_folder(), (f"t{tenant_id}", str(collection_id)))
    try:
        with tree_open(trees_folder(), (f"t{tenant_id}",), is_making=False) as outer:
            outer.remove((f"{collection_id}{_MARK}",))
    except FileNotFoundError:
        return  # it never had one


def tree_forget(tenant_id: int, collection_id: int, path: str) -> None:
    """Delete a file's copy from the folder on disk; ``tree_tidy`` makes good what fails here."""
    try:
        parts = path_parts(path)
        with tree_open(trees_folder(), (f"t{tenant_id}", str(collection_id)), is_making=False) as tree:
            tree.remove(parts)
    except (FileNotFoundError, PathRefused):
        return  # no folder yet, or a name that it never held
    except (OSError, TreeRefused) as error:
        logger.warning("tree of collection %s keeps %r: %s", collection_id, path, error)


def tree_tidy(tenant_id: int, collection_id: int, files: Callable[[], dict[str, StoredFile]]) -> bool:
    """Remove from a collection's folder what the database no longer has, unless nothing changed since the last time.

    Args:
        files: gives all files, whoever may see them.

    Returns:
        Whether it had to look.
    """
    mark = _mark(tenant_id, collection_id).encode()
    with tree_open(trees_folder(), (f"t{tenant_id}",)) as outer:
        name = (f"{collection_id}{_MARK}",)
        try:
            if outer.read(name, max_bytes=_MARK_BYTES) == mark:
                return False
        except (FileNotFoundError, TreeRefused):
            pass  # never tidied yet, or tampered with: look at everything
        kept = set(files())
        with collection_tree(tenant_id, collection_id) as tree:
            for entry in list(tree.walk()):
                if entry.kind == "folder" or entry.path in kept:
                    continue
                tree.remove(entry.path.split("/"))
        outer.write(name, mark)
    return True


def _mark(tenant_id: int, collection_id: int) -> str:
    """Return a text that changes whenever a file of the collection comes, goes or changes."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT (SELECT max(id) FROM collections_filebatch WHERE tenant_id = %(t)s AND collection_id = %(c)s),
                   count(*), coalesce(bit_xor(hashtextextended(path || ' ' || sha256, version)), 0)
            FROM collections_document
            WHERE tenant_id = %(t)s AND collection_id = %(c)s AND live_to IS NULL
            """,
            {"t": tenant_id, "c": collection_id},
        )
        batch, count, digest = cursor.fetchone()
    return f"{batch or 0}:{count}:{digest}"
