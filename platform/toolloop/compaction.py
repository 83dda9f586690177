"""Make a long history fit again: clear old tool outputs first, then leave out old exchanges as a whole.

A call is never separated from its result. What is done is done in one go down to well below the limit, so that the prefix of
the following requests stays the same, and prompt caches hit, until the limit is met again. The stored history is not
touched: only what the model sees is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from toolloop.errors import ConfigurationError
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.providers.base import ToolSpec
from toolloop.providers.profiles import Profile
from toolloop.usage import Spending, text_tokens

logger = logging.getLogger(__name__)

Summarise = Callable[[Sequence[ModelMessage]], Awaitable[str]]
"""Puts messages that are left out into a few sentences; asks a cheap model, say."""

_WORTH_CLEARING = 400  # Characters; the note in place of a shorter output would save nothing.
_CLEARED = (
    "[This output of {name} was cleared to save room: {size} characters. Call it again if it is needed.]"
)
_LEFT_OUT = "[Earlier parts of this conversation were left out: {count} messages.]"
_SUMMARY = "[Earlier parts of this conversation were left out: {count} messages. What they said:]\n{text}"
_DEFAULT_OUTPUT = 8_192


@dataclass(frozen=True, slots=True)
class Compaction:
    """When and how far a history is compacted.

    Attributes:
        trigger: share of the model's room for input above which it is.
        target: share it is brought down to.
        keep_turns: latest model turns that stay as they are, with their results.
        summarise: says what was left out; without it a note says that something was.
    """

    trigger: float = 0.85
    target: float = 0.55
    keep_turns: int = 4
    summarise: Summarise | None = None

    def __post_init__(self) -> None:
        if not 0 < self.target < self.trigger <= 1:
            raise ConfigurationError("Compaction needs 0 < target < trigger <= 1")
        if self.keep_turns < 1:
            raise ConfigurationError("Compaction.keep_turns must be at least 1")


@dataclass(frozen=True, slots=True)
class Compacted:
    """Attributes: ``messages`` to send; how many results were ``cleared`` and messages ``left_out``."""

    messages: list[ModelMessage]
    cleared: int = 0
    left_out: int = 0


async def history_compact(
    history: Sequence[ModelMessage],
    target_tokens: int,
    *,
    keep_turns: int = 4,
    summarise: Summarise | None = None,
) -> Compacted:
    """Bring a history down to a number of tokens, as far as what must stay allows.

    The last message of the user and the latest turns stay. Turns after the first change lose their native form: a
    provider that signs its turns refuses them, or ignores them, behind another prefix.

    Args:
        history: messages, oldest first.
        target_tokens: estimated tokens to come down to.
        keep_turns, summarise: see ``Compaction``. When ``summarise`` fails, it is logged, and a note takes its place.
    """
    units = _units(history)
    kept = _protected(units, keep_turns)
    total = sum(_size(unit) for unit in units)
    first_change, cleared = len(units), 0
    for index, unit in enumerate(units):
        if total <= target_tokens:
            break
        if index in kept or not any(_clearable(message) for message in unit):
            continue
        before = _size(unit)
        cleared += sum(_clearable(message) for message in unit)
        units[index] = [_cleared(message) for message in unit]
        total += _size(units[index]) - before
        first_change = min(first_change, index)
    dropped: list[ModelMessage] = []
    gone: set[int] = set()
    for index, unit in enumerate(units):
        if total <= target_tokens:
            break
        if index not in kept:
            dropped += unit
            gone.add(index)
            total -= _size(unit)
    messages: list[ModelMessage] = []
    if gone:
        first_change = -1
        messages.append(await _note(dropped, summarise))
    for index, unit in enumerate(units):
        if index not in gone:
            messages += _foreign(unit) if index > first_change else unit
    return Compacted(messages, cleared, len(dropped))


class Compactor:
    """Watches the size of one run's history.

    Args:
        settings: None switches it off.
        profile: for the model's context window; nothing is done up front where that is unknown.
        spending: knows what the provider counted so far.
        system, specs: what goes along with the history.
    """

    def __init__(
        self,
        settings: Compaction | None,
        profile: Profile,
        spending: Spending,
        system: str,
        specs: Callable[[], Sequence[ToolSpec]],
    ) -> None:
        self._system, self._specs = system, specs
        self._settings, self._spending = settings, spending
        window = profile.context_window
        output = min(profile.max_output_tokens or _DEFAULT_OUTPUT, (window or 0) // 4)
        self._room = None if window is None else window - output
        self._forced_at = -1

    async def fitted(self, history: list[ModelMessage]) -> list[ModelMessage]:
        """Return the history, compacted when it would come near the model's limit."""
        settings, room = self._settings, self._room
        if settings is None or room is None:
            return history
        size = self._spending.input_tokens(self._system, history, self._specs())
        if size <= settings.trigger * room:
            return history
        return await self._compacted(history, int(settings.target * room), size)

    async def forced(self, history: list[ModelMessage]) -> list[ModelMessage] | None:
        """Return a much smaller history after the provider found it too long; None when that was tried or cannot help."""
        if self._settings is None or self._forced_at == len(history):
            return None
        size = self._spending.input_tokens(self._system, history, self._specs())
        smaller = await self._compacted(history, int(size * self._settings.target), size)
        self._forced_at = len(smaller)
        return None if smaller is history else smaller

    async def _compacted(self, history: list[ModelMessage], target: int, size: int) -> list[ModelMessage]:
        settings = self._settings or Compaction()
        # The provider counts otherwise than we estimate: the same share of our own count is what must remain.
        own = sum(text_tokens(message) for message in history)
        done = await history_compact(
            history,
            int(own * target / max(1, size)),
            keep_turns=settings.keep_turns,
            summarise=settings.summarise,
        )
        if not done.cleared and not done.left_out:
            return history
        logger.info(
            "history compacted: %d outputs cleared, %d messages left out", done.cleared, done.left_out
        )
        self._spending.history_changed()
        return done.messages


