"""The generated client is what the API's schema says, whole and typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import groundwork_client
import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_client_is_made_from_the_schema_of_today() -> None:
    command = [sys.executable, str(ROOT / "clients/python/generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or "run 'make client' and commit clients/python"


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
