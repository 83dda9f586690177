"""A program that waits for a person survives the death of everything, and goes on in a process that never saw it."""

from __future__ import annotations

import os
import signal
from typing import Any

from runs.models import Run, RunStatus, ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.concurrency.conftest import Site
from tests.concurrency.programs import MODEL, PROGRAM
from tests.concurrency.rest import Rest, make_key
from tests.patience import PATIENCE_S
from tests.processes import is_gone
from tests.servers import wait_for


def _run(cast: Cast, pk: int) -> Run:
    with tenant_scope(cast.tenant.pk):
        row: Run = Run.objects.get(pk=pk)
        return row


def _wait(cast: Cast, pk: int, status: RunStatus) -> None:
    wait_for(lambda: _run(cast, pk).status == status, f"a run to be {status}")


def _kill_everything(site: Site) -> None:
    """kill -9 of the web server and of the worker with all its processes."""
    site.stack.kill_web()
    worker = site.stack.worker
    assert worker is not None
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(PATIENCE_S)
    wait_for(lambda: is_gone(worker.pid), "the worker's end")


def _asked(rest: Rest, program: str) -> tuple[int, int]:
    """Have a conversation's turn run a program; returns the ids of conversation and run."""
    made = rest.post("/api/v1/conversations", {"model": f"compatible/{MODEL}"})
    asked = rest.post(f"/api/v1/conversations/{made.json['id']}/turns", {"text": program})
    assert asked.status == 201, asked
    return made.json["id"], asked.json["run_id"]


def test_programs_go_on_in_another_process_when_everything_died_while_they_waited(
    site: Site, cast: Cast
) -> None:
    """One waits for who asked, one for a second person. Both edit the call, and that is what runs, once."""
    rest = Rest(site.stack.port, make_key(cast))
    second = Rest(site.stack.port, make_key(cast, "admin"))
    conversation, own = _asked(rest, PROGRAM)
    _, others = _asked(rest, PROGRAM.replace("pay_bill", "pay_invoice").replace("701", "711"))
    for run_id in (own, others):
        _wait(cast, run_id, RunStatus.PARKED)
    again = rest.post(f"/api/v1/conversations/{conversation}/turns", {"text": "And?"})
    assert (again.status, again.json["code"]) == (409, "conversation_busy")
    assert "pay_bill" in again.json["message"]

    _kill_everything(site)
    site.stack.start_web()
    (waiting,) = _decisions(rest, own)
    assert (waiting["name"], waiting["arguments"]) == ("pay_bill", {"name": "bill 701"})
    path = f"/api/v1/runs/{own}/decisions/{waiting['id']}"
    edited = {"decision": "approve", "arguments": {"name": "bill 702"}}
    assert rest.post(path, edited).status == 200
    # Nobody is there to go on; even the server that took the decision dies.
    refused = rest.post(path, {"decision": "approve"})
    assert (refused.status, refused.json["code"]) == (409, "call_decided")
    assert _run(cast, own).status == RunStatus.QUEUED

    (waiting,) = _decisions(rest, others)
    assert (waiting["approver_kind"], waiting["approver"]) == ("role", "admin")
    path = f"/api/v1/runs/{others}/decisions/{waiting['id']}"
    refused = rest.post(path, {"decision": "approve"})
    assert (refused.status, refused.json["code"]) == (403, "approver_needed")
    inbox = second.get("/api/v1/approvals")
    assert [row["id"] for row in inbox.json["results"]] == [waiting["id"]]
    edited = {"decision": "approve", "arguments": {"name": "bill 712"}}
    assert second.post(path, edited).status == 200
    assert second.post(path, edited).status == 409
    site.stack.kill_web()
    site.stack.start()

    for run_id in (own, others):
        _wait(cast, run_id, RunStatus.COMPLETED)
    for run_id, notes in (
        (own, ["before 701", "paid bill 702", "after 701"]),
        (others, ["before 711", "paid bill 712", "after 711"]),
    ):
        number = notes[0][-3:-1]
        assert [line for line in site.holds.notices() if number in line and "sent" not in line] == notes
        with tenant_scope(cast.tenant.pk):
            calls = list(ToolCall.objects.filter(run_id=run_id).order_by("pk"))
        assert {call.status for call in calls} == {"succeeded"}, [(c.name, c.content) for c in calls]
        (program,) = [call for call in calls if call.name == "execute_tools"]
        assert "\n".join(notes[1:]) in program.content


def _decisions(rest: Rest, run_id: int) -> list[dict[str, Any]]:
    answer = rest.get(f"/api/v1/runs/{run_id}/decisions")
    assert answer.status == 200, answer
    return [row for row in answer.json["results"] if row["status"] == "pending"]
