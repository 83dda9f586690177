"""A server that speaks a batch API over a socket (Gemini's unless asked otherwise), a model on it, and a library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from jobs.lane import DATABASE_THREADS, lane
from runs import providers
from tenancy.scope import tenant_scope
from tests.batches.support import MODELS, Submitted
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
def wire(request: pytest.FixtureRequest) -> str:
    """Whose batch API is spoken; a test asks for others with ``parametrize("wire", WIRES, indirect=True)``."""
    return str(getattr(request, "param", "google"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, wire: str) -> Iterator[FakeProvider]:
    settings: Any = providers.environment_settings  # type: ignore[attr-defined]

    def ours(name: str, environment: Any) -> Any:
        # Of another address than its own, an OpenAI server would be taken for a compatible one.
        own = {"api_key": "test", "base_url": url}
        return own if name == wire == "openai" else settings(name, environment)

    with running() as (url, fake):
        bare = url.removesuffix("/v1")
        if wire == "openai":
            monkeypatch.setenv("OPENAI_API_KEY", "test")
            monkeypatch.setattr(providers, "environment_settings", ours)
        elif wire == "anthropic":
            monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", bare)
        else:
            monkeypatch.setenv("GEMINI_API_KEY", "test")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", bare)
        fake.batches.batches = Submitted()
        yield fake


@pytest.fixture
def model(server: FakeProvider, wire: str) -> FakeModel:
    fake = FakeModel()
    server.replies[MODELS[wire].partition("/")[2]] = fake
    return fake


@pytest.fixture
def library(cast: Cast) -> Iterator[Library]:
    made = make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        yield made
