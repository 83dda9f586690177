"""The README and the page of benchmarks claim only what a file shows."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.servers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_figures_are_those_of_the_benchmarks() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/figures.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_it_names_exists() -> None:
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", make, re.MULTILINE), target
    from django.core.management import get_commands

    for command in re.findall(r"manage\.py (\w+)", README):
        assert command in get_commands(), command


def test_five_figures_stay_in_the_readme_and_all_are_on_their_page() -> None:
    rows = {
        name: re.findall(r"^\| .* \| `\w+\.py` \|$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name in ("README.md", "docs/benchmarks.md")
    }
    assert len(rows["README.md"]) == 5
    assert set(rows["README.md"]) < set(rows["docs/benchmarks.md"])
