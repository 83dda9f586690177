"""Errors of the loop and its providers, normalised so that callers never see an SDK's own classes.

Callers branch on the class, or on ``code`` where a string must be stored. Only ``ProviderError.retryable`` decides about a
retry; the one retry policy is in ``toolloop.retries``, because the SDKs run with their own retries switched off.
"""

from __future__ import annotations

from typing import ClassVar

from toolloop.tokens import Usage


class ToolloopError(Exception):
    """Base of every error this package raises on purpose."""

    code: str = "toolloop_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigurationError(ToolloopError):
    """The application must be changed before this can work: unknown provider, missing key, missing package."""

    code = "configuration"


class MediaRefused(ToolloopError):
    """An image or PDF that no provider takes: of another type, too large, damaged."""

    code = "media_refused"


class ProviderError(ToolloopError):
    """A model call failed. Raised as one of the kinds below, or as itself for what fits none of them.

    Args:
        message: what happened and, where known, what to do; never contains a key.
        code: stable identifier to store; the kind's own code when empty.
        retryable: whether the same call may succeed later; the kind's default when None.
        retry_after_s: seconds the provider asked to wait, None when it did not say.
        status: HTTP status of the answer, None when there was none.

    Attributes:
        usage: tokens that were paid for before the failure, None when there were none or nobody knows.
    """

    code = "provider_error"
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.retryable = type(self).default_retryable if retryable is None else retryable
        self.retry_after_s = retry_after_s
        self.status = status
        self.usage: Usage | None = None


class RateLimited(ProviderError):
    """Too many requests or tokens for the moment; waiting helps."""

    code = "rate_limited"
    default_retryable = True


class QuotaExhausted(ProviderError):
    """The account has no credit or quota left; waiting a minute does not help."""

    code = "quota_exhausted"


class ProviderUnavailable(ProviderError):
    """Overload, timeout, dropped connection or a stream that ended early."""

    code = "provider_unavailable"
    default_retryable = True


class BadRequest(ProviderError):
    """The provider refused the request as it stands (unknown model, wrong parameter)."""

    code = "bad_request"


class UnsupportedFeature(BadRequest):
    """The request asks for what the model or its provider does not have; nothing was sent."""

    code = "unsupported_feature"


class AuthFailed(ProviderError):
    """The key is missing, wrong, or not allowed to use this model."""

    code = "auth_failed"


class ContextTooLong(ProviderError):
    """The history does not fit the model's context window."""

    code = "context_too_long"


class ContentRefused(ProviderError):
    """The provider's policy blocked the request before a turn could exist."""

    code = "content_refused"


class MalformedResponse(ProviderError):
    """The answer could not be read: broken JSON, or a call the model wrote wrongly. Asking again often helps."""

    code = "malformed_response"
    default_retryable = True


class GenerationFailed(ToolloopError):
    """There is no usable answer.

    Attributes:
        code: of ``RunFinished.error_code``; "no_answer" when the model refused, was filtered or cut off.
        usage: tokens that were spent all the same.
    """

    def __init__(self, message: str, code: str, *, retryable: bool, usage: Usage) -> None:
        super().__init__(message)
        self.code, self.retryable, self.usage = code, retryable, usage
