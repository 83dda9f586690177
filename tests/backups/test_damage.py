"""One byte that differs, anywhere in a backup, is found; links and names that lead elsewhere are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from backups.errors import BackupDamaged, BackupRefused
from backups.manifest import manifest_read
from backups.parts import part_read, part_write
from backups.places import Place, manifest_key
from backups.reading import files_problems, rows_problems
from backups.services import backup_keys, backup_list
from tests.backups.conftest import SEAL, Installation
from tests.nightly import NIGHTLY

pytestmark = pytest.mark.django_db(transaction=True)

FLIPS = 100 if NIGHTLY else 25
"""In each kind of part."""


def problems(place: Place, name: str, of: str = "") -> list[str]:
    """Return what is found wrong when all of a backup is read, or only parts of a kind."""
    keys = backup_keys()
    try:
        manifest = manifest_read(place, name, keys)
        files = [] if of in ("manifest", "rows") else [*files_problems(place, manifest, keys)]
        return [*files, *([] if of not in ("", "rows") else rows_problems(place, manifest, keys))]
    except (BackupDamaged, BackupRefused) as error:
        return [error.message]


@pytest.mark.parametrize("seal", [[], [SEAL]], ids=["plain", "sealed"])
def test_a_flipped_byte_is_found_in_every_kind_of_part(
    installation: Installation, settings: Any, seal: list[str]
) -> None:
    settings.BACKUP_KEYS = seal
    made = installation.backup()
    place = Place(str(installation.place))
    assert problems(place, made.name) == []
    kinds = {
        "manifest": [installation.place / manifest_key(made.name)],
        "rows": sorted((installation.place / "backups" / made.name / "rows").iterdir()),
        "list of originals": [installation.place / "backups" / made.name / "originals.gwp"],
        "original": sorted(installation.place.glob("originals/*/*")),
    }
    if seal:
        kinds["keys"] = [installation.place / "backups" / made.name / "keys.gwp"]
    assert len(kinds["rows"]) > 15
    assert len(kinds["original"]) == 3
    found = 0
    chosen = random.Random(19)
    for kind, paths in kinds.items():
        for _ in range(FLIPS):
            path = chosen.choice(paths)
            content = path.read_bytes()
            place_of = chosen.randrange(len(content))
            damaged = bytearray(content)
            damaged[place_of] ^= 1 << chosen.randrange(8)
            path.write_bytes(damaged)
            assert problems(place, made.name, kind) != [], f"{kind}: byte {place_of} of {path.name}"
            path.write_bytes(content)
            found += 1
    assert found == FLIPS * len(kinds)
    assert problems(place, made.name) == []


def test_a_part_that_is_gone_or_cut_is_found(installation: Installation) -> None:
    made = installation.backup()
    place = Place(str(installation.place))
    for path in [one for one in sorted(installation.place.rglob("*")) if one.is_file()]:
        content = path.read_bytes()
        path.unlink()
        assert problems(place, made.name) != [], path
        path.write_bytes(content[:-1])
        assert problems(place, made.name) != [], path
        path.write_bytes(content)


def changed(place: Place, backup: str, facts: dict[str, Any]) -> None:
    """Write another manifest as somebody would who can write to the place, and knows the format."""
    path = place.store.here(manifest_key(backup))
    assert path is not None
    with path.open("rb") as stream:
        raw = json.loads(b"".join(part_read(stream, manifest_key(backup), [])))
    raw = {name: facts.get(name, raw[name]) for name in raw} | facts
    path.unlink()
    part_write(path, manifest_key(backup), None, [json.dumps(raw).encode()])


def table_with(made: Any, **facts: Any) -> list[dict[str, Any]]:
    """Return the tables of a manifest as it has them, the first one changed."""
    first, *rest = [asdict(table) for table in made.tables]
    return [{**first, **facts}, *rest]


PART = {"size": 1, "sha256": "0" * 64}


def test_names_that_lead_elsewhere_are_refused(installation: Installation) -> None:
    made = installation.backup()
    place = Place(str(installation.place))
    outside = installation.place.parent / "outside"
    outside.write_bytes(b"not of the backup")
    for facts in (
        {"tables": table_with(made, parts=[{"key": "../../../outside", **PART}])},
        {"tables": table_with(made, parts=[{"key": str(outside), **PART}])},
        {"tables": table_with(made, parts=[{"key": "rows/0001-0001.gwp/../../x", **PART}])},
        {"tables": table_with(made, name='x"; DROP TABLE tenancy_tenant; --')},
        {"tables": table_with(made, columns=["id) FROM PROGRAM 'id'; --"])},
        {"tables": table_with(made, checksum="0")},
        {"keys": {"key": "../keys.gwp", **PART}},
        {"sequences": [{"name": "a;b", "table": "", "column": "", "value": 1, "is_called": True}]},
        {"name": "20200101T000000000000Z-000000"},
    ):
        changed(place, made.name, rewritten(made) | facts)
        with pytest.raises(BackupDamaged):
            manifest_read(place, made.name, [])
    changed(place, made.name, rewritten(made))
    assert manifest_read(place, made.name, []) == made
    changed(place, made.name, {**rewritten(made), "format": 2})
    with pytest.raises(BackupRefused, match="newer version"):
        manifest_read(place, made.name, [])


def rewritten(made: Any) -> dict[str, Any]:
    """Return the facts of a manifest as JSON has them."""
    facts = json.loads(json.dumps(asdict(made)))
    assert isinstance(facts, dict)
    return facts


def links(place: Path, name: str) -> Iterator[tuple[Path, Path]]:
    """Yield what to replace by a link, and what it leads to."""
    backup = place / "backups" / name
    yield backup / "manifest.gwm", backup / "manifest.gwm"
    yield next((backup / "rows").iterdir()), next((backup / "rows").iterdir())
    yield backup / "rows", backup / "rows"
    yield backup, backup
    yield next(place.glob("originals/*/*")), next(place.glob("originals/*/*"))
    yield next(place.glob("originals/*")), next(place.glob("originals/*"))


def test_symbolic_links_are_refused(installation: Installation) -> None:
    made = installation.backup()
    place = Place(str(installation.place))
    away = installation.place.parent / "away"
    for where, what in links(installation.place, made.name):
        what.rename(away)
        where.symlink_to(away)
        assert problems(place, made.name) != [], where
        where.unlink()
        away.rename(where)
    assert problems(place, made.name) == []


def test_a_backup_that_is_renamed_is_another_one(installation: Installation) -> None:
    made = installation.backup()
    folder = installation.place / "backups"
    (folder / made.name).rename(folder / "20990101T000000000000Z-000000")
    listed = backup_list(str(installation.place))
    assert [one.manifest for one in listed] == [None]
    assert "damaged" in listed[0].problem


def test_a_sealed_backup_shows_nothing_without_its_key(installation: Installation, settings: Any) -> None:
    settings.BACKUP_KEYS = [SEAL]
    made = installation.backup()
    for path in installation.place.rglob("*.gw*"):
        content = path.read_bytes()
        assert content.startswith(b"GWPART1\nS"), path
        for word in (b"Tenant-", b"@example.org", b"8539.50.00", b"tenancy_", settings.SECRET_KEY.encode()):
            assert word not in content, path
    names = " ".join(str(path) for path in installation.place.rglob("*"))
    assert installation.document.sha256 not in names
    settings.BACKUP_KEYS = []
    with pytest.raises(BackupRefused, match="no backup key"):
        manifest_read(Place(str(installation.place)), made.name, backup_keys())
    settings.BACKUP_KEYS = ["HwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    with pytest.raises(BackupRefused, match="another key"):
        manifest_read(Place(str(installation.place)), made.name, backup_keys())
    settings.BACKUP_KEYS = ["HwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", SEAL]
    assert problems(Place(str(installation.place)), made.name) == []
