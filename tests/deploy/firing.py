"""Which alerts fire between two answers of ``/metrics``: the rules' own expressions, worked out as Prometheus does.

Only the language that the rules use: selectors, ``rate`` and ``increase``, ``abs``, aggregations, division and comparison.
What isn't known raises, so that a rule in other words isn't taken for one that is quiet. ``moved`` holds a fault to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import promql_parser as promql

from tests.deploy.promql import COMPARES, alerts, crosses, used_by
from tests.exposition import Said, said_here

Labels = frozenset[tuple[str, str]]
Vector = Mapping[Labels, float]
_AGGREGATES: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}


def firing(before: Said, after: Said) -> set[str]:
    """Return the alerts whose condition holds at the second answer, where the first one is what was scraped before."""
    return {name for name, rule in alerts().items() if _worked_out(promql.parse(rule["expr"]), before, after)}


def _worked_out(node: Any, before: Said, after: Said) -> Vector:
    if isinstance(node, promql.VectorSelector):
        return _selected(node, after)
    if isinstance(node, promql.Call):
        return _called(node, before, after)
    if isinstance(node, promql.AggregateExpr):
        return _aggregated(node, _worked_out(node.expr, before, after))
    if isinstance(node, promql.BinaryExpr) and isinstance(node.rhs, promql.NumberLiteral):
        compare, bound = COMPARES[str(node.op)], node.rhs.val
        return {k: v for k, v in _worked_out(node.lhs, before, after).items() if compare(v, bound)}
    if isinstance(node, promql.BinaryExpr) and str(node.op) == "/":
        above, below = (_worked_out(side, before, after) for side in (node.lhs, node.rhs))
        return {k: above[k] / below[k] for k in above.keys() & below.keys() if below[k]}
    raise NotImplementedError(f"{type(node).__name__}: {node}")


def _selected(node: Any, said: Said) -> dict[Labels, float]:
    return {
        labels: value
        for (name, labels), value in said.samples.items()
        if name == node.name and all(_matches(one, dict(labels)) for one in node.matchers.matchers)
    }


def _matches(matcher: Any, labels: Mapping[str, str]) -> bool:
    have = labels.get(matcher.name, "")
    if matcher.op == promql.MatchOp.Equal:
        return have == str(matcher.value)
    if matcher.op == promql.MatchOp.Re:
        return re.fullmatch(matcher.value, have) is not None
    raise NotImplementedError(str(matcher))


def _called(node: Any, before: Said, after: Said) -> Vector:
    name, (given,) = node.func.name, node.args
    if name == "abs":
        return {k: abs(v) for k, v in _worked_out(given, before, after).items()}
    if name not in {"rate", "increase"}:
        raise NotImplementedError(name)
    # A counter is told with its first count here, where a process tells it from its start: before that it was 0.
    was, now = (_selected(given.vector_selector, said) for said in (before, after))
    per = given.range.total_seconds() if name == "rate" else 1
    return {labels: (value - was.get(labels, 0)) / per for labels, value in now.items()}


def _aggregated(node: Any, values: Vector) -> Vector:
    kept = set(node.modifier.labels) if node.modifier is not None else set()
    groups: dict[Labels, list[float]] = {}
    for labels, value in values.items():
        groups.setdefault(frozenset(one for one in labels if one[0] in kept), []).append(value)
    return {labels: _AGGREGATES[str(node.op)](group) for labels, group in groups.items()}


def moved(alert: str, value: Callable[[Said], float], fault: Callable[[], object], *, also: str = "") -> None:
    """A fault moves what an alert looks at past its threshold, where it was not before, and has no other alert fire.

    Args:
        also: another alert that this fault has to raise.
    """
    before = said_here()
    assert not crosses(alert, value(before)), "before"
    fault()
    after = said_here()
    assert crosses(alert, value(after)), value(after)
    found = raised(before, after)
    assert found == {alert, also} - {""}, found


def raised(before: Said, after: Said) -> set[str]:
    """Return the alerts that fire now and did not before; a test process runs no worker, for one."""
    return firing(before, after) - firing(before, before)


def of(name: str, **labels: str) -> Callable[[Said], float]:
    """Return what reads a metric that the rules use."""
    assert any(name in used_by(rule["expr"]).labels for rule in alerts().values()), name
    return lambda said: said.value(name, **labels)


def added(name: str, **labels: str) -> Callable[[Said], float]:
    """Return what reads by how much a counter has grown since now."""
    read, before = of(name, **labels), said_here().value(name, **labels)
    return lambda said: read(said) - before
