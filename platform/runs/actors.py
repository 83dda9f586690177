"""Who a run acts for, with the rights of this moment: a run may outlive the rights it was started with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from basics.errors import Denied
from basics.texts import gettext as _
from runs.models import Run
from tenancy.actors import Actor, key_actor_name
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.selectors import member_actor

# Asked at every tool call, and before each answer: by hand it costs a fourth of what the ORM takes.
_MEMBER = """
SELECT m.role, u.email, {key}
FROM tenancy_membership m JOIN tenancy_user u ON u.id = m.user_id JOIN tenancy_tenant t ON t.id = m.tenant_id{keys}
WHERE m.tenant_id = %(me_tenant)s AND m.user_id = %(me_user)s AND u.is_active AND t.is_active
"""
_KEYS = """
    LEFT JOIN tenancy_apikey k ON k.tenant_id = m.tenant_id AND k.id = %(me_key)s AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())"""
_PERSON = _MEMBER.format(key="NULL::bigint[] AS collections", keys="")
_KEY = _MEMBER.format(key="k.collections, k.id AS key_id, k.scopes, k.name, k.client_id", keys=_KEYS)


def actor_facts(actor: Actor) -> dict[str, Any]:
    """Return what ``Run.request["actor"]`` keeps, so that ``actor_now`` can find the actor again. No rights."""
    return {"kind": actor.kind, "api_key_id": actor.api_key_id}


def actor_now(run: Run) -> Actor:
    """Return the actor a run works for, with the rights that person or key has now.

    Raises:
        Denied: ``actor_gone``, the person has left the workspace, or the key is revoked or expired.
    """
    return _one(_Caller.of_run(run))


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
    return _one(_Caller.of_actor(actor))


def is_person(run: Run) -> bool:
    """Tell whether a run works for a person, and for no key of theirs."""
    return bool(run.request.get("actor", {}).get("kind") == "user")


def actor_with(
    caller: Run | Actor, query: str, values: Mapping[str, Any]
) -> tuple[Actor, list[tuple[Any, ...]]]:
    """Return a person or key with the rights of now, and the rows of a query, both of one moment and by one statement.

    Args:
        caller: a run, for whom it works; or who they were a moment ago, not the platform.
        query: its first column is ``place``, which orders the rows; it may ask for ``me.role``, the person's, and for
            ``me.collections``, to which a key is limited (NULL for all).
        values: its parameters, by name.

    Raises:
        Denied: ``actor_gone``.
    """
    who = _Caller.of_actor(caller) if isinstance(caller, Actor) else _Caller.of_run(caller)
    both = f"SELECT me.*, x.* FROM ({who.query}) me LEFT JOIN LATERAL ({query}) x ON true ORDER BY x.place"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(both, {**values, **who.values})
        rows = cursor.fetchall()
    actor = who.actor(rows[0] if rows else None)
    return actor, [row[who.width + 1 :] for row in rows if row[who.width] is not None]


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who it is whose rights are asked for: a person, or a key of theirs (``key_id`` None for one that nobody knows)."""

    tenant_id: int
    user_id: int | None
    is_key: bool
    key_id: int | None

    @classmethod
    def of_run(cls, run: Run) -> _Caller:
        facts = run.request.get("actor", {})
        is_key = facts.get("kind") == "api_key"
        return cls(run.tenant_id, run.user_id, is_key, facts.get("api_key_id") if is_key else None)

    @classmethod
    def of_actor(cls, actor: Actor) -> _Caller:
        return cls(actor.tenant_id, actor.user_id, actor.kind == "api_key", actor.api_key_id)

    @property
    def query(self) -> str:
        """Return what finds them, ``width`` columns."""
        return _KEY if self.is_key else _PERSON

    @property
    def width(self) -> int:
        return 7 if self.is_key else 3

    @property
    def values(self) -> dict[str, Any]:
        own = {"me_tenant": self.tenant_id, "me_user": self.user_id}
        return {**own, "me_key": self.key_id} if self.is_key else own

    def actor(self, row: tuple[Any, ...] | None) -> Actor:
        """Return them with the rights that a row of ``query`` tells of, None for no row. Raises Denied."""
        if row is None:
            raise Denied("actor_gone", _("The person who asked is no longer a member of this workspace."))
        role, email, limited, *key = row[: self.width]
        if not self.is_key:
            return member_actor(self.tenant_id, self.user_id, role, email)
        key_id, scopes, name, client_id = key
        if key_id is None:
            raise Denied("actor_gone", _("The API key used was revoked or has expired."))
        return Actor(
            "api_key",
            self.tenant_id,
            expand_scopes(json.loads(scopes)) & ROLE_ACTIONS[role],
            user_id=self.user_id,
            api_key_id=key_id,
            collections=None if limited is None else frozenset(limited),
            name=key_actor_name(name, client_id),
        )


def _one(who: _Caller) -> Actor:
    with connection.cursor() as cursor:
        cursor.execute(who.query, who.values)
        return who.actor(cursor.fetchone())
