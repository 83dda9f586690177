"""What a backup that is verified must let people do: find passages by their words."""

from __future__ import annotations

from apps.collections.models import Chunk, DocumentStatus
from apps.collections.search import search_run
from backups.verifying import Verified
from basics.errors import DomainError
from tenancy.actors import system_actor
from tenancy.scope import platform_scope, tenant_scope

_PASSAGES = 5  # one of only numbers or marks can't be found by its words
_WORDS = 8
_LETTERS = 500


def search_verify(found: Verified) -> None:
    """Search for the words of passages, by words alone: models of embeddings aren't part of a backup."""
    with platform_scope():
        chunks = list(
            Chunk.objects.filter(document__status=DocumentStatus.READY, is_disabled=False)
            .select_related("collection", "tenant")
            .order_by("pk")[:_PASSAGES]
        )
    for chunk in chunks:
        try:
            with tenant_scope(chunk.tenant_id):
                result = search_run(
                    tenant=chunk.tenant,
                    actor=system_actor(chunk.tenant_id),
                    collections=[chunk.collection],
                    query=" ".join(chunk.text.split()[:_WORDS])[:_LETTERS],
                    legs=["lexical", "exact"],
                    is_patient=True,
                )
        except DomainError as error:
            found.note(f"Search: {error.message}")
            return
        if result.hits:
            found.done.append("a search finds passages")
            return
    if chunks:
        found.note(f"A search for the words of {len(chunks)} passages finds none of them.")
    else:
        found.done.append("no passage to search for")
