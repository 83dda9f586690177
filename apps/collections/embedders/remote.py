"""What embedders behind a service share: batches, limits of a text, retries with a deadline, counts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from apps.collections.embedders.base import (
    EmbeddingError,
    EmbeddingSpace,
    EmbeddingUsage,
    batches_of,
    call_with_retry,
    normalised,
)
from basics.texts import gettext as _
from tenancy.database.waiting import connections_let_go

if TYPE_CHECKING:
    import httpx2

    from apps.collections.embedders.base import Vectors


class RemoteEmbedder(ABC):
    """An embedder that asks a service through its SDK, which it loads and connects with the first text.

    Attributes:
        service: its name in messages.
        key_variable: the setting that holds its key.
        batch_texts, batch_chars: what one request may hold.
        max_text_chars: of one text; the rest of a longer one is cut off, and counted.

    Args:
        space: identity of the vectors.
        api_key: of the service.
        base_url: another address of the same API.
        timeout_s: of one request.
        deadline_s: for one batch with all its retries.
        http_client: for tests and proxies.
    """

    service: ClassVar[str]
    key_variable: ClassVar[str]
    batch_texts: ClassVar[int]
    batch_chars: ClassVar[int]
    max_text_chars: ClassVar[int]

    def __init__(
        self,
        space: EmbeddingSpace,
        *,
        api_key: str,
        base_url: str | None,
        timeout_s: float,
        deadline_s: float,
        http_client: httpx2.Client | None,
    ) -> None:
        if not api_key:
            raise EmbeddingError(
                "embedder_misconfigured",
                _(
                    "The %(service)s embedder needs an API key. Set %(key_variable)s or choose the local "
                    "embedder."
                )
                % {"service": self.service, "key_variable": self.key_variable},
            )
        if base_url:
            import httpx2

            try:
                httpx2.URL(base_url)
            except httpx2.InvalidURL as error:
                raise EmbeddingError(
                    "embedder_misconfigured",
                    _("The address of the %(service)s embedder cannot be read: %(error)s.")
                    % {"service": self.service, "error": error},
                ) from None
        self._space = space
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._http_client = http_client
        self._usage = EmbeddingUsage()
        self._lock = threading.Lock()

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors."""
        return self._space

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts since this embedder was made; tokens only where the service tells them."""
        return self._usage

    def embed_documents(
        self, texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """Embed passages; see ``Embedder``."""
        import numpy as np

        result = np.empty((len(texts), self._space.dims), dtype=np.float32)
        for start, batch in batches_of(texts, max_texts=self.batch_texts, max_chars=self.batch_chars):
            result[start : start + len(batch)] = self._embed(batch, is_query=False)
            if on_progress is not None:
                on_progress(start + len(batch), len(texts))
        return result

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self._embed([text], is_query=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        # Services refuse an empty text; a blank one gets the vector of a full stop.
        sent = [text[: self.max_text_chars] if text.strip() else "." for text in texts]
        cut = sum(1 for text in texts if len(text) > self.max_text_chars)
        connections_let_go()
        values, tokens = call_with_retry(
            lambda: self._request(sent, is_query=is_query), deadline_s=self._deadline_s
        )
        vectors = normalised(values, self._space.dims, len(texts), self.service)
        self._count(texts=len(texts), tokens=tokens, truncated=cut)
        return vectors

    @abstractmethod
    def _request(self, texts: list[str], *, is_query: bool) -> tuple[list[Any], int]:
        """Ask once; return the vectors in the order of the texts, and the tokens counted, 0 where it does not say.

        Raises:
            EmbeddingError: as the service's own errors translate.
        """

    def _count(self, **counts: int) -> None:
        with self._lock:
            self._usage = self._usage.plus(**counts)
