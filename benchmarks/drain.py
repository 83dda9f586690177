"""What readers notice of a rolling replacement: web and worker processes are replaced one by one while 50 answers stream.

Two machines on one database. Answers stream word by word from a model, a real server on loopback; each has a client that
follows it over REST and comes back with `Last-Event-ID` to whichever web process answers. While they stream, the web process
of each machine and then its worker get SIGTERM, each once its replacement is ready. An answer is whole when its client has
every event of the run once and in order, and the text that these make is the answer that is stored.

Run: python benchmarks/drain.py [--streams 50] [--words 600] [--gap 250]. Makes a database of its own and writes
results/drain.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"

from _common import write_result
from _stack import database, load, model_server

LONGEST_S = 1800.0


def main() -> int:
    """Ask, replace, compare; 0 when every answer is whole and no stream was cut."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--words", type=int, default=600, help="of each answer")
    parser.add_argument("--gap", type=int, default=250, help="ms between two words")
    args = parser.parse_args()
    before = load()
    with database(), tempfile.TemporaryDirectory(prefix="groundwork-drain-") as folder:
        result = _run(args, Path(folder))
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("drain", result))
    return 0 if result["ok"] else 1


def _run(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from tests.cast import make_cast
    from tests.concurrency.followers import Follower
    from tests.concurrency.rest import Rest, make_key

    model = f"fake-words{args.words}-gap{args.gap}"
    cast = make_cast()
    key = make_key(cast)
    with _machines(folder, model) as (one, two):
        one.start()
        rest, runs = Rest(one.port, key), []
        for number in range(args.streams):
            made = rest.post("/api/v1/conversations", {"model": f"compatible/{model}"})
            path = f"/api/v1/conversations/{made.json['id']}/turns"
            asked = rest.post(path, {"text": f"Question {number}?"})
            if asked.status != 201:
                raise RuntimeError(f"the question was refused: {asked}")
            runs.append(asked.json["run_id"])
        followers = [Follower(run, key, (one.port, two.port), seconds=LONGEST_S) for run in runs]
        for follower in followers:
            follower.start()
        _wait(lambda: all(f.events for f in followers), "every stream to begin")
        print("all stream")
        under_way = []
        for name, old, new in (
            ("web", one, two),
            ("worker", one, two),
            ("web", two, one),
            ("worker", two, one),
        ):
            getattr(new, f"start_{name}")()
            under_way.append(sum(not f.has_ended for f in followers))
            leaving = getattr(old, name)
            leaving.send_signal(signal.SIGTERM)
            leaving.wait(60)
            print(f"{name} replaced, {under_way[-1]} answers under way", flush=True)
        _wait(lambda: all(f.has_ended for f in followers), "every stream to end")
        return _compared(cast.tenant.pk, runs, followers, under_way)


@contextmanager
def _machines(folder: Path, model: str) -> Iterator[list[Any]]:
    """Two machines on which nothing runs yet, and the model server that they ask."""
    from tests.servers import Stack

    with model_server() as url:
        made = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            made.append(
                Stack(
                    folder / name,
                    DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
                    DATABASE_URL=os.environ["DATABASE_URL"],
                    GROUNDWORK_JOB_LEASE_S="600",  # nothing is found by a lease that runs out
                    GROUNDWORK_RUN_SECONDS="3600",
                    GROUNDWORK_RATE_PER_MINUTE="0",
                    GROUNDWORK_TENANT_RATE_PER_MINUTE="0",
                    GROUNDWORK_COMPATIBLE_BASE_URL=url,
                    GROUNDWORK_COMPATIBLE_MODELS=model,
                )
            )
        try:
            yield made
        except BaseException:
            for log in sorted(folder.glob("*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            for stack in made:
                stack.stop()


def _compared(tenant_id: int, runs: list[int], followers: list[Any], under_way: list[int]) -> dict[str, Any]:
    from apps.conversations.models import Message
    from jobs.models import Job
    from runs.models import Run, RunStatus
    from runs.transcript import transcript_of
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant_id):
        rows = Run.objects.in_bulk(runs)
        numbers = {run: [seq for seq, _, _ in f.events] for run, f in zip(runs, followers, strict=True)}
        whole = [
            rows[run].status == RunStatus.COMPLETED
            and numbers[run] == list(range(1, rows[run].last_seq + 1))
            and transcript_of(f.events).text == rows[run].answer
            for run, f in zip(runs, followers, strict=True)
        ]
        answers = Message.objects.filter(author=Message.Author.ASSISTANT).count()
        found: dict[str, Any] = {
            "streams": len(runs),
            "answers_under_way": under_way,
            "whole": sum(whole),
            "events": sum(len(one) for one in numbers.values()),
            "events_twice": sum(len(one) - len(set(one)) for one in numbers.values()),
            "answers_stored": answers,
            "streams_moved": sum(f.moved for f in followers),
            "streams_cut": sum(f.cut for f in followers),
            "jobs_lost": Job.objects.filter(deaths__gt=0).count(),
        }
    found["ok"] = (
        found["whole"] == found["answers_stored"] == len(runs)
        and not found["events_twice"]
        and not found["streams_cut"]
        and not found["jobs_lost"]
        and min(under_way) == len(runs)
    )
    return found


def _wait(condition: Any, what: str) -> None:
    until = time.monotonic() + LONGEST_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {LONGEST_S:.0f} s for {what}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
