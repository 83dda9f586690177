"""The example of docs/code-mode.md runs, and prints what the page says it prints."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.toolloop.code_mode.support import ROOT


def test_example_prints_what_the_page_says():
    page = (ROOT / "docs" / "code-mode.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    (says,) = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "platform"), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == says
