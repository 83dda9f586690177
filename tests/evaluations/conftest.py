"""A lane to run trials on, and a library to ask about."""

from tests.conversations.conftest import found, library  # noqa: F401 - fixtures
from tests.runs.conftest import _streams_closed, lane_threads  # noqa: F401 - fixtures
