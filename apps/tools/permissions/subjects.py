"""Whom grants can be about: a workspace's roles, people and keys, by name, and the actor that each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from apps.tools.permissions.matrix import Column, role_columns
from apps.tools.policy.engine import Subject
from apps.tools.policy.sentences import Names
from apps.tools.toolset.selectors import subject_of
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Role
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.selectors import user_actor


@dataclass(frozen=True, slots=True)
class Subjects:
    """Those whom a grant can name, and the choices of a form: value such as ``member:7`` -> words."""

    names: Names
    choices: Mapping[str, Mapping[str, str]]

    def groups(self) -> list[tuple[str, str, Mapping[str, str]]]:
        """Return the choices that there are, as (code, words, choices)."""
        words = {"Roles": _("Roles"), "Members": _("Members"), "API keys": _("API keys")}
        return [(code, words[code], group) for code, group in self.choices.items() if group]

    def label(self, value: str) -> str:
        """Return the words of a choice, its value where it is unknown."""
        return next((group[value] for group in self.choices.values() if value in group), value)


def subjects_read(*, actor: Actor) -> Subjects:
    """Return the workspace's people and keys by name; two queries.

    Revoked keys keep their name, since grants may still be about them, and are no choice any more.

    Raises:
        Denied: without the right ``tool.manage``.
    """
    actor.require("tool.manage")
    people = Membership.objects.visible_to(actor).order_by("user__email")
    members = {str(pk): str(email) for pk, email in people.values_list("user_id", "user__email")}
    rows = ApiKey.objects.visible_to(actor).order_by("name", "pk")
    keys = {str(row.pk): row for row in rows.only("name", "revoked_at", "expires_at")}
    now = timezone.now()
    live = {pk: row.name for pk, row in keys.items() if is_live(row, now)}
    every = {
        Role.OWNER: _("Every owner"),
        Role.ADMIN: _("Every admin"),
        Role.MEMBER: _("Every member"),
        Role.VIEWER: _("Every viewer"),
    }
    roles = {f"role:{role.value}": every[role] for role in reversed(Role)}
    return Subjects(
        Names(members, {pk: row.name for pk, row in keys.items()}),
        {
            "Roles": {"everyone:": _("Everyone"), **roles},
            "Members": {f"member:{pk}": name for pk, name in members.items()},
            "API keys": {f"api_key:{pk}": name for pk, name in live.items()},
        },
    )


def subject_parse(value: str) -> tuple[str, str]:
    """Return kind and subject of a choice such as ``member:7``. Raises Invalid."""
    kind, colon, subject = value.partition(":")
    is_id = subject.isascii() and subject.isdecimal() and len(subject) < 19
    if (kind == "role" and subject in Role.values) or (kind in ("member", "api_key") and is_id):
        return kind, subject
    if kind == "everyone" and colon and not subject:
        return kind, ""
    raise Invalid(
        "invalid",
        _("Give a role, a member or a key, for example role:viewer or member:7."),
        data={"field": "subject"},
    )


def subject_actor(*, actor: Actor, value: str) -> Actor:
    """Return the actor that a choice stands for, with the rights of this moment.

    Args:
        actor: who asks.
        value: ``role:…``, ``member:<user id>`` or ``api_key:<id>``; "" for the one who asks.

    Raises:
        Denied: it is about somebody else, and the right ``tool.manage`` is missing.
        Invalid, Missing: no such choice; no such member or usable key.
    """
    if not value:
        return actor
    kind, subject = subject_parse(value)
    if kind == "member" and actor.kind == "user" and subject == str(actor.user_id):
        return actor
    actor.require("tool.manage")
    if kind == "role":
        return Actor("user", actor.tenant_id, ROLE_ACTIONS[subject], role=subject, name=f"every {subject}")
    people = Membership.objects.visible_to(actor).select_related("user")
    if kind == "member":
        member = people.filter(user_id=int(subject)).first()
        if member is None:
            raise Missing("member")
        return user_actor(member)
    if kind == "api_key":
        key = ApiKey.objects.visible_to(actor).filter(pk=int(subject)).first()
        if key is None or not is_live(key, timezone.now()):
            raise Missing("key")
        rights = expand_scopes(key.scopes)
        if key.user_id is not None:
            member = people.filter(user_id=key.user_id).first()
            rights &= ROLE_ACTIONS[member.role] if member is not None else frozenset()
        return Actor(
            "api_key", actor.tenant_id, rights, user_id=key.user_id, api_key_id=key.pk, name=key.actor_name
        )
    raise Invalid("invalid", _("Ask about a role, a member or a key."), data={"field": "subject"})


def subject_columns(*, actor: Actor, value: str, subjects: Subjects) -> list[Column]:
    """Return the columns of the matrix: the roles, or those that decide about one member or key."""
    roles = role_columns()
    if not value or value.startswith(("role:", "everyone:")):
        return roles
    kind, subject = subject_parse(value)
    caller = subject_of(subject_actor(actor=actor, value=value))
    shown = [c for c in roles if c.kind == "everyone" or c.subject == caller.role]
    if kind == "api_key" and caller.user_id is not None:
        person = str(caller.user_id)
        alone = Subject(role=caller.role, user_id=caller.user_id)
        shown.append(Column("member", person, subjects.names.members.get(person, person), alone))
    return [*shown, Column(kind, subject, subjects.label(value), caller)]


def is_live(key: ApiKey, now: datetime) -> bool:
    """Tell whether a key can be used: neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
