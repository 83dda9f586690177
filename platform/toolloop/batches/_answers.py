"""Read the results of a batch: JSON lines of any provider, none of which is trusted."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from toolloop.batches.base import BATCH_TIER, MAX_RESULT_BYTES, BatchGone, is_key
from toolloop.errors import MalformedResponse, ProviderError
from toolloop.messages import Turn
from toolloop.providers._common import number

log = logging.getLogger(__name__)

Answer = Turn | ProviderError
# What reading a JSON object of another form than documented ends in.
_ILL_FORMED: Final = (TypeError, ValueError, AttributeError, KeyError, IndexError, RecursionError)


async def answers_of(
    pieces: AsyncIterator[bytes],
    key_of: Callable[[dict[str, Any]], str],
    answer_of: Callable[[dict[str, Any]], Answer],
    seen: set[str],
    *,
    limit: int = MAX_RESULT_BYTES,
) -> AsyncGenerator[tuple[str, Answer]]:
    """Give key and answer of each line that has one.

    Args:
        pieces: bytes of the file.
        key_of: returns the key of a line, "" for none.
        answer_of: returns what a line answers.
        seen: keys that came already; those that come are added.
        limit: bytes that a line may have.
    """
    decoder = LineDecoder(limit)
    unreadable = repeated = 0
    async for piece in _and_end(pieces):
        for line in decoder.feed(piece):
            key = "" if line is None else key_of(line)
            if line is None or not is_key(key):
                unreadable += 1
            elif key in seen:
                repeated += 1
            else:
                seen.add(key)
                yield key, _answer(answer_of, line)
    if unreadable or repeated:
        log.warning("batch results: %d lines unreadable, %d repeated", unreadable, repeated)


class LineDecoder:
    """Decode JSON lines piece by piece; a piece may end anywhere.

    Args:
        limit: bytes that a line may have.
    """

    def __init__(self, limit: int = MAX_RESULT_BYTES) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._is_cut = False  # The line under way has passed the limit.

    def feed(self, piece: bytes) -> list[dict[str, Any] | None]:
        """Return the object of each line that is complete now, None for one that holds none or is too long."""
        found: list[dict[str, Any] | None] = []
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            line = bytes(self._partial).strip()
            if self._is_cut or line:
                found.append(None if self._is_cut else _object(line))
            self._partial.clear()
            self._is_cut = False
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._is_cut = self._is_cut or len(self._partial) + len(part) > self._limit
        if self._is_cut:
            self._partial.clear()
        else:
            self._partial += part


async def _and_end(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Give the pieces, and a line end after the last: a file may lack it."""
    async for piece in pieces:
        yield piece
    yield b"\n"


@contextmanager
def whose_batch(provider: str) -> Iterator[None]:
    """Turn the answer that there is no such batch, or file of one, into BatchGone."""
    try:
        yield
    except ProviderError as error:
        if error.status in {404, 410}:
            raise BatchGone(
                f"{provider} no longer has this batch, or never had it for this key.",
                status=error.status,
            ) from None
        raise


def expired() -> ProviderError:
    """Return the error of a request that the provider did not get to in time: nothing was paid for it."""
    return ProviderError(
        "The provider did not get to this request in time.", code="batch_expired", retryable=True
    )


def cancelled() -> ProviderError:
    """Return the error of a request that was not tried because the batch was cancelled: nothing was paid for it."""
    return ProviderError(
        "The batch was cancelled before this request.", code="batch_cancelled", retryable=True
    )


def counts_of(data: Mapping[str, Any], *names: str) -> list[int]:
    """Return counts by their names; Google writes them as text, and what is none counts as 0."""
    return [_count(data.get(name)) for name in names]


def _count(value: object) -> int:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
    return number(value)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _answer(answer_of: Callable[[dict[str, Any]], Answer], line: dict[str, Any]) -> Answer:
    try:
        answer = answer_of(line)
    except ProviderError as error:
        return error
    except _ILL_FORMED:
        return MalformedResponse("The answer doesn't have the form the provider documents.")
    # Some providers say so, others name the tier of a single call.
    return replace(answer, service_tier=BATCH_TIER) if isinstance(answer, Turn) else answer
