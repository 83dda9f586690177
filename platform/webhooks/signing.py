"""Sign what is sent to webhooks as Standard Webhooks says (standardwebhooks.com), so that any library of it can verify."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook as Signer

_BYTES = 32


def secret_make() -> str:
    """Return a new secret: 256 random bits in the form that Standard Webhooks libraries take."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def signed_headers(given: Sequence[str], *, event_id: str, body: bytes, sent_at: datetime) -> dict[str, str]:
    """Return the three headers of a call.

    Args:
        given: the secrets, each of which signs; a receiver needs one of them.
        event_id: the same for each attempt and repetition of an event.
        body: the bytes that are sent.
        sent_at: of this attempt, in UTC.
    """
    text = body.decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(Signer(secret).sign(event_id, sent_at, text) for secret in given),
    }
