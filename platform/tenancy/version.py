"""Which version of Groundwork this code is."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from django.conf import settings


@cache
def code_version() -> str:
    """Return the version of this code, "" where it isn't told."""
    try:
        text = (Path(settings.ROOT) / "pyproject.toml").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    return str(tomllib.loads(text)["project"]["version"])
