"""Answers in every mode, watched while everything around them breaks: what was shown is what is stored, each event once."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_publish
from apps.conversations.models import Turn
from apps.conversations.turns.conversations import conversation_create
from apps.conversations.turns.services import turn_submit
from apps.tools.models import ToolGrant
from jobs.models import Job
from runs.models import Run, RunEvent, RunStatus
from runs.services import run_stop
from runs.transcript import STEP_RESET, transcript_of
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.concurrency.rest import make_key
from tests.fake_provider import FakeProvider, running
from tests.processes import kill_hard
from tests.servers import Stack, wait_for

pytestmark = pytest.mark.servers

WORDS = 120
SLOW = f"words{WORDS}-gap100"
MODELS = {
    "tools": f"fake-search1-{SLOW}",
    "quick": f"fake-quick-{SLOW}",
    "planned": f"fake-planned-{SLOW}",
    "code": f"fake-search1-use_execute_tools-{SLOW}",
}
QUESTION = "print('What is the duty on lamps?')"  # a question, and the program that the model in the mode “code” writes
Event = tuple[int, str, dict[str, Any]]


def plans(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Make a plan of one step, carry it out, then answer as the model's name says."""
    done = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not done:
        step = {"action": "search_documents", "description": "Look.", "inputs": {"query": "lamps"}}
        return [{"name": "plan", "arguments": {"reasoning": "One look.", "steps": [step]}}]
    return [{"name": "search_documents", "arguments": {"query": "lamps"}}] if len(done) == 1 else None


class Watcher(threading.Thread):
    """Follows a run's events over HTTP as a browser does: when the line is lost it goes on after the last event it got.

    Attributes:
        events: all that came, in the order of coming.
        connections: how often it had to connect.
    """

    def __init__(self, port: int, key: str, run_id: int) -> None:
        super().__init__(name=f"watcher-{run_id}", daemon=True)
        self.port, self.key, self.path = port, key, f"/api/v1/runs/{run_id}/events"
        self.events: list[Event] = []
        self.connections = 0
        self.is_over = False
        self._line: http.client.HTTPConnection | None = None
        self.start()

    def run(self) -> None:
        until = time.monotonic() + 180
        while not self.is_over and time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException, AttributeError):
                self._follow()
            time.sleep(0.05)

    def cut(self) -> None:
        """Lose the line."""
        if self._line is not None and self._line.sock is not None:
            self._line.sock.shutdown(socket.SHUT_RDWR)

    @property
    def text(self) -> str:
        return transcript_of(self.events).text

    def _follow(self) -> None:
        self._line = line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        last = str(self.events[-1][0]) if self.events else "0"
        line.request("GET", self.path, headers={"Authorization": f"Bearer {self.key}", "Last-Event-ID": last})
        response = line.getresponse()
        self.connections += response.status == 200
        fields: dict[str, str] = {}
        for raw in response:
            name, _, value = raw.decode().rstrip("\n").partition(": ")
            if raw != b"\n":
                fields[name] = value
                continue
            if fields.get("event") == "end":
                self.is_over = True
                return
            if "id" in fields:
                self.events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
            fields = {}


@dataclass(frozen=True)
class Site:
    cast: Cast
    stack: Stack
    fake: FakeProvider
    key: str
    assistants: dict[str, Any]

    def ask(self, mode: str) -> Turn:
        """Ask the assistant of a mode."""
        who: dict[str, Any] = {"tenant": self.cast.tenant, "actor": self.cast.actor("owner")}
        with tenant_scope(self.cast.tenant.pk):
            conversation = conversation_create(**who, assistant=self.assistants[mode].slug)
            return turn_submit(**who, conversation=conversation, text=QUESTION, client_id=uuid.uuid4())

    def watch(self, turn: Turn) -> Watcher:
        return Watcher(self.stack.port, self.key, turn.run_id)

    def run(self, turn: Turn) -> Run:
        with tenant_scope(self.cast.tenant.pk):
            row: Run = Run.objects.get(pk=turn.run_id)
            return row

    def stored(self, turn: Turn) -> list[Event]:
        with tenant_scope(self.cast.tenant.pk):
            rows = RunEvent.objects.filter(run=turn.run_id).order_by("seq")
            return list(rows.values_list("seq", "kind", "data"))


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[Site]:
    cast = make_cast()
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    with running() as (model_url, fake):
        stack = Stack(
            tmp_path,
            GROUNDWORK_COMPATIBLE_BASE_URL=model_url,
            GROUNDWORK_COMPATIBLE_MODELS=",".join(MODELS.values()),
        )
        fake.replies[MODELS["planned"]] = plans
        assistants = {}
        try:
            with pytest.MonkeyPatch.context() as env, tenant_scope(cast.tenant.pk):
                env.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", model_url)
                env.setenv("GROUNDWORK_COMPATIBLE_MODELS", ",".join(MODELS.values()))
                ToolGrant.objects.create(
                    tenant=cast.tenant, effect="allow", target_kind="group", target="code_mode"
                )
                for mode, model in MODELS.items():
                    spec = VersionSpec(mode=mode, model=f"compatible/{model}")
                    made = assistant_create(**who, name=mode, spec=spec)
                    assistants[mode] = version_publish(**who, assistant=made, number=1)
                key = make_key(cast)
                stack.start()
                yield Site(cast, stack, fake, key, assistants)
        finally:
            stack.stop()
            for log in tmp_path.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


