"""What the pages show of a turn, as plain values. The live stream and a page load build them with the same functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from apps.conversations.answers import (
    confidence_of,
    follow_ups_of,
    is_formed,
    shown_text,
    value_of,
)
from apps.conversations.attachments import AttachmentView, attachment_view
from apps.conversations.citations import (
    Cited,
    Passage,
    Source,
    answer_cite,
    answer_number,
    flagged,
)
from apps.conversations.models import Attachment, Citation, Feedback, Message, Turn
from apps.conversations.plans import PlanView, is_plan, plan_view
from apps.conversations.rendering import Block, blocks_render
from runs.argument_changes import Change
from runs.journal import summary_of
from runs.models import Run, RunStatus
from runs.providers import is_extractive, model_label
from runs.selectors import CONTENT_SHOWN
from runs.transcript import Transcript

_PHASES = {
    "queued": "Waiting for a worker",
    "thinking": "Thinking",
    "writing": "Writing",
    "parked": "Waiting for your decision",
    "finished": "Finishing",
}
_TOOL_PHASES = {
    "search_documents": "Searching your documents",
    "search_documentation": "Searching your documents",
    "search_codebase": "Searching your code",
    "read_attached_files": "Reading the attached files",
    "get_chunk": "Reading a passage",
    "get_linked_chunk": "Following a link",
    "list_documents": "Looking which documents there are",
    "plan": "Making a plan",
}
_LIMITS = {
    "max_steps": "Step limit reached",
    "max_requests": "Model request limit reached",
    "max_tool_calls": "Tool call limit reached",
    "max_seconds": "Time limit reached",
    "max_tokens": "Token limit reached",
    "max_cost_usd": "Cost limit reached",
    "budget": "The budget is used up",
    "repeat_stop": "Stopped going in circles",
    "failure_stop": "Stopped after repeated failures",
}


@dataclass(frozen=True, slots=True)
class ToolCard:
    """One tool call as its card shows it."""

    index: int
    name: str
    status: str
    summary: str
    duration: str
    arguments: str
    result: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class DecisionCard:
    """A call that waits for a decision, as its card shows it: the reader's own, or somebody else's (``approver``)."""

    pk: int
    name: str
    arguments: str
    reason: str
    is_external: bool
    is_own: bool
    approver: str
    needs_reason: bool


@dataclass(frozen=True, slots=True)
class DecidedLine:
    """What was decided about a call, by whom, and what was changed."""

    pk: int
    name: str
    status: str
    by: str
    reason: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class CitationCard:
    """One source as its card shows it; ``pk`` names it in URLs while the answer is live and after."""

    pk: str
    number: int
    document_name: str
    collection_name: str
    page: int | None
    quote: str


@dataclass(slots=True)
class TurnView:
    """A question with its answer, as ``conversations/_turn.html`` needs it.

    Attributes:
        attachments: the files that came with the question.
        cost_usd: what the answer has cost; None where no price is known.
        feedback: what the reader has said about the answer.
        siblings: ids of the turns that stand in its place in other branches, itself among them, oldest first.
        output: the form its answer has, of ``models.Output``.
        problem: why an answer that should have a form has none.
        unsupported: sentences that no source supports.
    """

    pk: int
    user_text: str
    run_id: int
    seq: int
    is_live: bool
    status: str
    model_label: str
    is_extractive: bool
    attachments: list[AttachmentView] = field(default_factory=list)
    siblings: list[int] = field(default_factory=list)
    cost_usd: Decimal | None = None
    feedback: Feedback | None = None
    phase: str = ""
    duration_s: float | None = None
    usage: dict[str, int] = field(default_factory=dict)
    citations: list[CitationCard] = field(default_factory=list)
    removed_citations: int = 0
    error_message: str = ""
    error_code: str = ""
    request_id: str = ""
    limit_message: str = ""
    has_text: bool = False
    tool_cards: list[ToolCard] = field(default_factory=list)
    decisions: list[DecisionCard] = field(default_factory=list)
    decided: list[DecidedLine] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    plan: PlanView | None = None
    output: str = "text"
    problem: str = ""
    confidence: str = ""
    follow_ups: list[str] = field(default_factory=list)
    unsupported: int = 0

    @property
    def is_unsourced(self) -> bool:
        """Whether a finished answer says something and cites nothing."""
        return not self.is_live and self.has_text and not self.citations and self.status != "failed"

    @property
    def searches(self) -> list[str]:
        """How each search of documents went, in a line."""
        return [
            c.summary for c in self.tool_cards if c.status == "ok" and c.name.startswith("search_")
        ]

    @property
    def can_continue(self) -> bool:
        """Whether the answer ended before it was done, with something said."""
        cut = self.status == RunStatus.STOPPED or bool(self.limit_message)
        return self.has_text and cut and not self.is_live and not self.is_extractive

    @property
    def place(self) -> int:
        """Which of its siblings it is, from 1."""
        return self.siblings.index(self.pk) + 1 if self.siblings else 1

    @property
    def sibling_before(self) -> int | None:
        """The alternative asked before it; None for the first."""
        return self.siblings[self.place - 2] if self.place > 1 else None

    @property
    def sibling_after(self) -> int | None:
        """The alternative asked after it; None for the last."""
        return self.siblings[self.place] if self.place < len(self.siblings) else None


def calls_plan(calls: Iterable[Any], *, is_over: bool) -> PlanView | None:
    """Return the plan among calls (rows of ``runs.selectors``), None when there is none."""
    return plan_view((_row(call) for call in calls), is_over=is_over)


def _row(call: Any) -> Mapping[str, Any]:
    return call if isinstance(call, dict) else vars(call)


def tool_cards(calls: Iterable[Any]) -> list[ToolCard]:
    """Return the cards of calls (rows of ``runs.selectors``: objects or mappings), in their order; plans have none."""
    cards = []
    for index, call in enumerate(calls):
        row = _row(call)
        if is_plan(row):
            continue
        status, content = str(row["status"]), row["content_shown"] or ""
        hidden = row.get("arguments_masked")
        arguments = row["arguments"] if hidden is None else hidden
        shown = {"running": "running", "waiting": "waiting", "succeeded": "ok"}.get(status, "error")
        if row["error_code"] == "cancelled":
            shown = "stopped"
        cards.append(
            ToolCard(
                index=index,
                name=row["name"],
                status=shown,
                summary=_argument_line(arguments)
                if shown in ("running", "waiting")
                else summary_of(row["own_summary"], content),
                duration=_duration(row["duration_ms"]),
                arguments=_arguments_text(arguments),
                result=content[:CONTENT_SHOWN],
                is_cut=len(content) > CONTENT_SHOWN,
            )
        )
    return cards


def decision_cards(waiting: Iterable[Mapping[str, Any]]) -> list[DecisionCard]:
    """Return the cards of what a run waits for, as the ``parked`` event told it."""
    return [
        DecisionCard(
            pk=row["id"],
            name=row["name"],
            arguments=_arguments_text(row["arguments"]),
            reason=row["reason"],
            is_external=row["kind"] == "external",
            is_own=row.get("approver_kind", "self") == "self",
            approver=row.get("approver", "you"),
            needs_reason=row.get("needs_reason", False),
        )
        for row in waiting
    ]


def decided_lines(decided: Iterable[Mapping[str, Any]]) -> list[DecidedLine]:
    """Return the lines about what was decided, as the ``decided`` events told it."""
    return [
        DecidedLine(
            pk=row["id"],
            name=row["name"],
            status=row["status"],
            by=row.get("by", ""),
            reason=row["reason"],
            changes=tuple(Change(**change) for change in row.get("changes", ())),
        )
        for row in decided
    ]


def _arguments_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def _argument_line(arguments: object) -> str:
    if isinstance(arguments, dict):
        text = next((v for v in arguments.values() if isinstance(v, str)), "")
        return summary_of(None, text)
    return ""


def _duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds} ms" if milliseconds < 100 else f"{milliseconds / 1000:.1f} s"


def source_cards(run_id: int, sources: Iterable[Source]) -> list[CitationCard]:
    """Return the cards of sources that are not stored yet."""
    return [
        CitationCard(
            f"{run_id}-{s.number}",
            s.number,
            s.passage.document_name,
            s.passage.collection_name,
            s.passage.page,
            s.quote,
        )
        for s in sources
    ]


def citation_cards(run_id: int, rows: Iterable[Citation]) -> list[CitationCard]:
    """Return the cards of stored sources."""
    return [
        CitationCard(
            f"{run_id}-{r.number}", r.number, r.document_name, r.collection_name, r.page, r.quote
        )
        for r in rows
    ]


def answer_blocks(cited: Cited, run_id: int, cards: Sequence[CitationCard]) -> list[Block]:
    """Return an answer's blocks."""
    labels = {card.number: card.document_name for card in cards}
    return blocks_render(cited.pieces, run_id=run_id, labels=labels)


