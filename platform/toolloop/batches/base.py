"""What a provider's batch API is to us: many requests handed over at once, at half the price, answered within a day."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from toolloop.errors import ConfigurationError, ProviderError, ProviderUnavailable, UnsupportedFeature
from toolloop.messages import Turn
from toolloop.providers.base import ModelRequest
from toolloop.service import Service

# What Anthropic leaves of the 64 characters of a request's name, which holds a digest of the mark as well.
MAX_KEY_CHARS: Final = 39
MAX_MARK_CHARS: Final = 64

# In which tier its answers are served: what ``Profile.cost_usd`` prices them by.
BATCH_TIER: Final = "batch"

BatchStatus = Literal["running", "ended", "failed", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one batch may hold; the provider's own limits, or ours where those are higher.

    Attributes:
        max_lines: requests.
        max_bytes: sum of the lines, counting one byte more for each. They are in memory while they are sent.
        hours: after which the provider gives up on what it has not answered.
    """

    max_lines: int
    max_bytes: int
    hours: int


@dataclass(frozen=True, slots=True)
class BatchStanding:
    """How far a batch has come.

    Attributes:
        status: ``running`` until nothing more happens to it, cancelling included. ``ended``: every request was tried,
            whatever came of each. ``failed``: the provider refused the batch as a whole. ``cancelled`` and ``expired``:
            some requests may have been answered, and are paid for; ``results`` gives these as well.
        total: requests; 0 until the provider has counted them.
        done: requests with an answer. Some providers count only at the end.
        failed: requests without one: refused, failed, expired or cancelled.
        message: why it failed, in words fit for a person; "" where there is nothing to say.
    """

    status: BatchStatus
    total: int
    done: int
    failed: int
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to the batch, so that its results can be read."""
        return self.status != "running"


class BatchGone(ProviderError):
    """The provider doesn't have this batch, or its results, any more: deleted, or kept for too long."""

    code = "batch_gone"


class AnswersLater(ProviderError):
    """The call goes with a batch; ask again when that has come back."""

    code = "answers_later"


class BatchUndecided(ProviderUnavailable):
    """What was asked about a batch can't be told yet; ask again later, and never submit it again meanwhile."""

    code = "batch_undecided"


