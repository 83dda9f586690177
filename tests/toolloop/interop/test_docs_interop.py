"""The examples of docs/interop.md run, and print what they should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "interop.md").read_text(), re.DOTALL)
SAID = [
    [
        "Ordered 1 pen. {'pieces': 1}",
        "error The arguments do not fit order: article: expected string, got integer 5. Correct them and call again.",
        "It said HI.",
    ],
    [
        "I look how many pens there are. | stock {'article': 'pen'} | 12",
        "There are 12 pens.",
        "You asked about pens.",
    ],
    [
        "shop__stock False ['article']",
        "{'pieces': 12}",
        "--- accepted",
        "+++ listed now",
        "@@ -4,3 +4,3 @@",
        "   },",
        '-  "description": "What was accepted a month ago.",',
        '+  "description": "Tell how many pieces of an article there are.",',
        '   "inputSchema": {',
        "False",
        "True",
    ],
]


@pytest.mark.parametrize("number", range(len(SAID)))
def test_example_prints_what_it_should(number: int) -> None:
    assert len(EXAMPLES) == len(SAID)
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(ROOT / "platform"), "PATH": os.environ.get("PATH", "")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines() == SAID[number]
