"""Web and worker are replaced one by one while answers stream: every answer arrives whole, and nothing of it twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.conversations.models import Message
from apps.conversations.turns.asking import JOB_KIND
from jobs.models import Job
from runs.models import Run, RunStatus
from runs.transcript import transcript_of
from tenancy.scope import tenant_scope
from tests.cast import make_cast
from tests.concurrency.followers import Follower
from tests.concurrency.rest import Rest, make_key
from tests.fake_provider import FakeProvider, running
from tests.patience import PATIENCE_S
from tests.servers import Process, Stack, wait_for

MODEL = "fake-words40-held"
STREAMS = 5


@pytest.fixture
def machines(transactional_db: None, tmp_path: Path) -> Iterator[tuple[FakeProvider, list[Stack]]]:
    """A model server, and two machines on one database on which nothing runs yet."""
    with running() as (url, model_server):
        made = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            made.append(
                Stack(
                    tmp_path / name,
                    GROUNDWORK_JOB_LEASE_S="600",  # nothing is found by a lease that runs out
                    GROUNDWORK_COMPATIBLE_BASE_URL=url,
                    GROUNDWORK_COMPATIBLE_MODELS=MODEL,
                )
            )
        try:
            yield model_server, made
        finally:
            model_server.release()
            for stack in made:
                stack.stop()
            for log in sorted(tmp_path.glob("*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


def end(process: Process | None) -> None:
    """End a process as whoever replaces it does, and wait until it has gone."""
    assert process is not None
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)


def test_streams_are_whole_when_web_and_worker_are_replaced_one_by_one(
    machines: tuple[FakeProvider, list[Stack]],
) -> None:
    model_server, (one, two) = machines
    cast = make_cast()
    key = make_key(cast)
    one.start()
    rest, runs = Rest(one.port, key), []
    for number in range(STREAMS):
        made = rest.post("/api/v1/conversations", {"model": f"compatible/{MODEL}"})
        asked = rest.post(f"/api/v1/conversations/{made.json['id']}/turns", {"text": f"Question {number}?"})
        assert asked.status == 201, asked
        runs.append(asked.json["run_id"])
    followers = [Follower(run, key, (one.port, two.port)) for run in runs]
    for follower in followers:
        follower.start()
    wait_for(lambda: all(transcript_of(f.events).text for f in followers), "text on every page")
    wait_for(lambda: len(model_server.log) >= STREAMS, "every question at the model")

    two.start_web()
    end(one.web)
    wait_for(lambda: {f.port for f in followers} == {two.port}, "the streams to move")
    one.start_web()
    end(two.web)
    wait_for(lambda: {f.port for f in followers} == {one.port}, "the streams to move back")
    assert len(model_server.log) == STREAMS, "the worker has not heard of it"
    two.start_worker()
    end(one.worker)
    wait_for(lambda: len(model_server.log) == 2 * STREAMS, "the other worker to go on")
    model_server.release()
    for follower in followers:
        follower.join(PATIENCE_S)

    assert [f.has_ended for f in followers] == [True] * STREAMS
    assert [f.cut for f in followers] == [0] * STREAMS, "each stream was ended in order"
    assert all(f.moved >= 2 for f in followers)
    with tenant_scope(cast.tenant.pk):
        for run_id, follower in zip(runs, followers, strict=True):
            run = Run.objects.get(pk=run_id)
            assert (run.status, run.error_code) == (RunStatus.COMPLETED, ""), run.error_message
            assert [seq for seq, _, _ in follower.events] == list(range(1, run.last_seq + 1))
            assert transcript_of(follower.events).text == run.answer
            assert len(run.answer.split()) == 40
        assert Message.objects.filter(author=Message.Author.ASSISTANT).count() == STREAMS
        # Given back, not lost: it counts as no attempt.
        assert set(Job.objects.filter(kind=JOB_KIND).values_list("attempts", "deaths")) == {(1, 0)}
    assert "Cancel" not in (one.logs / "web.log").read_text() + (two.logs / "web.log").read_text()
