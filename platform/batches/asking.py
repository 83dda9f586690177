"""A model that answers by batch, as it is asked: the answer where it is there, a line for the next batch where not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batches.awaited import AnswersAwaited
from batches.engines import Engine
from batches.lines import line_find, line_forget, line_want
from batches.models import BatchLine, LineState
from runs.local_loop import LocalLoop
from runs.services import Completion, CompletionFailed, Question
from toolloop.batches.base import AnswersLater
from toolloop.errors import ProviderError
from toolloop.events import ProviderEvent, TextDelta, TurnFinished
from toolloop.messages import Turn, message_from_json
from toolloop.providers.base import ModelRequest
from toolloop.reservations import CostEstimate, Reservation


@dataclass(slots=True)
class BatchedCall:
    """Implements ``Provider`` and ``BudgetReservations`` for one question of an owner, whose loop may take several turns.

    The loop may be run again from its stored turns as often as one likes: a turn that was answered is not asked for again.

    Args:
        owner, key: of the line of the next turn; the loop's later turns count it up.
        step: of the next turn; see ``turn_begins``.
        kind, attribution: of the usage record.
        context: told with the line, and found in ``told`` when the loop is run again: what led to the turn and is stored
            nowhere else. It is called when the line is written.
        in_db: runs a function on the database threads.
        forgets: a call that was given up is wanted again when it is asked again; else it stays given up.

    Attributes:
        told: what ``context`` said when the line of this step was written; None when there is none yet.
    """

    engine: Engine
    tenant_id: int
    owner: str
    key: str
    step: int
    kind: str
    attribution: Mapping[str, Any]
    context: Callable[[], list[Any]]
    in_db: Callable[..., Awaitable[Any]]
    forgets: bool = True
    told: list[Any] | None = None
    _turn: int | None = None
    _found: tuple[str, BatchLine | None] | None = None
    _quote: CostEstimate | None = None
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.engine.api.name

    async def begin(self) -> None:
        """Look up the line of the first turn; call it once before the loop."""
        line = await self._find()
        self._found = (self.line_key, line)
        self.told = None if line is None else line.context

    def turn_begins(self, number: int) -> None:
        """Say which turn of the loop is next, where something between it and the model may ask more or less than once a turn.

        From then on ``step`` counts the calls of that turn.
        """
        if number != self._turn:
            self._turn, self.step = number, 0

    async def reserve(self, quote: CostEstimate) -> Reservation:
        """See ``BudgetReservations``: the money is held when the line is sent, and recorded when its answer comes."""
        self._quote = quote
        return Reservation()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ProviderEvent]:
        """Give the turn that a batch has brought.

        Raises:
            AnswersLater: it is wanted with the next batch, or under way.
            ProviderError: the call was given up.
        """
        line = await self._find()
        if line is None:
            await self.in_db(line_want, self._wanted(request))
        elif line.state == LineState.FAILED:
            if self.forgets:
                await self.in_db(line_forget, line)
            else:
                self.step += 1
            raise ProviderError(line.error_message, code=line.error_code, retryable=False)
        elif line.state == LineState.ANSWERED:
            turn = message_from_json(line.turn or {})
            if not isinstance(turn, Turn):
                raise ProviderError("The stored answer cannot be read.", retryable=False)
            self.step += 1
            self._quote = None
            if turn.text:
                yield TextDelta(turn.text)
            yield TurnFinished(turn)
            return
        raise AnswersLater("The answer comes with a batch.")

    async def aclose(self) -> None:
        """Do nothing; the courier closes the engine."""

    @property
    def line_key(self) -> str:
        """Return the key of the next call's line."""
        turn = "" if self._turn is None else f"{self._turn}-"
        return f"{self.key}-{turn}{self.step}"

    async def _find(self) -> BatchLine | None:
        found, self._found = self._found, None
        if found is not None and found[0] == self.line_key:
            return found[1]
        line: BatchLine | None = await self.in_db(line_find, self.tenant_id, self.owner, self.line_key)
        return line

    def _wanted(self, request: ModelRequest) -> BatchLine:
        key, quote = self.line_key, self._quote
        return BatchLine(
            tenant_id=self.tenant_id,
            owner=self.owner,
            key=key,
            model=self.engine.name,
            body=self.engine.line(key, request),
            context=self.context(),
            attribution=dict(self.attribution),
            kind=self.kind,
            most_usd="0" if quote is None else f"{quote.most_usd:.8f}",
            is_priced=quote is None or quote.is_priced,
        )


def completion_batched(question: Question, *, engine: Engine, owner: str, key: str) -> Completion:
    """Ask a model once by batch, as ``runs.services.completion_run`` asks it directly; blocks for as long as the database takes.

    Args:
        question: of ``completion_prepare`` for the engine's model.
        key: of the call; a repair of its answer is the next call of that key. What was answered stays answered.

    Raises:
        AnswersAwaited: it is wanted with the next batch, or under way.
        CompletionFailed: there is no answer of that form.
    """
    here = LocalLoop()
    call = BatchedCall(
        engine=engine,
        tenant_id=question.tenant.pk,
        owner=owner,
        key=key,
        step=0,
        kind=question.purpose,
        attribution=question.metadata,
        context=list,
        in_db=here.in_db,
        forgets=False,
    )
    try:
        return here.run(question.answer_by(engine.asked_by(call), call))
    except CompletionFailed as failed:
        if failed.code != AnswersLater.code:
            raise
        raise AnswersAwaited([call.line_key]) from failed
