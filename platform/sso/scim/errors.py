"""Refusals in the form of SCIM."""

from __future__ import annotations

from typing import Any

SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


class ScimError(Exception):
    """A refusal.

    Args:
        status: of HTTP.
        detail: what happened and what to do, for the administrator who reads the provider's log.
        kind: ``scimType`` of RFC 7644, table 9; "" for none.
    """

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer (RFC 7644, 3.12)."""
        said: dict[str, Any] = {"schemas": [SCHEMA], "status": str(self.status), "detail": self.detail}
        return said | ({"scimType": self.kind} if self.kind else {})
