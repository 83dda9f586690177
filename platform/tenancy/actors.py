"""Who asks: a person, an API key, or the platform itself, always within one tenant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from basics.errors import Denied
from basics.texts import gettext as _
from tenancy.permissions import ACTIONS, BY_NAME_ALONE, KEY_SCOPES


@dataclass(frozen=True, slots=True)
class Actor:
    """The one value every service and selector takes to decide what is allowed.

    Attributes:
        kind: user, api_key, or system (jobs and commands of an operator).
        tenant_id: the only tenant this actor exists in.
        user_id: the person, or the person on whose behalf a key or job acts; None for the system alone.
        collections: ids of the only collections it may know of; None: all that the person may.
        actions: everything this actor may do; a key's are the intersection of its scopes and its maker's role.
    """

    kind: Literal["user", "api_key", "system"]
    tenant_id: int
    actions: frozenset[str]
    user_id: int | None = None
    api_key_id: int | None = None
    role: str = ""
    collections: frozenset[int] | None = None
    name: str = field(default="", compare=False)

    def can(self, action: str) -> bool:
        """Tell whether the action is allowed; an action that is in no table is a programming error."""
        if action not in ACTIONS:
            raise ValueError(f"unknown action {action!r}")
        return action in self.actions

    def require(self, action: str) -> None:
        """Raise Denied unless the action is allowed."""
        if not self.can(action):
            raise Denied("permission_denied", self._refusal(action), data={"action": action})

    def _refusal(self, action: str) -> str:
        if self.kind != "api_key":
            return _("Your role doesn't allow this (%(action)s). Ask an owner of the workspace.") % {
                "action": action
            }
        if action not in KEY_SCOPES:
            return f"API keys can't do this: the right “{action}” is reserved for people."
        every = f"{action.partition('.')[0]}.*"
        hint = f" (“{every}” does not include it)" if action in BY_NAME_ALONE else ""
        return (
            f"This key can't do this. It needs the scope “{action}”{hint}, and its owner needs the same "
            f"right."
        )


def system_actor(tenant_id: int, user_id: int | None = None) -> Actor:
    """Return the actor of commands and jobs that no person's role limits."""
    return Actor("system", tenant_id, ACTIONS, user_id=user_id, role="system", name="system")


def key_actor_name(name: str, client_id: str) -> str:
    """Return what records call a key, or the application that has it, when it acts."""
    return f"{'app' if client_id else 'key'} {name}"
