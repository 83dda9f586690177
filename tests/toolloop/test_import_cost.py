"""Importing the loop is cheap: no SDK, no Django, no pydantic; checked in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLATFORM = Path(__file__).resolve().parents[2] / "platform"
HEAVY = (
    "openai",
    "anthropic",
    "google.genai",
    "httpx",
    "httpx2",
    "django",
    "rest_framework",
    "psycopg",
    "pydantic",
    "jsonschema",
    "numpy",
    "aiohttp",
    "opentelemetry",
)
MODULES_MOST = 67
CLIENT_MOST = 80
# Warmed with asyncio, which any process that runs the loop has imported anyway.
_PROBE = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
__import__(sys.argv[2], fromlist=["x"])
added = sorted(set(sys.modules) - before)
print(json.dumps({"added": added, "loaded": [m for m in sys.argv[3:] if m in sys.modules]}))
"""


def probe(module: str, *unwanted: str) -> dict[str, Any]:
    command = [sys.executable, "-c", _PROBE, str(PLATFORM), module, *HEAVY, *unwanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "module",
    [
        "toolloop",
        "toolloop.loop",
        "toolloop.tools.builtins",
        "toolloop.tools",
        "toolloop.journal",
        "toolloop.providers.scripted",
        "toolloop.providers.extractive",
        "toolloop.providers.registry",
    ],
)
def test_nothing_heavy_and_not_many_modules_are_loaded(module):
    """What a clock says beside other tests is luck: benchmarks/loop_overhead.py measures the time."""
    found = probe(module)
    assert found["loaded"] == []
    assert len(found["added"]) <= MODULES_MOST, found["added"]


def test_client_loads_no_sdk_no_adapter_and_no_loop_before_its_first_run():
    found = probe(
        "toolloop.client", "toolloop.providers.openai", "toolloop.providers.registry", "toolloop.loop"
    )
    assert found["loaded"] == []
    assert len(found["added"]) <= CLIENT_MOST, found["added"]


def test_tool_definition_does_not_load_pydantic_either():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from typing import TypedDict\n"
        "from toolloop.tools import tool\n"
        "@tool\n"
        "def f(a: int, b: list[str] | None = None) -> str:\n"
        "    'Do it.'\n"
        "    return ''\n"
        "assert 'pydantic' not in sys.modules\n"
        "assert f.parameters['required'] == ['a']\n"
    )
    subprocess.run([sys.executable, "-c", code, str(PLATFORM)], check=True, timeout=60)


def test_public_names_are_loaded_when_they_are_asked_for_and_all_exist():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import toolloop\n"
        "assert [m for m in sys.modules if m.startswith('toolloop.')] == []\n"
        "from toolloop import Limits, tool\n"
        "assert 'toolloop.client' not in sys.modules\n"
        "from toolloop import *\n"
        "assert all(getattr(toolloop, name) is globals()[name] for name in toolloop.__all__)\n"
        "assert not hasattr(toolloop, 'nothing_known')\n"
        "print(*sorted(toolloop.__all__))\n"
    )
    command = [sys.executable, "-c", code, str(PLATFORM)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    source = (PLATFORM / "toolloop" / "__init__.py").read_text()
    declared = [line.split()[-1] for line in source.splitlines() if line.startswith("    from ")]
    assert done.stdout.split() == sorted(declared), "type checkers see other names than there are"
