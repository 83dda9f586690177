"""A security key in software: real keys and signatures in fido2's structures, and each lie that a test asks for."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import Client
from django.urls import reverse
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from tenancy.models import User

HOST = "localhost"
BACKEND = "django.contrib.auth.backends.ModelBackend"
ORIGIN = "https://localhost"


class _Secure(Client):
    """Asks over https, whatever a call says."""

    def generic(self, *args: Any, **kwargs: Any) -> Any:
        return super().generic(*args, **kwargs | {"secure": True})


def browser(**extra: Any) -> Client:
    """Return a browser at https://localhost."""
    return _Secure(SERVER_NAME=HOST, **extra)


def challenge_of(client: Client, purpose: str) -> dict[str, Any]:
    """Begin a ceremony and return its options."""
    answer = client.post(reverse("passkey_challenge", args=[purpose]))
    assert answer.status_code == 200, answer.content
    said: dict[str, Any] = answer.json()
    return said


@dataclass
class SoftwareKey:
    """One passkey on one device.

    Attributes:
        handle: of the person, as the site gave it at registration.
        counts: it has a counter; synced passkeys always say 0.
    """

    handle: bytes = b""
    counts: bool = True
    counter: int = 0
    ident: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: dict[str, Any], **lies: Any) -> str:
        """Answer a registration.

        Args:
            lies: origin, rp_id, challenge, verified, type, cross_origin: instead of the truth.
        """
        self.handle = websafe_decode(options["user"]["id"])
        key = ES256.from_cryptography_key(self.private.public_key())
        made = AttestedCredentialData.create(Aaguid(bytes(16)), self.ident, key)
        client_data = self._client_data("webauthn.create", options, lies)
        data = self._data(lies.get("rp_id", options["rp"]["id"]), lies, made)
        attestation = AttestationObject.create("none", data, {})
        return self._answer(
            {"clientDataJSON": client_data.b64, "attestationObject": websafe_encode(attestation)},
            {"credProps": {"rk": True}},
        )

    def get(self, options: dict[str, Any], **lies: Any) -> str:
        """Answer an authentication.

        Args:
            lies: as of ``create``; also counter, handle (None leaves it out), signed_by (another key).
        """
        client_data = self._client_data("webauthn.get", options, lies)
        data = self._data(lies.get("rp_id", options["rpId"]), lies, None)
        signer = lies.get("signed_by", self.private)
        signature = signer.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": client_data.b64,
            "authenticatorData": websafe_encode(data),
            "signature": websafe_encode(signature),
        }
        handle = lies.get("handle", self.handle)
        if handle is not None:
            response["userHandle"] = websafe_encode(handle)
        return self._answer(response, {})

    def _client_data(self, kind: str, options: dict[str, Any], lies: dict[str, Any]) -> CollectedClientData:
        return CollectedClientData.create(
            lies.get("type", kind),
            lies.get("challenge", options["challenge"]),
            lies.get("origin", ORIGIN),
            lies.get("cross_origin", False),
        )

    def _data(
        self, rp_id: str, lies: dict[str, Any], made: AttestedCredentialData | None
    ) -> AuthenticatorData:
        flags = AuthenticatorData.FLAG.UP if lies.get("present", True) else AuthenticatorData.FLAG(0)
        if lies.get("verified", True):
            flags |= AuthenticatorData.FLAG.UV
        if made is not None:
            flags |= AuthenticatorData.FLAG.AT
        self.counter += self.counts
        counter = lies.get("counter", self.counter)
        data: AuthenticatorData = AuthenticatorData.create(
            hashlib.sha256(rp_id.encode()).digest(), flags, counter, made or b""
        )
        return data

    def _answer(self, response: dict[str, str], results: dict[str, Any]) -> str:
        ident = websafe_encode(self.ident)
        return json.dumps(
            {
                "id": ident,
                "rawId": ident,
                "type": "public-key",
                "response": response,
                "clientExtensionResults": results,
            }
        )


def prove_again(client: Client) -> None:
    """Enter the password once more."""
    client.post(reverse("account_reauthenticate"), {"password": "secret-password"})


def at_home(user: User) -> Client:
    """Return a browser whose person has just entered their password again."""
    client = browser()
    client.force_login(user, BACKEND)
    prove_again(client)
    return client


def add_passkey(
    client: Client, key: SoftwareKey | None = None, name: str = "Laptop", **lies: Any
) -> SoftwareKey:
    """Add a passkey in the session of somebody who has just entered their password."""
    key = key or SoftwareKey()
    credential = key.create(challenge_of(client, "add"), **lies)
    answer = client.post(reverse("mfa_add_webauthn"), {"name": name, "credential": credential})
    assert answer.status_code == 302, answer.content
    return key


def sign_in_with(client: Client, key: SoftwareKey, **lies: Any) -> Any:
    """Sign in with a passkey alone; returns the answer."""
    credential = key.get(challenge_of(client, "login"), **lies)
    return client.post(reverse("mfa_login_webauthn"), {"credential": credential})


def is_in(client: Client) -> bool:
    """Tell whether somebody is signed in."""
    return "_auth_user_id" in client.session
