"""What the pages show of a turn, as plain values. The live stream and a page load build them with the same functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.conversations.citations.markers import (
    CitablePassage,
    Cited,
    answer_cite,
    answer_number,
    flagged,
    numbers_of,
)
from apps.conversations.display.answer_forms import (
    confidence_of,
    follow_ups_of,
    is_formed,
    shown_text,
    value_of,
)
from apps.conversations.display.attached_files import AttachmentView, attachment_view
from apps.conversations.display.cards import (
    SEARCHES,
    CitationCard,
    DecidedLine,
    DecisionCard,
    ToolCard,
    calls_plan,
    citation_cards,
    decided_lines,
    decision_cards,
    source_cards,
    tool_cards,
)
from apps.conversations.display.figures import Figure, Placing
from apps.conversations.display.marks import Mark, compared_of, marks_of, statements_count
from apps.conversations.display.narrowing import limits_told
from apps.conversations.display.plans import PlanView
from apps.conversations.display.rendering import Block, blocks_render
from apps.conversations.models import Attachment, Citation, Feedback, Message, Turn
from runs.failures import failure_kind
from runs.models import Run, RunStatus
from runs.providers import is_extractive, model_label
from runs.transcript import Transcript
from toolloop.language_detection import TAGS, language_name

_PHASES = {
    "queued": gettext_lazy("Waiting to start"),
    "thinking": gettext_lazy("Thinking"),
    "writing": gettext_lazy("Writing"),
    "parked": gettext_lazy("Waiting for your decision"),
    "finished": gettext_lazy("Finishing"),
}
_TOOL_PHASES = {
    "search_documents": gettext_lazy("Searching your documents"),
    "search_documentation": gettext_lazy("Searching your documents"),
    "search_codebase": gettext_lazy("Searching your code"),
    "lookup_hts_code": gettext_lazy("Looking up a tariff code"),
    "check_tariffs": gettext_lazy("Looking for additional duties"),
    "check_agency_requirements": gettext_lazy("Looking for agency requirements"),
    "read_attached_files": gettext_lazy("Reading the attached files"),
    "get_chunk": gettext_lazy("Reading a passage"),
    "get_linked_chunk": gettext_lazy("Following a link"),
    "list_documents": gettext_lazy("Listing your documents"),
    "plan": gettext_lazy("Making a plan"),
}
_LIMITS = {
    "max_steps": gettext_lazy("Step limit reached"),
    "max_requests": gettext_lazy("Model request limit reached"),
    "max_tool_calls": gettext_lazy("Tool call limit reached"),
    "max_seconds": gettext_lazy("Time limit reached"),
    "max_tokens": gettext_lazy("Token limit reached"),
    "max_cost_usd": gettext_lazy("Cost limit reached"),
    "budget": gettext_lazy("The budget is used up"),
    "repeat_stop": gettext_lazy("Stopped because it was going in circles"),
    "failure_stop": gettext_lazy("Stopped after repeated failures"),
}


@dataclass(slots=True)
class TurnView:
    """A question with its answer, as ``conversations/_turn.html`` needs it.

    Attributes:
        attachments: the files that came with the question.
        cost_usd: what the answer has cost; None where no price is known.
        feedback: what the reader has said about the answer.
        siblings: ids of the turns that stand in its place in other branches, itself among them, oldest first.
        second: the other answer to the same question, shown next to this one while none is kept.
        is_undecided: it is one of two answers of which none is kept yet.
        is_kept: of two answers, whether the reader continued with this one; None while undecided, or for the only one.
        output: the form its answer has, of ``models.Output``.
        limits: what its question was limited to, in a few words each.
        problem: why an answer that should have a form has none.
        marks: sentences to check, in the order of the text.
        statements: how many sentences state something; 0 where none is marked.
        unsupported: sentences that did not pass when they were compared with their sources.
        unchecked: sentences that were not compared, as their source is in another language.
        compared: what the sentences were compared with, in a line; "" where it is not kept.
        language: BCP 47 tag of the answer's language, by which a voice is chosen; "" while it is under way or where it isn't plain.
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
    second: TurnView | None = None
    is_undecided: bool = False
    is_kept: bool | None = None
    cost_usd: Decimal | None = None
    feedback: Feedback | None = None
    phase: str = ""
    duration_s: float | None = None
    usage: dict[str, int] = field(default_factory=dict)
    citations: list[CitationCard] = field(default_factory=list)
    removed_citations: int = 0
    error_kind: str = ""
    error_message: str = ""
    error_code: str = ""
    request_id: str = ""
    limit_message: str = ""
    has_text: bool = False
    language: str = ""
    tool_cards: list[ToolCard] = field(default_factory=list)
    decisions: list[DecisionCard] = field(default_factory=list)
    decided: list[DecidedLine] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    plan: PlanView | None = None
    output: str = "text"
    limits: list[str] = field(default_factory=list)
    problem: str = ""
    confidence: str = ""
    follow_ups: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    statements: int = 0
    unsupported: int = 0
    unchecked: int = 0
    compared: str = ""

    @property
    def is_unsourced(self) -> bool:
        """Whether an answer that came to its end says something and cites nothing; one that was cut short might have."""
        return self.status == RunStatus.COMPLETED and self.has_text and not self.citations

    @property
    def sides(self) -> list[TurnView]:
        """The answers that are shown to its question, one or two."""
        return [self] if self.second is None else [self, self.second]

    @property
    def can_keep(self) -> bool:
        """Whether it can be chosen of two answers."""
        return self.has_text and not self.is_live and (self.is_undecided or self.is_kept is False)

    @property
    def searches(self) -> list[str]:
        """How each search of documents went, in a line."""
        return [c.summary for c in self.tool_cards if c.status == "ok" and c.name in SEARCHES]

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


