"""toolloop is a distribution of its own: installed alone, it runs what its README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2] / "platform" / "toolloop"
EXAMPLES = re.findall(r"```python\n(.*?)```", (HOME / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the distribution alone was installed, without the network."""
    folder = tmp_path_factory.mktemp("installed")
    command = (
        "pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target".split()
    )
    subprocess.run([sys.executable, "-m", *command, folder, HOME], check=True, capture_output=True)
    return folder


def _run(installed: Path, program: str) -> subprocess.CompletedProcess[str]:
    # -I: neither this checkout nor PYTHONPATH is searched; other packages come from the environment of the tests.
    program = f"import sys; sys.path.insert(0, {str(installed)!r})\n{program}"
    return subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=installed, check=False
    )


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_of_the_readme_run(installed: Path, number: int) -> None:
    said = _run(installed, EXAMPLES[number])
    assert said.returncode == 0, said.stderr


def test_every_module_comes_along_and_needs_nothing_of_the_platform(installed: Path) -> None:
    def modules(folder: Path) -> set[str]:
        return {str(p.relative_to(folder)) for p in folder.rglob("*.py")}

    assert len(EXAMPLES) == 3
    assert modules(installed / "toolloop") == modules(HOME)
    assert (installed / "toolloop" / "py.typed").exists()
    assert _run(installed, "import toolloop.models as m; m.get_model_info('gpt-5').prices[0]").returncode == 0
    said = _run(
        installed,
        "import importlib, pkgutil, toolloop\n"
        "for found in pkgutil.walk_packages(toolloop.__path__, 'toolloop.'):\n"
        "    if '.sandboxed' not in found.name and '.jail' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "print(sorted({'django', 'basics', 'runs', 'tenancy', 'apps'} & set(sys.modules)))",
    )
    assert (said.returncode, said.stdout) == (0, "[]\n"), said.stderr
