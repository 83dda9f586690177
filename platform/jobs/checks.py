"""System checks: the time limits around a job must stand in the right order."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register


@register(Tags.compatibility)
def time_limits_in_order(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Reading a document < queue timeout < queue retry, and a lease long enough for three heartbeats."""
    problems: list[CheckMessage] = []
    timeout, retry = settings.Q_CLUSTER["timeout"], settings.Q_CLUSTER["retry"]
    if not settings.INGEST_SECONDS < timeout < retry:
        problems.append(
            Error(
                "INGEST_SECONDS < Q_CLUSTER['timeout'] < Q_CLUSTER['retry'] does not hold.",
                hint="A job that outlives its queue entry would be started twice.",
                id="jobs.E001",
            )
        )
    if settings.JOB_LEASE_S < 3:
        problems.append(Error("GROUNDWORK_JOB_LEASE_S is below 3 seconds.", id="jobs.E002"))
    return problems
