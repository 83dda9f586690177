"""What the nightly comparison of benchmarks calls worse, and that it looks at every result there is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import creep
from tests.walked import each

ROOT = Path(__file__).resolve().parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.mark.parametrize(
    ("name", "before", "after", "crept"),
    [
        ("legs.hybrid.ndcg_at_10", 0.73, 0.725, False),
        ("legs.hybrid.ndcg_at_10", 0.73, 0.71, True),
        ("legs.hybrid.ndcg_at_10", 0.73, 0.80, False),
        ("added_p95_ms", 50, 60, False),
        ("added_p95_ms", 50, 70, True),
        ("added_p95_ms", 2, 6, False),  # five thousandths of a second are noise
        ("total.pages_per_cpu_second_child", 200, 160, True),
        ("pages.?page=1.queries", 11, 12, True),
        ("bars.passed", True, False, True),
        ("bars.passed", False, True, False),
        ("turns", 100, 50, False),
    ],
)
def test_figure_creeps_when_it_is_worse_by_more_than_noise(
    name: str, before: float, after: float, crept: bool
) -> None:
    assert bool(list(creep.creeps({name: before}, {name: after}))) is crept


@each("file", RESULTS)
def test_every_result_has_figures_that_are_compared(file: Path) -> None:
    figures = dict(creep.figures(json.loads(file.read_text(encoding="utf-8"))))
    assert [path for path, value in figures.items() if isinstance(value, bool) or creep.rule_of(path)]


def test_every_benchmark_is_run_at_night() -> None:
    script = (ROOT / "benchmarks" / "nightly.sh").read_text(encoding="utf-8")
    run = {line.split()[1] for line in script.splitlines() if line.startswith("run ")}
    apart = {"figures", "creep", "search_scale_chroma"}  # no benchmarks, or of a library that is not ours
    own = {file.stem for file in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert run == own - apart


@pytest.mark.parametrize("name", ["concurrency", "turn_cost"])
def test_benchmarks_start_as_the_night_runs_them(name: str) -> None:
    """What they share is found both by ``-m`` and by their own path."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"}
    for start in (["-m", f"benchmarks.{name}"], [str(ROOT / "benchmarks" / f"{name}.py")]):
        done = subprocess.run(
            [sys.executable, *start, "--help"], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_comparison_fails_when_something_crept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, p95 in (("before", 50), ("after", 90)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.json").write_text(json.dumps({"at": folder, "p95_ms": p95}))
    assert creep.main(tmp_path / "before", tmp_path / "after") == 1
    assert "CREPT: page p95_ms: 50 -> 90" in capsys.readouterr().out
    assert creep.main(tmp_path / "after", tmp_path / "before") == 0


def test_what_a_busy_machine_measured_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, p95, load in (("quiet", 50, 5.9), ("busy", 90, 18.5)):
        (tmp_path / folder).mkdir()
        told = {"machine": "x86_64, 2 cores", "load": [load, 1, 1], "p95_ms": p95}
        (tmp_path / folder / "page.json").write_text(json.dumps(told))
    assert creep.main(tmp_path / "quiet", tmp_path / "busy") == 0
    assert "busy machine: page" in capsys.readouterr().out
