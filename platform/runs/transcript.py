"""Fold the events of a run into what a watcher must see. Pure: live view, reload and the stored answer all use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["queued", "thinking", "tools", "writing", "parked", "finished"]

STEP_STARTED = "step_started"
STEP_RESET = "step_reset"
TEXT = "text"
REASONING = "reasoning"
TOOL_STARTED = "tool_started"
TOOL_PROGRESS = "tool_progress"
TOOL_FINISHED = "tool_finished"
TOOL_WAITING = "tool_waiting"
PARKED = "parked"
DECIDED = "decided"
LIMIT = "limit"
FINISHED = "finished"

PROGRESS_SHOWN = 4_000
"""Characters of what a running tool has yielded that a watcher sees, from its end."""


@dataclass(slots=True)
class StepText:
    """What one model turn has said. ``continues``: it goes on in the middle of the turn before (a paused turn)."""

    text: str = ""
    reasoning: str = ""
    continues: bool = False


@dataclass(slots=True)
class Transcript:
    """State of a run after some prefix of its events.

    Attributes:
        seq: number of the last event applied.
        running: names of tools that run, by (step, call id), in the order in which they started.
        progress: the end of what running tools have yielded so far, by (step, call id).
        waiting: what is to be decided, by its id, as the ``parked`` event told it.
        decided: what was decided, by its id, as the ``decided`` events told it.
        finished: data of the ``finished`` event, None before it.
    """

    seq: int = 0
    steps: dict[int, StepText] = field(default_factory=dict)
    running: dict[tuple[int, str], str] = field(default_factory=dict)
    progress: dict[tuple[int, str], str] = field(default_factory=dict)
    waiting: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    decided: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    phase: Phase = "queued"
    limit: Mapping[str, Any] | None = None
    finished: Mapping[str, Any] | None = None

    def apply(self, seq: int, kind: str, data: Mapping[str, Any]) -> None:
        """Take one event. One that was applied already changes nothing, so a replay is harmless."""
        if seq <= self.seq:
            return
        self.seq = seq
        step = int(data.get("step", 0))
        if kind == TEXT:
            self._step(step).text += data["text"]
            self.phase = "writing"
        elif kind == REASONING:
            self._step(step).reasoning += data["text"]
            self.phase = "thinking"
        elif kind == STEP_STARTED:
            self._step(step).continues = bool(data.get("continues"))
            self.phase = "thinking"
        elif kind == STEP_RESET:
            for index in [i for i in self.steps if i >= step]:
                del self.steps[index]
            self.phase = "thinking"
        elif kind == TOOL_STARTED:
            self.running[step, data["call_id"]] = data["name"]
            self.progress.pop((step, data["call_id"]), None)  # Of an attempt that died.
            self.phase = "tools"
        elif kind == TOOL_PROGRESS:
            self.progress_add(step, data["call_id"], data["text"])
        elif kind in (TOOL_FINISHED, TOOL_WAITING):
            self.running.pop((step, data["call_id"]), None)
            self.progress.pop((step, data["call_id"]), None)
            self.phase = "tools" if self.running else "thinking"
        elif kind == PARKED:
            self.waiting = {waiting["id"]: waiting for waiting in data.get("pending", ())}
            self.phase = "parked"
        elif kind == DECIDED:
            self.waiting.pop(data["id"], None)
            self.decided[data["id"]] = data
            if not self.waiting:
                self.phase = "queued"
        elif kind == LIMIT:
            self.limit = data
        elif kind == FINISHED:
            self.finished = data
            self.waiting = {}
            self.phase = "finished"

    def progress_add(self, step: int, call_id: str, text: str) -> None:
        """Take what a running tool has yielded."""
        so_far = self.progress.get((step, call_id), "")
        self.progress[step, call_id] = (so_far + text)[-PROGRESS_SHOWN:]

    @property
    def text(self) -> str:
        """Return everything the run has said so far, the steps' texts as paragraphs of one answer."""
        joined = ""
        for index in sorted(self.steps):
            said = self.steps[index]
            if said.text:
                joined += said.text if said.continues or not joined else f"\n\n{said.text}"
        return joined

    @property
    def last_text(self) -> str:
        """Return what the last step has said, with the paused ones that it goes on from."""
        said = ""
        for index in sorted(self.steps):
            said = said + self.steps[index].text if self.steps[index].continues else self.steps[index].text
        return said

    def _step(self, step: int) -> StepText:
        return self.steps.setdefault(step, StepText())


def transcript_of(events: Iterable[tuple[int, str, Mapping[str, Any]]]) -> Transcript:
    """Return the state after these (seq, kind, data), which come in order of seq."""
    transcript = Transcript()
    for seq, kind, data in events:
        transcript.apply(seq, kind, data)
    return transcript
