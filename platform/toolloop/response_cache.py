"""Keep answers of requests without tools, so that the same question is not paid for twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from toolloop.errors import ConfigurationError
from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, TurnFinished
from toolloop.messages import Turn, message_from_json
from toolloop.providers.base import ModelRequest, Provider
from toolloop.tokens import Usage
from toolloop.usage import CACHED


class Cache(Protocol):
    """Where answers are kept: text under a key."""

    async def get(self, key: str) -> str | None:
        """Return the text, None when there is none or it is too old."""

    async def set(self, key: str, value: str, ttl_s: float | None) -> None:
        """Store the text for so many seconds, for good when None."""


class MemoryCache:
    """A cache in this process; what was not asked for the longest goes first.

    Args:
        max_entries: answers kept at once.
        clock: seconds that only go forward.
    """

    def __init__(self, max_entries: int = 256, *, clock: Callable[[], float] = time.monotonic) -> None:
        if max_entries < 1:
            raise ConfigurationError("MemoryCache.max_entries must be at least 1")
        self._most, self._clock = max_entries, clock
        self._entries: OrderedDict[str, tuple[str, float | None]] = OrderedDict()

    async def get(self, key: str) -> str | None:
        """See ``Cache``."""
        found = self._entries.get(key)
        if found is None:
            return None
        value, until = found
        if until is not None and self._clock() >= until:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    async def set(self, key: str, value: str, ttl_s: float | None) -> None:
        """See ``Cache``."""
        self._entries[key] = (value, None if ttl_s is None else self._clock() + ttl_s)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Where answers are kept, for how many seconds, and for whom; see ``CachedProvider``."""

    cache: Cache
    ttl_s: float | None = 3600.0
    scope: str = ""


class CachedProvider:
    """A provider that answers a request it has answered before from a cache.

    Only requests without tools (a search of the provider's own included), and only whole answers: what was refused, filtered or cut off is asked again. The key
    covers everything the answer depends on. A turn from the cache has ``stop_detail`` "cached" and no usage.

    Args:
        provider: asked when the cache has nothing; closed with this one.
        cache: shared between runs where that is wanted.
        ttl_s: seconds an answer is good for, None for ever.
        scope: part of the key. Give the tenant's id, so that nobody can tell by the time it takes what others asked.
    """

    def __init__(
        self, provider: Provider, cache: Cache, *, ttl_s: float | None = 3600.0, scope: str = ""
    ) -> None:
        self.name = provider.name
        self._provider, self._cache, self._ttl_s, self._scope = provider, cache, ttl_s, scope

    async def aclose(self) -> None:
        """Close the provider; the cache stays."""
        await self._provider.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``."""
        key = "" if request.tools or request.server_tools else self._key(request)
        stored = await self._cache.get(key) if key else None
        if stored is not None:
            turn = message_from_json(json.loads(stored))
            if isinstance(turn, Turn):
                if turn.reasoning:
                    yield ReasoningDelta(turn.reasoning)
                if turn.text:
                    yield TextDelta(turn.text)
                yield TurnFinished(turn)
                return
        events = cast(AsyncGenerator[ProviderEvent, None], self._provider.stream(request))
        async with aclosing(events) as stream:
            async for event in stream:
                if key and isinstance(event, TurnFinished) and event.turn.stop == "end":
                    kept = replace(event.turn, usage=Usage(), stop_detail=CACHED)
                    await self._cache.set(key, json.dumps(kept.to_json()), self._ttl_s)
                yield event

    def _key(self, request: ModelRequest) -> str:
        form = request.response_schema
        parts: dict[str, Any] = {
            "scope": self._scope,
            "provider": self.name,
            "model": request.model,
            "system": request.system,
            "messages": [_asked(message.to_json()) for message in request.messages],
            "options": dict(request.options),
            "max_output_tokens": request.max_output_tokens,
            "form": None if form is None else [form.name, dict(form.schema), form.strict],
        }
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _asked(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a message what no provider is told."""
    hidden = ("usage", "request_id", "stop_detail", "payload")
    return {key: value for key, value in message.items() if key not in hidden}
