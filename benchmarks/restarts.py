"""What becomes of turns when workers die again and again: every turn ends with its answer, and nothing is done twice.

50 turns of five steps run over REST on a real web server and real workers, as `up` starts them. Every 20 s a worker is
killed with SIGKILL: by turns one of its processes that carries turns, and the whole command, which is then started again
as `up` would do it. In every step but the last the model, a real server on loopback, calls a tool with a side effect that
counts itself in a file. The server knows how often each step was asked for. Leases are those of an installation.

Run: python benchmarks/restarts.py [--turns 50] [--steps 5] [--every 20] [--think 5000] [--victim both]. Makes a database
of its own and writes results/restarts.json.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.concurrency.settings"

from _common import write_result
from _stack import database, load, percentile

LOOK_S = 0.1
RESTART_S = 0.5  # what `up` waits before it starts a service again
LONGEST_S = 1200.0


def main() -> int:
    """Ask, kill, compare; 0 when every turn ended with its answer and no effect was doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--think", type=int, default=5000, help="ms of a model call")
    parser.add_argument("--spread", type=float, default=60.0, help="seconds in which turns begin")
    parser.add_argument("--victim", choices=("process", "command", "both"), default="both")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    before = load()
    with database(), tempfile.TemporaryDirectory(prefix="groundwork-restarts-") as folder:
        result = _run(args, Path(folder))
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("restarts", result))
    return 0 if result["ok"] else 1


