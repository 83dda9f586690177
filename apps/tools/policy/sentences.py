"""Grants in plain words: what a rule says, to whom, and under which conditions. Pure but for the names it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.tools.models import ToolGrant
from runs.deciders import role_label
from runs.models import ApproverKind

_EFFECT = {"allow": "can call", "ask": "can call", "deny": "can't call"}
_ONE = {"any": "", "read_only": ", if it only reads data", "side_effects": ", if it changes data"}
_SUFFIX = {"any": "", "read_only": " that only read data", "side_effects": " that change data"}
_COMPARISONS = {
    "equals": "is {value}",
    "not_equals": "is not {value}",
    "in": "is one of {value}",
    "not_in": "is none of {value}",
    "below": "is below {value}",
    "at_most": "is at most {value}",
    "above": "is above {value}",
    "at_least": "is at least {value}",
    "path_under": "is a path under {value}",
    "matches": "matches the expression {value}",
    "select_only": "is a single SQL statement that only reads",
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
    where = f", about “{grant.collection.name}”" if grant.collection is not None else ""
    conditions = [condition_words(c) for c in conditions_of(grant)]
    when = f", if {' and '.join(conditions)}" if conditions else ""
    if grant.subject_kind != ToolGrant.SubjectKind.MEMBER:  # an address stays as it is written
        who = f"{who[:1].upper()}{who[1:]}"
    after = f", after {_approval_words(grant, names)}" if grant.effect == "ask" else ""
    return f"{who} {_EFFECT[grant.effect]} {target_words(grant)}{where}{when}{after}."


def target_words(grant: ToolGrant) -> str:
    """Return what a grant is about, in words."""
    suffix = _SUFFIX[grant.calls]
    if grant.target_kind == ToolGrant.Target.TOOL:
        return f"“{grant.target}”{_ONE[grant.calls]}"
    if grant.target_kind == ToolGrant.Target.TOOLKIT:
        return f"the tools of the toolkit “{grant.toolkit}”{suffix}"
    if grant.target_kind == ToolGrant.Target.PATTERN:
        every = grant.target == "*"
        return f"all tools{suffix}" if every else f"the tools named “{grant.target}”{suffix}"
    return f"the tools of the group “{grant.target}”{suffix}"


def _approval_words(grant: ToolGrant, names: Names) -> str:
    """Return what has to happen before a call runs, for an effect that asks."""
    if grant.approver_kind == ApproverKind.ROLE:
        return f"{role_label(grant.approver)} approves each call"
    if grant.approver_kind == ApproverKind.MEMBER:
        who = names.members.get(grant.approver, f"member {grant.approver} (who has left)")
        return f"{who} approves each call"
    return "confirming each call"


def subject_words(kind: str, subject: str, names: Names) -> str:
    """Return whom a grant is about, in words."""
    if kind == ToolGrant.SubjectKind.ROLE:
        return f"{subject}s"
    if kind == ToolGrant.SubjectKind.MEMBER:
        return names.members.get(subject, f"member {subject} (has left)")
    if kind == ToolGrant.SubjectKind.API_KEY:
        return f"the key “{names.keys.get(subject, subject)}”"
    return "everyone"


def conditions_of(grant: ToolGrant) -> list[Any]:
    """Return a grant's conditions; what is stored in another form counts as one that cannot be read."""
    return grant.arguments if isinstance(grant.arguments, list) else [grant.arguments]


def condition_words(condition: Any) -> str:
    """Return a condition on arguments in words, for example "amount is at most 100"."""
    kind = condition.get("kind") if isinstance(condition, dict) else None
    if kind == "schema":
        return f"the arguments fit the schema {_shown(condition.get('schema'))}"
    if kind not in _COMPARISONS:
        return f"a condition that cannot be read ({_shown(condition)}), so it denies"
    words = _COMPARISONS[kind].format(value=_shown(condition.get("value")))
    return f"{condition.get('argument')} {words}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"“{value}”"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
