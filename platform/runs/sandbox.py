"""Code mode for runs: programs signed and bound to their run, and the interpreter's end with the worker's.

Where programs run in pydantic-monty (not on Linux), nothing here may run before a worker forks: its pool does not survive a
fork (see docs/code-mode.md).
"""

from __future__ import annotations

import hmac
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings

from runs.models import Run
from toolloop.tools import Tool

if TYPE_CHECKING:
    from toolloop.code_mode import CodeMode

_PURPOSE = b"groundwork.code-mode-state.v1"


def code_mode_for(run: Run, tools: Iterable[Tool], **options: Any) -> CodeMode:
    """Return code mode for the programs of one run; ``code_mode_for(...).toolset()`` goes to ``run_execute``.

    A program that parks is signed with a key derived from the secret key and goes on only in the same run, in any
    process that has the same secret key.

    Args:
        tools: what programs may call.
        options: further arguments of ``CodeMode``.
    """
    from toolloop.code_mode import CodeMode

    return CodeMode(tools, state_key=state_key(), binding=f"tenant {run.tenant_id}, run {run.pk}", **options)


def state_key() -> bytes:
    """Return the key that signs paused programs, the same in every process of this installation."""
    return hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE, "sha256")


async def sandbox_close() -> None:
    """End the interpreter's processes, where this process has run a program; a worker calls it before it exits."""
    if "toolloop.code_mode" in sys.modules:
        from toolloop.code_mode.default import sandbox_close as close

        await close()
