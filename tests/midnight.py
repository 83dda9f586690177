"""For tests of what is counted by the day or the month: none of them runs over midnight in UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

_MOST_S = 30
"""More than such a test takes."""


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Begin a test that would begin right before midnight right after it."""
    now = datetime.now(UTC)
    left = 86_400 - (now.hour * 60 + now.minute) * 60 - now.second
    if left < _MOST_S:
        time.sleep(left + 1)
