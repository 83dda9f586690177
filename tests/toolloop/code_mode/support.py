"""What the tests of code mode share: the deterministic tools of the shared cases, and CPython as the judge."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolloop.code_mode import CodeMode, CodeResult
from toolloop.code_mode.backend import SandboxBackend
from toolloop.code_mode.driver import MontyBackend
from toolloop.code_mode.jail.driver import CPythonBackend
from toolloop.tools import Tool, tool

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("SANDBOX_CASES", ROOT.parent / "shared" / "cases" / "sandbox"))
BACKENDS = (CPythonBackend(), MontyBackend())
DECLARED = (ValueError, KeyError, FileNotFoundError)


def cases(name: str) -> list[Any]:
    """Return the shared cases of a file as pytest parameters; one that skips where they are absent."""
    path = CASES / name
    if not path.is_file():
        why = f"{path} is absent; set SANDBOX_CASES"
        return [pytest.param({}, marks=pytest.mark.skip(reason=why))]
    return [pytest.param(case, id=case["id"]) for case in json.loads(path.read_text())]


def fixture_module() -> ModuleType:
    """Load the tools of the shared cases."""
    path = CASES / "tools_fixture.py"
    if not path.is_file():
        pytest.skip(f"{path} is absent; set SANDBOX_CASES")
    spec = importlib.util.spec_from_file_location("sandbox_tools_fixture", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fixture_tools(*, awaited: bool = False) -> list[Tool]:
    functions = fixture_module().TOOLS.values()
    return [tool(_awaited(f) if awaited else f) for f in functions]


def _awaited(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    return wrapped


async def run_case(code: str, *, awaited: bool = False, backend: SandboxBackend | None = None) -> CodeResult:
    tools = fixture_tools(awaited=awaited)
    return await CodeMode(tools, declared_errors=DECLARED, backend=backend).execute(code)


@tool
def get_user(user_id: int) -> dict[str, Any]:
    """Return a user."""
    return {"id": user_id, "name": f"user{user_id}", "mail": None}


@tool
async def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)