def _run(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from apps.tools.models import ToolGrant
    from apps.tools.permissions.services import grant_create
    from tenancy.scope import tenant_scope
    from tests.cast import make_cast
    from tests.concurrency.holds import FOLDER
    from tests.concurrency.rest import Rest, make_key
    from tests.fake_provider import running
    from tests.servers import Stack

    model = f"fake-restarts-think{args.think}"
    asked: Counter[tuple[int, int]] = Counter()

    def reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
        number = int(re.findall(r"turn (\d+)", str(body["messages"]))[0])
        step = sum(message["role"] == "tool" for message in body["messages"])
        asked[number, step] += 1
        if step == args.steps - 1:
            return f"Turn {number} is done."
        text = f"Send {number * 100 + step}"
        return [{"name": "send_notice", "arguments": {"query": text}}]

    (folder / "logs").mkdir()
    (folder / "holds").mkdir()
    cast = make_cast()
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        server.replies[model] = reply
        actor = cast.actor("owner")
        allow = {"effect": "allow", "target_kind": "pattern", "target": "*"}
        ToolGrant.objects.all().delete()  # the rule that effects must be approved among them
        grant_create(tenant=cast.tenant, actor=actor, **allow)
        stack = Stack(
            folder / "logs",
            DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
            DATABASE_URL=os.environ["DATABASE_URL"],
            GROUNDWORK_JOB_LEASE_S="30",
            GROUNDWORK_COMPATIBLE_BASE_URL=url,
            GROUNDWORK_COMPATIBLE_MODELS=model,
            **{FOLDER: str(folder / "holds")},
        )
        try:
            stack.start()
            rest = Rest(stack.port, make_key(cast))
            found = _Trial(args, stack, rest, model).carry()
        except BaseException:
            for log in sorted((folder / "logs").glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            stack.stop()
        effects = Counter((folder / "holds" / "notices").read_text().splitlines())
        found |= _compared(args, asked, effects)
        found["ok"] = (
            found["answers_right"] == args.turns
            and not found["effects_doubled"]
            and found["effects"] + found["outcome_unknown"] >= found["effects_wanted"]
        )
        return found


class _Trial:
    """Ask all turns, kill on the clock, and wait for the ends."""

    def __init__(self, args: argparse.Namespace, stack: Any, rest: Any, model: str) -> None:
        self._args, self._stack, self._rest, self._model = args, stack, rest, model
        self._chance = random.Random(args.seed)
        self._kills: list[str] = []
        self._resumed: list[float] = []
        self._stranded: dict[int, float] = {}
        self._turns: list[int] = []
        self._dead: set[str] = set()

    def carry(self) -> dict[str, Any]:
        began = time.monotonic()
        killed = told = began
        pause = self._args.spread / self._args.turns
        while True:
            now = time.monotonic()
            if now - began > LONGEST_S:
                raise TimeoutError(f"{self._open()} turns did not end")
            if len(self._turns) < self._args.turns:
                if now - began >= len(self._turns) * pause:
                    self._ask(len(self._turns) + 1)
            elif not self._open():
                break
            if now - killed >= self._args.every:
                killed = now
                self._kill()
            self._watch()
            if now - told >= 10:
                told = now
                print(f"{now - began:5.0f} s: {self._open()} of {len(self._turns)} turns are open")
            time.sleep(LOOK_S)
        return {"seconds": round(time.monotonic() - began, 1), **self._found()}

    def _ask(self, number: int) -> None:
        made = self._rest.post("/api/v1/conversations", {"model": f"compatible/{self._model}"})
        path = f"/api/v1/conversations/{made.json['id']}/turns"
        asked = self._rest.post(path, {"text": f"This is turn {number}"})
        if asked.status != 201:
            raise RuntimeError(f"the question was refused: {asked}")
        self._turns.append(asked.json["id"])

    def _open(self) -> int:
        from runs.models import ACTIVE, Run, RunStatus

        open_ = Run.objects.filter(status__in=ACTIVE).values_list("status", flat=True)
        if RunStatus.PARKED in open_:
            raise RuntimeError("a turn waits for approval: the rules of this workspace are not as wanted")
        return len(open_)

    def _kill(self) -> None:
        from jobs.heartbeat import worker_is_dead
        from jobs.models import Job, JobStatus

        rows = Job.objects.filter(status=JobStatus.RUNNING).values_list("pk", "worker")
        carried = {pk: worker for pk, worker in rows if not worker_is_dead(worker)}
        if not carried:
            return
        whole = self._args.victim == "command" or (self._args.victim == "both" and len(self._kills) % 2 == 1)
        if whole:
            command = self._stack.worker
            os.killpg(command.pid, signal.SIGKILL)
            command.wait(10)
            lost = list(carried)
            time.sleep(RESTART_S)
            self._stack._begin_worker()
        else:
            victim = self._chance.choice(sorted(set(carried.values())))
            os.kill(int(victim.rpartition(":")[2]), signal.SIGKILL)
            lost = [pk for pk, worker in carried.items() if worker == victim]
        self._stranded |= dict.fromkeys(lost, time.monotonic())
        self._kills.append(f"{'command' if whole else 'process'}: {len(lost)} turns")
        print(f"kill {len(self._kills)}, {self._kills[-1]} under way")
        self._dead |= {carried[pk] for pk in lost}

    def _watch(self) -> None:
        """Note when a turn whose worker was killed is under way again."""
        from jobs.models import Job, JobStatus

        if not self._stranded:
            return
        rows = Job.objects.filter(pk__in=self._stranded)
        for pk, status, worker in rows.values_list("pk", "status", "worker"):
            if status == JobStatus.RUNNING and worker not in self._dead:
                self._resumed.append(time.monotonic() - self._stranded.pop(pk))
            elif status not in (JobStatus.RUNNING, JobStatus.QUEUED):
                del self._stranded[pk]

    def _found(self) -> dict[str, Any]:
        from apps.conversations.models import Message, Turn
        from jobs.models import Job
        from runs.models import Run, ToolCall

        runs = list(Run.objects.filter(pk__in=Turn.objects.values("run_id")).order_by("pk"))
        rights = [f"Turn {number} is done." for number in range(1, len(runs) + 1)]
        said = dict(
            Message.objects.filter(author=Message.Author.ASSISTANT).values_list("turn__run_id", "text")
        )
        return {
            "turns": len(runs),
            "steps": self._args.steps,
            "kill_every_s": self._args.every,
            "kills": self._kills,
            "ended": dict(Counter(f"{run.status} {run.error_code}".strip() for run in runs)),
            "answers_right": sum(
                run.answer == right == said.get(run.pk) for run, right in zip(runs, rights, strict=True)
            ),
            "outcome_unknown": ToolCall.objects.filter(error_code="outcome_unknown").count(),
            "most_claims_of_a_turn": max(Job.objects.values_list("attempts", flat=True)),
            "turns_that_lost_a_worker": Job.objects.filter(attempts__gt=1).count(),
            "resumed_after_s": {
                "median": round(percentile(self._resumed, 0.5), 2),
                "most": round(max(self._resumed), 2),
            }
            if self._resumed
            else None,
        }


def _compared(
    args: argparse.Namespace, asked: Counter[tuple[int, int]], effects: Counter[str]
) -> dict[str, Any]:
    wanted = args.turns * (args.steps - 1)
    return {
        "effects": sum(effects.values()),
        "effects_wanted": wanted,
        "effects_doubled": sum(count - 1 for count in effects.values()),
        "model_calls": sum(asked.values()),
        "model_calls_again": sum(count - 1 for count in asked.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
