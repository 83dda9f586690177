"""What a workspace has decided about tools, as it concerns one caller, in one statement.

Every question and every call from outside begins with it, so it is written by hand: as four queries it took a third of what
lies between a question and its first word.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from django.db import connection
from django.utils import timezone

from apps.tools.policy.engine import Grant, Policy, Subject, policy_compile
from apps.tools.toolset.guard import EntryFacts
from runs.actors import actor_with
from tenancy.actors import Actor
from toolloop.deferred import Approval

_READ = """
WITH grants AS MATERIALIZED (
    SELECT * FROM tools_toolgrant WHERE tenant_id = %(tenant)s AND (%(is_all)s OR subject_kind = 'everyone'
        OR (subject_kind, subject) IN (('role', {role}), ('member', %(user)s), ('api_key', %(key)s)))
)
SELECT 1 AS place,
    (SELECT jsonb_agg(jsonb_build_array(
        id, effect, target_kind, target, toolkit_id, calls, subject_kind, subject, collection_id, arguments, expires_at,
        note, approver_kind, approver, approval_hours, needs_reason) ORDER BY id) FROM grants),
    (SELECT jsonb_agg(jsonb_build_array(toolkit_id, tool_name)) FROM tools_toolkitmember
        WHERE tenant_id = %(tenant)s AND toolkit_id IN (SELECT toolkit_id FROM grants)),
    (SELECT jsonb_agg(jsonb_build_array(name, is_enabled, description, timeout_s)) FROM tools_toolentry
        WHERE tenant_id = %(tenant)s),
    (SELECT jsonb_agg(DISTINCT jsonb_build_array(target_kind, target)) FROM tools_toollimit
        WHERE tenant_id = %(tenant)s AND (kind = 'tenant'
            OR (kind = 'member' AND (user_id IS NULL OR user_id::text = %(user)s))
            OR (kind = 'key' AND (api_key_id IS NULL OR api_key_id::text = %(key)s)))),
    EXISTS (SELECT FROM tools_toolsource WHERE tenant_id = %(tenant)s AND is_enabled)
"""
_RULES = _READ.replace("{role}", "%(role)s")
_RULES_OF_KEY = f"""
SELECT x.*, k.role FROM (SELECT (
        SELECT role FROM tenancy_membership WHERE tenant_id = %(tenant)s AND user_id = %(user_id)s) AS role) k,
    LATERAL ({_READ.replace("{role}", "k.role")}) x
"""  # noqa: S608 - constants
_RULES_OF_CALLER = _READ.replace("{role}", "me.role") + ", me.role"
_NAMES = ("grants", "members", "entries", "limited", "has_sources", "role")
# The rules are many, and told once: with the first of the other rows.
_ONCE = ", ".join(f"CASE WHEN coalesce(y.at, 1) = 1 THEN x.{name} END" for name in _NAMES)
_RULES_ALONG = f"""
SELECT coalesce(y.at, 1) AS place, {_ONCE}, y.* FROM ({_RULES_OF_CALLER}) x(place, {", ".join(_NAMES)})
    LEFT JOIN ({{along}}) y ON true
