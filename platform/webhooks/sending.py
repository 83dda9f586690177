"""One call of a webhook: signed, to public addresses only, bounded in time and size."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2

from basics.net_guard import GuardedTransport
from basics.net_policy import AddressRefused, NetPolicy
from basics.texts import gettext as _
from basics.texts import gettext_noop
from tenancy.crypto import Secret
from webhooks.signing import signed_headers

SECONDS = 10.0
UNREACHED = gettext_noop("The receiver could not be reached, or didn't give a usable answer in time.")
_MAX_READ = 10_000  # bytes of the answer that are read at all; nothing of it is kept


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What came of a call; ``status`` None when there was no answer, ``error`` "" when it was delivered."""

    status: int | None
    error: str
    duration_ms: int


def body_of(payload: dict[str, Any]) -> bytes:
    """Return the bytes that are signed and sent."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def webhook_send(
    *, url: str, secrets: Sequence[Secret], payload: dict[str, Any], policy: NetPolicy
) -> DeliveryResult:
    """POST one event; anything but a status of 200 to 299 is an error, redirects are not followed.

    Args:
        secrets: each signs; after a rotation the one before is still among them.
        policy: where the workspace's requests may go now.
    """
    body = body_of(payload)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Groundwork-Webhook/1",
        **signed_headers(
            [secret.reveal() for secret in secrets],
            event_id=str(payload["id"]),
            body=body,
            sent_at=datetime.now(UTC),
        ),
    }
    began = time.monotonic()
    status: int | None = None
    error = ""
    try:
        with (
            httpx2.Client(
                transport=GuardedTransport(policy, seconds=SECONDS), timeout=SECONDS, follow_redirects=False
            ) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            status = response.status_code
            read = 0
            for chunk in response.iter_raw():
                read += len(chunk)
                if read > _MAX_READ:
                    break
        if not 200 <= status < 300:
            error = _("The receiver answered with status %(status)s.") % {"status": status}
    except AddressRefused as refused:
        error = refused.message
    except httpx2.HTTPError:
        if status is None or not 200 <= status < 300:
            # One text: whether a port is closed or silent, or speaks no HTTP, is nobody's business who names addresses.
            error = UNREACHED
    return DeliveryResult(status, error, int((time.monotonic() - began) * 1000))
