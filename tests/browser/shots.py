"""Pictures of pages in both sizes and schemes, where ``TEST_SHOTS`` names a folder for them."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page

SHOTS = os.environ.get("TEST_SHOTS", "")


def shot(page: Page, name: str) -> None:
    """Keep pictures of what a person sees, where somebody wants to look at them (``TEST_SHOTS``)."""
    if not SHOTS:
        return
    for size, (width, height) in {"d": (1440, 900), "p": (390, 844)}.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=Path(SHOTS) / f"{name}-{size}-{scheme}.png", animations="disabled")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
