"""Runs whose model writes a program: its calls go to the outside world, and one of them needs a person's word."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from runs.sandbox import code_mode_for
from tests.concurrency.holds import FOLDER, NOTICES
from toolloop.deferred import Approval
from toolloop.tools import tool
from toolloop.tools.tool import Verdict

MODEL = "fake-search1-use_execute_tools"
PROGRAM = "write_note('before 701')\nprint(pay_bill('bill 701'))\nprint(write_note('after 701'))"


def install() -> None:
    """Give runs of that model programs instead of tools; without the environment variable do nothing."""
    if FOLDER not in os.environ:
        return
    from apps.conversations.answering import prepare as answering

    name = "run_execute"  # imported by the module under test; what it calls is looked up there
    execute = getattr(answering, name)

    async def with_programs(ctx: Any, run: Any, *, toolset: Any, **rest: Any) -> Any:
        if run.model.endswith(MODEL):
            toolset = code_mode_for(run, [write_note, pay_bill, pay_invoice]).toolset()
        return await execute(ctx, run, toolset=toolset, **rest)

    setattr(answering, name, with_programs)


@tool(side_effects=True)
async def write_note(text: str) -> str:
    """Write a note; twice would be a mistake.

    Args:
        text: what.
    """
    return _act(text)


@tool(side_effects=True, needs_approval=True)
async def pay_bill(name: str) -> str:
    """Pay a bill, when somebody agrees; twice would be a mistake.

    Args:
        name: which.
    """
    return _act(f"paid {name}")


def _by_an_admin(arguments: Any, context: Any) -> Verdict:
    return Verdict("ask", "a second person looks at invoices", approval=Approval("role", "admin"))


async def _pay_invoice(name: str) -> str:
    """Pay an invoice, when an admin agrees; twice would be a mistake.

    Args:
        name: which.
    """
    return _act(f"paid {name}")


pay_invoice = replace(tool(name="pay_invoice", side_effects=True)(_pay_invoice), permit=_by_an_admin)


def _act(text: str) -> str:
    with (Path(os.environ[FOLDER]) / NOTICES).open("a") as notices:
        notices.write(f"{text}\n")
    return text
