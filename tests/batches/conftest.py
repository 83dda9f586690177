"""A server that speaks Gemini's batch API over a socket, a model on it, and a library to make rows of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections

from jobs.lane import DATABASE_THREADS, lane
from tenancy.scope import tenant_scope
from tests.batches.support import NAME, Submitted
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.conversations.support import Library
from tests.datasets.support import FakeModel, make_open_library
from tests.fake_provider import FakeProvider, running


@pytest.fixture(autouse=True)
def lane_lets_go() -> Iterator[None]:
    """Close the connections of the lane's threads, which the runner keeps for its next job."""
    yield
    here = lane()
    here.blocking.close()
    for closed in [here.executor.submit(connections.close_all) for _ in range(DATABASE_THREADS)]:
        closed.result()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    with running() as (url, fake):
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url.removesuffix("/v1"))
        monkeypatch.setenv("GEMINI_API_KEY", "test")
        fake.batches.batches = Submitted()
        yield fake


@pytest.fixture
def model(server: FakeProvider) -> FakeModel:
    fake = FakeModel()
    server.replies[NAME] = fake
    return fake


@pytest.fixture
def library(cast: Cast) -> Iterator[Library]:
    made = make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        yield made
