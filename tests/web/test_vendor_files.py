"""Vendored scripts and fonts are exactly the released files: pinned by hash, each beside its licence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VENDOR, FONTS = ROOT / "static" / "vendor", ROOT / "platform" / "basics" / "papers" / "fonts"


@pytest.mark.parametrize("folder", [VENDOR, FONTS], ids=["vendor", "fonts"])
def test_every_vendored_file_has_its_pinned_hash(folder: Path) -> None:
    hashes = json.loads((folder / "MANIFEST.json").read_text())["sha256"]
    present = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "MANIFEST.json"
    }
    assert present == set(hashes), "a file without a hash, or a hash without a file"
    for name, expected in hashes.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name


def test_every_vendored_folder_carries_a_licence():
    for folder in (FONTS, *(path for path in VENDOR.iterdir() if path.is_dir())):
        assert (folder / "LICENSE").read_text().strip(), folder.name
