"""Audit events and reads in the Open Cybersecurity Schema Framework, version 1.3.0 (https://schema.ocsf.io/1.3.0).

Classes: Account Change (3001) for members, Authentication (3002) for sign-ins, sign-outs and refusals, Entity Management
(3004) for what governs a workspace (keys, rules, budgets, webhooks, ...), API Activity (6003) for all other acts, Datastore
Activity (6005) for reads of contents. What OCSF has no word for is in ``unmapped``, as its specification asks for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from audit.models import ContentRead
from audit.names import audit_names_judged
from tenancy.models import AuditEvent
from tenancy.version import code_version

VERSION: Final = "1.3.0"
ACCOUNT_CHANGE, AUTHENTICATION, ENTITY_MANAGEMENT = 3001, 3002, 3004
API_ACTIVITY, DATASTORE_ACTIVITY = 6003, 6005
_CLASSES: Final = {
    ACCOUNT_CHANGE: ("Account Change", 3, "Identity & Access Management"),
    AUTHENTICATION: ("Authentication", 3, "Identity & Access Management"),
    ENTITY_MANAGEMENT: ("Entity Management", 3, "Identity & Access Management"),
    API_ACTIVITY: ("API Activity", 6, "Application Activity"),
    DATASTORE_ACTIVITY: ("Datastore Activity", 6, "Application Activity"),
}
_ENTITIES: Final = frozenset(
    "tenant key connection credential invite budget rate_limit retention outgoing_hosts webhook share "
    "tool_grant toolkit tool_limit tool_source tool_credential tool_entry model_entry audit_stream passkey".split()
)
_CREATES: Final = frozenset("create add set upload begin allow import start submit ask save".split())
_DELETES: Final = frozenset("delete remove revoke forget end leave expire prune archive".split())
_READS: Final = frozenset("read export".split())
_MEMBERS: Final = {
    "add": (1, "Create"),
    "accept": (1, "Create"),
    "role_change": (7, "Attach Policy"),
    "remove": (6, "Delete"),
    "leave": (6, "Delete"),
}
_SIGN_INS: Final = {
    "session.sign_in": (1, "Logon"),
    "session.refuse": (1, "Logon"),
    "session.sign_out": (2, "Logoff"),
    "sso.sign_in": (1, "Logon"),
    "sso.refuse": (1, "Logon"),
    "passkey.sign_in": (1, "Logon"),
    "passkey.refuse": (1, "Logon"),
}
_PROTOCOLS: Final = {"oidc": (4, "OpenID"), "saml": (5, "SAML")}
"""Of company sign-in; OCSF has no number for a password in a form or a passkey."""
_CRUD: Final = {1: "Create", 2: "Read", 3: "Update", 4: "Delete"}
_DATASTORE: Final = {"search": (4, "Query")}
_USER_TYPES: Final = {"user": (1, "User"), "system": (3, "System"), "api_key": (99, "API key")}


def event_ocsf(event: AuditEvent, *, slug: str) -> dict[str, Any]:
    """Return an audit event as one of OCSF.

    Args:
        slug: of its workspace.
    """
    noun, _, verb = event.action.partition(".")
    if event.action in _SIGN_INS:
        class_uid, activity = AUTHENTICATION, _SIGN_INS[event.action]
    elif noun == "member":
        class_uid = ACCOUNT_CHANGE
        activity = _MEMBERS.get(verb, (99, "Other"))
    else:
        class_uid = ENTITY_MANAGEMENT if noun in _ENTITIES else API_ACTIVITY
        number = 1 if verb in _CREATES else 4 if verb in _DELETES else 2 if verb in _READS else 3
        activity = number, _CRUD[number]
    found = _base(
        class_uid,
        activity,
        at=event.at,
        slug=slug,
        log="audit",
        seq=event.seq,
        code=event.action,
        request_id=event.request_id,
    )
    found |= _who(event.actor_kind, event.actor_name, event.user_id, event.api_key_id, event.ip)
    if class_uid == AUTHENTICATION:
        found |= _sign_in(event, slug=slug)
    elif class_uid == ACCOUNT_CHANGE:
        found["user"] = {"name": event.object_name or event.object_id or "unknown"}
    elif class_uid == ENTITY_MANAGEMENT:
        found["entity"] = {
            "name": event.object_name or noun,
            "type": event.object_type or noun,
            "uid": event.object_id or slug,
        }
    else:
        found["api"] = {"operation": event.action}
        found["resources"] = [
            {"name": event.object_name, "type": event.object_type or noun, "uid": event.object_id}
        ]
    is_withheld = event.object_type in audit_names_judged() and not event.object_name
    found["unmapped"] = {
        "data": {} if is_withheld else event.data,
        "hash": event.hash,
        "previous_hash": event.previous_hash,
    }
    return found


def _sign_in(event: AuditEvent, *, slug: str) -> dict[str, Any]:
    """Return what Authentication has besides: whose sign-in it is, by which protocol, and why it was refused."""
    noun, _, verb = event.action.partition(".")
    data = event.data
    if noun == "passkey":
        protocol = 99, "WebAuthn"
    elif noun == "sso":
        protocol = _PROTOCOLS.get(str(data.get("protocol", "")), (0, "Unknown"))
    else:
        protocol = 99, "Password"
    # What a provider says of a refused person isn't kept, and the provider is the actor then.
    is_persons = event.user_id is not None
    person = {"name": event.actor_name, "uid": str(event.user_id)} if is_persons else {"name": "unknown"}
    found: dict[str, Any] = {
        "user": person,
        "service": {"name": "Groundwork", "uid": slug},
        "is_remote": True,
    }
    if verb != "sign_out":
        found |= {"auth_protocol_id": protocol[0], "auth_protocol": protocol[1]}
    if event.action == "session.sign_in":
        found["is_mfa"] = bool(data.get("second_factor"))
    if verb == "refuse":
        found |= {"status_id": 2, "status": "Failure", "status_detail": str(data.get("reason", ""))}
        if data.get("code"):
            found["status_code"] = str(data["code"])
    return found


def read_ocsf(read: ContentRead, *, slug: str) -> dict[str, Any]:
    """Return a read of contents as Datastore Activity; ``unmapped`` has the address's ids and the documents."""
    found = _base(
        DATASTORE_ACTIVITY,
        _DATASTORE.get(read.kind, (1, "Read")),
        at=read.at,
        slug=slug,
        log="reads",
        seq=read.seq,
        code=read.door,
        request_id=read.request_id,
    )
    found |= _who(read.actor_kind, read.actor_name, read.user_id, read.api_key_id, read.ip)
    found["type_id"], found["type"] = 3, "Table"
    found["table"] = {"name": read.kind, "uid": read.door}
    found["unmapped"] = {"named": read.objects_named, "documents": read.documents}
    return found


