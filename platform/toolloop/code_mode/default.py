"""Which sandbox programs run in when the application names none."""

from __future__ import annotations

import sys

from toolloop.code_mode.backend import SandboxBackend
from toolloop.code_mode.jail.zygote import is_possible, zygote_close


def default_backend() -> SandboxBackend:
    """Return CPython in a confined process where this machine can confine one, else the interpreter of pydantic-monty."""
    if is_possible():
        from toolloop.code_mode.jail.driver import CPythonBackend

        return CPythonBackend()
    from toolloop.code_mode.driver import MontyBackend

    return MontyBackend()


async def sandbox_close() -> None:
    """End what runs programs in this process, if anything does; a later program starts it again."""
    zygote_close()
    pool = sys.modules.get("toolloop.code_mode.pool")  # Loads what is not always installed.
    if pool is not None:
        await pool.pool_close()
