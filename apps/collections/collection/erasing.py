"""What is a person's among collections: the private ones with what they attached. And what a workspace's rows leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apps.collections.collection.services import collection_delete
from apps.collections.index.large import indexes_drop
from apps.collections.models import Collection
from tenancy.actors import system_actor
from tenancy.models import Tenant, User
from tenancy.scope import platform_scope, tenant_scope


def person_collections_erase(person: User) -> Mapping[str, int]:
    """Delete a person's private collections in every workspace, with documents and files."""
    with platform_scope():
        mine = list(Collection.objects.filter(owner=person).select_related("tenant"))
    for row in mine:
        with tenant_scope(row.tenant_id):
            collection_delete(tenant=row.tenant, actor=system_actor(row.tenant_id), collection=row)
    return {"collections.Collection": len(mine)}


def workspace_indexes_erase(tenant: Tenant) -> Callable[[], None]:
    """Return what drops the indexes that large collections of a workspace have for themselves, once its rows are gone."""
    with tenant_scope(tenant.pk):
        pks = list(Collection.objects.filter(tenant=tenant).values_list("pk", flat=True))

    def drop() -> None:
        for pk in pks:
            indexes_drop(collection_id=pk)

    return drop
