"""What comes along binds nobody who uses us, and what it is can be listed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from email.message import Message
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "requirements" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("licence", "is_free"),
    [
        ("MIT", True),
        ("Apache-2.0 AND BSD-2-Clause", True),
        ("LGPL-3.0-only", True),
        ("GNU Lesser General Public License v3 (LGPLv3)", True),
        ("GNU Library or Lesser General Public License (LGPL)", True),
        ("MIT OR GPL-2.0-or-later", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND GPL-2.0-only", False),
        ("AGPL-3.0-only", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("GNU Affero General Public License v3", False),
        ("GPL-2.0-only OR AGPL-3.0-only", False),
        ("", False),
    ],
)
def test_what_binds_is_told_from_what_does_not(licences: ModuleType, licence: str, is_free: bool) -> None:
    assert licences.is_free(licence) is is_free


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"License-Expression": "MIT", "License": "GPL"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "see LICENSE"}, "BSD License"),
        ({"License": "Apache 2.0\nand a long text"}, "Apache 2.0"),
        ({"License": "UNKNOWN"}, ""),
        ({"Classifier": "Topic :: Text Processing"}, ""),
    ],
)
def test_a_package_says_its_licence_in_one_of_three_ways(
    licences: ModuleType, headers: dict[str, str], found: str
) -> None:
    package = Message()
    for name, value in headers.items():
        package[name] = value
    assert licences.licence_of(package) == found


def test_all_that_is_pinned_is_listed_and_one_that_binds_fails(
    licences: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert licences.main() == 0
    said = capsys.readouterr().out
    names = {name for name, _, _ in licences.pinned()}
    assert {"django", "prometheus-client", "pytest"} <= names
    assert sum(line.split(" ")[0] in names for line in said.splitlines()) > 150
    assert "htmx.org" in said

    real = metadata.metadata

    def planted(name: str) -> object:
        package = Message()
        package["License-Expression"] = "AGPL-3.0-only"
        return package if name == "django" else real(name)

    monkeypatch.setattr(licences.metadata, "metadata", planted)
    assert licences.main() == 1
    assert "Refused: django" in capsys.readouterr().out


def test_an_exception_that_nothing_needs_fails(
    licences: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(licences.ACCEPTED, "django", "of a test")
    assert licences.main() == 1
    assert "django needs no exception" in capsys.readouterr().out


def test_the_list_of_what_a_server_is_made_of(tmp_path: Path, licences: ModuleType) -> None:
    """As `make sbom` writes it: every runtime package with its version and hashes, in CycloneDX."""
    recipe = subprocess.run(
        ["make", "-n", "sbom"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    command = next(line for line in recipe.splitlines() if "sbom.py" in line)
    target = tmp_path / "sbom.json"
    words = command.split()[1:]
    words[words.index("var/sbom.json")] = str(target)
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    made = json.loads(target.read_text())
    assert made["bomFormat"] == "CycloneDX"
    runtime = {(name, version) for name, version, use in licences.pinned() if use == "runtime"}
    listed = {(c["name"], c["version"]): c for c in made["components"]}
    assert set(listed) == runtime
    for component in listed.values():
        assert component["externalReferences"][0]["hashes"], component["name"]


def test_we_say_our_own_licence() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.split("\n")[0].strip() == "Apache License"
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()