def test_what_is_shown_is_what_is_stored_in_every_mode(site: Site) -> None:
    """One running product for all of it: starting it costs more than each part."""
    everything_breaks_around_the_answers(site)
    stop_ends_the_models_stream(site)


def everything_breaks_around_the_answers(site: Site) -> None:
    turns = {mode: site.ask(mode) for mode in MODELS}
    first = {mode: site.watch(turn) for mode, turn in turns.items()}
    wait_for(lambda: all(len(w.text) > 30 for w in first.values()), "text in every mode")
    for watcher in first.values():
        watcher.cut()
    second = {mode: site.watch(turn) for mode, turn in turns.items()}
    with tenant_scope(site.cast.tenant.pk):
        jobs = Job.objects.filter(runs__in=[turn.run_id for turn in turns.values()])
        pids = {int(job.worker.rsplit(":", 1)[1]) for job in jobs}
    for pid in pids:
        kill_hard(pid)

    def goes_on(watcher: Watcher) -> bool:
        kinds = [kind for _, kind, _ in watcher.events]
        return STEP_RESET in kinds and kinds[-1] == "text"

    wait_for(lambda: all(map(goes_on, second.values())), "the answers to go on")
    site.stack.kill_web()
    site.stack.start_web()
    third = {mode: site.watch(turn) for mode, turn in turns.items()}
    watchers = [*first.values(), *second.values(), *third.values()]
    wait_for(lambda: all(w.is_over for w in watchers), "the streams to end")
    for mode, turn in turns.items():
        run, stored = site.run(turn), site.stored(turn)
        assert (run.status, run.error_message) == (RunStatus.COMPLETED, ""), mode
        assert [seq for seq, _, _ in stored] == list(range(1, run.last_seq + 1)), mode
        assert first[mode].events == second[mode].events == third[mode].events == stored, mode
        assert transcript_of(stored).text == run.answer, mode
        assert len(run.answer.split()) >= WORDS, mode
        assert first[mode].connections >= 3, "the line was lost twice"
        assert second[mode].connections >= 2, "the web server was lost"


def stop_ends_the_models_stream(site: Site) -> None:
    site.fake.log.clear()
    turns = {mode: site.ask(mode) for mode in MODELS}
    watchers = {mode: site.watch(turn) for mode, turn in turns.items()}
    wait_for(lambda: all(len(w.text) > 30 for w in watchers.values()), "text in every mode")
    for turn in turns.values():
        with tenant_scope(site.cast.tenant.pk):
            run_stop(tenant=site.cast.tenant, actor=site.cast.actor("owner"), run=site.run(turn))
    wait_for(lambda: all(w.is_over for w in watchers.values()), "the streams to end")
    for mode, turn in turns.items():
        run = site.run(turn)
        assert run.status == RunStatus.STOPPED, mode
        assert watchers[mode].events == site.stored(turn), mode
        assert watchers[mode].text == run.answer, mode
        assert 0 < len(run.answer.split()) < WORDS, mode

    def closed() -> set[str]:
        return {entry["model"] for entry in site.fake.log if entry["closed_early"]}

    wait_for(lambda: closed() == set(MODELS.values()), "the model's streams to be closed")
