"""Sign what is sent to webhooks, so that a receiver knows whom it is from and how old it is."""

from __future__ import annotations

import hashlib
import hmac
import secrets

SIGNATURE = "Groundwork-Signature"


def secret_make() -> str:
    """Return a new secret of 256 random bits."""
    return "whsec_" + secrets.token_urlsafe(32)


def signature(secret: str, body: bytes, timestamp: int) -> str:
    """Return the header's value: ``t=<Unix seconds>,v1=<HMAC-SHA256 of "<t>.<body>" in hex>``."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"t={timestamp},v1={digest.hexdigest()}"
