"""What an answer cites stays until the answer is stored, and others may cite it at the same moment."""

from __future__ import annotations

import psycopg
import pytest
from django.db import transaction

from apps.conversations.answering.closing import _ALIVE, _alive
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library
from tests.patience import PATIENCE_S
from tests.servers import database_url


@pytest.mark.django_db(transaction=True)
def test_answers_that_cite_the_same_passages_do_not_wait_for_each_other(cast: Cast, library: Library) -> None:
    pks = [chunk.pk for chunk in library.chunks]
    with psycopg.connect(database_url(), autocommit=True) as other, tenant_scope(cast.tenant.pk):
        with transaction.atomic():
            assert list(_alive(cast.tenant.pk, pks)) == pks
            other.execute(f"SET lock_timeout = '{PATIENCE_S:.0f}s'")
            assert other.execute(_ALIVE, [cast.tenant.pk, pks]).rowcount == len(pks)
            other.execute("SET lock_timeout = '1ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("DELETE FROM collections_chunk WHERE id = %s", [pks[0]])
        other.execute("RESET lock_timeout")
        other.execute("DELETE FROM collections_chunk WHERE id = %s", [pks[0]])
        with transaction.atomic():
            assert list(_alive(cast.tenant.pk, pks)) == pks[1:]
