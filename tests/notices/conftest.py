from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import lane


@pytest.fixture(autouse=True, scope="module")
def _lane_closed() -> Iterator[None]:
    """Give back the lane's database connections: they would hold the test database."""
    yield
    lane.drain_if_started()
