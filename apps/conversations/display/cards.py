"""The cards of an answer as plain values: its tool calls, its decisions, its sources. Live and stored ones look alike."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.conversations.citations.markers import NumberedQuote
from apps.conversations.display.figures import Figure, call_figures
from apps.conversations.display.plans import PlanView, is_plan, plan_view
from apps.conversations.models import Citation
from basics.texts import number_told
from runs.approvals.argument_changes import ArgumentDifference
from runs.journal import summary_of
from runs.selectors import CONTENT_SHOWN

SEARCHES = frozenset(
    (
        "search_documents",
        "search_documentation",
        "search_codebase",
        "lookup_hts_code",
        "check_tariffs",
        "check_agency_requirements",
    )
)
"""Tools that search the documents for passages about something."""


@dataclass(frozen=True, slots=True)
class ToolCard:
    """One tool call as its card shows it; ``pk`` names its whole output."""

    pk: int
    index: int
    name: str
    status: str
    summary: str
    duration: str
    arguments: str
    result: str
    is_cut: bool
    figures: tuple[Figure, ...] = ()
    has_figures: bool = False

    def without(self, placed: Collection[str]) -> ToolCard:
        """Return the card without the figures that its answer has at places of its own."""
        left = tuple(figure for figure in self.figures if figure.key not in placed)
        return self if left == self.figures else replace(self, figures=left)


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


_DECIDED = {
    "approved": gettext_lazy("approved"),
    "rejected": gettext_lazy("rejected"),
    "answered": gettext_lazy("answered"),
}
_DECIDED_BY = {
    "approved": gettext_lazy("approved by %(person)s"),
    "rejected": gettext_lazy("rejected by %(person)s"),
    "answered": gettext_lazy("answered by %(person)s"),
}


@dataclass(frozen=True, slots=True)
class DecidedLine:
    """What was decided about a call, by whom, and what was changed."""

    pk: int
    name: str
    status: str
    by: str
    reason: str
    changes: tuple[ArgumentDifference, ...]

    @property
    def told(self) -> str:
        """What was decided and, where it is known, by whom, in words."""
        if self.status not in _DECIDED:
            return self.status
        return str(_DECIDED_BY[self.status] % {"person": self.by} if self.by else _DECIDED[self.status])


@dataclass(frozen=True, slots=True)
class CitationCard:
    """One source as its card shows it; ``pk`` names it in URLs while the answer is live and after. ``header`` is a row's."""

    pk: str
    number: int
    document_name: str
    collection_name: str
    page: int | None
    quote: str
    header: str = ""


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
                pk=row["id"],
                index=index,
                name=row["name"],
                status=shown,
                summary=_argument_line(arguments)
                if shown in ("running", "waiting")
                else summary_of(row["own_summary"], content),
                duration=_duration(row["duration_ms"]),
                arguments=_arguments_text(arguments),
                result=_result_text(content),
                is_cut=len(content) > CONTENT_SHOWN,
                figures=(figures := call_figures(row)),
                has_figures=bool(figures),
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
            approver=row.get("approver") or _("you"),
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
            changes=tuple(ArgumentDifference(**change) for change in row.get("changes", ())),
        )
        for row in decided
    ]


def _arguments_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def _result_text(content: str) -> str:
    """Return what a tool gave, JSON on lines of its own; what is longer than a card shows is cut and left as it is."""
    if len(content) <= CONTENT_SHOWN and content[:1] in ("{", "["):
        with suppress(ValueError):
            return _arguments_text(json.loads(content))
    return content[:CONTENT_SHOWN]


def _argument_line(arguments: object) -> str:
    if isinstance(arguments, dict):
        text = next((v for v in arguments.values() if isinstance(v, str)), "")
        return summary_of(None, text)
    return ""


def _duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds} ms" if milliseconds < 100 else f"{number_told(milliseconds / 1000, 1)} s"


def source_cards(run_id: int, sources: Iterable[NumberedQuote]) -> list[CitationCard]:
    """Return the cards of sources that are not stored yet."""
    return [
        CitationCard(
            f"{run_id}-{s.number}",
            s.number,
            s.passage.document_name,
            s.passage.collection_name,
            s.page,
            s.quote,
            s.header,
        )
        for s in sources
    ]


def citation_cards(run_id: int, rows: Iterable[Citation]) -> list[CitationCard]:
    """Return the cards of stored sources."""
    return [
        CitationCard(
            f"{run_id}-{r.number}", r.number, r.document_name, r.collection_name, r.page, r.quote, r.header
        )
        for r in rows
    ]
