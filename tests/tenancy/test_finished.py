"""Work that has ended is noted with its person's membership until they look at it."""

from __future__ import annotations

import pytest

from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tenancy.services import finished_note, finished_seen
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def noted(cast: Cast) -> Membership:
    return Membership.objects.get(tenant=cast.tenant, user=cast.user("member"))


def note(cast: Cast, pk: int, state: str = "completed", *, user_id: int | None = None) -> None:
    finished_note(
        tenant_id=cast.tenant.pk,
        user_id=user_id or cast.user("member").pk,
        kind="experiment",
        pk=pk,
        state=state,
    )


def test_newest_word_of_each_work_is_kept_and_of_works_the_last_five(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        for pk in range(1, 8):
            note(cast, pk)
        note(cast, 4, "paused")
        assert noted(cast).finished == [
            *(["experiment", pk, "completed"] for pk in (3, 5, 6, 7)),
            ["experiment", 4, "paused"],
        ]


def test_what_is_looked_at_is_forgotten_and_nothing_else(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        note(cast, 1)
        row = noted(cast)
        note(cast, 2)  # ends while the page of the first is drawn
        finished_seen(membership=row, kind="rows", pk=1)
        finished_seen(membership=row, kind="experiment", pk=1)
        assert row.finished == noted(cast).finished == [["experiment", 2, "completed"]]


def test_who_has_left_and_who_is_nobody_are_noted_nothing(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        note(cast, 1, user_id=cast.user("outsider").pk)
        finished_note(tenant_id=cast.tenant.pk, user_id=None, kind="experiment", pk=1, state="completed")
        assert not Membership.objects.filter(tenant=cast.tenant).exclude(finished=[]).exists()
