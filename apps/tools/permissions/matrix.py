"""The permission matrix: tools and groups by callers, each cell with its effect and the rule that decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _

from apps.tools.models import ToolGrant
from apps.tools.policy.engine import Decision, Effect, Subject, ToolFacts, decide, grants_about
from apps.tools.toolset.rights import tool_rules
from apps.tools.toolset.selectors import grant_list
from tenancy.actors import Actor
from tenancy.models import Role

_ORDER = ["", "allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Column:
    """Who is asked about: a subject as grants name it, and the caller whose decisions its cells show."""

    kind: str
    subject: str
    label: str
    caller: Subject


@dataclass(frozen=True, slots=True)
class Cell:
    """What becomes of a call.

    Attributes:
        column: whose call it is.
        effect: "mixed" for a group whose tools differ.
        rule: the grant that decided, None when nothing is granted; for a group only where one rule decided all.
        why: the decision in words.
        own: the effect stated for just this cell, "" when it is inherited.
        counts: of a group, its tools by effect.
        has_conditions: other grants look at the arguments of calls, so that single calls may end differently.
    """

    column: Column
    effect: Effect | Literal["mixed"]
    rule: ToolGrant | None
    why: str
    own: str
    counts: Mapping[Effect, int]
    has_conditions: bool


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A group of tools, or one tool; ``kind`` and ``target`` are as grants name it."""

    kind: Literal["group", "tool"]
    target: str
    tools: Sequence[ToolFacts]
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows by columns; a row's cells stand in the order of the columns."""

    columns: Sequence[Column]
    rows: Sequence[MatrixRow]


def role_columns() -> list[Column]:
    """Return everyone, and each role from the lowest."""
    roles = [Column("role", value, str(label), Subject(role=value)) for value, label in Role.choices]
    return [Column("everyone", "", _("Everyone"), Subject()), *reversed(roles)]


def permission_matrix(
    *,
    actor: Actor,
    groups: Mapping[str, Sequence[ToolFacts]],
    tools: Sequence[ToolFacts] = (),
    columns: Sequence[Column] | None = None,
    collection: int | None = None,
) -> Matrix:
    """Return the effects of the workspace's grants; a constant number of queries.

    Args:
        groups: a row for each, from the tools of the group.
        tools: a row for each, after the groups.
        columns: everyone and the roles, if not given.
        collection: id of the collection that the calls are about; None for calls about none in particular.

    Raises:
        Denied: without the right ``tool.manage``.
    """
    grants = {grant.pk: grant for grant in grant_list(actor=actor)}
    policy = tool_rules(actor=actor).policy
    shown = role_columns() if columns is None else list(columns)
    own = _own(grants.values(), collection)
    decided: dict[tuple[str, Subject], tuple[Decision, bool]] = {}

    def decision(facts: ToolFacts, caller: Subject) -> tuple[Decision, bool]:
        key = (facts.name, caller)
        if key not in decided:
            about = grants_about(policy, caller, facts, collection)
            found = decide(policy, caller, facts, collection)
            decided[key] = found, any(grant.arguments for grant in about)
        return decided[key]

    def row(kind: Literal["group", "tool"], target: str, facts: Sequence[ToolFacts]) -> MatrixRow:
        cells = [
            _cell(
                column,
                [decision(f, column.caller) for f in facts],
                grants,
                own.get((kind, target, column.kind, column.subject), ""),
            )
            for column in shown
        ]
        return MatrixRow(kind, target, facts, cells)

    rows = [row("group", name, facts) for name, facts in groups.items() if facts]
    return Matrix(shown, rows + [row("tool", facts.name, [facts]) for facts in tools])


def cell_grants(
    grants: Iterable[ToolGrant],
    *,
    target_kind: str,
    target: str,
    subject_kind: str,
    subject: str,
    collection: int | None,
) -> list[ToolGrant]:
    """Return those grants that state the effect of just one cell: of all calls, without conditions and end."""
    key = (target_kind, target, subject_kind, subject)
    return [g for g in grants if _is_plain(g, collection) and _key(g) == key]


def _own(grants: Iterable[ToolGrant], collection: int | None) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for grant in grants:
        if _is_plain(grant, collection):
            key = _key(grant)
            found[key] = max(found.get(key, ""), grant.effect, key=_ORDER.index)
    return found


def _is_plain(grant: ToolGrant, collection: int | None) -> bool:
    return (
        grant.calls == ToolGrant.Calls.ANY
        and not grant.arguments
        and grant.expires_at is None
        and grant.collection_id == collection
    )


def _key(grant: ToolGrant) -> tuple[str, ...]:
    return grant.target_kind, grant.target, grant.subject_kind, grant.subject


def _cell(
    column: Column, found: Sequence[tuple[Decision, bool]], grants: Mapping[int, ToolGrant], own: str
) -> Cell:
    counts = Counter(decision.effect for decision, _ in found)
    rules = {decision.rule for decision, _ in found}
    first = found[0][0]
    return Cell(
        column=column,
        effect=first.effect if len(counts) == 1 else "mixed",
        rule=grants.get(first.rule) if len(rules) == 1 and first.rule is not None else None,
        why=first.why if len(rules) == 1 else "",
        own=own,
        counts=dict(counts),
        has_conditions=any(has for _, has in found),
    )
