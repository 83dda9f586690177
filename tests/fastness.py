"""Which tests are of the product's rules alone: `make test-fast` runs these, and nothing else is theirs to wait for.

A test is not, when its module or a fixture it uses names a server, a process, the clock, or the commits that
others would see. Said by the text of the modules, so that a new test is in the right run without anybody sorting it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).resolve().parent
_OUTSIDE = re.compile(
    r"""
    tests\.(servers|processes|fake_provider|fake_batches|patience)\b
    | \b(subprocess|socketserver|start_server|uvicorn|websockets|multiprocessing|threading)\b
    | http\.server | \bsocket\b
    | \bmonotonic\b | \bprocess_time\b | \bperf_counter\b | time\.sleep | asyncio\.(sleep|timeout|wait_for)\(
    | transactional_db | transaction=True | lane_threads
    | \b(document_extract|structure_isolated|RapidEngine|ingestion\.scans)\b | \brun_child\(  # in a process of their own
    | shared_data | \brunning\( | \bserving\( | \bStack\( | \bPopen\(
    """,
    re.VERBOSE,
)
_FIXTURES = {"transactional_db", "live_server", "shared_data"}
_MARKS = {"servers", "browser", "shared_data"}


def is_of_rules(item: pytest.Item) -> bool:
    """Say whether a test needs nothing but the code and, at most, a transaction that is never committed."""
    if any(item.get_closest_marker(name) for name in _MARKS) or _names_outside(item.path):
        return False
    info = getattr(item, "_fixtureinfo", None)
    found = (
        {definition.func for group in info.name2fixturedefs.values() for definition in group}
        if info
        else set()
    )
    return not any(_is_outside(fixture) for fixture in found)


@cache
def _names_outside(file: Path) -> bool:
    return bool(_OUTSIDE.search(file.read_text(encoding="utf-8")))


@cache
def _is_outside(fixture: Callable[..., Any]) -> bool:
    file = Path(fixture.__code__.co_filename)
    if not file.is_relative_to(_HERE) or file == _HERE / "conftest.py":
        return fixture.__name__ in _FIXTURES
    return bool(_OUTSIDE.search(inspect.getsource(fixture)))