def _units(history: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    """Cut a history into what must stay together: a user message, or a turn with its results."""
    units: list[list[ModelMessage]] = []
    for message in history:
        if isinstance(message, ToolResult) and units and isinstance(units[-1][0], Turn):
            units[-1].append(message)
        else:
            units.append([message])
    return units


def _protected(units: Sequence[list[ModelMessage]], keep_turns: int) -> set[int]:
    turns = [index for index, unit in enumerate(units) if isinstance(unit[0], Turn)]
    kept = set(turns[-keep_turns:])
    said = [
        index for index, unit in enumerate(units) if isinstance(unit[0], UserMessage) and not unit[0].notice
    ]
    kept.update(said[-1:])
    # What came after the last turn is new to the model.
    kept.update(range((turns[-1] if turns else -1) + 1, len(units)))
    return kept


def _size(unit: Sequence[ModelMessage]) -> int:
    return sum(text_tokens(message) for message in unit)


def _clearable(message: ModelMessage) -> bool:
    if not isinstance(message, ToolResult):
        return False
    return len(message.content) > _WORTH_CLEARING or bool(message.parts)


def _cleared(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ToolResult) or not _clearable(message):
        return message
    text = _CLEARED.format(name=message.name, size=len(message.content))
    return replace(message, content=text, parts=())


def _foreign(unit: Sequence[ModelMessage]) -> list[ModelMessage]:
    return [replace(m, native=None) if isinstance(m, Turn) and m.native else m for m in unit]


async def _note(dropped: Sequence[ModelMessage], summarise: Summarise | None) -> UserMessage:
    text = ""
    if summarise is not None:
        try:
            text = (await summarise(dropped)).strip()
        except Exception:
            logger.exception("what is left out of a history could not be summarised")
    form = _SUMMARY if text else _LEFT_OUT
    return UserMessage(form.format(count=len(dropped), text=text), notice=True)
