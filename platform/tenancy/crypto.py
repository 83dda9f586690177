"""Encryption of what must be stored and read again: keys of providers, credentials of tools, second factors.

Fernet (AES-128-CBC with HMAC-SHA256, https://github.com/fernet/spec). ``CREDENTIAL_KEYS`` holds the keys, the first one
encrypts and all decrypt, so that keys are rotated by putting a new one in front; ``manage.py credentials_rotate`` then
brings what is stored to it, and the old one can go. Without the setting a key is derived from ``SECRET_KEY`` by HKDF-SHA256 (RFC 5869); ``SECRET_KEY_FALLBACKS`` keep old ones readable.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Never

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.encoding import force_bytes

_INFO = b"groundwork.credentials.v1"


class DecryptionError(Exception):
    """The stored value was encrypted with a key that is gone, or for another tenant or purpose."""


class Secret:
    """A secret in memory that no log, trace or template shows: only ``reveal()`` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret; call it where it is sent, nowhere else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> Never:
        raise TypeError("a Secret is not to be pickled")


def encrypt(secret: str, *, tenant_id: int, purpose: str) -> bytes:
    """Return the secret encrypted for one tenant and one purpose; a copy in another tenant's row is unreadable."""
    payload = json.dumps({"tenant": tenant_id, "for": purpose, "secret": secret})
    return _fernet().encrypt(payload.encode())


def decrypt(stored: bytes | memoryview, *, tenant_id: int, purpose: str) -> Secret:
    """Return the secret.

    Raises:
        DecryptionError: it cannot be read here.
    """
    try:
        payload = json.loads(_fernet().decrypt(bytes(stored)))
    except InvalidToken as error:
        raise DecryptionError("encrypted with a key that this server does not have") from error
    if payload["tenant"] != tenant_id or payload["for"] != purpose:
        raise DecryptionError("encrypted for another tenant or purpose")
    return Secret(payload["secret"])


def rotate(stored: bytes | memoryview) -> bytes | None:
    """Return a stored value encrypted with the first key, None where it is already.

    Raises:
        DecryptionError: no key of this server fits.
    """
    keys = _keys()
    try:
        keys[0].decrypt(bytes(stored))
    except InvalidToken:
        try:
            return MultiFernet(keys).rotate(bytes(stored))
        except InvalidToken as error:
            raise DecryptionError("encrypted with a key that this server does not have") from error
    return None


def key_ids() -> list[str]:
    """Return what tells this server's keys apart, in their order; no key can be computed from it."""
    return [_key_id(text) for text in _key_texts()]


def key_id_of(stored: bytes | memoryview) -> str | None:
    """Return which of this server's keys a stored value is encrypted with, None when none of them is."""
    for text, key in zip(_key_texts(), _keys(), strict=True):
        try:
            key.decrypt(bytes(stored))
        except InvalidToken:
            continue
        return _key_id(text)
    return None


def _key_id(text: str) -> str:
    kdf = HKDF(algorithm=SHA256(), length=8, salt=None, info=b"groundwork.credentials.id")
    return kdf.derive(text.encode()).hex()


def _fernet() -> MultiFernet:
    return MultiFernet(_keys())


def _keys() -> list[Fernet]:
    try:
        return [Fernet(key) for key in _key_texts()]
    except ValueError as error:
        raise ImproperlyConfigured(
            "GROUNDWORK_CREDENTIAL_KEYS: each key must be 32 url-safe base64-encoded bytes. Make one: "
            "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
        ) from error


def _key_texts() -> list[str]:
    # The derived keys stay last, so that what was stored before CREDENTIAL_KEYS was set can be read.
    derived = [_derive(s).decode() for s in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return [*settings.CREDENTIAL_KEYS, *derived]


def _derive(secret_key: Any) -> bytes:
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO)
    return base64.urlsafe_b64encode(kdf.derive(force_bytes(secret_key)))
