"""For tests of what is counted by the day or the month: none of them runs over midnight in UTC."""

from __future__ import annotations

import time

import pytest

_MOST_S = 30
"""More than such a test takes."""


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Begin a test that would begin right before midnight right after it."""
    left_s = 86_400 - time.time() % 86_400
    if left_s < _MOST_S:
        time.sleep(left_s + 1)
