"""Trees of this machine kept in line with what other machines delete: a document, a whole collection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from apps.collections.models import Collection
from apps.collections.storage.originals import key_parts
from apps.collections.tree.store import collection_tree_remove, files_stored, tree_tidy, trees_folder
from tenancy.actors import system_actor
from tenancy.scope import tenant_scope


def tree_follow(tenant_id: int, keys: Sequence[str]) -> None:
    """Drop removed originals' copies from this machine's trees, and the trees of removed collections."""
    for collection in {parts.collection for parts in map(key_parts, keys) if parts is not None}:
        if (trees_folder() / f"t{tenant_id}" / str(collection)).is_dir():
            _compare(tenant_id, collection)


def trees_compare() -> None:
    """Drop from all trees of this machine what the rows no longer have."""
    for folder in trees_folder().glob("t*/*"):
        tenant, collection = folder.parent.name[1:], folder.name
        if tenant.isdecimal() and collection.isdecimal() and folder.is_dir():
            with tenant_scope(int(tenant)):
                _compare(int(tenant), int(collection))


def _compare(tenant_id: int, collection_id: int) -> None:
    if Collection.objects.filter(tenant_id=tenant_id, pk=collection_id).exists():
        tree_tidy(tenant_id, collection_id, partial(files_stored, system_actor(tenant_id), collection_id))
    else:
        collection_tree_remove(tenant_id, collection_id)
