"""Grants in plain words: what a rule says, to whom, and under which conditions. Pure but for the names it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tools.models import ToolGrant
from runs.approvals.deciders import role_label
from runs.models import ApproverKind

_TARGETS = {
    ("tool", "any"): gettext_lazy("“%(name)s”"),
    ("tool", "read_only"): gettext_lazy("“%(name)s”, if it only reads data"),
    ("tool", "side_effects"): gettext_lazy("“%(name)s”, if it changes data"),
    ("toolkit", "any"): gettext_lazy("the tools of the toolkit “%(name)s”"),
    ("toolkit", "read_only"): gettext_lazy("the tools of the toolkit “%(name)s” that only read data"),
    ("toolkit", "side_effects"): gettext_lazy("the tools of the toolkit “%(name)s” that change data"),
    ("every", "any"): gettext_lazy("all tools"),
    ("every", "read_only"): gettext_lazy("all tools that only read data"),
    ("every", "side_effects"): gettext_lazy("all tools that change data"),
    ("pattern", "any"): gettext_lazy("the tools named “%(name)s”"),
    ("pattern", "read_only"): gettext_lazy("the tools named “%(name)s” that only read data"),
    ("pattern", "side_effects"): gettext_lazy("the tools named “%(name)s” that change data"),
    ("group", "any"): gettext_lazy("the tools of the group “%(name)s”"),
    ("group", "read_only"): gettext_lazy("the tools of the group “%(name)s” that only read data"),
    ("group", "side_effects"): gettext_lazy("the tools of the group “%(name)s” that change data"),
}
_ROLES = {
    "owner": gettext_lazy("owners"),
    "admin": gettext_lazy("admins"),
    "member": gettext_lazy("members"),
    "viewer": gettext_lazy("viewers"),
}
_COMPARISONS = {
    "equals": gettext_lazy("%(argument)s is %(value)s"),
    "not_equals": gettext_lazy("%(argument)s is not %(value)s"),
    "in": gettext_lazy("%(argument)s is one of %(value)s"),
    "not_in": gettext_lazy("%(argument)s is none of %(value)s"),
    "below": gettext_lazy("%(argument)s is below %(value)s"),
    "at_most": gettext_lazy("%(argument)s is at most %(value)s"),
    "above": gettext_lazy("%(argument)s is above %(value)s"),
    "at_least": gettext_lazy("%(argument)s is at least %(value)s"),
    "path_under": gettext_lazy("%(argument)s is a path under %(value)s"),
    "matches": gettext_lazy("%(argument)s matches the expression %(value)s"),
    "select_only": gettext_lazy("%(argument)s is a single SQL statement that only reads"),
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of those whom grants know by id: person or key by id as text."""

    members: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


def grant_sentence(grant: ToolGrant, names: Names) -> str:
    """Return a grant as one sentence, for example "Viewers can call the tools of the group “crm”."

    Args:
        grant: with its toolkit and collection, if it has them.
        names: of the people and keys it may be about.
    """
    who = subject_words(grant.subject_kind, grant.subject, names)
    if grant.subject_kind != ToolGrant.SubjectKind.MEMBER:  # an address stays as it is written
        who = f"{who[:1].upper()}{who[1:]}"
    calls = target_words(grant)
    if grant.collection is not None:
        calls = _("%(tools)s, about “%(collection)s”") % {"tools": calls, "collection": grant.collection.name}
    if conditions := [condition_words(c) for c in conditions_of(grant)]:
        calls = _("%(calls)s, if %(conditions)s") % {
            "calls": calls,
            "conditions": _(" and ").join(conditions),
        }
    if grant.effect == ToolGrant.Effect.DENY:
        return _("%(who)s can't call %(tools)s.") % {"who": who, "tools": calls}
    if grant.effect == ToolGrant.Effect.ALLOW:
        return _("%(who)s can call %(tools)s.") % {"who": who, "tools": calls}
    if grant.approver_kind == ApproverKind.ROLE:
        approver = role_label(grant.approver)
    elif grant.approver_kind == ApproverKind.MEMBER:
        left = _("member %(id)s (who has left)") % {"id": grant.approver}
        approver = names.members.get(grant.approver, left)
    else:
        return _("%(who)s can call %(tools)s, after confirming each call.") % {"who": who, "tools": calls}
    return _("%(who)s can call %(tools)s, after %(approver)s approves each call.") % {
        "who": who,
        "tools": calls,
        "approver": approver,
    }


def target_words(grant: ToolGrant) -> str:
    """Return what a grant is about, in words."""
    kind = grant.target_kind
    if kind == ToolGrant.Target.PATTERN and grant.target == "*":
        kind = "every"
    name = grant.toolkit if kind == ToolGrant.Target.TOOLKIT else grant.target
    return str(_TARGETS[kind, grant.calls]) % {"name": name}


def subject_words(kind: str, subject: str, names: Names) -> str:
    """Return whom a grant is about, in words."""
    if kind == ToolGrant.SubjectKind.ROLE:
        return str(_ROLES.get(subject, f"{subject}s"))
    if kind == ToolGrant.SubjectKind.MEMBER:
        return names.members.get(subject, _("member %(id)s (has left)") % {"id": subject})
    if kind == ToolGrant.SubjectKind.API_KEY:
        return _("the key “%(name)s”") % {"name": names.keys.get(subject, subject)}
    return _("everyone")


def conditions_of(grant: ToolGrant) -> list[Any]:
    """Return a grant's conditions; what is stored in another form counts as one that cannot be read."""
    return grant.arguments if isinstance(grant.arguments, list) else [grant.arguments]


def condition_words(condition: Any) -> str:
    """Return a condition on arguments in words, for example "amount is at most 100"."""
    kind = condition.get("kind") if isinstance(condition, dict) else None
    if kind == "schema":
        return _("the arguments fit the schema %(schema)s") % {"schema": _shown(condition.get("schema"))}
    if kind not in _COMPARISONS:
        return _("a condition that cannot be read (%(condition)s), so it denies") % {
            "condition": _shown(condition)
        }
    return str(_COMPARISONS[kind]) % {
        "argument": condition.get("argument"),
        "value": _shown(condition.get("value")),
    }


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"“{value}”"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
