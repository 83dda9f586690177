"""What a source's calls need of the database: its secrets, and where they may go. Read when a call is made, never kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.tools.connectors.base import SourceError
from apps.tools.models import ToolCredential, ToolSource
from basics.net_policy import NetPolicy
from basics.texts import gettext as _
from tenancy import crypto
from tenancy.crypto import Secret
from tenancy.outgoing import outgoing_policy


@dataclass(frozen=True, slots=True)
class SourceSecret:
    """One secret and where it goes: see ``ToolCredential``."""

    placement: str
    parameter: str
    secret: Secret


def secrets_read(tenant_id: int, source_id: int) -> Sequence[SourceSecret]:
    """Return a source's secrets; needs the database and the tenant's scope.

    Raises:
        SourceError: one cannot be decrypted any more.
    """
    rows = ToolCredential.objects.filter(tenant_id=tenant_id, source_id=source_id).order_by("pk")
    try:
        return [
            SourceSecret(
                row.placement,
                row.parameter,
                crypto.decrypt(row.secret_encrypted, tenant_id=tenant_id, purpose=row.purpose),
            )
            for row in rows
        ]
    except crypto.DecryptionError as error:
        raise SourceError(
            _("A stored credential can no longer be read. An admin must enter it again."),
            code="credential_unreadable",
        ) from error


def source_now(tenant_id: int, pk: int) -> tuple[ToolSource, Sequence[SourceSecret], NetPolicy]:
    """Return a source as it is at the moment of a call, its secrets, and where the call may go.

    A run may hold the source as it was long ago: a secret that was entered for a new address would be sent to the old one.
    Call it from inside a tool through ``ToolContext.data[IN_DB]``.

    Raises:
        SourceError: it was switched off or removed, or a secret cannot be decrypted any more.
    """
    rows = ToolSource.objects.filter(tenant_id=tenant_id, pk=pk, is_enabled=True).defer("document")
    source = rows.first()
    if source is None:
        raise SourceError(_("The source of this tool was switched off in this workspace."))
    return source, secrets_read(tenant_id, pk), outgoing_policy(tenant_id)