def answer_blocks(cited: Cited, cards: Sequence[CitationCard], placing: Placing) -> list[Block]:
    """Return an answer's blocks, with the figures that it refers to."""
    labels = {card.number: card.document_name for card in cards}
    return blocks_render(cited.pieces, run_id=placing.run_id, labels=labels, figure=placing.take)


def card_figures(cards: Iterable[ToolCard]) -> list[Figure]:
    """Return what the calls of an answer have to look at, in their order."""
    return [figure for card in cards for figure in card.figures]


def phase_of(transcript: Transcript) -> str:
    """Return what the run does now, in a word or two."""
    if transcript.running:
        name = next(reversed(transcript.running.values()))
        return str(_TOOL_PHASES.get(name) or _("Running %(name)s") % {"name": name})
    if transcript.phase == "parked":
        others = [card.approver for card in decision_cards(transcript.waiting.values()) if not card.is_own]
        if len(others) == len(transcript.waiting):
            return _("Waiting for the decision of %(approver)s") % {"approver": others[0]}
    return str(_PHASES.get(transcript.phase, _PHASES["thinking"]))


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
        phase=str(_PHASES["queued"]),
        output=output,
        limits=limits_told(run.request),
        is_undecided=turn.is_undecided,
        is_kept=turn.is_kept,
    )


def with_files(view: TurnView, rows: Iterable[Attachment]) -> TurnView:
    """Add the files of a turn to what is shown of it; an answer that has not begun may wait for them."""
    view.attachments = [attachment_view(row) for row in rows]
    waiting = [file.name for file in view.attachments if file.state == "reading"]
    if waiting and view.is_live and not view.seq:
        view.phase = _waiting_told(waiting[0], len(waiting) - 1)
    return view


def _waiting_told(name: str, more: int) -> str:
    if not more:
        return _("Waiting until %(name)s has been read") % {"name": name}
    return ngettext(
        "Waiting until %(name)s and %(count)s more have been read",
        "Waiting until %(name)s and %(count)s more have been read",
        more,
    ) % {"name": name, "count": more}


def turn_view_live(
    turn: Turn,
    run: Run,
    text: str,
    *,
    transcript: Transcript,
    passages: Mapping[int, CitablePassage],
    calls: Iterable[Any],
) -> TurnView:
    """Return a turn whose run is under way, after the events that the transcript holds."""
    version = turn.assistant_version
    view = turn_view_new(turn, run, text, "text" if version is None else version.output)
    cited = answer_cite(shown_text(transcript.text, is_formed(view.output)), passages)
    view.seq = transcript.seq
    view.phase = phase_of(transcript)
    view.citations = source_cards(run.pk, cited.sources)
    _calls_add(view, cited, list(calls), is_over=False)
    view.has_text = bool(cited.text.strip())
    view.decisions = decision_cards(transcript.waiting.values())
    view.decided = decided_lines(transcript.decided.values())
    return view


def _calls_add(view: TurnView, cited: Cited, calls: Sequence[Any], *, is_over: bool) -> None:
    """Add an answer's blocks and its tool calls; a figure is at the answer's place for it, else with its call."""
    cards = tool_cards(calls)
    placing = Placing(view.run_id, card_figures(cards))
    view.blocks = answer_blocks(cited, view.citations, placing)
    view.tool_cards = [card.without(placing.placed) for card in cards]
    view.plan = calls_plan(calls, is_over=is_over)


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
        shown_text(run.answer, formed), numbers_of((row.chunk_ref, row.number, row.markers) for row in rows)
    )
    if answer is not None:
        marks = marks_of(answer)
        cited.pieces = flagged(cited.pieces, ((mark.start, mark.end, mark.reason) for mark in marks))
        view.marks, view.statements = marks, statements_count(answer.text) if marks else 0
        view.unsupported = sum(mark.is_doubt for mark in marks)
        view.unchecked, view.compared = len(marks) - view.unsupported, compared_of(answer)
        # Kept in English; those that need no name are marked where they are written, in answering.closing.
        view.problem = _(answer.problem) if answer.problem else ""
    if formed and (value := value_of(run.answer)) is not None:
        view.confidence, view.follow_ups = confidence_of(value), follow_ups_of(value)
    view.is_live, view.seq, view.phase = False, run.last_seq, ""
    view.citations = citation_cards(run.pk, rows)
    _calls_add(view, cited, list(calls), is_over=True)
    view.has_text = bool(cited.text.strip())
    view.language = TAGS.get(language_name(cited.text), "")
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
        view.error_kind = failure_kind(run.error_code)
        view.request_id = str(run.request.get("request_id", ""))
    if run.limit_reached:
        view.limit_message = str(
            _LIMITS.get(run.limit_reached) or _("Limit reached: %(limit)s") % {"limit": run.limit_reached}
        )
    return view
