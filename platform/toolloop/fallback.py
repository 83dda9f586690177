"""Another model when the first one cannot be had."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import cast

from toolloop.errors import (
    ConfigurationError,
    ContextTooLong,
    ProviderError,
    QuotaExhausted,
    UnsupportedFeature,
)
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.providers.base import ModelRequest, Provider
from toolloop.tokens import Usage
from toolloop.usage import ProfileLookup

logger = logging.getLogger(__name__)


class FallbackProvider:
    """Asks a list of models in turn, until one begins to answer.

    It changes over only before the first visible delta, and only for errors another model may not have: overload, rate
    limits, exhausted quota, a history too long. A wrong key or request stays an error, because nobody would notice it.
    Who answered last is asked first in the next turn, so that its native turns stay of use; each model gets the history
    rendered for it, as adapters echo only what is their own. One that lacks what the request needs (images, say) cannot
    stand in and is passed over. When all fail, the last error goes to the loop, whose retries begin anew with all of
    them. Turns carry provider and model of who answered, and are priced so.

    Args:
        candidates: adapters with the bare name of the model each is asked for, the preferred one first. Run the loop with
            the first one's model.
        profiles: facts about the others, by provider and bare model; looked up by their names when None.

    Raises:
        ConfigurationError: without candidates.
    """

    def __init__(
        self, candidates: Sequence[tuple[Provider, str]], *, profiles: ProfileLookup | None = None
    ) -> None:
        if not candidates:
            raise ConfigurationError("FallbackProvider needs at least one provider and model")
        self._candidates, self._profiles = list(candidates), profiles
        self._first = 0
        self.name = candidates[0][0].name

    async def aclose(self) -> None:
        """Close all adapters, each once."""
        async with AsyncExitStack() as stack:
            for provider in {id(provider): provider for provider, _ in self._candidates}.values():
                stack.push_async_callback(provider.aclose)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``."""
        count = len(self._candidates)
        lost = Usage()
        failed: ProviderError | None = None
        for attempt in range(count):
            index = (self._first + attempt) % count
            provider, model = self._candidates[index]
            visible = False
            profile = request.profile  # Facts that came with the request are those of the first model.
            if index:
                profile = self._profiles(provider.name, model) if self._profiles else None
            events = cast(
                AsyncGenerator[ProviderEvent, None],
                # An answer in the background is of the model that began it.
                provider.stream(
                    replace(request, model=model, profile=profile, resume=None if index else request.resume)
                ),
            )
            try:
                async with aclosing(events) as stream:
                    async for event in stream:
                        visible = True
                        if isinstance(event, TurnFinished) and lost.requests:
                            turn = event.turn
                            event = TurnFinished(replace(turn, usage=turn.usage + lost))
                        if isinstance(event, TurnFinished):
                            self._first = index  # Now: nobody reads on behind this event.
                        yield event
                return
            except ProviderError as error:
                lost += error.usage or Usage()
                if failed is None or not isinstance(error, UnsupportedFeature):
                    failed = error
                if visible or attempt == count - 1 or not _another_may_do(failed):
                    failed.usage = lost if lost.requests else None
                    raise failed from None
                logger.warning("%s/%s cannot be had (%s); asking the next", provider.name, model, error.code)


def _another_may_do(error: ProviderError) -> bool:
    return error.retryable or isinstance(error, QuotaExhausted | ContextTooLong)
