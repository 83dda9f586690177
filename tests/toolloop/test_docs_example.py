"""The example of docs/toolloop.md runs, and prints what the page says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_example_prints_what_the_page_says():
    page = (ROOT / "docs" / "toolloop.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "platform")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip().splitlines()
    assert said == [
        'Let me look. [stock_level: {"pieces": 12}] There are 12 pieces.',
        "completed, 2 model calls",
    ]
    assert all(line in page.replace("\n", " ") for line in said)
