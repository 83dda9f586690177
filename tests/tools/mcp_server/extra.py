"""An app with one tool that takes its time and one that changes something."""

from __future__ import annotations

import asyncio

from django.apps import AppConfig

from toolloop.tools import tool


@tool
async def sleep_long() -> str:
    """Sleep for most of a minute."""
    await asyncio.sleep(50)
    return "slept"


@tool(side_effects=True)
async def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: how much.
    """
    return f"paid {amount}"


class ExtraConfig(AppConfig):
    name = "tests.tools.mcp_server"
    label = "mcp_extra"

    def ready(self) -> None:
        from apps.tools.toolset.bundles import Bundle, bundle_register  # needs the models

        bundle_register(Bundle("builtin.extra", lambda: (sleep_long, pay)))
