"""Translate whatever an SDK, its HTTP client or a provider's error body says into the kinds of ``toolloop.errors``.

The SDKs disagree: OpenAI and Anthropic wrap connection errors most of the time, google-genai never does, broken JSON
escapes raw from all of them, and Anthropic reports an error inside a stream with HTTP status 200. So classification
goes by the provider's own error words first, by its message where only that is telling, and by the status last.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from toolloop.errors import (
    AuthFailed,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    MalformedResponse,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
)
from toolloop.providers._common import mapping, objects, string
from toolloop.tokens import Usage

if TYPE_CHECKING:
    from toolloop.providers.base import ModelRequest

_MAX_MESSAGE_CHARS: Final = 500
_KEY_SHAPES: Final = re.compile(
    r"(?i)\b(?:sk|xai|gsk|rk)-[\w*.\-]{6,}|\bAIza[\w*.\-]{6,}|\bbearer\s+\S+|([?&]key=)[^&\s]+"
)

# The words providers put into error type, code or status.
_WORDS: Final[dict[str, type[ProviderError]]] = {
    "insufficient_quota": QuotaExhausted,
    "billing_hard_limit_reached": QuotaExhausted,
    "billing_error": QuotaExhausted,
    "credit_balance_too_low": QuotaExhausted,
    "rate_limit_exceeded": RateLimited,
    "rate_limit_error": RateLimited,
    "resource_exhausted": RateLimited,
    "overloaded_error": ProviderUnavailable,
    "api_error": ProviderUnavailable,
    "timeout_error": ProviderUnavailable,
    "server_error": ProviderUnavailable,
    "unavailable": ProviderUnavailable,
    "internal": ProviderUnavailable,
    "deadline_exceeded": ProviderUnavailable,
    "authentication_error": AuthFailed,
    "permission_error": AuthFailed,
    "invalid_api_key": AuthFailed,
    "api_key_invalid": AuthFailed,
    "unauthenticated": AuthFailed,
    "permission_denied": AuthFailed,
    "context_length_exceeded": ContextTooLong,
    "request_too_large": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "content_filter": ContentRefused,
    "content_policy_violation": ContentRefused,
    "invalid_prompt": ContentRefused,
}
_CONTEXT_MESSAGE: Final = re.compile(
    r"(?i)context (?:length|window|size)|maximum context|prompt is too long|"
    r"input token count.{0,40}exceeds|exceeds? the (?:maximum|model'?s?).{0,30}tokens|too many tokens"
)
_STAINLESS: Final = frozenset(("openai", "anthropic"))
_QUOTA_MESSAGE: Final = re.compile(r"(?i)credit balance|insufficient (?:quota|credit|balance)")
_KEY_MESSAGE: Final = re.compile(r"(?i)api key not valid|incorrect api key|invalid api key")


def classify(
    message: str,
    *,
    words: Iterable[object] = (),
    status: int | None = None,
    retry_after_s: float | None = None,
    key: str = "",
    fallback: type[ProviderError] = BadRequest,
) -> ProviderError:
    """Build the error of the right kind.

    Args:
        message: the provider's own text; it is scrubbed and shortened.
        words: error type, code and status name from the body, in any order; unknown ones and None are ignored.
        status: HTTP status; a success status (an error inside a stream) does not count.
        retry_after_s: seconds the provider asked to wait.
        key: the API key, to be removed from the message.
        fallback: kind when neither words nor status tell; for an error inside a stream, whose request had been
            accepted, that is ``ProviderUnavailable``.
    """
    failed_status = status if status is not None and status >= 400 else None
    text = scrub(message, key) or f"The provider answered with status {status}."
    known = [_WORDS[word.lower()] for word in words if isinstance(word, str) and word.lower() in _WORDS]
    kind = _kind(text, known, failed_status, fallback)
    if kind is BadRequest and failed_status == 404:
        text = f"{text} (Check the model name and the base URL.)"
    return kind(text, retry_after_s=retry_after_s, status=failed_status)


def scrub(text: str, key: str = "") -> str:
    """Remove the API key and everything shaped like one, and shorten the text to what fits a log line."""
    if key:
        text = text.replace(key, "***")
    text = _KEY_SHAPES.sub(lambda match: f"{match.group(1) or ''}***", text)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[: _MAX_MESSAGE_CHARS - 1] + "…"


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Read the seconds to wait from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date).

    The value is not capped: whoever owns the deadline decides whether to wait that long.
    """
    if headers is None:
        return None
    milliseconds = _positive(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _positive(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


@contextmanager
def normalised_errors(provider: str, key: str) -> Iterator[None]:
    """Turn SDK and transport errors raised inside into ``ProviderError`` kinds.

    The original is not chained: its text and the request it carries may hold the key. A RuntimeError such as "Event
    loop is closed" passes through, because it is a bug of ours and no failure of the provider.
    """
    try:
        yield
    except ProviderError:
        raise
    except Exception as exc:
        error = translate(exc, provider, key)
        if error is None:
            raise
        raise error from None


@contextmanager
def billed(request: ModelRequest, provider: str, usage: Callable[[], Usage]) -> Iterator[None]:
    """Tell the request's meter, and attach to an error raised inside, what the provider had counted by then."""
    if request.meter is not None:
        request.meter.begin(provider, request.model, usage)
    with counted(usage):
        yield


@contextmanager
def counted(count: Callable[[], Usage]) -> Iterator[None]:
    """Attach to an error raised inside what the provider had counted by then: it is paid for, turn or no turn."""
    try:
        yield
    except ProviderError as error:
        usage = count()
        if error.usage is None and (usage.input_total or usage.output_total):
            error.usage = usage
        raise


def translate(exc: Exception, provider: str, key: str) -> ProviderError | None:
    """Return the normalised error for an exception of an SDK or of httpx2, None for any other."""
    import httpx2

    name = next((k.__name__ for k in type(exc).__mro__ if _package(k) in _STAINLESS), "")
    if name:
        return _from_stainless(exc, name, provider, key)
    if type(exc).__module__.startswith("google.genai"):
        return _from_google(exc, provider, key)
    if isinstance(exc, httpx2.TimeoutException):
        return _too_late(exc, provider)
    if isinstance(exc, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return BadRequest(f"The base URL of {provider} cannot be used: {scrub(str(exc), key)}")
    if isinstance(exc, httpx2.HTTPError | httpx2.StreamError):
        return _cut_off(exc, provider, key)
    if isinstance(exc, UnicodeEncodeError):
        return BadRequest("The history contains text that isn't valid Unicode (half a surrogate pair).")
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        return MalformedResponse(f"{provider} sent an answer that is not valid JSON.")
    return None


def _kind(
    text: str, known: list[type[ProviderError]], status: int | None, fallback: type[ProviderError]
) -> type[ProviderError]:
    """Pick the kind. Message patterns refine only what the words and the status leave open."""
    # "insufficient_quota" comes beside "rate_limit_exceeded" at times, and the graver one counts.
    if QuotaExhausted in known or _QUOTA_MESSAGE.search(text):
        return QuotaExhausted
    if known:
        return known[0]
    kind = fallback if status is None else _kind_of_status(status)
    if kind is BadRequest or status is None:
        if _CONTEXT_MESSAGE.search(text):
            return ContextTooLong
        if _KEY_MESSAGE.search(text):
            return AuthFailed
    return kind


def _kind_of_status(status: int) -> type[ProviderError]:
    if status in {401, 403, 407}:
        return AuthFailed
    if status == 402:
        return QuotaExhausted
    if status == 413:
        return ContextTooLong
    if status == 429:
        return RateLimited
    if status in {408, 409, 425} or status >= 500:
        return ProviderUnavailable
    return BadRequest


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _from_stainless(exc: Exception, name: str, provider: str, key: str) -> ProviderError:
    """Translate an error of the openai or anthropic package: both are generated with the same classes.

    Args:
        exc: it, or one of a class that LangChain derives from it.
        name: of the package's own class.
        provider, key: see ``translate``.
    """
    if name == "APITimeoutError":
        return _too_late(exc.__cause__ or exc, provider)
    if name == "APIConnectionError":
        return _cut_off(exc.__cause__ or exc, provider, key)
    if name == "APIResponseValidationError":
        return MalformedResponse(f"{provider} sent an answer that does not fit its protocol.")
    outer = mapping(getattr(exc, "body", None))
    body = mapping(outer.get("error")) or outer
    response = getattr(exc, "response", None)
    status = getattr(exc, "status_code", None)
    code = body.get("code")
    if not isinstance(status, int) and isinstance(code, int):
        status = code  # local servers put the status they would have sent into an error inside the stream
    in_stream = not isinstance(status, int) or status < 400
    return classify(
        string(body.get("message")) or str(exc),
        words=(
            getattr(exc, "type", None),
            getattr(exc, "code", None),
            getattr(exc, "error_code", None),
            body.get("type"),
            code,
        ),
        status=status if isinstance(status, int) else None,
        retry_after_s=retry_after(getattr(response, "headers", None)),
        key=key,
        fallback=ProviderUnavailable if in_stream else BadRequest,
    )


def _from_google(exc: Exception, provider: str, key: str) -> ProviderError | None:
    if type(exc).__name__ == "UnknownApiResponseError":
        return MalformedResponse(f"{provider} sent an answer that is not valid JSON.")
    if not hasattr(exc, "details"):
        return None
    body = mapping(exc.details)
    error = mapping(body.get("error")) or body
    details = objects(error.get("details"))
    wait = retry_after(getattr(getattr(exc, "response", None), "headers", None))
    words: list[Any] = [getattr(exc, "status", None), error.get("status")]
    for detail in details:
        words.append(detail.get("reason"))
        if wait is None and string(detail.get("@type")).endswith("RetryInfo"):
            wait = _positive(string(detail.get("retryDelay")).removesuffix("s"))
        quotas = [string(item.get("quotaId")).lower() for item in objects(detail.get("violations"))]
        if any("perday" in quota for quota in quotas):
            words.append("insufficient_quota")
    code = getattr(exc, "code", None)
    return classify(
        string(error.get("message")) or string(getattr(exc, "message", None)),
        words=words,
        status=code if isinstance(code, int) else None,
        retry_after_s=wait,
        key=key,
    )


def _too_late(exc: BaseException, provider: str) -> ProviderUnavailable:
    import httpx2

    problem = "could not be reached" if isinstance(exc, httpx2.ConnectTimeout) else "did not answer"
    return ProviderUnavailable(f"{provider} {problem} in time.", code="provider_timeout")


def _cut_off(exc: BaseException, provider: str, key: str) -> ProviderUnavailable:
    import httpx2

    detail = scrub(str(exc), key).rstrip(".")
    problem = (
        f"{provider} could not be reached"
        if isinstance(exc, httpx2.ConnectError)
        else f"The connection to {provider} was lost"
    )
    return ProviderUnavailable(f"{problem}: {detail}." if detail else f"{problem}.")


def _positive(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
