"""Compare two folders of results: what a figure's name says it is decides which way is worse, and how much is noise.

Run: python -m benchmarks.creep BEFORE AFTER. Prints every figure that got worse by more than its tolerance, and ends with
exit code 1 when there is one. Numbers whose names match no rule (counts, seeds, sizes of the input) are not compared;
results that were not measured anew, or on a machine that others kept busy, are named.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """What is worse, and by how much a figure may differ from night to night.

    Attributes:
        name: pattern that is searched in the figure's path (``total.pages_per_cpu_second_child``).
        is_cost: a larger figure is worse; else a smaller one is.
        relative: share of the old figure that is noise.
        absolute: difference that is noise whatever the share, in the figure's own unit.
    """

    name: re.Pattern[str]
    is_cost: bool
    relative: float
    absolute: float

    def is_creep(self, before: float, after: float) -> bool:
        """Say whether the difference is worse than noise."""
        worse = after - before if self.is_cost else before - after
        return worse > max(self.absolute, self.relative * abs(before))


def _rule(name: str, *, is_cost: bool, relative: float, absolute: float) -> Rule:
    return Rule(re.compile(name), is_cost, relative, absolute)


RULES = (
    # What is found and right does not depend on the machine: a hundredth is a change.
    _rule(
        r"ndcg|recall|precision|accuracy|_rate$|cosine_(min|mean)|answer(able)?$|quotes",
        is_cost=False,
        relative=0,
        absolute=0.01,
    ),
    _rule(r"false_|missed|invented|wrong|lost|different$|outside", is_cost=True, relative=0, absolute=0.01),
    _rule(r"good$|kept$|agree$|same$|ready$|completed$", is_cost=False, relative=0.005, absolute=0),
    _rule(r"queries|statements|calls_refused", is_cost=True, relative=0, absolute=0),
    # What the processor does differs little, what a clock shows differs much.
    _rule(r"per_cpu_second|_of_ideal$", is_cost=False, relative=0.15, absolute=0),
    _rule(r"cpu_m?s|cpu_percent", is_cost=True, relative=0.15, absolute=1),
    _rule(r"per_second", is_cost=False, relative=0.3, absolute=0),
    _rule(r"(p50|p95|median)\w*_ms$|_ms(_p50|_p95)?$|\.(p50|p95)$", is_cost=True, relative=0.3, absolute=5),
    _rule(r"_s$|seconds$", is_cost=True, relative=0.3, absolute=1),
    _rule(r"ratio_p(50|95)$", is_cost=True, relative=0.1, absolute=0.05),
    _rule(r"_mb$", is_cost=True, relative=0.15, absolute=5),
)
BUSY = 3
"""Load of a core, over the last minute, from which on the machine did something else besides."""
# One slow moment of the machine decides them, or they say what was asked for.
NOT_COMPARED = re.compile(r"max|slowest|worst|p99|\.n$|load|^at$|model_call_s|ideal_s|kill_every_s|bar")


def figures(value: Any, path: str = "") -> Iterator[tuple[str, float | bool]]:
    """Yield every number and truth value of a result with its path; a list's items go by their names or places."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from figures(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from figures(part, f"{path}.{place}")
    elif isinstance(value, bool | int | float):
        yield path, value


def rule_of(path: str) -> Rule | None:
    """Return the first rule whose name is in the path, None for what is not compared."""
    if NOT_COMPARED.search(path):
        return None
    return next((rule for rule in RULES if rule.name.search(path)), None)


def is_busy(result: Any) -> bool:
    """Tell whether a result says that far more was running than the benchmark itself: its figures are then the machine's."""
    if not isinstance(result, dict) or "load" not in result:
        return False
    cores = re.search(r"(\d+) cores", str(result.get("machine", "")))
    return float(result["load"][0]) > BUSY * int(cores[1] if cores else 1)


def creeps(before: Any, after: Any) -> Iterator[str]:
    """Yield in words what got worse between two results of one benchmark; figures that only one has are passed over."""
    old = dict(figures(before))
    for path, now in figures(after):
        was = old.get(path)
        if was is True and now is False:
            yield f"{path}: was true, is false"
        if was is None or isinstance(was, bool) or isinstance(now, bool):
            continue
        rule = rule_of(path)
        if rule and rule.is_creep(was, now):
            yield f"{path}: {was:g} -> {now:g}"


def main(before: Path, after: Path) -> int:
    """Print what crept and return the exit code."""
    crept = 0
    for file in sorted(before.glob("*.json")):
        old, new = file.read_text(encoding="utf-8"), (after / file.name).read_text(encoding="utf-8")
        if old == new:
            print(f"not measured anew: {file.stem}")
            continue
        results = json.loads(old), json.loads(new)
        if any(map(is_busy, results)):
            print(f"not compared, one of both was measured on a busy machine: {file.stem}")
            continue
        for words in creeps(*results):
            print(f"CREPT: {file.stem} {words}")
            crept += 1
    print(f"{crept} figures got worse by more than their tolerance")
    return 1 if crept else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
