"""The live answer as HTML frames: each says what a part of the page is now, so that a replay does no harm.

A frame holds ``<hx-partial>`` pieces for the parts that changed: tool cards, text blocks, the footer, the sources. The
parts are built by ``presentation`` and the page's own templates, and the last frame of all from the stored rows, so that
what stands on the page is what a reload would show.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from django.template.loader import render_to_string

from apps.conversations.citations.markers import CitablePassage, answer_cite, passages_of
from apps.conversations.display.answer_forms import is_formed, shown_text
from apps.conversations.display.cards import (
    CitationCard,
    DecidedLine,
    DecisionCard,
    ToolCard,
    calls_plan,
    decided_lines,
    decision_cards,
    source_cards,
    tool_cards,
)
from apps.conversations.display.figures import FIGURE_COLUMNS, Placing
from apps.conversations.display.plans import PlanView
from apps.conversations.display.presentation import TurnView, answer_blocks, card_figures, phase_of
from apps.conversations.display.rendering import Block, block_element
from apps.conversations.models import Conversation
from apps.conversations.transcript import selectors
from apps.conversations.transcript.shown import call_withhold, conversation_watch
from apps.conversations.turns import drafts
from basics.event_stream import HEARTBEAT, HELLO, frame
from runs.selectors import calls_shown
from runs.stream import events_follow, rows_read
from runs.transcript import FINISHED, TOOL_FINISHED, TOOL_STARTED, TOOL_WAITING, Transcript
from runs.withheld import NOTHING, Withheld, transcript_withheld
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

_CALLS = calls_shown(FIGURE_COLUMNS)
_CHEAP_S = 0.02
_JUDGED_S = 2.0
"""Seconds for which it is taken as given what the reader may see, while no tool is called."""
_SLOWEST_S = 0.4
_COST_FACTOR = 3.0

Event = tuple[int, str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """Whose answer is streamed to whom."""

    tenant: Tenant
    actor: Actor
    conversation_pk: int
    turn_pk: int
    run_id: int
    view: TurnView


async def answer_frames(target: Target, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the frames of an answer for a page that shows its events up to ``after``; ends with ``event: end``."""
    yield HELLO
    answer = LiveAnswer(target)
    async with aclosing(events_follow(target.tenant.pk, target.run_id, 0)) as batches:
        async for batch in batches:
            if batch is None:
                yield HEARTBEAT
                continue
            shown = [event for event in batch if event[0] <= after]
            news = [event for event in batch if event[0] > after]
            if shown:
                await answer.take(shown)
                answer.assume_shown()
            # A page may be built between a run's last event and the end of its turn: it shows every event and yet an
            # answer under way. It gets the end too.
            if not (news or answer.is_finished):
                continue
            await answer.take(news)
            began = time.thread_time()
            html = await answer.ended() if answer.is_finished else answer.changes()
            cost = time.thread_time() - began
            if html:
                yield frame(html, seq=answer.transcript.seq)
            if cost > _CHEAP_S and not answer.is_finished:
                # A long answer costs more to draw: draw it less often, so that one reader cannot hold up the others.
                # Its own time counts, not that of a busy machine: what waits for a processor must not wait longer for it.
                await asyncio.sleep(min(_SLOWEST_S, _COST_FACTOR * cost))
    yield frame("", seq=answer.transcript.seq or after, event="end")


