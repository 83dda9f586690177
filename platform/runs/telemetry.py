"""Whether runs are traced: the operator's setting, as the value the loop takes."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from toolloop.telemetry import Telemetry


@cache
def run_telemetry() -> Telemetry | None:
    """Return where spans of runs go; None while the operator has not asked for them.

    Spans go to the process's global tracer provider, which ``opentelemetry-sdk`` sets up from its own OTEL_ variables
    (``opentelemetry-instrument manage.py worker``).

    Raises:
        ConfigurationError: they are asked for and ``opentelemetry-api`` is not installed.
    """
    if settings.TELEMETRY == "off":
        return None
    return Telemetry(record_content=settings.TELEMETRY == "content")