def phase_of(transcript: Transcript) -> str:
    """Return what the run does now, in a word or two."""
    if transcript.running:
        name = next(reversed(transcript.running.values()))
        return _TOOL_PHASES.get(name, f"Running {name}")
    if transcript.phase == "parked":
        others = [card.approver for card in decision_cards(transcript.waiting.values()) if not card.is_own]  # fmt: skip
        if len(others) == len(transcript.waiting):
            return f"Waiting for the decision of {others[0]}"
    return _PHASES.get(transcript.phase, "Thinking")


def turn_view_new(turn: Turn, run: Run, text: str, output: str = "text") -> TurnView:
    """Return a turn of which nothing has happened yet."""
    return TurnView(
        pk=turn.pk,
        user_text=text,
        run_id=run.pk,
        seq=0,
        is_live=True,
        status=str(run.status),
        model_label=model_label(run.model),
        is_extractive=is_extractive(run.model),
        phase=_PHASES["queued"],
        output=output,
    )


def with_files(view: TurnView, rows: Iterable[Attachment]) -> TurnView:
    """Add the files of a turn to what is shown of it; an answer that has not begun may wait for them."""
    view.attachments = [attachment_view(row) for row in rows]
    waiting = [file.name for file in view.attachments if file.state == "reading"]
    if waiting and view.is_live and not view.seq:
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        view.phase = f"Waiting until {waiting[0]}{more} has been read"
    return view


