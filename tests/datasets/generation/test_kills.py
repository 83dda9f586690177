"""kill -9 in the middle of a job: no committed call is paid for again, none is lost, and the numbers are right."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from apps.datasets.generation.claiming import MOST_DEATHS
from apps.datasets.generation.driving import DEADLY
from apps.datasets.models import GenerationItem, GenerationJob, GenerationState
from runs import remote_models
from tenancy.models import ModelEntry
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.datasets.generation.kills import (
    Findings,
    NumberedModel,
    driver_waiting,
    findings_of,
    is_alive,
    let_suspects_go_on,
    nursery,
    paid_usd,
)
from tests.datasets.support import FakeModel, make_open_library, start
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
    texts = tuple(
        f"Notice {n} sets a duty of {n} percent on goods of the heading 87{n:02}. {'It is paid at the border by whoever enters the goods. ' * 4}"
        for n in range(ROWS + 2)
    )
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
            cast,
            library.collection,
            model=f"compatible/{NAME}",
            rows=ROWS,
            types={"factual": 1},
            concurrency=3,
            row_usd=0.5,
            budget="20",
        )
        with nursery(**env) as workers:
            kills = 0
            # How many answers fit between two kills is the machine's business; on a fast one the job may end sooner.
            while kills < KILLS and (driver := driver_waiting(job)) is not None:
                workers.work(cast.tenant.pk, driver)
                for _ in range(chance.randint(1, 9)):
                    model.moved.clear()
                    if not model.moved.wait(2) and _ended(job):
                        break
                let_suspects_go_on(job)
                workers.kill()
                kills += 1
            if (driver := driver_waiting(job)) is not None:
                workers.work(cast.tenant.pk, driver)
            wait_for(lambda: _ended(job), "the end of the job")
        assert kills > 1
        assert (job.state, job.kept, job.failed) == (GenerationState.COMPLETED, ROWS, 0), job.reason
        assert findings_of(job, model) == Findings()
        assert paid_usd(model, PRICE) <= job.spent_usd <= Decimal(20)


class AskingModel(FakeModel):
    """Searches for what it is asked."""

    def __call__(self, body: dict[str, Any]) -> str | int | list[dict[str, Any]]:
        said = super().__call__(body)
        if isinstance(said, list):
            question = json.dumps(body["messages"][1]["content"])
            return [{**call, "arguments": {"query": question}} for call in said]
        return said


def test_rows_that_kill_are_found_and_given_up_and_no_other_one(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote_models._known.clear()
    texts = tuple(
        f"{'Mortal' if n in (1, 4) else 'Plain'} notice {n} sets a duty of {n} percent on goods. {'It is paid at the border by whoever enters the goods. ' * 4}"
        for n in range(6)
    )
    library = make_open_library(cast, texts=texts)
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        server.replies[NAME] = AskingModel()
        env = {
            "GROUNDWORK_COMPATIBLE_BASE_URL": url,
            "GROUNDWORK_COMPATIBLE_MODELS": NAME,
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
        }
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        job = start(
            cast,
            library.collection,
            model=f"compatible/{NAME}",
            rows=len(texts),
            types={"factual": 1},
            concurrency=3,
            rounds=1,
        )
        lives = 0
        with nursery(**env, DEADLY_WORD="Mortal") as workers:
            while (driver := driver_waiting(job)) is not None:
                lives += 1
                workers.work(cast.tenant.pk, driver)
                wait_for(lambda: not is_alive(workers.pid), "the end of a worker")
        job.refresh_from_db()
        assert (job.state, job.kept, job.failed) == (GenerationState.COMPLETED, 4, 2), job.reason
        failed = GenerationItem.objects.filter(job=job, state="failed")
        assert all("Mortal" in item.data["question"] for item in failed)
        assert {item.reason for item in failed} == {DEADLY % {"n": MOST_DEATHS}}
        # Two deaths that both had a part in, one alone each, and the worker that lived to the end; one more where a row
        # began after a death.
        assert 5 <= lives <= 7


def _ended(job: GenerationJob) -> bool:
    job.refresh_from_db()
    return bool(job.state not in ("queued", "running"))
