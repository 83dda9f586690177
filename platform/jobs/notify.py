"""Wake up whoever listens: a topic in each line of the payload, never content."""

from __future__ import annotations

from django.db import connection

CHANNEL = "groundwork"
"""Where readers listen: each write of each run is told here."""
STOP_CHANNEL = "groundwork_stop"
"""Where workers listen, who would otherwise wake up for what all others write."""


def notify(tenant_id: int, topic: str, value: int | str = "", *, channel: str = CHANNEL) -> None:
    """Send ``<tenant>:<topic> <value>`` to listeners when the current transaction commits.

    Args:
        topic: for example ``run:12`` or ``collection:5``.
        value: a position such as a sequence number; listeners re-read rows, so it is only a hint.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, f"{tenant_id}:{topic} {value}"])
