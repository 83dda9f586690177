"""Making and checking secrets: API keys, OAuth tokens and invitation tokens. Only their SHA-256 is stored.

A fast hash is right here: the secret has 256 random bits, so there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_KEY = re.compile(r"^gw_([a-z0-9]{10})_([A-Za-z0-9_-]{43})\Z")
TOKEN_PREFIX = "gwo_"  # noqa: S105 - no password
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def make() -> tuple[str, str, str]:
    """Return (key to show once, prefix to find it by, SHA-256 of the secret)."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    secret = secrets.token_urlsafe(32)
    return f"gw_{prefix}_{secret}", prefix, digest(secret)


def make_token() -> tuple[str, str]:
    """Return (OAuth code or token to hand out, its SHA-256)."""
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    return token, digest(token)


def split(key: str) -> tuple[str, str]:
    """Return (prefix, secret), both "" when the text is no key of ours."""
    match = _KEY.match(key)
    return (match[1], match[2]) if match else ("", "")


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret as 64 hex digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, stored: str) -> bool:
    """Compare a secret with a stored digest in constant time."""
    return hmac.compare_digest(digest(secret), stored)
