"""Which sandbox programs run in when the application names none."""

from __future__ import annotations

from toolloop.code_mode.backend import SandboxBackend
from toolloop.code_mode.jail.zygote import is_possible


def default_backend() -> SandboxBackend:
    """Return CPython in a confined process where this machine can confine one, else the interpreter of pydantic-monty."""
    if is_possible():
        from toolloop.code_mode.jail.driver import CPythonBackend

        return CPythonBackend()
    from toolloop.code_mode.driver import MontyBackend

    return MontyBackend()
