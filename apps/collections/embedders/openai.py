"""OpenAI embeddings (and servers that speak the same protocol) through the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace, not_understood
from apps.collections.embedders.remote import RemoteEmbedder
from basics.texts import gettext as _

if TYPE_CHECKING:
    import httpx2
    from openai import APIError, OpenAI

# Models whose vectors may be shortened by the ``dimensions`` argument; others refuse it.
_SHORTENABLE = "text-embedding-3"
_BASE_URL = "https://api.openai.com/v1"  # left out, the SDK would take the operator's for a workspace's key


class OpenAiEmbedder(RemoteEmbedder):
    """Embeds with the OpenAI embeddings endpoint.

    Args:
        api_key: secret key; some compatible servers take any.
        model: for example ``text-embedding-3-small``.
        dims: length of the vectors asked for.
        base_url: another server that speaks the protocol.
        timeout_s: of one request.
        deadline_s: for one batch with all its retries.
        http_client: for tests and proxies.
    """

    service = "OpenAI"
    key_variable = "OPENAI_API_KEY"
    # The service takes 2,048 texts and 300,000 tokens a call; a text of n characters has at most n tokens and a bit.
    batch_texts = 256
    batch_chars = 250_000
    max_text_chars = 24_000  # 8,192 tokens a text

    def __init__(
        self,
        *,
        api_key: str,
        model: str = "text-embedding-3-small",
        dims: int = 1536,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        deadline_s: float = 180.0,
        http_client: httpx2.Client | None = None,
    ) -> None:
        # Another server behind the same model name makes other vectors: it is part of the identity.
        precision = "float32" if base_url is None else f"float32@{base_url.rstrip('/')}"
        super().__init__(
            EmbeddingSpace("openai", model, dims, precision),
            api_key=api_key,
            base_url=base_url,
            timeout_s=timeout_s,
            deadline_s=deadline_s,
            http_client=http_client,
        )
        self._client: OpenAI | None = None

    def _request(self, texts: list[str], *, is_query: bool) -> tuple[list[Any], int]:
        import openai

        self._count(requests=1)
        arguments: dict[str, Any] = {"model": self._space.model, "input": texts}
        if self._space.model.startswith(_SHORTENABLE):
            arguments["dimensions"] = self._space.dims
        try:
            response = self._sdk().embeddings.create(**arguments)
        except openai.APIError as error:
            raise _translated(error) from error
        except ValueError as error:  # a body that is no JSON: a proxy's page, say
            raise not_understood("OpenAI") from error
        try:
            data = sorted(response.data, key=lambda item: item.index)
            values = [item.embedding for item in data]
        except (AttributeError, TypeError) as error:
            raise not_understood("OpenAI") from error
        return values, response.usage.total_tokens if response.usage else 0

    def _sdk(self) -> OpenAI:
        with self._lock:
            if self._client is None:
                from openai import OpenAI

                self._client = OpenAI(
                    api_key=self._api_key,
                    base_url=self._base_url or _BASE_URL,
                    timeout=self._timeout_s,
                    max_retries=0,  # ours know the batch's deadline
                    http_client=self._http_client,
                )
            return self._client


def _translated(error: APIError) -> EmbeddingError:
    import openai

    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return EmbeddingError("embedder_auth_failed", _("OpenAI refused the API key. Check OPENAI_API_KEY."))
    if isinstance(error, openai.RateLimitError):
        if error.code == "insufficient_quota":
            return EmbeddingError(
                "embedder_rate_limited",
                _("The OpenAI account has no quota left. Add credit or choose the local embedder."),
            )
        return EmbeddingError(
            "embedder_rate_limited",
            _("OpenAI's rate limit was reached. Try again later."),
            retryable=True,
            retry_after_s=retry_after(error.response.headers.get("retry-after")),
        )
    if isinstance(error, openai.APIConnectionError) or (
        isinstance(error, openai.APIStatusError)
        and (error.status_code >= 500 or error.status_code in (408, 409))
    ):
        return EmbeddingError(
            "embedder_unavailable", _("OpenAI cannot be reached or is overloaded."), retryable=True
        )
    if isinstance(error, openai.APIStatusError):
        return EmbeddingError(
            "embedder_bad_request",
            _("OpenAI refused the request: %(message)s.") % {"message": error.message[:300].rstrip(".")},
        )
    return not_understood("OpenAI")


def retry_after(value: str | None) -> float | None:
    """Read a Retry-After header in seconds; dates and nonsense count as not given."""
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds < 3600 else None
