"""Who a run acts for, with the rights of this moment: a run may outlive the rights it was started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.utils import timezone

from basics.errors import Denied
from basics.texts import gettext as _
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, User
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.selectors import key_collections, user_actor

# Asked at every tool call, and before each answer: by hand it costs a fourth of what the ORM takes.
_MEMBER = """
SELECT m.role, u.email FROM tenancy_membership m JOIN tenancy_user u ON u.id = m.user_id
    JOIN tenancy_tenant t ON t.id = m.tenant_id
WHERE m.tenant_id = %(me_tenant)s AND m.user_id = %(me_user)s AND u.is_active AND t.is_active
"""


def actor_facts(actor: Actor) -> dict[str, Any]:
    """Return what ``Run.request["actor"]`` keeps, so that ``actor_now`` can find the actor again. No rights."""
    return {"kind": actor.kind, "api_key_id": actor.api_key_id}


def actor_now(run: Run) -> Actor:
    """Return the actor a run works for, with the rights that person or key has now.

    Raises:
        Denied: ``actor_gone``, the person has left the workspace, or the key is revoked or expired.
    """
    facts = run.request.get("actor", {})
    key = facts.get("api_key_id") if facts.get("kind") == "api_key" else None
    return _actor(run.tenant_id, run.user_id, facts.get("kind") == "api_key", key)


def gone_of(run: Run) -> Denied | None:
    """Return why a run may not go on: its person or key has lost their access; None as long as they have it."""
    if run.request.get("actor", {}).get("kind") == "system":
        return None
    try:
        actor_now(run)
    except Denied as error:
        return error
    return None


def actor_again(actor: Actor) -> Actor:
    """Return an actor with the rights of now; the platform itself has what it has. Raises Denied as ``actor_now``."""
    if actor.kind == "system":
        return actor
    return _actor(actor.tenant_id, actor.user_id, actor.kind == "api_key", actor.api_key_id)


def is_person(run: Run) -> bool:
    """Tell whether a run works for a person, and for no key of theirs."""
    return bool(run.request.get("actor", {}).get("kind") == "user")


def person_with(
    tenant_id: int, user_id: int | None, query: str, values: Mapping[str, Any]
) -> tuple[Actor, list[tuple[Any, ...]]]:
    """Return a person with the rights of now, and the rows of a query, both of one moment and by one statement.

    Args:
        query: its first column is ``place``, which orders the rows; it may ask for ``me.role``, the person's.
        values: its parameters, by name.

    Raises:
        Denied: ``actor_gone``.
    """
    both = f"SELECT me.role, me.email, x.* FROM ({_MEMBER}) me LEFT JOIN LATERAL ({query}) x ON true ORDER BY x.place"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(both, {**values, "me_tenant": tenant_id, "me_user": user_id})
        rows = cursor.fetchall()
    actor = user_actor(_membership(tenant_id, user_id, rows[0][:2] if rows else None))
    return actor, [row[3:] for row in rows if row[2] is not None]


def _membership(tenant_id: int, user_id: int | None, found: tuple[str, str] | None) -> Membership:
    if found is None:
        raise Denied("actor_gone", _("The person who asked is no longer a member of this workspace."))
    role, email = found
    return Membership(tenant_id=tenant_id, user=User(pk=user_id, email=email), role=role)


def _actor(tenant_id: int, user_id: int | None, by_key: bool, key_id: int | None) -> Actor:
    with connection.cursor() as cursor:
        cursor.execute(_MEMBER, {"me_tenant": tenant_id, "me_user": user_id})
        membership = _membership(tenant_id, user_id, cursor.fetchone())
    if not by_key:
        return user_actor(membership)
    key = ApiKey.objects.filter(tenant_id=tenant_id, pk=key_id or 0, revoked_at=None).first()
    if key is None or (key.expires_at is not None and key.expires_at <= timezone.now()):
        raise Denied("actor_gone", _("The API key used was revoked or has expired."))
    return Actor(
        "api_key",
        tenant_id,
        expand_scopes(key.scopes) & ROLE_ACTIONS[membership.role],
        user_id=user_id,
        api_key_id=key.pk,
        collections=key_collections(key),
        name=key.actor_name,
    )
