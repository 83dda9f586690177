"""Write a backup, and list those of a place.

The order is what makes a backup right. One session keeps files from being removed, then opens a snapshot; keys of files
and rows are read in that snapshot, the files after it; the manifest comes last, once the session was found to live
still. Whatever ends a backup before that leaves files that count for nothing, and that the next pruning removes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from backups.errors import BackupDamaged, BackupRefused
from backups.kept_keys import KeysUsed, keys_text, keys_used
from backups.manifest import Manifest, Originals, Part, SequenceState, Table, manifest_read, manifest_write
from backups.originals import OriginalsWriter, originals_read
from backups.parts import BackupKey, part_write
from backups.places import NAME, Place, workroom
from backups.priority import thread_yield
from backups.snapshot import RowsWriter, Snapshot, alone, line_check, snapshot
from blobs.stores import store
from tenancy.health import check_migrations, migrations_unknown
from tenancy.version import code_version

_TOLD_EVERY = 500
_CHECKED_EVERY = 50


@dataclass(frozen=True, slots=True)
class Listed:
    """A backup of a place; ``manifest`` is None where it can't be read, and ``problem`` says why."""

    name: str
    manifest: Manifest | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read in the snapshot."""

    versions: tuple[int, str, list[tuple[str, str]]]
    tables: list[Table]
    sequences: list[SequenceState]
    left_out: list[str]
    keys: list[str]
    used: KeysUsed


def backup_keys() -> list[BackupKey]:
    """Return the keys that seal backups here: the first one seals, all open."""
    return [BackupKey.from_text(text) for text in settings.BACKUP_KEYS]


def backup_create(
    url: str, *, is_checked: bool = False, say: Callable[[str], None] = lambda words: None
) -> Manifest:
    """Write a backup of rows, originals and, when it is sealed, the keys of credentials.

    Args:
        url: address of the place.
        is_checked: also read again the originals that the place has already, and replace what was damaged there.
        say: is told how far it is.

    Raises:
        BackupRefused: something is in the way; no backup was written.
        StoreAway: the place, or the store of files, doesn't answer.
    """
    place, began = Place(url), datetime.now(UTC)
    thread_yield()
    _schema_refuse()
    name = f"{began:%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(3)}"
    key = next(iter(backup_keys()), None)
    with alone() as line, workroom() as folder:
        rows = RowsWriter(place, name, key, folder)
        with snapshot(line) as point:
            say(f"Writing {name} to {place.url.partition('?')[0]}")
            read = _read(point, rows, say)
        originals = _originals(place, key, folder, is_checked=is_checked).write(
            read.keys, name, _counter(len(read.keys), say, lambda: line_check(line))
        )
        keys = _keys_write(rows, name, key, folder)
        line_check(line)
        manifest = _manifest(name, began, read, originals, keys, rows.size)
        manifest_write(place, manifest, key)
    return manifest


def _schema_refuse() -> None:
    """Make sure that this code can read all of the database's tables.

    Raises:
        BackupRefused: it is older or newer than the schema.
    """
    found = check_migrations()
    # A worker of the version before stays ready on a newer schema, whose new tables it doesn't know.
    if not found.ok or migrations_unknown():
        raise BackupRefused(
            f"The database belongs to another version than this code ({found.detail}). Write the backup with that version."
        )


def _read(point: Snapshot, rows: RowsWriter, say: Callable[[str], None]) -> _Read:
    keys = [kept.key for kept in store().below("")]
    with point.shared():
        named, used = point.keys_named(keys), keys_used()
    tables = []
    for number, table in enumerate(point.tables, 1):
        tables.append(point.rows_write(number, table, rows))
        if number % 25 == 0 or number == len(point.tables):
            say(f"{number} of {len(point.tables)} tables, {sum(t.rows for t in tables):,} rows")
    return _Read(point.versions(), tables, point.sequences(), point.left_out, named, used)


def _originals(place: Place, key: BackupKey | None, folder: Path, *, is_checked: bool) -> OriginalsWriter:
    known: dict[str, int] = {}
    for name in reversed(place.names()):
        # One that can't be read, by another key or because it is damaged, tells nothing; the next older may.
        with suppress(BackupDamaged, BackupRefused):
            last = manifest_read(place, name, backup_keys())
            known = {one.name: one.stored_size for one in originals_read(place, last, backup_keys())}
            break
    return OriginalsWriter(place, key, folder, known=known, is_checked=is_checked)


def _counter(total: int, say: Callable[[str], None], check: Callable[[], None]) -> Callable[[], None]:
    """Return what counts originals, tells how many are done, and looks now and then whether the session lives still.

    The question also keeps what lies between from ending a session that is quiet for hours.
    """
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done % _CHECKED_EVERY == 0:
            check()
        if done % _TOLD_EVERY == 0 or done == total:
            say(f"{done} of {total} originals")

    return count


def _keys_write(rows: RowsWriter, name: str, key: BackupKey | None, folder: Path) -> Part | None:
    if key is None:
        return None
    written = part_write(folder / "keys", f"backups/{name}/keys.gwp", key, [keys_text()])
    return rows.placed("keys.gwp", folder / "keys", written)


def _manifest(
    name: str, began: datetime, read: _Read, originals: Originals, keys: Part | None, size: int
) -> Manifest:
    postgres, vector, migrations = read.versions
    return Manifest(
        name=name,
        began_at=began.isoformat(),
        ended_at=datetime.now(UTC).isoformat(),
        version=code_version(),
        postgres=postgres,
        vector=vector,
        migrations=migrations,
        tables=read.tables,
        sequences=read.sequences,
        left_out=read.left_out,
        originals=originals,
        key_ids=sorted(read.used.ids),
        secrets=read.used.secrets,
        unreadable=read.used.unreadable[:100],
        keys=keys,
        size=size + originals.part.size,
    )


def backup_list(url: str) -> list[Listed]:
    """Return the backups of a place, the oldest first. Raises StoreAway, BackupRefused."""
    place = Place(url)
    found = []
    for name in place.names():
        try:
            found.append(Listed(name, manifest_read(place, name, backup_keys())))
        except (BackupDamaged, BackupRefused) as error:
            found.append(Listed(name, None, error.message))
    return found


def backup_chosen(place: Place, name: str = "") -> Manifest:
    """Return the manifest of a backup.

    Args:
        name: "" for the newest.

    Raises:
        BackupRefused: there is none.
        BackupDamaged: it isn't what was written.
    """
    names = place.names()
    if name and (not NAME.fullmatch(name) or name not in names):
        raise BackupRefused(f"There is no backup {name} at {place.url.partition('?')[0]}.")
    if not names:
        raise BackupRefused(f"There is no finished backup at {place.url.partition('?')[0]}.")
    return manifest_read(place, name or names[-1], backup_keys())
