"""What a backup says about itself: versions, tables with counts and checksums, parts with their hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backups.errors import BackupDamaged, BackupRefused
from backups.parts import BackupKey, part_read, part_write
from backups.places import Place, manifest_key, workroom

FORMAT = 1
_HEX = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"rows/\d{4}-\d{4}\.gwp|originals\.gwp|keys\.gwp")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """One file below the backup's folder.

    Attributes:
        key: below the folder.
        size: in bytes.
        sha256: of the file, in hex.
    """

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table.

    Attributes:
        columns: in the order of the values of each row; those that the database computes aren't among them.
        checksum: the sum of the SHA-256 of each row's text, in hex; it doesn't depend on the order of the rows.
    """

    name: str
    columns: list[str]
    rows: int
    checksum: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class SequenceState:
    """How far a sequence was; it belongs to a column, or stands for itself ("" and "")."""

    name: str
    table: str
    column: str
    value: int
    is_called: bool


@dataclass(frozen=True, slots=True)
class Originals:
    """The originals of a backup.

    Attributes:
        count, size: files, and bytes of them as they were uploaded.
        sent, sent_size: of these, what was not there from an earlier backup, and the bytes that took there.
        missing_count: those that rows named and the store didn't have, or had damaged; they aren't in the backup.
        missing: keys of these, the first hundred.
        part: the list, a JSON array [key, sha256, size, name, stored size] on each line.
    """

    count: int
    size: int
    sent: int
    sent_size: int
    missing_count: int
    missing: list[str]
    part: Part


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup.

    Attributes:
        name: of its folder: when it was begun (UTC), and six random digits.
        began_at, ended_at: ISO 8601, UTC.
        postgres: version number of the server, as ``server_version_num`` has it.
        migrations: app and name of each that was applied.
        left_out: tables of the database that no part of Groundwork knows; they aren't in the backup.
        key_ids: what tells the keys of credentials apart (``backups.kept_keys``).
        secrets: how many stored credentials and second factors there are.
        unreadable: those that no key of the server could read, as table and id, the first hundred.
        keys: the part with these keys, None when the backup isn't sealed.
        size: bytes of all parts of its own, without originals.
    """

    name: str
    began_at: str
    ended_at: str
    version: str
    postgres: int
    vector: str
    migrations: list[tuple[str, str]]
    tables: list[Table]
    sequences: list[SequenceState]
    left_out: list[str]
    originals: Originals
    key_ids: list[str]
    secrets: int
    unreadable: list[str]
    keys: Part | None
    size: int

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    def parts(self) -> list[Part]:
        """Return all parts below its folder."""
        found = [part for table in self.tables for part in table.parts]
        return [*found, self.originals.part, *([self.keys] if self.keys else [])]


def manifest_write(place: Place, manifest: Manifest, key: BackupKey | None) -> None:
    """Place a manifest: from then on there is a backup. Raises StoreAway."""
    where = manifest_key(manifest.name)
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, ensure_ascii=False).encode()
    with workroom() as folder:
        part_write(folder / "manifest", where, key, [text])
        place.put(where, folder / "manifest")


def manifest_read(place: Place, name: str, keys: Sequence[BackupKey]) -> Manifest:
    """Read and check the manifest of a backup.

    Raises:
        BackupDamaged: it isn't what was written.
        BackupRefused: it needs another key, or was written by a newer version.
        StoreAway: the place doesn't answer.
    """
    where = manifest_key(name)
    with workroom() as folder:
        place.fetch(where, folder / "manifest")
        if (folder / "manifest").stat().st_size > _MAX_BYTES:
            raise BackupDamaged(where, "it is larger than any manifest")
        with (folder / "manifest").open("rb") as stream:
            text = b"".join(part_read(stream, where, keys))
    try:
        raw = json.loads(text)
        if raw.pop("format") > FORMAT:
            raise BackupRefused(
                f"{name} was written by a newer version of Groundwork. Install that version, or a later one."
            )
        found = _manifest(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupDamaged(where, f"it can't be read ({type(error).__name__}: {error})"[:200]) from error
    if found.name != name:
        raise BackupDamaged(where, "it belongs to another backup")
    return found


def _manifest(raw: dict[str, Any]) -> Manifest:
    originals = raw.pop("originals")
    keys = raw.pop("keys")
    tables = [_table(one) for one in raw.pop("tables")]
    names = [table.name for table in tables]
    _check(len(set(names)) == len(names), "a table twice")
    return Manifest(
        tables=tables,
        sequences=[_sequence(one) for one in raw.pop("sequences")],
        migrations=[(str(app), str(name)) for app, name in raw.pop("migrations")],
        originals=Originals(part=_part(originals.pop("part")), **originals),
        keys=None if keys is None else _part(keys),
        **raw,
    )


def _table(raw: dict[str, Any]) -> Table:
    found = Table(parts=[_part(one) for one in raw.pop("parts")], **raw)
    _check(all(_NAME.fullmatch(name) for name in (found.name, *found.columns)), "name of a table or column")
    _check(bool(_HEX.fullmatch(found.checksum)) and found.rows >= 0, "checksum of a table")
    return found


def _sequence(raw: dict[str, Any]) -> SequenceState:
    found = SequenceState(**raw)
    names = [name for name in (found.name, found.table, found.column) if name]
    _check(bool(found.name) and all(_NAME.fullmatch(name) for name in names), "name of a sequence")
    return found


def _part(raw: dict[str, Any]) -> Part:
    found = Part(**raw)
    _check(bool(_PART.fullmatch(found.key) and _HEX.fullmatch(found.sha256)), "name or hash of a part")
    return found


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"wrong {what}")
