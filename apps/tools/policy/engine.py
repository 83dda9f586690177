"""The policy engine: grants, a call, and what becomes of it. Pure: no database, no clock of its own. Deny beats Ask, Ask beats Allow. Anything without a rule is denied. A grant that cannot be understood denies what it is about,
so that neither a typing mistake nor a newer version's grant ever opens anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from apps.tools.policy.conditions import Check, Unevaluable, conditions_compile
from toolloop.deferred import SELF, Approval

Effect = Literal["allow", "ask", "deny"]
EVERYONE = "everyone"
_STRENGTH: Mapping[str, int] = {"allow": 1, "ask": 2, "deny": 3}
# A second person holds back more than the person who asked.
_APPROVERS: Mapping[str, int] = {"self": 0, "role": 1, "member": 1}


@dataclass(frozen=True, slots=True)
class Subject:
    """Who calls: a role and a person, and a key where one is used on the person's behalf."""

    role: str = ""
    user_id: int | None = None
    api_key_id: int | None = None

    def names(self) -> frozenset[str]:
        """Return what grants may call this subject by."""
        found = {EVERYONE}
        if self.role:
            found.add(f"role:{self.role}")
        if self.user_id is not None:
            found.add(f"member:{self.user_id}")
        if self.api_key_id is not None:
            found.add(f"api_key:{self.api_key_id}")
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What grants may ask about a tool. ``group`` is dotted: a grant for ``crm`` covers ``crm.contacts``."""

    name: str
    group: str = ""
    side_effects: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule, as stored.

    Attributes:
        id: names it in decisions.
        effect: allow, ask or deny.
        target_kind: tool, group, pattern (of names, ``*`` stands for any text) or toolkit.
        target: the tool's name, the group or the pattern.
        members: names of the tools, for a toolkit.
        calls: any, read_only or side_effects: which tools of the target.
        subject_kind: everyone, role, member or api_key; ``subject`` is the role or the id.
        collection_id: the collection the call must be about; None for all, and for calls about none.
        arguments: conditions, see ``apps.tools.policy.conditions``.
        expires_at: when it ends to apply.
        note: said in the decision.
        approval: who approves the calls that an asking grant is about.
    """

    id: int
    effect: str
    target_kind: str
    target: str = ""
    members: frozenset[str] = frozenset()
    calls: str = "any"
    subject_kind: str = EVERYONE
    subject: str = ""
    collection_id: int | None = None
    arguments: Any = field(default_factory=list)
    expires_at: datetime | None = None
    note: str = ""
    approval: Approval = SELF


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a call.

    Attributes:
        rule: id of the grant that decided, None when nothing was granted.
        approval: who approves it, when the effect is ask.
    """

    effect: Effect
    rule: int | None
    why: str
    approval: Approval = SELF

    @property
    def strength(self) -> tuple[int, int]:
        """How much it holds back: of several decisions about one call the strongest counts."""
        return _STRENGTH[self.effect], _APPROVERS[self.approval.approver_kind]


_Order = tuple[
    int, int, int
]  # the strongest effect first, then the strictest approver, then the oldest grant


@dataclass(frozen=True, slots=True)
class _Rule:
    grant: Grant
    effect: Effect
    order: _Order
    who: str  # "" is everyone, for a grant whose subject is not understood
    check: Check | None
    problem: str


class Policy:
    """Grants made ready to decide many calls; immutable. Make it with ``policy_compile``."""

    __slots__ = ("_all", "_by_group", "_by_tool", "_patterns")

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._by_tool: dict[str, list[_Rule]] = {}
        self._by_group: dict[str, list[_Rule]] = {}
        self._patterns: list[_Rule] = []
        self._all: list[_Rule] = []
        for rule in sorted(rules, key=lambda rule: rule.order):
            grant = rule.grant
            if grant.target_kind == "tool":
                self._by_tool.setdefault(grant.target, []).append(rule)
            elif grant.target_kind == "toolkit":
                for name in grant.members:
                    self._by_tool.setdefault(name, []).append(rule)
            elif grant.target_kind == "group":
                self._by_group.setdefault(grant.target, []).append(rule)
            elif grant.target_kind == "pattern":
                self._patterns.append(rule)
            else:
                self._all.append(rule)

    def rules_about(self, tool: ToolFacts) -> Iterator[list[_Rule]]:
        """Return the rules whose target covers a tool, in lists that begin with the strongest."""
        if self._all:
            yield self._all
        if found := self._by_tool.get(tool.name):
            yield found
        group = tool.group if self._by_group else ""
        while group:
            if found := self._by_group.get(group):
                yield found
            group = group.rpartition(".")[0]
        if self._patterns:
            yield [r for r in self._patterns if glob_matches(r.grant.target, tool.name)]


def policy_compile(grants: Iterable[Grant], *, now: datetime) -> Policy:
    """Return the policy of some grants; those that have expired by ``now`` are left out."""
    return Policy(_rule(grant) for grant in grants if grant.expires_at is None or grant.expires_at > now)


def decide(
    policy: Policy,
    subject: Subject,
    tool: ToolFacts,
    collection: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    now: datetime | None = None,
) -> Decision:
    """Decide about one call, or whether a tool may be offered at all.

    Args:
        collection: the collection the call is about; None when it is about none.
        arguments: JSON values that have been checked against the tool's schema. None asks about offering: conditional
            grants that allow or ask then count, since some call may meet them, and conditional ones that deny do not.
        now: grants that have expired since they were compiled no longer apply; None applies them still.
    """
    names = _names(subject)
    best: _Rule | None = None
    for rules in policy.rules_about(tool):
        for rule in rules:
            if arguments is None and best is not None and rule.order >= best.order:
                break  # The rest are weaker. At a call all are tried: what cannot be evaluated denies.
            if not _concerns(rule, names, tool, collection, now):
                continue
            applied = _applied(rule, arguments)
            if applied is not None and (best is None or applied.order < best.order):
                best = applied
    if best is None:
        return Decision("deny", None, "no rule allows this call")
    approval = best.grant.approval if best.effect == "ask" else SELF
    return Decision(best.effect, best.grant.id, best.problem or _why(best), approval)


def decide_all(
    policy: Policy,
    subject: Subject,
    tool: ToolFacts,
    collections: Collection[int],
    arguments: Mapping[str, Any] | None = None,
    *,
    now: datetime | None = None,
) -> Decision:
    """Decide about a call that is about several collections: the strongest decision counts."""
    decisions = (
        decide(policy, subject, tool, collection, arguments, now=now)
        for collection in (collections or (None,))
    )
    return max(decisions, key=lambda d: d.strength)


def grants_about(
    policy: Policy, subject: Subject, tool: ToolFacts, collection: int | None = None
) -> list[Grant]:
    """Return the grants that calls of a tool by a subject are held against, conditional ones too, strongest first."""
    names = _names(subject)
    rules = [
        rule
        for rules in policy.rules_about(tool)
        for rule in rules
        if _concerns(rule, names, tool, collection, None)
    ]
    return [rule.grant for rule in sorted(rules, key=lambda rule: rule.order)]


def _rule(grant: Grant) -> _Rule:
    problem, check = "", None
    if grant.effect not in _STRENGTH:
        problem = f"unknown effect {grant.effect!r}"
    if grant.target_kind not in ("tool", "group", "pattern", "toolkit"):
        problem = f"unknown target {grant.target_kind!r}"
    if grant.calls not in ("any", "read_only", "side_effects"):
        problem = f"unknown kind of calls {grant.calls!r}"
    who = f"{grant.subject_kind}:{grant.subject}"
    if grant.subject_kind == EVERYONE:
        who = EVERYONE
    elif grant.subject_kind not in ("role", "member", "api_key"):
        problem, who = f"unknown subject {grant.subject_kind!r}", ""
    if grant.approval.approver_kind not in _APPROVERS:
        problem = f"unknown approver {grant.approval.approver_kind!r}"
    if grant.arguments != []:
        try:
            check = conditions_compile(grant.arguments, needs_all=grant.effect == "allow")
        except Unevaluable as error:
            problem = str(error)
    effect: Effect = "deny" if problem else grant.effect  # type: ignore[assignment]
    if problem:
        problem = f"rule {grant.id} cannot be read: {problem}"
    return _Rule(grant, effect, _order(effect, grant), who, check, problem)


def _concerns(
    rule: _Rule, names: frozenset[str], tool: ToolFacts, collection: int | None, now: datetime | None
) -> bool:
    grant = rule.grant
    if rule.who and rule.who not in names:
        return False
    if grant.collection_id is not None and grant.collection_id != collection:
        return False
    if grant.calls == "read_only" and tool.side_effects:
        return False
    if grant.calls == "side_effects" and not tool.side_effects:
        return False
    return now is None or grant.expires_at is None or grant.expires_at > now


@lru_cache(maxsize=256)
def _names(subject: Subject) -> frozenset[str]:
    return subject.names()


def _applied(rule: _Rule, arguments: Mapping[str, Any] | None) -> _Rule | None:
    """Return the rule if its conditions hold, or one that denies if that cannot be told."""
    if rule.check is None:
        return rule
    if arguments is None:
        return None if rule.effect == "deny" else rule
    try:
        return rule if rule.check(arguments) else None
    except Unevaluable as error:
        problem = f"rule {rule.grant.id} cannot be evaluated: {error}"
        return replace(rule, effect="deny", order=_order("deny", rule.grant), problem=problem)


def _why(rule: _Rule) -> str:
    verb = {"allow": "allows", "ask": "asks about", "deny": "denies"}[rule.effect]
    note = f": {rule.grant.note}" if rule.grant.note else ""
    return f"rule {rule.grant.id} {verb} this call{note}"


def _order(effect: Effect, grant: Grant) -> _Order:
    stricter = _APPROVERS[grant.approval.approver_kind] if effect == "ask" else 0
    return -_STRENGTH[effect], -stricter, grant.id


def glob_matches(pattern: str, name: str) -> bool:
    """Tell whether a name fits a pattern in which ``*`` stands for any text; takes linear time, unlike an expression."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
