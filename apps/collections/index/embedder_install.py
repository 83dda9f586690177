"""Install a checked sentence model for the whole installation."""

from __future__ import annotations

from django.db import transaction

from apps.collections.embedders.folder import FolderModel
from apps.collections.index.spaces import OPEN
from apps.collections.models import Collection, EmbeddingSpace, InstalledEmbedder, SpaceSwap
from basics.errors import Conflict
from tenancy.scope import platform_scope


def embedder_install(model: FolderModel) -> InstalledEmbedder:
    """Make a model choosable as ``local/<name>`` on the whole installation; for the operator's commands.

    The same model under the same name may come again, from another folder too. Another one may take the name as long as
    nobody's vectors are of the earlier one.

    Args:
        model: as ``folder_check`` has described it.

    Raises:
        Conflict: ``embedder_in_use``: collections search vectors of another model of that name.
    """
    with platform_scope(), transaction.atomic():
        row = InstalledEmbedder.objects.select_for_update().filter(name=model.name).first()
        if row is not None and row.fingerprint != model.fingerprint:
            users = _users(row)
            if users:
                raise Conflict(
                    "embedder_in_use",
                    f"Another model is installed as local/{model.name}, and {users} "
                    f"{'collection uses' if users == 1 else 'collections use'} it. Give this one another --name, then move "
                    "them to it.",
                )
        row, _ = InstalledEmbedder.objects.update_or_create(
            name=model.name,
            defaults={
                "folder": str(model.path),
                "options": model.options.to_json(),
                "digests": dict(model.digests),
                "dimensions": model.dimensions,
                "fingerprint": model.fingerprint,
            },
        )
    return row


def _users(row: InstalledEmbedder) -> int:
    """Count the collections that search, or are about to search, vectors of an installed model."""
    spaces = EmbeddingSpace.objects.filter(provider="local", model=row.name, fingerprint=row.fingerprint)
    moving = SpaceSwap.objects.filter(status__in=OPEN)
    swaps = moving.filter(to_space__in=spaces) | moving.filter(from_space__in=spaces)
    users = Collection.objects.filter(space__in=spaces).values_list("pk", flat=True)
    return len({*users, *swaps.values_list("collection_id", flat=True)})
