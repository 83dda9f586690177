"""kill -9 in the middle of a job: no committed call is paid for again, none is lost, and the numbers are right."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from apps.datasets.models import GenerationState
from runs import remote_models
from tenancy.models import ModelEntry
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.datasets.kills import (
    Findings,
    NumberedModel,
    driver_waiting,
    findings_of,
    nursery,
    paid_usd,
)
from tests.datasets.support import make_open_library, start
from tests.fake_provider import running
from tests.servers import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
NAME = "fake-think20-kills"
PRICE = Decimal("0.003")
"""Of a call in USD, as the fake server counts its tokens."""
ROWS, KILLS = 12, 6


def test_paid_calls_survive_kills_exactly_once(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    remote_models._known.clear()
    model, chance = NumberedModel(), random.Random(7)
    texts = tuple(f"Notice {n} sets a duty of {n} percent on goods of the heading 87{n:02}. {'It is paid at the border by whoever enters the goods. ' * 4}" for n in range(ROWS + 2))  # fmt: skip
    library = make_open_library(cast, texts=texts)
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        server.replies[NAME] = model
        env = {
            "GROUNDWORK_COMPATIBLE_BASE_URL": url,
            "GROUNDWORK_COMPATIBLE_MODELS": NAME,
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
        }
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        ModelEntry.objects.create(
            tenant=cast.tenant, name=f"compatible/{NAME}", prices=[{"input": 10.0, "output": 100.0}]
        )
        job = start(
            cast, library.collection, model=f"compatible/{NAME}", rows=ROWS, types={"factual": 1},
            concurrency=3, row_usd=0.5, budget="20",
        )  # fmt: skip
        with nursery(**env) as workers:
            kills = 0
            # How many answers fit between two kills is the machine's business; on a fast one the job may end sooner.
            while kills < KILLS and (driver := driver_waiting(job)) is not None:
                workers.work(cast.tenant.pk, driver)
                for _ in range(chance.randint(1, 9)):
                    model.moved.clear()
                    if not model.moved.wait(2) and _ended(job):
                        break
                workers.kill()
                kills += 1
            if (driver := driver_waiting(job)) is not None:
                workers.work(cast.tenant.pk, driver)
            wait_for(lambda: _ended(job), 120, "the end of the job")
        assert kills > 1
        assert (job.state, job.kept, job.failed) == (GenerationState.COMPLETED, ROWS, 0), job.reason
        assert findings_of(job, model) == Findings()
        assert paid_usd(model, PRICE) <= job.spent_usd <= Decimal(20)


def _ended(job) -> bool:
    job.refresh_from_db()
    return bool(job.state not in ("queued", "running"))
