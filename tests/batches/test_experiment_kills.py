"""kill -9 of workers at any moment of an experiment by batch: no call is sent or paid for twice, and none is lost."""

from __future__ import annotations

import random

import pytest

from apps.evaluations.models import Experiment, ExperimentState, Trial
from batches.models import Batch, BatchLine
from jobs.models import ACTIVE, Job
from jobs.sweeper import sweep
from runs.models import Run, UsageRecord
from tenancy.scope import tenant_scope
from tests.batches.experiments import KINDS, Clerk, begin
from tests.batches.support import MODEL, PAST, Deadly, sent
from tests.cast import Cast
from tests.conversations.support import make_library
from tests.datasets.generation.kills import is_alive, nursery
from tests.evaluations.support import make_version, rows_of
from tests.fake_provider import FakeProvider
from tests.servers import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
KILLS, CALLS = 5, 4


def job_waiting(experiment: Experiment) -> int | None:
    """Return a job that a worker can take, after giving back what a dead one had; None at the end."""
    rows = Job.objects.filter(tenant_id=experiment.tenant_id, kind__in=KINDS, status__in=ACTIVE)
    rows.filter(status="running").update(lease_expires_at=PAST)
    sweep()
    rows.update(run_after=PAST)
    found = sorted(rows.values_list("kind", "pk"), key=lambda row: (KINDS.index(row[0]), row[1]))
    return found[0][1] if found else None


def test_kills_at_any_request_pay_for_each_call_once(cast: Cast, server: FakeProvider) -> None:
    clerk, library, chance = Clerk(), make_library(cast), random.Random(7)
    server.replies[MODEL.partition("/")[2]] = clerk
    version = make_version(cast, rows_of(library)[:1])
    target = {"kind": "assistant", "model": MODEL, "collections": [library.collection.pk]}
    options = {"models": [MODEL]}
    scorers = [{"kind": "rubric", "options": options}, {"kind": "answer_relevancy", "options": options}]
    with tenant_scope(cast.tenant.pk), nursery(DJANGO_SETTINGS_MODULE="config.settings.test") as workers:
        asked = server.batches.asked = Deadly(workers)
        experiment = begin(cast, version, target, scorers=scorers)
        while (job := job_waiting(experiment)) is not None:
            # Whoever was sending has been killed.
            Batch.objects.filter(trying_until__isnull=False).update(trying_until=PAST)
            asked.last = len(asked) + chance.randint(1, 4) if asked.kills < KILLS else 0
            workers.work(cast.tenant.pk, job)
            wait_for(lambda: not is_alive(workers.pid), "the end of a worker")
        experiment.refresh_from_db()
        assert asked.kills == KILLS, f"{experiment.state}: {experiment.reason}"
        assert experiment.state == ExperimentState.COMPLETED, experiment.reason
        assert Trial.objects.get().state == "done"
        assert Run.objects.get().status == "completed"
        # A turn that searches and one that answers, and two judgements at once.
        assert (len(sent(server)), set(sent(server).values())) == (CALLS, {1})
        assert len(clerk.asked) == CALLS == UsageRecord.objects.count()
        assert sum(one.cost_usd or 0 for one in UsageRecord.objects.all()) == experiment.spent_usd
        assert not BatchLine.objects.exists()
