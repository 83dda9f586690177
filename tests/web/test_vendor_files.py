"""Vendored scripts are exactly the released files: pinned by hash, each beside its licence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
MANIFEST = json.loads((VENDOR / "MANIFEST.json").read_text())


def test_every_vendored_file_has_its_pinned_hash():
    present = {
        path.relative_to(VENDOR).as_posix()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "MANIFEST.json"
    }
    assert present == set(MANIFEST["sha256"]), "a file without a hash, or a hash without a file"
    for name, expected in MANIFEST["sha256"].items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == expected, name


def test_every_vendored_folder_carries_a_licence():
    for folder in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert (folder / "LICENSE").read_text().strip(), folder.name
