"""Sample collections: a few real public-domain documents that any workspace can add to try things with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apps.collections.collection.services import collection_create, collection_delete
from apps.collections.documents.services import document_upload
from apps.collections.models import Collection
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant

FOLDER = Path(__file__).resolve().parents[1] / "demo"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A collection that comes with its documents; ``files`` are names in ``FOLDER``."""

    name: str
    description: str
    files: tuple[str, ...]


TARIFFS = Sample(
    "Section 232 tariffs",
    "A Federal Register notice and a note of the tariff schedule.",
    ("federal-register-2025-15819.pdf", "hts-chapter-99-note-33-automobiles.txt"),
)
PLANS = Sample(
    "Strategic plans",
    "Goals of two federal agencies.",
    ("dhs-strategic-plan-2020-2024.pdf", "gsa-strategic-plan-2022-2026.pdf"),
)
SAMPLES = (TARIFFS, PLANS)

Listener = Callable[[Tenant, Actor, Collection], None]
_LISTENERS: list[Listener] = []


def on_sample(listener: Listener) -> None:
    """Have a function called with each sample collection that was added; rooms above this one say so here."""
    if listener not in _LISTENERS:
        _LISTENERS.append(listener)


def sample_add(*, tenant: Tenant, actor: Actor, sample: Sample = TARIFFS) -> Collection:
    """Make a sample collection and have its documents read.

    Raises:
        Denied: without the right ``collection.write``.
        Conflict: there is a collection of that name.
    """
    collection = collection_create(
        tenant=tenant, actor=actor, name=sample.name, description=sample.description
    )
    try:
        for name in sample.files:
            with (FOLDER / name).open("rb") as file:
                document_upload(
                    tenant=tenant,
                    actor=actor,
                    collection=collection,
                    name=name,
                    chunks=iter(lambda: file.read(_BLOCK), b""),
                )
        for listener in _LISTENERS:
            listener(tenant, actor, collection)
    except BaseException:
        # No transaction takes it back: the file store is waited for outside of any.
        collection_delete(tenant=tenant, actor=system_actor(tenant.pk, actor.user_id), collection=collection)
        raise
    return collection
