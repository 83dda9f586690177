"""The two ceremonies of WebAuthn (Level 3, sections 7.1 and 7.2), with fido2 for structures and signatures.

A challenge belongs to a session, a purpose and, where somebody is known, a person; it holds five minutes and is spent by
the first answer, right or wrong, over all processes. allauth's own ceremonies keep one challenge for all purposes, look at
no counter, and take an answer without user verification at a sign-in whose challenge was asked for elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from fido2.cose import CoseKey
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorData,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from basics.errors import DomainError
from basics.texts import gettext as _
from tenancy.models import User
from web.passkeys import site

SESSION_KEY = "passkey_challenges"
"""In the session: purpose -> challenge, whose it is, when it was made."""
LIFETIME_S = 300
MAX_ANSWER = 32_768
"""Characters of a browser's answer: with the attestation of a security key it has about 3,000."""
MAX_CREDENTIAL_ID = 1023  # bytes; section 7.1, step 25
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    struct.error,
)
"""What fido2 raises for bytes that are no answer of an authenticator."""


class Purpose(StrEnum):
    """What a challenge is for; an answer to one is none to another."""

    ADD = "add"
    SIGN_IN = "login"
    SECOND = "second"
    AGAIN = "reauthenticate"


class PasskeyRefused(DomainError):
    """A passkey's answer isn't taken; ``reason`` is for logs and the audit trail.

    Attributes:
        person: whose passkey it names, where that is known.
    """

    def __init__(self, reason: str, message: str = "", *, person: User | None = None) -> None:
        self.reason, self.person = reason, person
        super().__init__("passkey_refused", message or _("That passkey didn't work. Try again."))


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """What was registered.

    Attributes:
        credential: the browser's answer, without what nobody needs later.
        verified: the person proved themself to the authenticator (PIN, fingerprint, face).
    """

    credential: dict[str, Any]
    credential_id: bytes
    sign_count: int
    verified: bool


@dataclass(frozen=True, slots=True)
class PasskeyUse:
    """A passkey that has just been shown.

    Attributes:
        row: of the passkey, with its user.
        verified: the person proved themself to the authenticator this time.
    """

    row: Authenticator
    verified: bool


def registration_begin(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return options for ``navigator.credentials.create`` (PublicKeyCredentialCreationOptionsJSON)."""
    challenge = _challenge_make(request, Purpose.ADD, user)
    options, _ = _server(request).register_begin(
        PublicKeyCredentialUserEntity(
            id=user_handle(user), name=user.email, display_name=user.get_full_name() or user.email
        ),
        credentials=[credential_of(row) for row in passkey_rows(user)],
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
        challenge=challenge,
        extensions={"credProps": True},
    )
    return dict(options.public_key)


def registration_complete(request: HttpRequest, user: User, answer: str) -> NewPasskey:
    """Check a browser's answer to ``registration_begin``.

    Args:
        answer: RegistrationResponseJSON.

    Raises:
        PasskeyRefused: it isn't an answer to this session's challenge for this person, or its key can't be used.
    """
    challenge = _challenge_take(request, Purpose.ADD, user)
    try:
        said = _parsed(answer)
        response = RegistrationResponse.from_dict(said)
        data = response.response.attestation_object.auth_data
        made = data.credential_data
        if (
            made is None
            or made.credential_id != response.raw_id
            or response.response.client_data.cross_origin
        ):
            raise PasskeyRefused("malformed")
        if made.public_key.get(3) not in CoseKey.supported_algorithms():
            raise PasskeyRefused("algorithm")
        _server(request).register_complete(_state(challenge, is_verified=False), response)
    except _UNREADABLE as error:
        raise PasskeyRefused(f"registration: {error}"[:200]) from error
    if not 1 <= len(made.credential_id) <= MAX_CREDENTIAL_ID:
        raise PasskeyRefused("credential id")
    return NewPasskey(_kept(said, response), made.credential_id, data.counter, data.is_user_verified())


def assertion_begin(request: HttpRequest, purpose: Purpose, user: User | None) -> dict[str, Any]:
    """Return options for ``navigator.credentials.get`` (PublicKeyCredentialRequestOptionsJSON).

    Args:
        user: whose passkey is asked for; None at a sign-in, where the passkey says whose it is.
    """
    challenge = _challenge_make(request, purpose, user)
    needs = UserVerificationRequirement.PREFERRED if user else UserVerificationRequirement.REQUIRED
    options, _ = _server(request).authenticate_begin(
        credentials=[credential_of(row) for row in passkey_rows(user)] if user else None,
        user_verification=needs,
        challenge=challenge,
    )
    return dict(options.public_key)


def assertion_complete(request: HttpRequest, purpose: Purpose, user: User | None, answer: str) -> PasskeyUse:
    """Check a browser's answer to ``assertion_begin``, and count its use.

    Args:
        user: as at the beginning; None takes the person from the answer, who must have been verified by the authenticator.
        answer: AuthenticationResponseJSON.

    Raises:
        PasskeyRefused: see its reason.
    """
    challenge = _challenge_take(request, purpose, user)
    try:
        said = _parsed(answer)
        response = AuthenticationResponse.from_dict(said)
        handle = response.response.user_handle
        if response.response.client_data.cross_origin:
            raise PasskeyRefused("cross-origin")
    except _UNREADABLE as error:
        raise PasskeyRefused(f"assertion: {error}"[:200]) from error
    person = user or _person_of(handle)
    row = _row_of(person, response.raw_id)
    if handle is not None and handle != user_handle(person):
        raise PasskeyRefused("user handle", person=person)
    try:
        _server(request).authenticate_complete(
            _state(challenge, is_verified=user is None), [credential_of(row)], response
        )
    except _UNREADABLE as error:
        raise PasskeyRefused(f"assertion: {error}"[:200], person=person) from error
    data = response.response.authenticator_data
    return PasskeyUse(_counted(row, person, data), data.is_user_verified())


def user_handle(user: User) -> bytes:
    """Return what a passkey keeps of its person: the account's number, which says nothing about them."""
    return str(user.pk).encode()


def passkey_rows(user: User) -> list[Authenticator]:
    """Return a person's passkeys, oldest first."""
    rows = Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.WEBAUTHN)
    return list(rows.order_by("pk"))