# A turn of 128,000 tokens with its reasoning takes about a megabyte.
MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class BatchProvider(Protocol):
    """The batch API of one account; made by ``toolloop.batches.registry.batches_of``.

    Like an adapter it belongs to one event loop, and raises only kinds of ``toolloop.errors.ProviderError``. A handle is
    JSON: ids at the provider, no secret. Store it in the transaction that follows ``submit``; where it was lost,
    ``find`` brings it back.

    Attributes:
        name: the provider's name in the registry, as in ``Turn.provider``.
    """

    name: str
    limits: BatchLimits

    def line(self, key: str, request: ModelRequest) -> bytes:
        """Return a request as it goes into a batch, without a line end.

        ``timeout_s`` and ``meter`` of the request have no meaning here.

        Args:
            key: what its answer will be known by: at most ``MAX_KEY_CHARS`` of ``A-Za-z0-9_-``, unique in its batch.

        Raises:
            ConfigurationError: for another key.
            ProviderError: what the adapter raises for a request that the model can't take; UnsupportedFeature for
                one too large for any batch.
        """
        ...

    async def submit(self, lines: Sequence[bytes], *, model: str, mark: str) -> dict[str, Any]:
        """Hand over lines and return the handle of their batch.

        Args:
            lines: of ``line``, with different keys, within ``limits``, all for ``model``.
            model: bare name, as in the requests.
            mark: ``new_mark()``, stored before this is called: the batch can be found by it.

        Raises:
            ConfigurationError: no lines, too many, or a mark of another form.
            ProviderError: for a retryable kind the batch may exist all the same: ask ``find`` before another try.
        """
        ...

    async def find(self, mark: str, *, model: str, total: int, since: datetime) -> dict[str, Any] | None:
        """Return the handle of the batch that was submitted under a mark, None when there surely is none.

        Args:
            mark, model: as given to ``submit``.
            total: how many lines it had.
            since: aware time before which it can't have been submitted; our clock may be an hour off the provider's.

        Raises:
            BatchUndecided: it can't be told yet. Only Anthropic needs that, which has no field for a mark: while a
                batch of as many lines is under way, whose it is shows only when it ends, a day later at most.
        """
        ...

    async def standing(self, handle: Mapping[str, Any]) -> BatchStanding:
        """Ask how far a batch has come. Raises BatchGone where the provider doesn't know it."""
        ...

    def results(self, handle: Mapping[str, Any]) -> AsyncIterator[tuple[str, Turn | ProviderError]]:
        """Read the answers of a batch that is over, in any order, line by line; the whole is never in memory.

        Each key comes once: of two lines with one key the first counts. What came back may be less than what was
        sent, and keys may come that were never sent: the caller compares with its own. A line that can't be read (no
        JSON, no key, larger than ``MAX_RESULT_BYTES``) is passed over and logged, so that its key is missing.

        An answer is the ``Turn`` that the adapter would have made of it, with ``BATCH_TIER`` as its tier. A ProviderError says why there is none;
        its ``usage`` is what had to be paid for anyway, ``retryable`` whether another try may succeed.

        Raises:
            BatchUndecided: the batch is still running.
            BatchGone: the results are not there any more.
            ProviderUnavailable: the connection broke. Read again from the start; reading costs nothing.
        """
        ...

    async def cancel(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider to stop; what it has answered until then stays, and costs. One that is over stays as it is."""
        ...

    async def forget(self, handle: Mapping[str, Any]) -> None:
        """Delete what a batch that is over has left at the provider: requests, answers. Twice does no harm."""
        ...

    async def aclose(self) -> None:
        """Close the adapter underneath."""
        ...


_KEY: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_KEY_CHARS}}}")
_MARK: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_MARK_CHARS}}}")


def new_mark() -> str:
    """Return a mark that no other batch has."""
    return secrets.token_urlsafe(16)


def is_key(value: object) -> bool:
    """Tell whether a value can be the key of a line."""
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def request_checked(request: ModelRequest) -> None:
    """Raise UnsupportedFeature for a request that asks to be served otherwise than in a batch."""
    asked = Service.of(request.options)
    if asked.tier or asked.background:
        name = "service_tier" if asked.tier else "background"
        raise UnsupportedFeature(f"A batch has its own price and speed. Leave {name} out of its requests.")


def line_checked(key: str, line: bytes, limits: BatchLimits) -> bytes:
    """Return a line that may go into a batch.

    Raises:
        ConfigurationError: the key is of another form than every provider takes.
        UnsupportedFeature: the line is larger than any batch may be.
    """
    if not is_key(key):
        raise ConfigurationError(
            f"The key {key[:80]!r} of a batch line must be 1 to {MAX_KEY_CHARS} characters "
            "of letters, digits, _ and -."
        )
    if len(line) >= limits.max_bytes:
        raise UnsupportedFeature(
            f"This request takes {len(line):,} bytes, and a batch at most {limits.max_bytes:,}. "
            "Send it as a normal request."
        )
    return line


def submission_checked(lines: Sequence[bytes], mark: str, limits: BatchLimits) -> None:
    """Raise ConfigurationError for lines that no batch may hold, or a mark that not every provider takes."""
    if not _MARK.fullmatch(mark):
        raise ConfigurationError(
            f"The mark {mark[:80]!r} of a batch must be 1 to {MAX_MARK_CHARS} characters "
            "of letters, digits, _ and -; new_mark() makes one."
        )
    size = sum(len(line) + 1 for line in lines)
    if not lines or len(lines) > limits.max_lines or size > limits.max_bytes:
        raise ConfigurationError(
            f"A batch holds 1 to {limits.max_lines:,} lines of {limits.max_bytes:,} bytes together, "
            f"not {len(lines):,} lines of {size:,} bytes."
        )
