"""How a program ended, what it left behind, and what a model is told about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolloop.deferred import PendingCall
from toolloop.media import Media


class Ending(StrEnum):
    """The ways a program can end."""

    OK = "OK"
    SYNTAX_ERROR = "SYNTAX_ERROR"
    UNSUPPORTED_SYNTAX = "UNSUPPORTED_SYNTAX"
    UNSUPPORTED_IMPORT = "UNSUPPORTED_IMPORT"
    TYPE_ERROR = "TYPE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TOOL_ERROR = "TOOL_ERROR"
    TOOL_DENIED = "TOOL_DENIED"
    LIMIT_TIME = "LIMIT_TIME"
    LIMIT_MEMORY = "LIMIT_MEMORY"
    LIMIT_CALLS = "LIMIT_CALLS"
    LIMIT_OUTPUT = "LIMIT_OUTPUT"
    WALL_CLOCK = "WALL_CLOCK"
    WORKER_CRASHED = "WORKER_CRASHED"
    BUSY = "BUSY"
    PAUSED_APPROVAL = "PAUSED_APPROVAL"
    CANCELLED = "CANCELLED"


ADVICE: Mapping[Ending, str] = {
    Ending.OK: "",
    Ending.SYNTAX_ERROR: "Correct the syntax and send the whole program again; nothing has run.",
    Ending.UNSUPPORTED_SYNTAX: "Rewrite this line without it and send the whole program again; no tool has run.",
    Ending.UNSUPPORTED_IMPORT: "Do without this import, or use one of the modules that can be imported.",
    Ending.TYPE_ERROR: "Check the types and the arguments in this line against the signatures.",
    Ending.RUNTIME_ERROR: "Correct this line; calls listed as done need not be made again.",
    Ending.TOOL_ERROR: "Change the arguments, or catch the exception where going on without the result makes sense.",
    Ending.TOOL_DENIED: "This call is not permitted; solve the task without it, or say that it was refused.",
    Ending.LIMIT_TIME: "Do less work in one program: smaller loops, fewer rows.",
    Ending.LIMIT_MEMORY: "Keep less in memory at a time: work on smaller pieces and keep only what is needed.",
    Ending.LIMIT_CALLS: "Make fewer tool calls: fetch only what is needed, and answer with what has been found.",
    Ending.LIMIT_OUTPUT: "Print a summary instead of everything.",
    Ending.WALL_CLOCK: "The tools took too long together; make fewer calls, or several at once with parallel(...).",
    Ending.WORKER_CRASHED: "The program brought its interpreter down; write it in a simpler way.",
    Ending.BUSY: "No interpreter was free; send the same program again in a moment.",
    Ending.PAUSED_APPROVAL: "A person must decide about this call first; the program then continues from there.",
    Ending.CANCELLED: "The program was stopped from outside.",
}


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One tool call a program made, also one that failed or was refused.

    Attributes:
        seq: position in the program, from 1.
        call_id: id the journal knows it by.
        arguments: as the program gave them, shortened where they are long.
        status: "ok", "failed", "denied" (not permitted, or rejected by a person) or "refused" (never ran: arguments, a
            limit).
        started_s: seconds after the program's start.
        duration_ms: milliseconds it took.
        result: preview of the result.
        error: the error's text, "" for none.
        line: line of the program, 0 when unknown.
    """

    seq: int
    call_id: str
    name: str
    arguments: Any
    status: str
    started_s: float
    duration_ms: float
    result: str = ""
    error: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CallRecord:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class CodeResult:
    """Everything about one program that has ended or was paused.

    Attributes:
        ending: how it ended.
        output: what it printed, cut at the limit.
        error_output: what it printed to ``sys.stderr``.
        value: value of its last expression as JSON; what has no JSON form is given as text.
        calls: every tool call it made, in order.
        error: "Type: message" of the error, "" for none.
        line: line where it ended, 0 when unknown; ``source_line`` is that line's text.
        advice: one sentence on what to do.
        output_cut: whether printed text is missing at the end.
        state: for PAUSED_APPROVAL, signed text that ``CodeMode.resume`` takes in any process.
        pending: for PAUSED_APPROVAL, the calls that wait.
        parts: images and files of the tools' results, for the model, when it ran to its end.
        duration_ms: milliseconds of wall-clock time.
        attempts: programs it took, repairs included.
    """

    ending: Ending
    output: str = ""
    error_output: str = ""
    value: Any = None
    calls: tuple[CallRecord, ...] = ()
    error: str = ""
    line: int = 0
    source_line: str = ""
    advice: str = ""
    output_cut: bool = False
    state: str = ""
    pending: tuple[PendingCall, ...] = ()
    parts: tuple[Media, ...] = ()
    duration_ms: float = 0.0
    attempts: int = 1

    @property
    def success(self) -> bool:
        """Whether the program ran to its end."""
        return self.ending is Ending.OK

    @property
    def is_paused(self) -> bool:
        """Whether the program waits for a decision."""
        return self.ending is Ending.PAUSED_APPROVAL

    def to_text(self, limit: int = 20_000) -> str:
        """Return what a model should read, at most about ``limit`` characters."""
        head = self._headline()
        calls = "" if self.success else self._done()
        parts = [part for part in (head, calls) if part]
        value = "" if self.value is None else f"Result: {_json(self.value)}"
        room = max(500, limit - sum(map(len, parts)) - 100)
        value = _cut(value, room if not self.output else room // 2)
        output = _cut(self.output, max(200, room - len(value)))
        if self.output_cut:
            output += "\n[... the output was cut here ...]"
        errors = f"[stderr] {_cut(self.error_output, 1000)}" if self.error_output else ""
        text = "\n".join(part for part in (output.rstrip("\n"), errors, value, *parts) if part)
        return text or (
            "The program ran to its end and printed nothing. Print what you need to see, or end with an expression."
        )

    def _headline(self) -> str:
        if self.success:
            return ""
        where = f" in line {self.line}" if self.line else ""
        lines = [f"{self.ending}{where}: {_cut(self.error, 2000)}"]
        if self.source_line:
            lines.append(f"    {_cut(self.source_line.strip(), 200)}")
        if self.advice:
            lines.append(f"Advice: {self.advice}")
        return "\n".join(lines)

    def _done(self) -> str:
        done = [record for record in self.calls if record.status in ("ok", "failed")]
        if not done:
            return "No tool was called."
        shown = [f"{r.name}({_cut(_json(r.arguments), 80)}) -> {r.status}" for r in done[:20]]
        more = f" and {len(done) - 20} more" if len(done) > 20 else ""
        return f"Calls done: {'; '.join(shown)}{more}."

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON, for the application and for logs; without ``parts``, which may be large."""
        return {
            "ending": str(self.ending),
            "output": self.output,
            "error_output": self.error_output,
            "value": self.value,
            "calls": [record.to_json() for record in self.calls],
            "error": self.error,
            "line": self.line,
            "source_line": self.source_line,
            "advice": self.advice,
            "output_cut": self.output_cut,
            "state": self.state,
            "pending": [call.to_json() for call in self.pending],
            "duration_ms": self.duration_ms,
            "attempts": self.attempts,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a program ends or is refused; made into a ``CodeResult`` by who runs it."""

    ending: Ending
    error: str
    line: int = 0
    advice: str = ""

    def result(self, source: str, **more: Any) -> CodeResult:
        """Return the result, with the text of the line."""
        lines = source.splitlines()
        text = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        return CodeResult(
            self.ending,
            error=self.error,
            line=self.line,
            source_line=text[:500],
            advice=self.advice or ADVICE[self.ending],
            **more,
        )


@dataclass(slots=True)
class Output:
    """Collects what a program prints; never raises, because that would not stop the worker.

    Attributes:
        limit: characters kept of each stream.
        total: characters printed so far.
    """

    limit: int
    total: int = 0
    cut: bool = False
    parts: dict[str, list[str]] = field(default_factory=lambda: {"stdout": [], "stderr": []})
    kept: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})

    def add(self, stream: str, text: str) -> str:
        """Take printed text; return the part of it that is kept."""
        self.total += len(text)
        room = self.limit - self.kept[stream]
        if len(text) > room:
            self.cut = True
            text = text[:room]
        if text:
            self.kept[stream] += len(text)
            self.parts[stream].append(text)
        return text

    def text(self, stream: str = "stdout") -> str:
        """Return what was kept of a stream."""
        return "".join(self.parts[stream])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [... {len(text) - limit} more characters ...]"
