"""Facts about a collection's repositories that other writes need."""

from __future__ import annotations

from apps.collections.models import Collection, Repository, RepositoryPack
from tenancy.actors import Actor


def repository_bytes(collection: Collection) -> int:
    """Return how many bytes the repositories of a collection take, for its quota."""
    packs = RepositoryPack.objects.filter(tenant_id=collection.tenant_id, repository__collection=collection)
    return sum(packs.values_list("size", flat=True))


def repositories_limit(collection: Collection) -> None:
    """Open the history of a collection's repositories to owners alone, for good: a document limited to some leaves it.

    Its bytes may be in a commit, and with it goes the row that told who may see them.
    """
    rows = Repository.objects.filter(tenant_id=collection.tenant_id, collection=collection)
    rows.update(is_limited=True)


def has_repository(*, actor: Actor, collection: Collection) -> bool:
    """Tell whether a collection has a repository at all, whoever may read its history."""
    actor.require("collection.read")
    found: bool = Repository.objects.visible_to(actor).filter(collection=collection).exists()
    return found
