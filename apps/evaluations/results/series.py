"""Values by row as arrays, and an arm's scores packed into bytes: 100,000 rows are compared without an object for each. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_PACKING = 3


@dataclass(frozen=True, eq=False, slots=True)
class Series:
    """A value for each of some rows.

    Attributes:
        rows: their ids, int64, ascending, each once.
        values: float64, one for each row.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: Mapping[int, float] | Iterable[tuple[int, float]] = ()) -> Self:
        """Return the series of rows with their values, in whatever order they come."""
        known = dict(pairs)
        rows = np.fromiter(known, np.int64, len(known))
        values = np.fromiter(known.values(), np.float64, len(known))
        order = np.argsort(rows, kind="stable")
        return cls(rows[order], values[order])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def mean(self) -> float:
        """Return the mean of the values; there must be one."""
        return float(self.values.mean())

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the values of rows that it has, in their order."""
        return self.values[np.searchsorted(self.rows, rows)]


def common(series: Iterable[Series]) -> NDArray[np.int64]:
    """Return the rows that all series have, ascending."""
    parts = [one.rows for one in series]
    rows = parts[0]
    for other in parts[1:]:
        if not np.array_equal(rows, other):
            rows = np.intersect1d(rows, other, assume_unique=True)
    return rows


@dataclass(slots=True)
class ArmScores:
    """What an arm scored: per score and row the mean over repeats, unscored ones left out.

    Attributes:
        values: score -> its series, 0 to 1.
        repeats: score -> mean of the arm in each repeat.
        authors: score -> who gave it.
        judges: (score, judge who gave it, id of the rubric's version or None).
        unscored: score -> trials without it.
        latency_ms, cost_usd: per row, where known.
        coverage: share of the rows' labelled passages that were still in the documents; None without labels.
    """

    values: dict[str, Series] = field(default_factory=dict)
    repeats: dict[str, list[float]] = field(default_factory=dict)
    authors: dict[str, set[str]] = field(default_factory=dict)
    judges: set[tuple[str, str, int | None]] = field(default_factory=set)
    unscored: dict[str, int] = field(default_factory=dict)
    latency_ms: Series = field(default_factory=Series.of)
    cost_usd: Series = field(default_factory=Series.of)
    coverage: float | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of its scores, sorted."""
        return sorted(self.values)

    @property
    def judged(self) -> set[str]:
        """Return the names of the scores that judges gave."""
        return {name for name, _, _ in self.judges}


def pack(scores: ArmScores) -> bytes:
    """Return scores as bytes (NumPy's npz); ``unpack`` gives them back."""
    arrays: dict[str, Any] = {}
    every = {
        **{f"v{n}": scores.values[name] for n, name in enumerate(scores.names)},
        "latency": scores.latency_ms,
        "cost": scores.cost_usd,
    }
    for name, series in every.items():
        arrays[f"{name}_rows"], arrays[f"{name}_values"] = series.rows, series.values
    facts = {
        "packing": _PACKING,
        "names": scores.names,
        "repeats": scores.repeats,
        "authors": {name: sorted(authors) for name, authors in scores.authors.items()},
        "judges": list(scores.judges),
        "unscored": scores.unscored,
        "coverage": scores.coverage,
    }
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def unpack(data: bytes) -> ArmScores | None:
    """Return packed scores, None for a packing that this version does not know."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        if facts["packing"] != _PACKING:
            return None

        def series(name: str) -> Series:
            return Series(arrays[f"{name}_rows"], arrays[f"{name}_values"])

        return ArmScores(
            values={name: series(f"v{n}") for n, name in enumerate(facts["names"])},
            repeats=facts["repeats"],
            authors={name: set(authors) for name, authors in facts["authors"].items()},
            judges={(name, author, version) for name, author, version in facts["judges"]},
            unscored=facts["unscored"],
            latency_ms=series("latency"),
            cost_usd=series("cost"),
            coverage=facts["coverage"],
        )
