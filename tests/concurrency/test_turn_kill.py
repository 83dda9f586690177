"""kill -9 of the worker in the middle of turns: each goes on, says nothing twice, and does nothing twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from apps.conversations.models import Message, QueuedQuestion, Turn
from apps.conversations.turns.asking import JOB_KIND
from jobs.models import Job
from runs.models import Run, RunEvent, RunStatus, ToolCall
from runs.transcript import transcript_of
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.concurrency.conftest import LOOKING_UP, SENDING, STEPS, STREAMING, Site
from tests.concurrency.documents import make_collection, upload
from tests.concurrency.holds import TOOL
from tests.concurrency.ledger import assert_nothing_runs, wait_ended
from tests.concurrency.rest import Rest, make_key, streamed
from tests.fake_provider import WORDS
from tests.processes import kill_hard
from tests.servers import wait_for

ENDED = {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.STOPPED}


def _ask(cast: Cast, rest: Rest, model: str, text: str) -> Turn:
    made = rest.post("/api/v1/conversations", {"model": f"compatible/{model}"})
    assert made.status == 201, made
    asked = rest.post(f"/api/v1/conversations/{made.json['id']}/turns", {"text": text})
    assert asked.status == 201, asked
    with tenant_scope(cast.tenant.pk):
        turn: Turn = Turn.objects.get(pk=asked.json["id"])
        return turn


def _events(cast: Cast, turn: Turn) -> list[tuple[int, str, dict[str, object]]]:
    with tenant_scope(cast.tenant.pk):
        rows = RunEvent.objects.filter(run=turn.run_id).order_by("seq")
        return list(rows.values_list("seq", "kind", "data"))


def _worker_pid(cast: Cast, turn: Turn) -> int:
    with tenant_scope(cast.tenant.pk):
        job = Job.objects.get(kind=JOB_KIND, payload__turn_id=turn.pk)
        return int(job.worker.rsplit(":", 1)[1])


def _run(cast: Cast, turn: Turn) -> Run:
    with tenant_scope(cast.tenant.pk):
        row: Run = Run.objects.get(pk=turn.run_id)
        return row


def _calls(cast: Cast, turn: Turn) -> list[ToolCall]:
    with tenant_scope(cast.tenant.pk):
        return list(ToolCall.objects.filter(run=turn.run_id).order_by("step"))


def test_turns_end_without_saying_or_doing_anything_twice_when_their_worker_is_killed(
    site: Site, cast: Cast
) -> None:
    document = upload(
        cast, make_collection(cast), "duty.txt", b"The duty applies to every entry of lamps. " * 20
    )
    wait_ended(cast.tenant, [document.pk])
    rest = Rest(site.stack.port, make_key(cast))
    site.holds.arm(TOOL, 501)
    site.holds.arm(TOOL, 502)
    sending = _ask(cast, rest, SENDING, "Send notice 501")
    looking = _ask(cast, rest, LOOKING_UP, "Look up 502")
    site.holds.reached(TOOL, 501)
    site.holds.reached(TOOL, 502)
    writing = _ask(cast, rest, STREAMING, "What is the duty on lamps?")  # last: it does not wait
    turns = (writing, sending, looking)
    wait_for(lambda: 20 < len(transcript_of(_events(cast, writing)).text) < 200, "text to stream")
    before = transcript_of(_events(cast, writing)).text
    for pid in {_worker_pid(cast, turn) for turn in turns}:
        kill_hard(pid)
    assert _run(cast, writing).status == RunStatus.RUNNING
    site.holds.release(TOOL, 501)
    site.holds.release(TOOL, 502)

    wait_for(lambda: all(_run(cast, t).status in ENDED for t in turns), "the turns to end")

    for turn in turns:
        run = _run(cast, turn)
        assert (run.status, run.error_code) == (RunStatus.COMPLETED, ""), run.error_message
        events = _events(cast, turn)
        assert [seq for seq, _, _ in events] == list(range(1, run.last_seq + 1))
        assert [kind for _, kind, _ in events].count("finished") == 1
        assert transcript_of(events).text == run.answer
        with tenant_scope(cast.tenant.pk):
            assert Message.objects.filter(turn=turn, author=Message.Author.ASSISTANT).count() == 1
            assert Job.objects.get(kind=JOB_KIND, payload__turn_id=turn.pk).attempts == 2
    assert_nothing_runs(cast.tenant)

    # What streamed before the kill was voided, and the whole answer stands there once.
    answer = _run(cast, writing).answer
    whole = "".join(f"{WORDS[i % len(WORDS)]} " for i in range(80))
    assert answer.startswith(whole)
    assert answer.removeprefix(whole).startswith("[c")
    assert before.strip() in answer
    assert "step_reset" in [kind for _, kind, _ in _events(cast, writing)]
    (search,) = _calls(cast, writing)
    assert (search.status, search.attempts) == ("succeeded", 1), "a finished search is not repeated"

    # The notice went out once; nobody knows whether it arrived, and the model is told so.
    assert site.holds.notices().count("sent 501") == 1
    (sent,) = _calls(cast, sending)
    assert (sent.status, sent.error_code) == ("unknown", "outcome_unknown")
    assert "outcome is unknown" in sent.content

    # Looking up again does no harm: it is simply done again.
    assert site.holds.notices().count("looked 502") == 2
    (looked,) = _calls(cast, looking)
    assert (looked.status, looked.attempts, looked.content) == ("succeeded", 2, "looked 502")

    # Whoever watches from outside sees the same, from the start or from any point.
    stored = _events(cast, writing)
    for after in (0, 5, len(stored) - 1):
        answered = rest.get(f"/api/v1/runs/{writing.run_id}/events?after={after}")
        assert streamed(answered.text) == stored[after:]


def test_question_that_waits_is_neither_lost_nor_sent_twice_when_its_worker_is_killed(
    site: Site, cast: Cast
) -> None:
    """Killed between the end of an answer and the start of the next turn: before that is written, and right after it."""
    rest = Rest(site.stack.port, make_key(cast))
    points = {"queue": 601, "asked": 602}
    turns: dict[str, Turn] = {}
    for point, number in points.items():
        site.holds.arm(TOOL, number)
        turns[point] = _ask(cast, rest, LOOKING_UP, f"Look up {number}")
        site.holds.arm(point, turns[point].conversation_id)
    for point, number in points.items():
        site.holds.reached(TOOL, number)
        path = f"/api/v1/conversations/{turns[point].conversation_id}/turns"
        question = {"text": f"Now look up {number + 10}", "client_id": str(uuid.uuid4())}
        assert rest.post(path, question).status == 409
        waits = rest.post(path, {**question, "when_busy": "queue"})
        assert waits.status == 202, waits
        assert rest.post(path, {**question, "when_busy": "queue"}).json["id"] == waits.json["id"]
    for number in points.values():
        site.holds.release(TOOL, number)
    pids = {site.holds.reached(point, turn.conversation_id) for point, turn in turns.items()}
    with tenant_scope(cast.tenant.pk):
        assert Turn.objects.filter(conversation=turns["queue"].conversation_id).count() == 1
        assert Turn.objects.filter(conversation=turns["asked"].conversation_id).count() == 2
    for pid in pids:
        kill_hard(pid)
    for point, turn in turns.items():
        site.holds.release(point, turn.conversation_id)

    def answered() -> bool:
        with tenant_scope(cast.tenant.pk):
            return Run.objects.filter(status=RunStatus.COMPLETED).count() == 4

    wait_for(answered, "both questions to be answered")
    assert_nothing_runs(cast.tenant)
    for point, number in points.items():
        with tenant_scope(cast.tenant.pk):
            asked = Turn.objects.filter(conversation=turns[point].conversation_id)
            said = Message.objects.filter(turn__in=asked, author=Message.Author.USER)
            assert list(said.order_by("turn__index").values_list("text", flat=True)) == [
                f"Look up {number}",
                f"Now look up {number + 10}",
            ]
        assert f"looked {number + 10}" in site.holds.notices()
    with tenant_scope(cast.tenant.pk):
        assert not QueuedQuestion.objects.exists()


def _looks_up(first: int, count: int) -> Callable[[dict[str, Any]], str | list[dict[str, Any]]]:
    """Return a model that looks up so many numbers, one a step, and then answers."""

    def reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done == count:
            return "All of them were looked up."
        return [{"name": "look_up", "arguments": {"query": f"Look up {first + done}"}}]

    return reply


def test_turn_outlives_any_number_of_workers_as_long_as_it_gets_on(site: Site, cast: Cast) -> None:
    """Four deaths, one in each step but the last, and a fifth in the step that one has died in already."""
    rest = Rest(site.stack.port, make_key(cast))
    site.model_server.replies[STEPS] = _looks_up(701, 4)
    for number in range(701, 705):
        site.holds.arm(TOOL, number)
    turn = _ask(cast, rest, STEPS, "Look up four numbers")
    for number in (701, 702, 703, 703, 704):
        pid = site.holds.reached(TOOL, number)
        assert pid == _worker_pid(cast, turn)
        is_last = site.holds.notices().count(f"looked {number}") == (2 if number == 703 else 1)
        if is_last:
            site.holds.release(TOOL, number)
        kill_hard(pid)
    wait_for(lambda: _run(cast, turn).status in ENDED, "the turn to end")
    run = _run(cast, turn)
    assert (run.status, run.answer) == (RunStatus.COMPLETED, "All of them were looked up.")
    events = _events(cast, turn)
    assert transcript_of(events).text == run.answer
    assert [call.content for call in _calls(cast, turn)] == [f"looked {n}" for n in range(701, 705)]
    with tenant_scope(cast.tenant.pk):
        job = Job.objects.get(kind=JOB_KIND, payload__turn_id=turn.pk)
        assert (job.attempts, job.deaths) == (6, 0)
        assert Message.objects.filter(turn=turn, author=Message.Author.ASSISTANT).count() == 1
    assert_nothing_runs(cast.tenant)


def test_turn_whose_step_kills_every_worker_ends_with_its_reason(site: Site, cast: Cast) -> None:
    rest = Rest(site.stack.port, make_key(cast))
    site.model_server.replies[STEPS] = _looks_up(801, 2)
    site.holds.arm(TOOL, 802)
    turn = _ask(cast, rest, STEPS, "Look up what kills")
    site.holds.reached(TOOL, 802)
    wait_for(lambda: any(call.content == "looked 801" for call in _calls(cast, turn)), "step one")
    kill_hard(_worker_pid(cast, turn))
    # Killed before its second step was written down, it counts that death for the first: then it takes one more.
    for _ in range(3):
        wait_for(
            lambda: site.holds.is_reached(TOOL, 802) or _run(cast, turn).status in ENDED,
            "the tool or the end",
        )
        if site.holds.is_reached(TOOL, 802):
            kill_hard(site.holds.reached(TOOL, 802))
    wait_for(lambda: _run(cast, turn).status in ENDED, "the turn to end")
    run = _run(cast, turn)
    assert (run.status, run.error_code) == (RunStatus.FAILED, "worker_lost")
    assert "crashed 3 times in a row in the same step" in run.error_message
    said = site.holds.notices()
    assert said in (["looked 801", *["looked 802"] * 3], ["looked 801", *["looked 802"] * 4])
    assert_nothing_runs(cast.tenant)
