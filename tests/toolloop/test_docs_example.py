"""The examples of docs/toolloop.md and docs/toolkit.md run, and print what they should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fake_provider

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


TOOLKIT = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "toolkit.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        (0, ["Acme has two open invoices. ('list_invoices',)"]),
        (1, ['parked approval {"to": "Ann", "amount": 500}', "completed Both are paid."]),
        (2, ["grade=4 reason=None 2"]),
        (
            3,
            [
                "[{'title': 'Wh'}]",
                "[{'title': 'Whisk'}]",
                "[{'title': 'Whisk', 'minutes': 12}, {'title': 'Bake'}]",
                "[{'title': 'Whisk', 'minutes': 12}, {'title': 'Bake', 'minutes': 30}]",
                "[Step(title='Whisk', minutes=12), Step(title='Bake', minutes=30)]",
            ],
        ),
        (4, ["It is 5. 3"]),
        (
            5,
            [
                "0 5 ('stock',) sales",
                "1 5 () sales",
                "There are 12. 12 2",
                "0 5 () sales",
                "{'pieces': 12} 1",
            ],
        ),
        (6, ["Claude has no service tier “flex”. It has: standard, priority."]),
        (
            7,
            [
                "71.36",
                "This power is too large: the most is about 1,200 digits.",
                '{"date": "2026-02-28", "weekday": "Saturday"}',
            ],
        ),
        (8, ["convert False {'USD': 2.16}"]),
        (
            9,
            [
                "You help in a shop. True",
                "The last message is in German: answer in German, and leave names and quotations as they are.",
            ],
        ),
        (
            10,
            [
                "plan The plan is noted: 2 steps.",
                "hts_code 4203.21",
                "duty 14 %",
                "Leather gloves (4203.21): 14 %.",
            ],
        ),
        (11, ["invoke_agent c-1", "chat script-1 c-1", "execute_tool calculate c-1", "chat script-1 c-1"]),
        (12, ['{"day": "2026-11-23", "price": "2.20"}', "so far: row 0;", "so far: row 1;", "row 0; row 1;"]),
        (13, ["p1 Tariff, page 3 {'note': '2 older ones left out'}"]),
    ],
)
def test_toolkit_examples_run(number: int, lines: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOOLKIT[number]],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "platform")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.strip().splitlines()] == lines
    assert len(TOOLKIT) == 15


def test_the_batch_example_runs_against_a_server_of_batches() -> None:
    with fake_provider.running() as (base, _):
        done = subprocess.run(
            [sys.executable, "-c", TOOLKIT[14]],
            capture_output=True,
            text=True,
            timeout=60,
            env={
                "PYTHONPATH": str(ROOT / "platform"),
                "ANTHROPIC_API_KEY": "sk-ant-0123456789",
                "ANTHROPIC_BASE_URL": base.removesuffix("/v1"),
            },
            check=False,
        )
    assert done.returncode == 0, done.stderr
    status, *rows = done.stdout.strip().splitlines()
    assert status == "ended 2 0"
    assert [row.split(" 0.0")[0] for row in rows] == [
        "row-1 Answer to: What is 2 + 2?",
        "row-2 Answer to: What is 3 + 3?",
    ]
