"""Gemini embeddings through the official SDK."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace, not_understood
from apps.collections.embedders.remote import RemoteEmbedder
from basics.texts import gettext as _

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai.errors import APIError

# Left out, the SDK would take the operator's for a workspace's key.
_BASE_URL = "https://generativelanguage.googleapis.com"
_RETRY_DELAY = re.compile(r"^(\d+(?:\.\d+)?)s$")


class GoogleEmbedder(RemoteEmbedder):
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

    service = "Gemini"
    key_variable = "GEMINI_API_KEY"
    batch_texts = 100  # the service's limit
    batch_chars = 60_000
    max_text_chars = 8_000  # 2,048 tokens a text

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
        super().__init__(
            EmbeddingSpace("google", model, dims, "float32-retrieval"),
            api_key=api_key,
            base_url=base_url,
            timeout_s=timeout_s,
            deadline_s=deadline_s,
            http_client=http_client,
        )
        self._client: Client | None = None

    def _request(self, texts: list[str], *, is_query: bool) -> tuple[list[Any], int]:
        import httpx2
        from google.genai import errors, types

        self._count(requests=1)
        # One Content per text: newer models join bare strings into a single embedding.
        contents: Any = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        try:
            response = self._sdk().models.embed_content(
                model=self._space.model,
                contents=contents,
                config=types.EmbedContentConfig(
                    task_type="RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT",
                    output_dimensionality=self._space.dims,
                ),
            )
        except errors.APIError as error:
            raise _translated(error) from error
        except httpx2.TransportError as error:
            raise EmbeddingError(
                "embedder_unavailable", _("Gemini cannot be reached."), retryable=True
            ) from error
        except ValueError as error:  # a body that is no JSON: a proxy's page, say
            raise not_understood("Gemini") from error
        return [item.values for item in response.embeddings or ()], 0

    def _sdk(self) -> Client:
        with self._lock:
            if self._client is None:
                from google.genai import Client, types

                self._client = Client(
                    api_key=self._api_key,
                    vertexai=False,
                    http_options=types.HttpOptions(
                        base_url=self._base_url or _BASE_URL,
                        timeout=int(self._timeout_s * 1000),
                        httpx_client=self._http_client,
                        retry_options=types.HttpRetryOptions(attempts=1),
                    ),
                )
            return self._client


def _translated(error: APIError) -> EmbeddingError:
    message = (error.message or error.status or "")[:300]
    if error.code in (401, 403) or (error.code == 400 and "api key" in message.lower()):
        return EmbeddingError("embedder_auth_failed", _("Gemini refused the API key. Check GEMINI_API_KEY."))
    if error.code == 429:
        return EmbeddingError(
            "embedder_rate_limited",
            _("Gemini's rate limit was reached. Try again later."),
            retryable=True,
            retry_after_s=_retry_delay(error.details),
        )
    if error.code >= 500 or error.code == 408:
        return EmbeddingError("embedder_unavailable", _("Gemini is overloaded."), retryable=True)
    return EmbeddingError(
        "embedder_bad_request",
        _("Gemini refused the request: %(message)s.") % {"message": message.rstrip(".")},
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
