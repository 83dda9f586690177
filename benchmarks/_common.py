"""Shared by the benchmarks of reading and embedding: where data is and where results go."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def shared_data() -> Path:
    """Find the real documents: GROUNDWORK_SHARED_DATA, or beside the checkout."""
    return Path(os.environ.get("GROUNDWORK_SHARED_DATA", ROOT.parent / "shared" / "data"))


def data_dir() -> Path:
    """Find a place for the local model file: GROUNDWORK_DATA_DIR, or one under the system's temporary folder."""
    default = Path(tempfile.gettempdir()) / "groundwork-benchmarks"
    return Path(os.environ.get("GROUNDWORK_DATA_DIR", default))


def write_result(name: str, result: dict) -> Path:
    """Write one benchmark's numbers with date and machine."""
    target = ROOT / "benchmarks" / "results" / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        **result,
    }
    target.write_text(json.dumps(record, indent=1, default=float) + "\n")
    return target
