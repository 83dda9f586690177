"""The index of docs/decisions.md lists each decision with its status."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "decisions.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^## (\d+)\. (.*)\nStatus: (.*)\.$", PAGE, re.MULTILINE)


def anchor(number: str, title: str) -> str:
    """Return the address of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", f"{number}. {title}".lower()).replace(" ", "-")


def test_index_lists_every_decision_with_its_status() -> None:
    listed = re.findall(r"^\| (\d+) \| \[(.*)\]\(#(.*)\) \| (.*) \|$", PAGE, re.MULTILINE)
    assert listed == [(number, title, anchor(number, title), status) for number, title, status in ENTRIES]
    assert len(ENTRIES) == len(re.findall(r"^## \d+\. ", PAGE, re.MULTILINE))


def test_numbers_run_without_a_gap_and_successors_come_later() -> None:
    assert [int(number) for number, _, _ in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    for number, _, status in ENTRIES:
        assert re.match(r"in force|replaced by|taken back", status), number
        for other in re.findall(r"\d+", status):
            assert int(number) < int(other) <= len(ENTRIES), number
