"""The generated client is what the API's schema says, whole and typed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import groundwork_client
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


GENERATED = {"client.py", "models.py"}


@pytest.fixture(scope="module")
def clean_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the client's folder in a checkout as git has it: without what is generated."""
    clone = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / ".gitignore", clone)
    (clone / "docs").mkdir()
    shutil.copy(ROOT / "docs/openapi.yaml", clone / "docs")
    ignored = shutil.ignore_patterns(*GENERATED, "__pycache__")
    shutil.copytree(ROOT / "clients", clone / "clients", ignore=ignored)
    return clone / "clients" / "python"


def _installed(source: Path, folder: Path) -> Path:
    """Build a wheel of what stands in ``source`` without the network, and unpack it into ``folder``."""
    command = (
        "pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir".split()
    )
    subprocess.run([sys.executable, "-m", *command, folder, source], check=True, capture_output=True)
    (wheel,) = folder.glob("groundwork_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "groundwork_client"


def test_wheel_and_sdist_of_a_clean_clone_hold_the_client_of_todays_schema(
    clean_clone: Path, tmp_path: Path
) -> None:
    ours = {p.name: p.read_text() for p in Path(groundwork_client.__file__).parent.glob("*.py")}
    assert set(ours) == GENERATED | {"__init__.py", "transport.py"}
    built = _installed(clean_clone, tmp_path / "wheel")
    assert {p.name: p.read_text() for p in built.glob("*.py")} == ours
    assert (built / "py.typed").exists()
    program = "import groundwork_client as c; print(c.__file__); c.Groundwork('http://127.0.0.1:1', key='k').documents_list"
    said = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(built.parent)},
    )
    assert (said.returncode, said.stdout.strip()) == (0, str(built / "__init__.py")), said.stderr

    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=clean_clone)
    (sdist,) = tmp_path.glob("groundwork_client-*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path / "alone")
    (alone,) = (tmp_path / "alone").iterdir()
    rebuilt = _installed(alone, tmp_path / "again")
    assert {p.name: p.read_text() for p in rebuilt.glob("*.py")} == ours


def test_without_schema_and_client_nothing_is_built(clean_clone: Path, tmp_path: Path) -> None:
    lone = tmp_path / "lone" / "clients" / "python"
    shutil.copytree(clean_clone, lone, ignore=shutil.ignore_patterns(*GENERATED))
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=lone)
    assert done.returncode != 0
    assert "cannot be made" in done.stderr
    assert list(tmp_path.glob("*.whl")) == []


def test_client_and_the_example_of_its_readme_are_typed(tmp_path: Path) -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "clients/python/README.md").read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text("\n".join(shown))
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}/cache"),
        *("-p", "groundwork_client", "-m", "example"),
    ]
    env = {**os.environ, "MYPYPATH": f"{ROOT}/clients/python/src:{tmp_path}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_operation_has_a_method() -> None:
    document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    named = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert len(named) > 100
    assert {n for n in named if not callable(getattr(groundwork_client.Groundwork, n, None))} == set()


def test_version_is_stated_once_in_words_and_once_in_code() -> None:
    text = (ROOT / "clients/python/pyproject.toml").read_text()
    assert f'version = "{groundwork_client.__version__}"' in text
