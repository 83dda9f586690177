"""Database threads like a worker's lane has, closed after each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from runs import stream
from tests.runs.support import blocking_end


@pytest.fixture
def lane_threads() -> Iterator[Executor]:
    """The executor of ``JobContext.in_db``; a thread per test keeps connections few."""
    executor = ThreadPoolExecutor(1)
    yield executor
    blocking_end(executor)
    executor.submit(connections.close_all).result()
    executor.shutdown()


@pytest_asyncio.fixture(autouse=True)
async def _streams_closed() -> AsyncIterator[None]:
    yield
    await stream.aclose()
    await sync_to_async(connections.close_all)()
