"""Whether a failed model call is made again, and when: the rule by itself."""

from __future__ import annotations

import asyncio

import pytest

from toolloop.errors import ProviderError, ProviderUnavailable
from toolloop.limits import Limits
from toolloop.retries import TurnFailed, retry_wait

LIMITS = Limits(max_retries=3, retry_min_s=1.0, retry_max_s=3.0, max_requests=9)


async def waited(error: ProviderError, failures: int, *, requests: int = 1, left_s: float = 1_000) -> float:
    deadline = asyncio.get_running_loop().time() + left_s
    return retry_wait(error, failures=failures, requests=requests, limits=LIMITS, deadline=deadline)


async def test_each_wait_is_up_to_twice_the_one_before_it() -> None:
    error = ProviderUnavailable("away")
    for failures, longest in ((1, 1.0), (2, 2.0), (3, 3.0)):
        for _ in range(50):
            assert longest / 2 <= await waited(error, failures) <= longest


async def test_the_provider_may_name_the_wait() -> None:
    error = ProviderUnavailable("away")
    error.retry_after_s = 17.0
    assert await waited(error, 1) == 17.0
    with pytest.raises(TurnFailed):
        await waited(error, 1, left_s=10)


@pytest.mark.parametrize(("failures", "requests"), [(4, 1), (1, 9)], ids=["retries", "requests"])
async def test_it_ends_at_either_limit(failures: int, requests: int) -> None:
    with pytest.raises(TurnFailed) as failed:
        await waited(ProviderUnavailable("away"), failures, requests=requests)
    assert failed.value.retryable


async def test_an_error_that_stays_is_not_asked_again() -> None:
    with pytest.raises(TurnFailed) as failed:
        await waited(ProviderError("refused"), 1)
    assert not failed.value.retryable