"""  # noqa: S608 - constants


class ReadAlong(Protocol):
    """What a tool asks for as soon as it runs: read by the statement that looks once more whether it may.

    Attributes:
        query: as ``runs.actors.actor_with`` takes it, but its first column is ``at``: 1 for the first row, and so on.
        values: its parameters, by name.
        tools: names of the tools that ask for it.
    """

    @property
    def query(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def tools(self) -> Collection[str]: ...
    def put(self, actor: Actor, rows: list[tuple[Any, ...]]) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolRules:
    """Grants, entries and limits.

    Attributes:
        policy: the grants, ready to decide.
        entries: what is stated about tools, by name.
        limited: (kind, name) of what any limit of the caller is about.
        has_sources: whether the workspace has tools of its own that are switched on.
    """

    policy: Policy
    entries: Mapping[str, EntryFacts]
    limited: frozenset[tuple[str, str]]
    has_sources: bool


def tool_rules(*, actor: Actor, subject: Subject | None = None) -> ToolRules:
    """Return the rules of the actor's workspace.

    Args:
        subject: leave out grants and limits that are about others; None leaves out no grant.
    """
    values = _values(actor, subject)
    with connection.cursor() as cursor:
        cursor.execute(_RULES, values)
        return _rules(cursor.fetchone()[1:])


def subject_and_rules(actor: Actor) -> tuple[Subject, ToolRules]:
    """Return whom grants know an actor as, as ``subject_of`` does, and the rules that are about them: one statement."""
    who = Subject(role=actor.role, user_id=actor.user_id, api_key_id=actor.api_key_id)
    if actor.kind != "api_key" or actor.user_id is None:
        return who, tool_rules(actor=actor, subject=who)
    with connection.cursor() as cursor:
        cursor.execute(_RULES_OF_KEY, {**_values(actor, who), "user_id": actor.user_id})
        _place, *rules, role = cursor.fetchone()
    return replace(who, role=role or ""), _rules(rules)


def caller_and_rules(caller: Actor, along: ReadAlong | None = None) -> tuple[Actor, Subject, ToolRules]:
    """Return a person or key with the rights of now, whom grants know them as, and the rules that are about them.

    All of one moment and by one statement.

    Args:
        along: is given its rows, of the same moment.

    Raises:
        Denied: ``actor_gone``.
    """
    # The role is that of now, which the statement finds by itself.
    who = Subject(user_id=caller.user_id, api_key_id=caller.api_key_id)
    values = _values(caller, who)
    if along is None:
        actor, rows = actor_with(caller, _RULES_OF_CALLER, values)
    else:
        query = _RULES_ALONG.replace("{along}", along.query)
        actor, rows = actor_with(caller, query, {**along.values, **values})
        others = (row[len(_NAMES) :] for row in rows)
        along.put(actor, [other[1:] for other in others if other[0] is not None])
    *rules, role = rows[0][: len(_NAMES)]
    return actor, replace(who, role=role), _rules(rules)


def _values(actor: Actor, subject: Subject | None) -> dict[str, Any]:
    who = subject or Subject()
    return {
        "tenant": actor.tenant_id,
        "is_all": subject is None,
        "role": who.role,
        "user": str(who.user_id),
        "key": str(who.api_key_id),
    }


def _rules(row: Sequence[Any]) -> ToolRules:
    grants, members, entries, limited, has_sources = row
    policy = _policy(grants, members)
    return ToolRules(
        policy if isinstance(policy, Policy) else policy_compile(policy, now=timezone.now()),
        {name: EntryFacts(*facts) for name, *facts in _list(entries)},
        frozenset((kind, target) for kind, target in _list(limited)),
        has_sources,
    )


# Asked for each call, and nearly always what they were. The texts come from the database each time: a grant that was taken
# away is in none of them.
@lru_cache(maxsize=64)
def _policy(grants: str | None, members: str | None) -> Policy | tuple[Grant, ...]:
    """Return the policy of grants and toolkits as the statement tells them; the grants alone where the time counts too."""
    kits: dict[int, set[str]] = {}
    for kit, name in _list(members):
        kits.setdefault(kit, set()).add(name)
    found = tuple(_grant(row, kits) for row in _list(grants))
    is_timed = any(grant.expires_at is not None for grant in found)
    return found if is_timed else policy_compile(found, now=timezone.now())


def _list(found: str | None) -> list[Any]:
    """Return what jsonb_agg gave, which for no row is NULL."""
    return json.loads(found) if found else []


def _grant(row: list[Any], kits: Mapping[int, set[str]]) -> Grant:
    (
        pk,
        effect,
        kind,
        target,
        kit,
        calls,
        who_kind,
        who,
        collection,
        arguments,
        expires_at,
        note,
        *approval,
    ) = row
    return Grant(
        pk,
        effect,
        kind,
        target,
        frozenset(kits.get(kit, ())),
        calls,
        who_kind,
        who,
        collection,
        arguments,
        None if expires_at is None else datetime.fromisoformat(expires_at),
        note,
        Approval(*approval),
    )
