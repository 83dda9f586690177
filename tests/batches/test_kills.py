"""kill -9 of the worker at any moment of a job by batch: no call is sent or paid for twice, none is lost."""

from __future__ import annotations

import random

import pytest

from apps.datasets.models import GenerationState, PaidCall
from batches.models import Batch
from runs.models import UsageRecord
from tenancy.scope import tenant_scope
from tests.batches.support import PAST, Deadly, begin, sent
from tests.cast import Cast
from tests.datasets.generation.kills import driver_waiting, is_alive, nursery
from tests.datasets.support import FakeModel, make_open_library
from tests.fake_provider import FakeProvider
from tests.servers import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
ROWS, KILLS, CALLS = 1, 5, 6


def test_kills_at_any_request_pay_for_each_call_once(
    cast: Cast, server: FakeProvider, model: FakeModel
) -> None:
    library, chance = make_open_library(cast), random.Random(5)
    with tenant_scope(cast.tenant.pk), nursery(DJANGO_SETTINGS_MODULE="config.settings.test") as workers:
        asked = server.batches.asked = Deadly(workers)
        job = begin(cast, library, rows=ROWS)
        while (driver := driver_waiting(job)) is not None:
            # Whoever was sending has been killed.
            Batch.objects.filter(trying_until__isnull=False).update(trying_until=PAST)
            asked.last = len(asked) + chance.randint(1, 5) if asked.kills < KILLS else 0
            workers.work(cast.tenant.pk, driver)
            wait_for(lambda: not is_alive(workers.pid), "the end of a worker")
        job.refresh_from_db()
        assert asked.kills == KILLS, f"{job.state}: {job.reason}"
        assert (job.state, job.kept) == (GenerationState.COMPLETED, ROWS), job.reason
        assert (len(sent(server)), set(sent(server).values())) == (CALLS, {1})
        assert len(model.asked) == CALLS == PaidCall.objects.filter(job=job).count()
        paid = UsageRecord.objects.filter(kind="dataset")
        assert paid.count() == CALLS
        assert sum(record.cost_usd or 0 for record in paid) == job.spent_usd > 0
