"""What this service provider says of itself (RFC 7643, 5 to 7): configuration, resource types, schemas."""

from __future__ import annotations

from typing import Any

from sso.scim.resources import GROUP, USER

_CONFIG = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
_TYPE = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Schema"
MOST = 200
"""Resources in one page of a list."""


def config(base: str) -> dict[str, Any]:
    """Return the configuration."""
    return {
        "schemas": [_CONFIG],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": True},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "Bearer token",
                "description": "A token that an owner creates under Settings, Sign-in.",
                "primary": True,
            }
        ],
        "meta": {"resourceType": "ServiceProviderConfig", "location": f"{base}/ServiceProviderConfig"},
    }


def resource_types(base: str) -> list[dict[str, Any]]:
    """Return the kinds of resources."""
    return [
        {
            "schemas": [_TYPE],
            "id": name,
            "name": name,
            "endpoint": f"/{name}s",
            "schema": schema,
            "meta": {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/{name}"},
        }
        for name, schema in (("User", USER), ("Group", GROUP))
    ]


def schemas(base: str) -> list[dict[str, Any]]:
    """Return the schemas of the resources, as far as they are kept."""
    user = [
        _attribute("userName", required=True, unique="server"),
        _attribute("externalId", exact=True),
        _attribute("name", kind="complex", inner=[_attribute("givenName"), _attribute("familyName")]),
        _attribute("displayName"),
        _attribute("active", kind="boolean"),
        _attribute(
            "emails",
            kind="complex",
            many=True,
            inner=[_attribute("value"), _attribute("type"), _attribute("primary", kind="boolean")],
        ),
        _attribute(
            "groups",
            kind="complex",
            many=True,
            writes="readOnly",
            inner=[_attribute("value"), _attribute("display")],
        ),
    ]
    group = [
        _attribute("displayName", required=True, unique="server"),
        _attribute("externalId", exact=True),
        _attribute("members", kind="complex", many=True, inner=[_attribute("value"), _attribute("display")]),
    ]
    return [
        {
            "schemas": [_SCHEMA],
            "id": urn,
            "name": name,
            "description": f"A {name.lower()}.",
            "attributes": attributes,
            "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{urn}"},
        }
        for urn, name, attributes in ((USER, "User", user), (GROUP, "Group", group))
    ]


def _attribute(
    name: str,
    *,
    kind: str = "string",
    many: bool = False,
    required: bool = False,
    exact: bool = False,
    unique: str = "none",
    writes: str = "readWrite",
    inner: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "type": kind,
        "multiValued": many,
        "required": required,
        "caseExact": exact,
        "mutability": writes,
        "returned": "default",
        "uniqueness": unique,
    }
    return found | ({"subAttributes": inner} if inner is not None else {})
