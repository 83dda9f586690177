"""Draw the icons of an installed portal from ``static/favicon.svg``, in Chromium: rounded ones, and maskable ones to the edge.

Run: python docs/icons/make.py. It writes static/icons/*.png, which are kept in the repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

STATIC: Final = Path(__file__).resolve().parents[2] / "static"
ROUNDED: Final = {"app-192": 192, "app-512": 512}
FULL: Final = {"app-180": 180, "maskable-192": 192, "maskable-512": 512}
"""Cut out by whoever shows them, so their mark is in the middle 80 % and the ground goes to the edge; app-180 is Apple's."""
_SAFE: Final = 0.8


def main() -> None:
    """Write each icon."""
    mark = (STATIC / "favicon.svg").read_text(encoding="utf-8")
    ground = mark.split('fill="', 1)[1].split('"', 1)[0]
    square = mark.replace('rx="8"', 'rx="0"')
    target = STATIC / "icons"
    target.mkdir(exist_ok=True)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for name, size in (ROUNDED | FULL).items():
            is_full = name in FULL
            inner = round(size * _SAFE) if is_full else size
            page.set_viewport_size({"width": size, "height": size})
            page.set_content(
                f"<body style='margin:0;display:grid;place-items:center;height:100vh;"
                f"background:{ground if is_full else 'transparent'}'>"
                f"<div style='width:{inner}px;height:{inner}px'>{square if is_full else mark}</div>"
            )
            page.screenshot(path=target / f"{name}.png", omit_background=not is_full)
        browser.close()


if __name__ == "__main__":
    main()
