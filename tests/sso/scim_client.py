"""A provider's provisioning client."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from sso import services
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.sso.provider import DOMAIN

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Scim:
    """A provider's provisioning client."""

    def __init__(self, cast: Cast) -> None:
        self.tenant = cast.tenant
        _, self.token = services.scim_token_create(tenant=cast.tenant, actor=cast.actor("owner"), name="Okta")
        self.client = Client(raise_request_exception=False)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.generic(
            method,
            path if path.startswith("/") else f"/scim/v2/{path}",
            json.dumps(body) if body is not None else "",
            content_type="application/scim+json",
            headers={"Authorization": f"Bearer {self.token}", **headers},
        )

    def user(self, name: str = "ada", /, **more: Any) -> dict[str, Any]:
        body = {"schemas": [f"{CORE}User"], "userName": f"{name}@{DOMAIN}", "active": True, **more}
        response = self.call("POST", "Users", body)
        assert response.status_code == 201, response.content
        found: dict[str, Any] = response.json()
        return found

    def patch(self, path: str, *operations: dict[str, Any]) -> Any:
        return self.call("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})

    def found(self, kind: str, filter_: str) -> list[str]:
        response = self.call("GET", f"/scim/v2/{kind}?filter={filter_.replace(' ', '%20')}")
        assert response.status_code == 200, response.content
        return [one["id"] for one in response.json()["Resources"]]

    def role(self, name: str = "ada") -> str:
        with tenant_scope(self.tenant.pk):
            row = Membership.objects.filter(tenant=self.tenant, user__email=f"{name}@{DOMAIN}").first()
        return row.role if row else ""
