"""Is a paid call ever paid for twice, or lost, when workers die? 50 kills -9 at random moments of a job of 500 rows.

A model server that numbers its answers runs here; workers are processes of their own, killed with SIGKILL after a random
number of further requests and a random fraction of a call. Half way the budget ends: the job must pause, with what the
provider would bill not above the budget by more than what one row reserves. Then it gets more and goes on.

Run: python benchmarks/dataset_kills.py [--rows 500] [--kills 50] [--seed 7]. Makes a database of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from _common import write_result
from _stack import database, load

NAME = "fake-think30-kills"
PRICE, ROW_USD = Decimal("0.003"), Decimal("0.5")
# Less than one call may cost at most (4,000 tokens of output) would make the loop ask for a short answer instead.
CONCURRENCY = 12


def main() -> int:
    """Kill, compare, write results/dataset_kills.json; 0 when nothing was repeated, lost or overspent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    before = load()
    with database():
        result = run(args.rows, args.kills, args.seed)
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("dataset_kills", result))
    return 0 if result["ok"] else 1


def run(rows: int, kills: int, seed: int) -> dict[str, Any]:
    """Carry a job through its kills; returns what was found."""
    from apps.datasets.generation.claiming import job_spend
    from apps.datasets.generation.services import generation_resume
    from apps.datasets.models import PaidCall
    from tenancy.models import ModelEntry
    from tenancy.scope import tenant_scope
    from tests.cast import make_cast
    from tests.datasets.generation.kills import (
        Findings,
        NumberedModel,
        driver_waiting,
        findings_of,
        let_suspects_go_on,
        nursery,
        paid_usd,
    )
    from tests.datasets.support import make_open_library, start
    from tests.fake_provider import running

    chance, model, cast = random.Random(seed), NumberedModel(), make_cast()
    texts = tuple(
        f"Notice {n} sets a duty of {n} percent on goods of the heading {n:05}. {'It is paid at the border by whoever enters the goods. ' * 4}"
        for n in range(rows + 20)
    )
    library = make_open_library(cast, texts=texts)
    calls = 6 * rows
    began, done, pause = time.monotonic(), 0, {}
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        server.replies[NAME] = model
        env = {"GROUNDWORK_COMPATIBLE_BASE_URL": url, "GROUNDWORK_COMPATIBLE_MODELS": NAME}
        os.environ |= env
        ModelEntry.objects.create(
            tenant=cast.tenant, name=f"compatible/{NAME}", prices=[{"input": 10.0, "output": 100.0}]
        )
        budget = PRICE * calls / 2 + 40 * ROW_USD
        job = start(
            cast,
            library.collection,
            model=f"compatible/{NAME}",
            rows=rows,
            types={"factual": 1},
            concurrency=CONCURRENCY,
            row_usd=float(ROW_USD),
            budget=str(budget),
        )
        who = {"tenant": cast.tenant, "actor": cast.actor("member")}
        with nursery(**env) as workers:
            while (driver := driver_waiting(job)) is not None:
                workers.work(cast.tenant.pk, driver)
                if done < kills:
                    left = (calls - PaidCall.objects.filter(job=job).count()) / (kills - done + 1)
                    _wait(job, model, chance.randint(1, max(2, int(1.8 * left))))
                    time.sleep(chance.random() * 0.06)
                else:
                    _wait(job, model, calls * 10)
                job.refresh_from_db()
                if job.state == "paused":
                    workers.kill()
                    paid = paid_usd(model, PRICE)
                    pause = {
                        "budget_usd": budget,
                        "billed_at_pause_usd": paid,
                        "counted_at_pause_usd": job_spend(job),
                        "reason": job.reason,
                    }
                    job = generation_resume(**who, job=job, budget_usd=str(100 * budget))
                    continue
                if job.state in ("completed", "failed", "stopped"):
                    break
                if done < kills:
                    let_suspects_go_on(job)
                    workers.kill()
                    done += 1
        found = findings_of(job, model)
        committed = PaidCall.objects.filter(job=job).count()
        billed = paid_usd(model, PRICE)
        # A short job ends before its budget does; then the budget must simply hold all of it.
        is_within = pause.get("billed_at_pause_usd", billed) <= budget + ROW_USD
        return {
            "rows": rows,
            "kept": job.kept,
            "kills": done,
            "seed": seed,
            "state": job.state,
            "paused_by_budget": bool(pause),
            "calls_answered": len(model.answered),
            "calls_committed": committed,
            "answered_but_lost_with_the_worker": len(model.answered) - committed,
            **pause,
            "reserve_usd": ROW_USD,
            "billed_usd": billed,
            "counted_usd": job.spent_usd,
            "seconds": round(time.monotonic() - began, 1),
            **asdict(found),
            "ok": found == Findings()
            and done == kills
            and job.kept == rows
            and is_within
            and billed <= job.spent_usd,
        }


def _wait(job: Any, model: Any, requests: int) -> None:
    """Wait for so many further requests, or until the job moves no more."""
    for _ in range(requests):
        model.moved.clear()
        if not model.moved.wait(2):
            job.refresh_from_db()
            if job.state not in ("queued", "running"):
                return


if __name__ == "__main__":
    sys.exit(main())
