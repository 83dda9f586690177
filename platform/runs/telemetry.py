"""Whether runs are traced: the operator's setting, as the value the loop takes."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from toolloop.telemetry import Telemetry


@cache
def run_telemetry(*, is_private: bool = False) -> Telemetry | None:
    """Return where spans of runs go; None while the operator has not asked for them.

    Args:
        is_private: the model reads what is its person's alone: no span holds what is said, whatever the operator has asked for.

    Spans go to the process's global tracer provider, which ``opentelemetry-sdk`` sets up from its own OTEL_ variables
    (``opentelemetry-instrument manage.py worker``).

    Raises:
        ConfigurationError: they are asked for and ``opentelemetry-api`` is not installed.
    """
    if settings.TELEMETRY == "off":
        return None
    return Telemetry(record_content=settings.TELEMETRY == "content" and not is_private)
