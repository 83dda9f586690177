"""Passkeys as the account page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenancy.models import User
from web.passkeys.ceremonies import passkey_rows


@dataclass(frozen=True, slots=True)
class ShownPasskey:
    """One passkey of a person.

    Attributes:
        signs_in: it was made with PIN, fingerprint or face, so it can replace the password; others are a second step.
    """

    pk: int
    name: str
    signs_in: bool
    created_at: datetime
    last_used_at: datetime | None


def passkey_list(*, user: User) -> list[ShownPasskey]:
    """Return a person's passkeys, oldest first."""
    return [
        ShownPasskey(
            row.pk, row.data["name"], bool(row.data.get("verified")), row.created_at, row.last_used_at
        )
        for row in passkey_rows(user)
    ]
