"""Who speaks to an MCP server."""

from __future__ import annotations

from dataclasses import dataclass

from tenancy.actors import Actor
from tenancy.models import Tenant


@dataclass(frozen=True, slots=True)
class Caller:
    """The key behind a request.

    Attributes:
        base_url: of this platform as the caller reached it, without a slash at the end.
    """

    tenant: Tenant
    actor: Actor
    base_url: str