def turn_view_live(
    turn: Turn,
    run: Run,
    text: str,
    *,
    transcript: Transcript,
    passages: Mapping[int, Passage],
    calls: Iterable[Any],
) -> TurnView:
    """Return a turn whose run is under way, after the events that the transcript holds."""
    version = turn.assistant_version
    view = turn_view_new(turn, run, text, "text" if version is None else version.output)
    cited = answer_cite(shown_text(transcript.text, is_formed(view.output)), passages)
    view.seq = transcript.seq
    view.phase = phase_of(transcript)
    view.citations = source_cards(run.pk, cited.sources)
    view.blocks = answer_blocks(cited, run.pk, view.citations)
    view.has_text = bool(cited.text.strip())
    calls = list(calls)
    view.tool_cards, view.plan = tool_cards(calls), calls_plan(calls, is_over=False)
    view.decisions = decision_cards(transcript.waiting.values())
    view.decided = decided_lines(transcript.decided.values())
    return view


def turn_view_ended(
    turn: Turn,
    run: Run,
    text: str,
    *,
    answer: Message | None,
    citations: Iterable[Citation],
    calls: Iterable[Any],
    decided: Iterable[Mapping[str, Any]],
) -> TurnView:
    """Return a turn whose run has ended, from its stored rows."""
    view = turn_view_new(turn, run, text)
    rows = sorted(citations, key=lambda row: row.number)
    formed = answer is not None and answer.was_formed
    cited = answer_number(
        shown_text(run.answer, formed), {row.chunk_ref: row.number for row in rows}
    )
    if answer is not None:
        cited.pieces = flagged(cited.pieces, (end for _, end in answer.unsupported))
        view.unsupported, view.problem = len(answer.unsupported), answer.problem
    if formed and (value := value_of(run.answer)) is not None:
        view.confidence, view.follow_ups = confidence_of(value), follow_ups_of(value)
    view.is_live, view.seq, view.phase = False, run.last_seq, ""
    view.citations = citation_cards(run.pk, rows)
    view.blocks = answer_blocks(cited, run.pk, view.citations)
    view.has_text = bool(cited.text.strip())
    calls = list(calls)
    view.tool_cards, view.plan = tool_cards(calls), calls_plan(calls, is_over=True)
    view.decided = decided_lines(decided)
    view.removed_citations = turn.removed_markers
    if run.started_at is not None and run.finished_at is not None:
        view.duration_s = (run.finished_at - run.started_at).total_seconds()
    view.usage = {
        "input_tokens": run.usage.get("input_total", 0),
        "output_tokens": run.usage.get("output_total", 0),
    }
    view.cost_usd = run.cost_usd
    if run.status == RunStatus.FAILED:
        view.error_code, view.error_message = run.error_code, run.error_message
        view.request_id = str(run.request.get("request_id", ""))
    if run.limit_reached:
        view.limit_message = _LIMITS.get(run.limit_reached, f"Limit reached: {run.limit_reached}")
    return view
