"""What a person's second factor rests on (TOTP secret, seed of the recovery codes): stored encrypted, shown to nobody."""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable
from typing import Any, ClassVar

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.utils.translation import gettext_lazy

from tenancy import crypto
from tenancy.selectors import membership_list
from tenancy.sign_in_rules import SignInRules

logger = logging.getLogger(__name__)

_NOBODYS = 0  # a person's, in no workspace
_PURPOSE = "second factor"
_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes replace one for once
_FERNET = "gAAAA"
"""How every Fernet token of this era begins, and no secret in Base32 or hexadecimal digits does."""


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """How allauth stores the secrets of second factors, and when one can't be removed."""

    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultMFAAdapter.error_messages,
        "cannot_delete_authenticator": gettext_lazy(
            "A workspace of yours asks for a second factor, and this is your only one. Add "
            "another one first, or leave the workspace."
        ),
    }

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Tell whether its person may remove a factor: not the last one where a workspace asks for one."""
        person = authenticator.user
        others = Authenticator.objects.filter(user_id=person.pk, type__in=_FACTORS).exclude(
            pk=authenticator.pk
        )
        return others.exists() or not any(
            rules.requires_second_factor or (rules.requires_sso and rules.break_glass == person.pk)
            for rules in (SignInRules.of(one.tenant) for one in membership_list(user=person))
        )

    def encrypt(self, text: str) -> str:
        """Return a secret as it is stored."""
        return crypto.encrypt(text, tenant_id=_NOBODYS, purpose=_PURPOSE).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return a stored secret; one that no key of this server fits is a new one, which nobody has codes of."""
        if not encrypted_text.startswith(_FERNET):
            return encrypted_text  # stored before secrets were encrypted
        try:
            stored = encrypted_text.encode()
            return crypto.decrypt(stored, tenant_id=_NOBODYS, purpose=_PURPOSE).reveal()
        except crypto.DecryptionError as error:
            logger.warning("second_factor_unreadable", extra={"problem": str(error)})
            return base64.b32encode(secrets.token_bytes(20)).decode()


def factors_rotate() -> tuple[int, int, int]:
    """Encrypt every second factor with the first key, those from before secrets were encrypted too.

    Returns:
        How many were encrypted anew, left as they are, and cannot be read with any key.
    """
    anew = kept = unreadable = 0
    for factor in Authenticator.objects.order_by("pk").iterator(chunk_size=200):
        try:
            data = _rotated(factor.data)
        except crypto.DecryptionError:
            unreadable += 1
            continue
        # Only what was read is replaced: its person may set up another one meanwhile.
        same = Authenticator.objects.filter(pk=factor.pk, data=factor.data)
        changed = data != factor.data and same.update(data=data)
        anew += bool(changed)
        kept += not changed
    return anew, kept, unreadable


def factor_secrets(data: dict[str, Any]) -> list[str]:
    """Return the encrypted secrets of one factor, as they are stored; those from before secrets were encrypted aren't among them."""
    found = [data[name] for name in ("secret", "seed") if name in data] + list(data.get("migrated_codes", ()))
    return [one for one in found if one.startswith(_FERNET)]


def _rotated(data: dict[str, Any]) -> dict[str, Any]:
    found = dict(data)
    for name in ("secret", "seed"):
        if name in found:
            found[name] = _one(found[name])
    if "migrated_codes" in found:
        found["migrated_codes"] = [_one(code) for code in found["migrated_codes"]]
    return found


def _one(stored: str) -> str:
    anew: Callable[[str], str] = SecondFactorAdapter().encrypt
    if not stored.startswith(_FERNET):
        return anew(stored)
    rotated = crypto.rotate(stored.encode())
    return stored if rotated is None else rotated.decode()