def credential_of(row: Authenticator) -> AttestedCredentialData:
    """Return id and public key of a stored passkey."""
    data: AuthenticatorData = row.wrap().authenticator_data
    if data.credential_data is None:
        raise ValueError(f"passkey {row.pk} has no key")
    return data.credential_data


def _server(request: HttpRequest) -> Fido2Server:
    rp = PublicKeyCredentialRpEntity(id=site.rp_id(request), name="Groundwork")
    return Fido2Server(rp, verify_origin=lambda origin: site.is_origin(request, origin))


def _state(challenge: bytes, *, is_verified: bool) -> dict[str, Any]:
    needs = UserVerificationRequirement.REQUIRED if is_verified else UserVerificationRequirement.PREFERRED
    return {"challenge": websafe_encode(challenge), "user_verification": needs}


def _challenge_make(request: HttpRequest, purpose: Purpose, user: User | None) -> bytes:
    challenge = secrets.token_bytes(32)
    made = {"challenge": websafe_encode(challenge), "user": user.pk if user else None, "at": time.time()}
    request.session[SESSION_KEY] = {**request.session.get(SESSION_KEY, {}), purpose.value: made}
    return challenge


def _challenge_take(request: HttpRequest, purpose: Purpose, user: User | None) -> bytes:
    """Return this session's challenge, which nothing takes a second time."""
    waiting = dict(request.session.get(SESSION_KEY, {}))
    made = waiting.pop(purpose.value, None)
    request.session[SESSION_KEY] = waiting
    late = _("That took too long, or was already used. Try again.")
    if made is None or made["user"] != (user.pk if user else None):
        raise PasskeyRefused("no challenge", late)
    if not 0 <= time.time() - made["at"] < LIFETIME_S:
        raise PasskeyRefused("challenge expired", late)
    # Two requests of one session may both have read it: the first one here has it.
    digest = hashlib.sha256(made["challenge"].encode()).hexdigest()
    if not cache.add(f"passkey-challenge-{digest}", 1, timeout=LIFETIME_S):
        raise PasskeyRefused("challenge used", late)
    return websafe_decode(made["challenge"])


def _parsed(answer: str) -> dict[str, Any]:
    if len(answer) > MAX_ANSWER:
        raise ValueError("too long")
    said = json.loads(answer)
    if not isinstance(said, dict):
        raise TypeError("no object")
    return said


def _kept(said: dict[str, Any], response: RegistrationResponse) -> dict[str, Any]:
    """Return what is stored of an answer, in the form that allauth's model reads."""
    identifier = websafe_encode(response.raw_id)
    results = said.get("clientExtensionResults")
    props = results.get("credProps") if isinstance(results, dict) else None
    is_discoverable = props.get("rk") if isinstance(props, dict) else None
    return {
        "id": identifier,
        "rawId": identifier,
        "type": "public-key",
        "response": {
            "clientDataJSON": response.response.client_data.b64,
            "attestationObject": websafe_encode(response.response.attestation_object),
        },
        "clientExtensionResults": {"credProps": {"rk": is_discoverable}}
        if isinstance(is_discoverable, bool)
        else {},
    }


def _person_of(handle: bytes | None) -> User:
    try:
        pk = int((handle or b"").decode("ascii"))
        person = User.objects.filter(pk=pk).first() if 0 < pk < 2**63 else None
    except ValueError:
        person = None
    if person is None:
        raise _unknown()
    return person


def _row_of(person: User, credential_id: bytes) -> Authenticator:
    for row in passkey_rows(person):
        if credential_of(row).credential_id == credential_id:
            row.user = person
            return row
    raise _unknown()


def _unknown() -> PasskeyRefused:
    return PasskeyRefused(
        "unknown",
        _(
            "That passkey doesn't belong to this account, or it was removed here. Use another one or your password, and delete "
            "the old passkey on your device."
        ),
    )


@transaction.atomic
def _counted(row: Authenticator, person: User, data: AuthenticatorData) -> Authenticator:
    """Store the counter; one that hasn't gone up says that a copy of the key is in use (section 7.2, step 22)."""
    now = Authenticator.objects.select_for_update().filter(pk=row.pk).first()
    if now is None:
        raise _unknown()
    before = int(now.data.get("sign_count", 0))
    if (before or data.counter) and data.counter <= before:
        raise PasskeyRefused(
            "counter",
            _(
                "That passkey may have been copied, so it wasn't accepted. Sign in another way, then remove it from your account."
            ),
            person=person,
        )
    now.data["sign_count"], now.last_used_at = data.counter, timezone.now()
    now.save(update_fields=["data", "last_used_at"])
    now.user = person
    return now