class LiveAnswer:
    """What a reader's page shows of an answer, and what has changed since."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.transcript = Transcript()
        self._passages: dict[int, CitablePassage] = {}
        self._view = target.view
        self._blocks: list[str] = []
        self._cards: dict[int, ToolCard] = {}
        self._all_cards = target.view.tool_cards
        self._placed: set[str] = set()
        self._calls: dict[int, tuple[int, str]] = {}
        self._sources: list[CitationCard] = []
        self._decisions: list[DecisionCard] = []
        self._decided: list[DecidedLine] = []
        self._footer = ""
        self._footer_says: tuple[str, bool] | None = None
        self._plan: PlanView | None = None
        self._watch = conversation_watch(target.actor, target.conversation_pk)
        self._withheld, self._judged_at = NOTHING, 0.0
        self.is_finished = False

    async def take(self, events: Sequence[Event]) -> None:
        """Take further events."""
        for seq, kind, data in events:
            self.transcript.apply(seq, kind, data)
        kinds = {kind for _, kind, _ in events}
        self.is_finished = self.is_finished or FINISHED in kinds
        has_calls = bool(kinds & {TOOL_STARTED, TOOL_FINISHED, TOOL_WAITING})
        had = self._withheld
        if has_calls or time.monotonic() - self._judged_at >= _JUDGED_S:
            self._withheld = await self._watch.withheld()
            self._judged_at = time.monotonic()
        if has_calls or self._withheld != had:
            rows = await rows_read(self._target.tenant.pk, _CALLS, (self._target.run_id,))
            for row in rows if self._withheld else ():
                call_withhold(row, self._withheld)
            self._passages = passages_of(row["payload"] for row in rows)
            plan = calls_plan(rows, is_over=False)
            self._all_cards = tool_cards(rows)
            self._view = replace(self._view, plan=plan)
            self._calls = {n: (row["step"], row["call_id"]) for n, row in enumerate(rows)}

    def assume_shown(self) -> None:
        """Take what was taken so far as what the page shows already."""
        blocks, self._sources = self._text()
        self._blocks = [block.html for block in blocks]
        self._decisions = decision_cards(self._shown.waiting.values())
        self._decided = decided_lines(self._shown.decided.values())

    def changes(self) -> str:
        """Return the pieces that differ from what the page shows, and take them as shown."""
        blocks, sources = self._text()
        self._view = replace(
            self._view,
            phase=phase_of(self.transcript),
            tool_cards=[self._growing(card.without(self._placed)) for card in self._all_cards],
            citations=sources,
            has_text=bool(blocks),
            decisions=decision_cards(self._shown.waiting.values()),
            decided=decided_lines(self._shown.decided.values()),
        )
        return self._pieces(blocks, all_blocks=False)

    def _growing(self, card: ToolCard) -> ToolCard:
        """Return a card with what its tool has yielded so far, while it runs."""
        call = self._calls.get(card.index)
        if card.status != "running" or call is None:
            return card
        return replace(card, result=self.transcript.progress.get(call, ""))

    async def ended(self) -> str:
        """Return every piece of the finished answer, from its stored rows."""
        target = self._target
        # Judged at this moment, by the statement that the stream has made already: making it again costs more than asking.
        self._view = await in_db(_stored_view, target, await self._watch.withheld())
        self._footer, self._cards, self._sources, self._plan = "", {}, [], None
        self._footer_says = None
        return self._pieces(self._view.blocks, all_blocks=True)

    @property
    def _shown(self) -> Transcript:
        return transcript_withheld(self.transcript, self._withheld)

    def _text(self) -> tuple[list[Block], list[CitationCard]]:
        text = shown_text(self._shown.text, is_formed(self._view.output))
        cited = answer_cite(text, self._passages)
        cards = source_cards(self._target.run_id, cited.sources)
        placing = Placing(self._target.run_id, card_figures(self._all_cards))
        blocks = answer_blocks(cited, cards, placing)
        self._placed = placing.placed
        return blocks, cards

    def _pieces(self, blocks: Sequence[Block], *, all_blocks: bool) -> str:
        run_id, view = self._target.run_id, self._view
        context = {
            "tenant": self._target.tenant,
            "conversation": {"pk": self._target.conversation_pk},
            "turn": view,
            "run_id": run_id,
        }
        pieces = []
        if view.plan != self._plan:
            plan = render_to_string("conversations/_plan.html", context)
            pieces.append(_partial(f"#r{run_id}-plan", "blocks", plan))
        self._plan = view.plan
        cards = [card for card in view.tool_cards if self._cards.get(card.index) != card]
        if cards:
            html = "".join(
                render_to_string("conversations/_tool_card.html", {**context, "card": card}) for card in cards
            )
            pieces.append(_partial(f"#r{run_id}-work", "blocks", html))
        self._cards = {card.index: card for card in view.tool_cards}
        # One by one, so that what is half typed in one card stays when another goes.
        gone = {card.pk for card in self._decisions} - {card.pk for card in view.decisions}
        pieces += [_partial(f"#r{run_id}-d{pk}", "delete", "") for pk in sorted(gone)]
        if any(card not in self._decisions for card in view.decisions):
            html = render_to_string("conversations/_decisions.html", context)
            pieces.append(_partial(f"#r{run_id}-decisions", "blocks", html))
        self._decisions = view.decisions
        if view.decided != self._decided:
            html = render_to_string("conversations/_decided.html", context)
            pieces.append(_partial(f"#r{run_id}-decided", "innerHTML", html))
        self._decided = view.decided
        changed = [
            block
            for block in blocks
            if all_blocks or block.index >= len(self._blocks) or self._blocks[block.index] != block.html
        ]
        if changed or len(blocks) < len(self._blocks) or all_blocks:
            html = "".join(block_element(block, run_id) for block in changed)
            pieces.append(_partial(f"#r{run_id}-blocks", f"blocks keep:{len(blocks)}", html))
        self._blocks = [block.html for block in blocks]
        if view.citations != self._sources or all_blocks:
            html = render_to_string("conversations/_sources.html", context)
            pieces.append(_partial("#refs-list", "blocks", html))
        self._sources = view.citations
        if all_blocks:
            html = render_to_string("conversations/_answer_notes.html", context)
            pieces.append(_partial(f"#r{run_id}-notes", "innerHTML", html))
        # All that the footer of an answer under way says; drawing it costs as much as the rest of a frame.
        says = (view.phase, view.is_extractive) if view.is_live else None
        if says is None or says != self._footer_says:
            footer = render_to_string("conversations/_answer_footer.html", context)
            if footer != self._footer:
                pieces.append(_partial(f"#r{run_id}-foot", "innerHTML", footer))
            self._footer, self._footer_says = footer, says
        return "".join(pieces)


def _partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'


def _stored_view(target: Target, withheld: Withheld) -> TurnView:
    conversation = Conversation(pk=target.conversation_pk, tenant=target.tenant)
    with tenant_scope(target.tenant.pk):  # the middleware's scope ended with the view
        turn = selectors.turn_get(
            actor=target.actor, conversation=conversation, withheld=withheld, run_id=target.run_id
        )
        drafts.conversation_seen(
            tenant=target.tenant, actor=target.actor, conversation=conversation
        )  # who watches an answer end knows of it
        return selectors.turn_view(turn)
