"""What an embedder is, what identifies the space of its vectors, and how it fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from basics.errors import DomainError
from basics.texts import gettext as _

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Identity of a vector space: vectors of two spaces are never compared.

    Attributes:
        provider: ``local``, ``openai`` or ``google``.
        model: the provider's model name.
        dims: length of a vector.
        precision: fingerprint of everything else that moves vectors (quantisation, weights, graph version).
        alike: fingerprints of versions before, whose vectors differ from these by rounding alone.
    """

    provider: str
    model: str
    dims: int
    precision: str
    alike: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> str:
        """Give one string for the whole identity, at most 200 characters."""
        return f"{self.provider}/{self.model}/{self.dims}/{self.precision}"[:200]


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What an embedder has done since it was made.

    Attributes:
        texts: texts embedded.
        tokens: tokens as the model counts them; 0 where a provider does not say.
        requests: calls to a provider, retries included; 0 for local models.
        truncated: texts of which the model saw only the beginning.
    """

    texts: int = 0
    tokens: int = 0
    requests: int = 0
    truncated: int = 0

    def plus(
        self, *, texts: int = 0, tokens: int = 0, requests: int = 0, truncated: int = 0
    ) -> EmbeddingUsage:
        """Add to the counts."""
        return EmbeddingUsage(
            self.texts + texts, self.tokens + tokens, self.requests + requests, self.truncated + truncated
        )


class Embedder(Protocol):
    """Turns texts into L2-normalised vectors of its space; safe to call from several threads."""

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors; known without loading a model."""

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts since this embedder was made."""

    def embed_documents(
        self, texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """Embed passages.

        Args:
            texts: any number; an empty text gets the vector of an empty text.
            on_progress: called after each batch with (done, total); may raise to stop.

        Returns:
            float32 array of shape (len(texts), space.dims), rows in the order of ``texts``.

        Raises:
            EmbeddingError: with ``retryable`` telling whether the same call may work later.
        """

    def embed_query(self, text: str) -> Vectors:
        """Embed a question; returns float32 of shape (space.dims,). Raises like ``embed_documents``."""


class EmbeddingError(DomainError):
    """An embedder could not do its work.

    Codes: ``embedder_misconfigured``, ``embedder_auth_failed``, ``embedder_rate_limited``, ``embedder_unavailable``,
    ``embedder_bad_request``, ``embedder_bad_response``.
    """

    default_status = 503

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, data=data)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


def batches_of(
    texts: Sequence[str], *, max_texts: int, max_chars: int
) -> Iterator[tuple[int, Sequence[str]]]:
    """Cut texts into batches within both limits; yields (index of the first text, texts)."""
    start = chars = 0
    for i, text in enumerate(texts):
        if i > start and (i - start >= max_texts or chars + len(text) > max_chars):
            yield start, texts[start:i]
            start, chars = i, 0
        chars += len(text)
    if start < len(texts):
        yield start, texts[start:]


def call_with_retry(
    call: Callable[[], T],
    *,
    deadline_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Repeat a call that fails with a retryable ``EmbeddingError`` until a deadline.

    Waits what the provider asks for, else 0.5 s doubling to 20 s, with jitter. A wait that would pass the deadline is
    not started: the error comes out at once.

    Args:
        call: does one request.
        deadline_s: seconds from now for all attempts together.
        sleep: for tests.
        clock: for tests.

    Raises:
        EmbeddingError: the last one.
    """
    deadline = clock() + deadline_s
    delay = 0.5
    while True:
        try:
            return call()
        except EmbeddingError as error:
            if not error.retryable:
                raise
            wait = error.retry_after_s if error.retry_after_s is not None else delay
            wait += random.uniform(0, 0.25 * delay)  # noqa: S311  jitter, not a secret
            if clock() + wait > deadline:
                raise
            sleep(wait)
            delay = min(delay * 2, 20.0)


def normalised(vectors: Any, dims: int, count: int, provider: str) -> Vectors:
    """Check the shape and values of a provider's vectors and scale each to length 1.

    Raises:
        EmbeddingError: ``embedder_bad_response``.
    """
    import numpy as np

    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise _bad_vectors(provider, "vectors of unequal length") from error
    if array.shape != (count, dims):
        raise _bad_vectors(provider, f"shape {array.shape} instead of ({count}, {dims})")
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        raise _bad_vectors(provider, "a vector of length zero or not finite")
    result: Vectors = array / norms
    return result


def _bad_vectors(provider: str, what: str) -> EmbeddingError:
    return EmbeddingError(
        "embedder_bad_response",
        _("%(provider)s returned %(what)s. Check the configured model and its dimensions.")
        % {"provider": provider, "what": what},
    )


def not_understood(provider: str) -> EmbeddingError:
    """Return the error for an answer that is not of the provider's protocol."""
    return EmbeddingError(
        "embedder_bad_response",
        _("%(provider)s's answer could not be understood. Check the configured address and model.")
        % {"provider": provider},
    )
