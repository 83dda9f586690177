"""A lane to run turns on, as the conversations' tests have it."""

from tests.runs.conftest import _streams_closed, lane_threads  # noqa: F401 - fixtures
