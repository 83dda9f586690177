"""Files in the formats, written and read."""

from __future__ import annotations

from apps.datasets.formats import FORMATS, Card
from apps.datasets.records import record as r

CARD = Card(
    "Tariffs | 2026",
    "3",
    "Questions about tariffs.",
    "ab" * 32,
    3,
    {"CC0-1.0": 2, "": 1},
    {"train": 1, "": 1, "test": 1},
    {"multi_hop": 1, "": 1},
    {"de": 1, "": 2},
    statistics={
        "lengths": {"answer": [1, 2, 30, 400, 5_000]},
        "scores": {"accuracy": {"mean": 0.75, "levels": [0, 0, 0, 1, 0], "unscored": 2}},
        "duplicates": {"checked_at": "2026-11-22T10:00:00+00:00", "counts": {"near": 3}},
    },
)


def written(form, records, tmp_path):
    path = tmp_path / f"export{form.suffix}"
    path.write_bytes(b"".join(form.write(lambda: iter(records), CARD)))
    return path


def rows_of(name, records, tmp_path):
    found = FORMATS[name].read(written(FORMATS[name], records, tmp_path))
    return [row for row in found if isinstance(row, r.Record)]


def read(name, content, tmp_path):
    path = tmp_path / "import"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(FORMATS[name].read(path))
