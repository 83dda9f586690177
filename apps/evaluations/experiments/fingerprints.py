"""Which documents are searched: as one hash, for a gate compares no results over different ones, and whether they are the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from apps.collections.models import Collection, Document, DocumentStatus
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor


def corpus_fingerprint(*, actor: Actor, collections: Sequence[int] | None) -> str:
    """Return the SHA-256 of the live documents' files, in an order of their own; None for every collection."""
    rows = Document.objects.visible_to(actor).current().filter(status=DocumentStatus.READY)
    if collections is not None:
        rows = rows.filter(collection_id__in=collections)
    digest = hashlib.sha256()
    for row in rows.order_by("collection_id", "path").values_list("collection_id", "path", "sha256"):
        digest.update(repr(row).encode())
    return digest.hexdigest()


def documents_same_check(*, actor: Actor, searched: Sequence[Sequence[int] | None]) -> None:
    """Refuse arms that do not search the same documents, by the hashes of their live files; their passages may differ.

    Args:
        searched: ids of each arm's collections; None for all.

    Raises:
        Invalid: ``documents_differ``.
    """
    named = [sorted(set(one)) for one in searched if one]
    if len(named) < len(searched) or len({tuple(one) for one in named}) < 2:
        raise _differ(_("Choose two or more collections; each arm searches one of them."))
    ids = {pk for one in named for pk in one}
    files: dict[int, Counter[str]] = {pk: Counter() for pk in ids}
    rows = Document.objects.visible_to(actor).current().filter(status=DocumentStatus.READY)
    for pk, sha256 in rows.filter(collection_id__in=ids).values_list("collection_id", "sha256"):
        files[pk][sha256] += 1
    first, *others = (sum((files[pk] for pk in one), Counter()) for one in named)
    for other, one in zip(others, named[1:], strict=True):
        missing, more = (first - other).total(), (other - first).total()
        if missing or more:
            names = Collection.objects.visible_to(actor).filter(pk__in=one).order_by("name")
            raise _differ(
                _(
                    "“%(collections)s” doesn't have the same documents as the first collection: %(missing)s are "
                    "missing, and %(more)s are different. Upload the same files to both, and wait until they "
                    "are read."
                )
                % {
                    "collections": ", ".join(names.values_list("name", flat=True)),
                    "missing": number_told(missing),
                    "more": number_told(more),
                }
            )


def _differ(message: str) -> Invalid:
    return Invalid("documents_differ", message, data={"fields": {"collections": [message]}})
