"""Whether a model call that failed is made again, and after how long."""

from __future__ import annotations

import asyncio
import logging
import random

from toolloop.errors import ProviderError
from toolloop.limits import Limits

logger = logging.getLogger(__name__)


class TurnFailed(Exception):
    """A model turn that will not be had; carries what ``RunFinished`` says about it."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable = code, message, retryable


def retry_wait(
    error: ProviderError, *, failures: int, requests: int, limits: Limits, deadline: float | None
) -> float:
    """Return the seconds to wait before the next attempt: what the provider asks for, else twice as long each time.

    Args:
        error: what the last attempt ended with.
        failures: attempts of this turn that failed, at least 1.
        requests: model calls of the run so far, failed ones included.
        deadline: time of the event loop after which an attempt is of no use; None for the call's own timeout.

    Raises:
        TurnFailed: there shall be no other attempt.
    """
    failed = TurnFailed(error.code, str(error), retryable=error.retryable)
    if not error.retryable or failures > limits.max_retries:
        raise failed from error
    if limits.max_requests is not None and requests >= limits.max_requests:
        raise failed from error
    if error.retry_after_s is not None:
        delay = error.retry_after_s
    else:
        longest = min(limits.retry_max_s, limits.retry_min_s * 2 ** (failures - 1))
        delay = longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
    now = asyncio.get_running_loop().time()
    if delay > (limits.request_timeout_s if deadline is None else deadline - now):
        raise failed from error
    logger.info("model call failed (%s), attempt %d in %.1f s", error.code, failures + 1, delay)
    return delay
