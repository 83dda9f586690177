"""Licences of every pinned package and of what others made and lies in the repository: `make licences` prints them, and fails on one that would bind those who use Groundwork.

A package says its licence in its own metadata (https://packaging.python.org/en/latest/specifications/core-metadata/), as an
SPDX expression, in words, or by classifiers. GPL and AGPL are refused, LGPL isn't; so is a package that says nothing. What
is here all the same stands in ``ACCEPTED`` with its reason.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = {"base.txt": "runtime", "dev.txt": "development", "langchain.txt": "development"}
VENDORED = {"static/vendor": "browser", "platform/basics/papers/fonts": "runtime"}
"""Folders of what others made and is in the repository -> its use."""
ACCEPTED: dict[str, str] = {
    "promql-parser": "MIT, by the LICENSE file in its wheel; its metadata names none. Only tests use it",
}
"""Packages that would be refused -> why they are here."""

_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)
_BINDS = re.compile(
    r"(?<![A-Za-z])A?GPL|Affero|(?<!Lesser )(?<!Library )General Public License", re.IGNORECASE
)


def pinned() -> Iterator[tuple[str, str, str]]:
    """Yield name, version and use of each pinned package, once; a version for each Python where they differ."""
    seen: set[tuple[str, str]] = set()
    for file, use in FILES.items():
        for name, version in _PINNED.findall((HERE / file).read_text(encoding="utf-8")):
            if (name, version) not in seen:
                seen.add((name, version))
                yield name, version, use


def licence_of(package: metadata.PackageMetadata) -> str:
    """Return what a package says of its licence, in one line; "" where it says nothing."""
    if expressions := package.get_all("License-Expression"):
        return str(expressions[0])
    prefix = "License :: "
    classified = [
        c.rpartition(" :: ")[2]
        for c in package.get_all("Classifier") or []
        if c.startswith(prefix) and c != "License :: OSI Approved"
    ]
    if classified:
        return "; ".join(sorted(classified))
    text = (package.get_all("License") or [""])[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:80] if lines and lines[0].upper() != "UNKNOWN" else ""


def is_free(licence: str) -> bool:
    """Tell whether a licence binds nobody who uses us; of a choice one that does not is enough."""
    choices = re.split(r"\s+OR\s+", licence.strip("()"))
    return bool(licence) and any(not _BINDS.search(choice) for choice in choices)


def main() -> int:
    """Print the report; return 1 when a package is refused."""
    refused, missing, used = [], 0, set()
    for name, version, use in sorted(pinned()):
        try:
            licence = licence_of(metadata.metadata(name))
        except metadata.PackageNotFoundError:  # for another system or another Python
            missing += 1
            continue
        note = ""
        if not is_free(licence):
            note = ACCEPTED.get(name, "REFUSED")
            used.add(name)
            if name not in ACCEPTED:
                refused.append(name)
        sys.stdout.write(
            f"{name:40} {version:16} {use:12} {licence or 'says none'}{note and f'  ({note})'}\n"
        )
    for folder, use in VENDORED.items():
        vendored = json.loads((HERE.parent / folder / "MANIFEST.json").read_text(encoding="utf-8"))
        for package in vendored["packages"]:
            if not is_free(package["licence"]):
                refused.append(package["name"])
            sys.stdout.write(f"{package['name']:40} {'':16} {use:12} {package['licence']}\n")
    sys.stdout.write(f"{missing} packages aren't installed here: they are for other systems.\n")
    for name in ACCEPTED.keys() - used:
        sys.stdout.write(f"{name} needs no exception any more: remove it from requirements/licences.py.\n")
        refused.append(name)
    if refused:
        sys.stdout.write(
            f"Refused: {', '.join(refused)}. Replace them, or say in requirements/licences.py why they stay.\n"
        )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
