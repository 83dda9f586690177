"""A model that answers by batch, as the loop asks it: the answer where it is there, a line for the next batch where not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batches.engines import Engine
from batches.lines import line_find, line_forget, line_want
from batches.models import BatchLine, LineState
from toolloop.errors import ProviderError
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import Turn, message_from_json
from toolloop.providers.base import ModelRequest
from toolloop.purse import Grant, Quote

ANSWERS_LATER = "answers_later"


class AnswersLater(ProviderError):
    """The call goes with the next batch; ask again when that has come back."""

    code = ANSWERS_LATER


@dataclass(slots=True)
class BatchedCall:
    """Implements ``Provider`` and ``Purse`` for one question of an owner, whose loop may take several turns.

    The loop may be run again from its stored turns as often as one likes: a turn that was answered is not asked for again.

    Args:
        owner, key: of the line of the next turn; the loop's later turns count it up.
        step: of the next turn.
        kind, attribution: of the usage record.
        context: told with the line, and found in ``told`` when the loop is run again: what led to the turn and is stored
            nowhere else. It is called when the line is written.
        in_db: runs a function on the database threads.

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
    told: list[Any] | None = None
    _line: BatchLine | None = None
    _quote: Quote | None = None
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.engine.api.name

    async def begin(self) -> None:
        """Look up the line of the first turn; call it once before the loop."""
        self._line = await self.in_db(line_find, self.tenant_id, self.owner, self._key())
        self.told = None if self._line is None else self._line.context

    async def reserve(self, quote: Quote) -> Grant:
        """See ``Purse``: the money is held when the line is sent, and recorded when its answer comes."""
        self._quote = quote
        return Grant()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ProviderEvent]:
        """Give the turn that a batch has brought.

        Raises:
            AnswersLater: it is wanted with the next batch, or under way.
            ProviderError: the call was given up; asked again, it is wanted again.
        """
        line, self._line = self._line, None
        if line is None:
            await self.in_db(line_want, self._wanted(request))
        elif line.state == LineState.FAILED:
            await self.in_db(line_forget, line)
            raise ProviderError(line.error_message, code=line.error_code, retryable=False)
        elif line.state == LineState.ANSWERED:
            turn = message_from_json(line.turn or {})
            if not isinstance(turn, Turn):
                raise ProviderError("The stored answer cannot be read.", retryable=False)
            self.step += 1
            self._quote = None
            yield TurnFinished(turn)
            return
        raise AnswersLater("The answer comes with a batch.")

    async def aclose(self) -> None:
        """Do nothing; the courier closes the engine."""

    def _key(self) -> str:
        return f"{self.key}-{self.step}"

    def _wanted(self, request: ModelRequest) -> BatchLine:
        key, quote = self._key(), self._quote
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
