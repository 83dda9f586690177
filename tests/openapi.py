"""The committed schema of the API, read once by each process of a run: it is a megabyte of YAML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

COMMITTED = Path(__file__).resolve().parents[1] / "docs" / "openapi.yaml"


@cache
def committed() -> dict[str, Any]:
    """Return the whole document, which nobody changes."""
    return read(COMMITTED.read_bytes())


def read(text: bytes) -> dict[str, Any]:
    """Return a schema in YAML, read by the parser in C: the one in Python takes seconds for it."""
    document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return document
