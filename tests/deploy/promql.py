"""Expressions of rules and dashboards, read by the parser of Prometheus's own language (promql-parser)."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "groundwork.json"
COMPARES = {">": operator.gt, "<": operator.lt, "==": operator.eq, ">=": operator.ge, "<=": operator.le}


@dataclass
class Used:
    """What an expression uses.

    Attributes:
        labels: the labels that are asked for, by metric.
        values: the values that a label must have, by metric and label.
        grouped: labels that results are grouped by.
    """

    labels: dict[str, set[str]] = field(default_factory=dict)
    values: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)


@cache
def alerts() -> Mapping[str, Mapping[str, Any]]:
    """Return the rules by their names, read once."""
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found = {rule["alert"]: rule for rule in group["rules"]}
    assert len(found) == len(group["rules"]), "two rules of one name"
    return found


def panels() -> Iterator[tuple[str, str]]:
    """Yield title and expression of each line of the dashboard."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


def used_by(expression: str) -> Used:
    """Return the metrics and labels of an expression; raises ValueError where it is none."""
    used = Used()
    for node in _nodes(promql.parse(expression)):
        if isinstance(node, promql.VectorSelector):
            name = node.name or ""
            labels = used.labels.setdefault(name, set())
            for matcher in node.matchers.matchers:
                labels.add(matcher.name)
                if matcher.op == promql.MatchOp.Equal:
                    used.values.setdefault((name, matcher.name), set()).add(matcher.value)
        elif isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            used.grouped |= set(node.modifier.labels)
    return used


def crosses(alert: str, value: float) -> bool:
    """Tell whether a value of what an alert looks at is beyond the threshold that its rule names."""
    top = promql.parse(alerts()[alert]["expr"])
    assert isinstance(top, promql.BinaryExpr)
    assert isinstance(top.rhs, promql.NumberLiteral)
    return bool(COMPARES[str(top.op)](value, top.rhs.val))


def pending_s(alert: str) -> int:
    """Return for how many seconds it must hold before it is told."""
    text = alerts()[alert].get("for", "0s")
    found = re.fullmatch(r"(\d+)(s|m)", text)
    assert found is not None, text
    return int(found[1]) * (60 if found[2] == "m" else 1)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        below = getattr(node, name, None)
        if below is not None and not isinstance(below, (str, float, int)):
            yield from _nodes(below)
    for below in getattr(node, "args", None) or ():
        yield from _nodes(below)
