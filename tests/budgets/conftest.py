"""What is counted here is counted by the day or the month."""

from tests.midnight import one_day  # noqa: F401 - a fixture