def _base(
    class_uid: int,
    activity: tuple[int, str],
    *,
    at: datetime,
    slug: str,
    log: str,
    seq: int | None,
    code: str,
    request_id: str,
) -> dict[str, Any]:
    name, category, category_name = _CLASSES[class_uid]
    return {
        "metadata": {
            "version": VERSION,
            "product": {"name": "Groundwork", "vendor_name": "Groundwork", "version": code_version()},
            "uid": f"{slug}:{log}:{seq}",
            "sequence": seq,
            "event_code": code,
            "log_name": log,
            "tenant_uid": slug,
            **({"correlation_uid": request_id} if request_id else {}),
        },
        "time": round(at.timestamp() * 1000),
        "class_uid": class_uid,
        "class_name": name,
        "category_uid": category,
        "category_name": category_name,
        "activity_id": activity[0],
        "activity_name": activity[1],
        "type_uid": class_uid * 100 + activity[0],
        "severity_id": 1,
        "severity": "Informational",
        "status_id": 1,
        "status": "Success",
    }


def _who(kind: str, name: str, user: int | None, key: int | None, ip: str | None) -> dict[str, Any]:
    type_id, type_name = _USER_TYPES.get(kind, (0, "Unknown"))
    person: dict[str, Any] = {"name": name or kind, "type_id": type_id, "type": type_name}
    if user is not None:
        person["uid"] = str(user)
    if key is not None:
        person["credential_uid"] = str(key)
    return {"actor": {"user": person}, "src_endpoint": {"ip": ip} if ip else {"name": "groundwork"}}
