"""The secrets of a source, as its calls need them: read when a call is made, never kept in a tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.tools.models import ToolCredential
from apps.tools.sources.base import IN_DB, SourceError
from tenancy import crypto
from tenancy.crypto import Secret

if TYPE_CHECKING:
    from toolloop.tools import ToolContext


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
            "A stored credential cannot be read any more: an admin must enter it again.",
            code="credential_unreadable",
        ) from error


async def secrets_of_call(
    context: ToolContext, tenant_id: int, source_id: int
) -> Sequence[SourceSecret]:
    """Return a source's secrets from inside a running tool. Raises SourceError."""
    found: Sequence[SourceSecret] = await context.data[IN_DB](secrets_read, tenant_id, source_id)
    return found
