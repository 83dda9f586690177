"""What a person started and has ended since: noted with the membership, which each page has read anyway."""

from __future__ import annotations

from django.db import transaction

from tenancy.models import Membership

MOST = 5
"""More than a side bar shows at once; the oldest go."""


def finished_note(*, tenant_id: int, user_id: int | None, kind: str, pk: int, state: str) -> None:
    """Note that work has ended or waits for its person, in the transaction that ends it; nothing for who has left.

    Args:
        user_id: who started it; None for nobody.
        kind: what it is, as ``web.finished`` knows it.
        state: how it ended; replaces what was noted of the same work before.
    """
    if user_id is None:
        return
    with transaction.atomic():
        row = _locked(tenant_id, user_id)
        if row is not None:
            row.finished = [*(one for one in row.finished if one[:2] != [kind, pk]), [kind, pk, state]][
                -MOST:
            ]
            row.save(update_fields=["finished"])


def finished_seen(*, membership: Membership, kind: str, pk: int) -> None:
    """Forget what was noted of one work: its person looks at it. No statement where nothing was noted."""
    if not any(one[:2] == [kind, pk] for one in membership.finished):
        return
    with transaction.atomic():
        row = _locked(membership.tenant_id, membership.user_id)
        if row is not None:
            row.finished = [one for one in row.finished if one[:2] != [kind, pk]]
            row.save(update_fields=["finished"])
            membership.finished = row.finished


def _locked(tenant_id: int, user_id: int) -> Membership | None:
    row: Membership | None = (
        Membership.objects.select_for_update(no_key=True).filter(tenant_id=tenant_id, user_id=user_id).first()
    )
    return row
