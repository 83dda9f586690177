"""Small JSON records and locks in the data directory's ``run/`` folder."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path


def try_lock(descriptor: int) -> bool:
    """Take the exclusive lock of an open file, or say that somebody else holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_record(path: Path) -> dict[str, object] | None:
    """Return a record, or None where there is none (or only a torn one)."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_record(path: Path, value: dict[str, object]) -> None:
    """Write a record in one step."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(path)
