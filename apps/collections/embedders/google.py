"""Gemini embeddings through the official SDK."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from apps.collections.embedders.base import (
    EmbeddingError,
    EmbeddingSpace,
    EmbeddingUsage,
    batches_of,
    call_with_retry,
    normalised,
    not_understood,
)

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai.errors import APIError

    from apps.collections.embedders.base import Vectors

_BATCH_TEXTS = 100  # the service's limit
_BATCH_CHARS = 60_000
_MAX_TEXT_CHARS = 8_000  # 2,048 tokens a text
_RETRY_DELAY = re.compile(r"^(\d+(?:\.\d+)?)s$")


class GoogleEmbedder:
    """Embeds with Gemini's ``batchEmbedContents``.

    Args:
        api_key: Gemini API key.
        model: for example ``gemini-embedding-001``.
        dims: length of the vectors asked for; shortened ones come unnormalised and are normalised here.
        base_url: another address of the same API.
        timeout_s: of one request.
        deadline_s: for one batch with all its retries.
        http_client: for tests and proxies.
    """

    def __init__(
        self,
        *,
        api_key: str,
        model: str = "gemini-embedding-001",
        dims: int = 768,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        deadline_s: float = 180.0,
        http_client: httpx2.Client | None = None,
    ) -> None:
        if not api_key:
            raise EmbeddingError(
                "embedder_misconfigured",
                "The Gemini embedder needs an API key. Set GEMINI_API_KEY or choose the local embedder.",
            )
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._http_client = http_client
        self._space = EmbeddingSpace("google", model, dims, "float32-retrieval")
        self._usage = EmbeddingUsage()
        self._lock = threading.Lock()
        self._client: Client | None = None

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors."""
        return self._space

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts since this embedder was made; the service does not tell tokens."""
        return self._usage

    def embed_documents(
        self, texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """Embed passages; see ``Embedder``."""
        import numpy as np

        result = np.empty((len(texts), self._space.dims), dtype=np.float32)
        for start, batch in batches_of(texts, max_texts=_BATCH_TEXTS, max_chars=_BATCH_CHARS):
            result[start : start + len(batch)] = self._embed(batch, "RETRIEVAL_DOCUMENT")
            if on_progress is not None:
                on_progress(start + len(batch), len(texts))
        return result

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self._embed([text], "RETRIEVAL_QUERY")[0]
        return vector

    def _embed(self, texts: Sequence[str], task: str) -> Vectors:
        sent = [text[:_MAX_TEXT_CHARS] if text.strip() else "." for text in texts]
        cut = sum(1 for text in texts if len(text) > _MAX_TEXT_CHARS)
        response = call_with_retry(lambda: self._request(sent, task), deadline_s=self._deadline_s)
        vectors = normalised(
            [item.values for item in response.embeddings or ()],
            self._space.dims,
            len(texts),
            "Gemini",
        )
        self._count(texts=len(texts), truncated=cut)
        return vectors

    def _request(self, texts: list[str], task: str) -> Any:
        import httpx2
        from google.genai import errors, types

        self._count(requests=1)
        # One Content per text: newer models join bare strings into a single embedding.
        contents: Any = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        try:
            return self._sdk().models.embed_content(
                model=self._space.model,
                contents=contents,
                config=types.EmbedContentConfig(
                    task_type=task, output_dimensionality=self._space.dims
                ),
            )
        except errors.APIError as error:
            raise _translated(error) from error
        except httpx2.TransportError as error:
            raise EmbeddingError(
                "embedder_unavailable", "Gemini cannot be reached.", retryable=True
            ) from error
        except ValueError as error:  # a body that is no JSON: a proxy's page, say
            raise not_understood("Gemini") from error

    def _sdk(self) -> Client:
        with self._lock:
            if self._client is None:
                from google.genai import Client, types

                self._client = Client(
                    api_key=self._api_key,
                    vertexai=False,
                    http_options=types.HttpOptions(
                        base_url=self._base_url,
                        timeout=int(self._timeout_s * 1000),
                        httpx_client=self._http_client,
                        retry_options=types.HttpRetryOptions(attempts=1),
                    ),
                )
            return self._client

    def _count(self, **counts: int) -> None:
        with self._lock:
            self._usage = self._usage.plus(**counts)


def _translated(error: APIError) -> EmbeddingError:
    message = (error.message or error.status or "")[:300]
    if error.code in (401, 403) or (error.code == 400 and "api key" in message.lower()):
        return EmbeddingError(
            "embedder_auth_failed", "Gemini refused the API key. Check GEMINI_API_KEY."
        )
    if error.code == 429:
        return EmbeddingError(
            "embedder_rate_limited",
            "Gemini's rate limit was reached. Try again later.",
            retryable=True,
            retry_after_s=_retry_delay(error.details),
        )
    if error.code >= 500 or error.code == 408:
        return EmbeddingError("embedder_unavailable", "Gemini is overloaded.", retryable=True)
    return EmbeddingError(
        "embedder_bad_request", f"Gemini refused the request: {message.rstrip('.')}."
    )


def _retry_delay(details: Any) -> float | None:
    """Find google.rpc.RetryInfo's ``retryDelay`` ("34s") in an error body."""
    error = details.get("error", details) if isinstance(details, dict) else {}
    listed = error.get("details") if isinstance(error, dict) else None
    for item in listed if isinstance(listed, list) else ():
        delay = item.get("retryDelay") if isinstance(item, dict) else None
        if isinstance(delay, str) and (match := _RETRY_DELAY.match(delay)):
            return float(match.group(1))
    return None
