"""Passkeys as rows: adding, naming, removing, and what the workspaces of their person read about it in their audit logs.

A passkey belongs to a person, in no workspace, so its row is allauth's. Its name is the person's own and is not told: the
audit logs have its number.
"""

from __future__ import annotations

from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.internal.flows import delete_dangling_recovery_codes
from allauth.mfa.models import Authenticator
from django.db import transaction
from fido2.utils import websafe_encode

from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from tenancy.models import User
from web import sign_in_trail
from web.passkeys.ceremonies import NewPasskey, PasskeyRefused, passkey_rows

MAX_PASSKEYS = 20
MAX_NAME = 60


@transaction.atomic
def passkey_add(*, user: User, name: str, made: NewPasskey) -> Authenticator:
    """Store a registered passkey.

    Args:
        name: to tell it from the person's others; "" for one that counts them.

    Raises:
        Invalid: the name is too long.
        Conflict: the person has as many as can be.
        PasskeyRefused: somebody has this passkey already.
    """
    User.objects.select_for_update().get(pk=user.pk)
    rows = passkey_rows(user)
    if len(rows) >= MAX_PASSKEYS:
        raise Conflict(
            "too_many_passkeys",
            _("You already have %(most)s passkeys. Remove one first.") % {"most": MAX_PASSKEYS},
        )
    identifier = websafe_encode(made.credential_id)
    same = Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN, data__credential__rawId=identifier)
    if same.exists():
        raise PasskeyRefused(
            "already registered", _("That passkey is already in use. Choose another device or key.")
        )
    row = Authenticator.objects.create(
        user=user,
        type=Authenticator.Type.WEBAUTHN,
        data={
            "name": _name(name or f"Passkey {len(rows) + 1}"),
            "credential": made.credential,
            "sign_count": made.sign_count,
            "verified": made.verified,
        },
    )
    trail_record(user=user, action="passkey.add", pk=row.pk, verified=made.verified)
    return row


def passkey_rename(*, user: User, pk: int, name: str) -> Authenticator:
    """Give a passkey another name.

    Raises:
        Missing: the person has no such passkey.
        Invalid: there is no name, or a too long one.
    """
    name = _name(name)
    with transaction.atomic():
        row = _row(user, pk)
        row.data["name"] = name
        row.save(update_fields=["data"])
    return row


@transaction.atomic
def passkey_remove(*, user: User, pk: int) -> Authenticator:
    """Remove a passkey, and with the last factor its recovery codes.

    Raises:
        Missing: the person has no such passkey.
        Conflict: a workspace asks for a second factor, and this is the last one.
    """
    User.objects.select_for_update().get(pk=user.pk)  # two at once would each leave the other
    row = _row(user, pk)
    adapter = get_adapter()
    if not adapter.can_delete_authenticator(row):
        raise Conflict("last_factor", str(adapter.error_messages["cannot_delete_authenticator"]))
    row.delete()
    delete_dangling_recovery_codes(user)
    trail_record(user=user, action="passkey.remove", pk=pk)
    return row


def passkey_refusal_record(error: PasskeyRefused) -> None:
    """Tell the workspaces of a person that a passkey of theirs was refused; one that nobody has is told to none."""
    if error.person is not None:
        trail_record(user=error.person, action="passkey.refuse", reason=error.reason)


def trail_record(*, user: User, action: str, pk: int | None = None, **data: str | bool) -> None:
    """Write an event about a person's passkey to the audit log of each workspace of theirs."""
    name = "passkey" if pk is None else f"passkey {pk}"
    sign_in_trail.trail_record(user=user, action=action, object_name=name, only=None, **data)


def _row(user: User, pk: int) -> Authenticator:
    rows = Authenticator.objects.select_for_update().filter(user_id=user.pk, type=Authenticator.Type.WEBAUTHN)
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Missing("passkey")
    return row


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise Invalid(
            "invalid",
            _("Enter a name of 1 to %(most)s characters.") % {"most": MAX_NAME},
            data={"field": "name"},
        )
    return name
