"""Sign what this installation hands out, so that anyone with its public key can tell whether it was changed.

Ed25519 (RFC 8032); the private key is derived from ``SECRET_KEY`` by HKDF-SHA256 (RFC 5869), so there is no other secret
to keep. A new ``SECRET_KEY`` means a new public key: keep the old public key to verify older files.
"""

from __future__ import annotations

import base64

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

_INFO = b"groundwork.exports.v1"


def _private(secret: str) -> Ed25519PrivateKey:
    seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO).derive(force_bytes(secret))
    return Ed25519PrivateKey.from_private_bytes(seed)


def _public(secret: str) -> str:
    return base64.b64encode(_private(secret).public_key().public_bytes_raw()).decode()


def public_key() -> str:
    """Return this installation's public key, in Base64."""
    return _public(settings.SECRET_KEY)


def own_keys() -> set[str]:
    """Return the public keys of this installation's present and former secret keys."""
    return {_public(str(secret)) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)}


def sign(content: bytes) -> str:
    """Return a signature in Base64."""
    return base64.b64encode(_private(settings.SECRET_KEY).sign(content)).decode()


def is_signed(content: bytes, signature: str, key: str) -> bool:
    """Tell whether the owner of a public key signed this; False also for what is no key or signature."""
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        public.verify(base64.b64decode(signature, validate=True), content)
    except (ValueError, InvalidSignature):
        return False
    return True
