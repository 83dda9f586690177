"""Restore a backup into an empty database and, unless only rows are wanted, an empty store of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from django.core.management import call_command

from backups.errors import BackupDamaged, BackupRefused
from backups.kept_keys import keys_restore
from backups.loading import empty_refuse, fresh_line, rows_load, schema_make, schema_refuse
from backups.manifest import Manifest
from backups.originals import Original, original_restore, originals_read
from backups.parts import BackupKey, part_read
from backups.places import Place, workroom
from backups.services import backup_chosen, backup_keys
from blobs.leases import file_digest
from blobs.stores import store

_after: list[Callable[[], None]] = []
_erasing: list[tuple[Callable[[str], object], Callable[[str], str]]] = []
_TOLD_EVERY = 500


def after_restore(hook: Callable[[], None]) -> None:
    """Have it called once rows are restored, to make what no migration makes; at start-up, by an app that has some."""
    if hook not in _after:
        _after.append(hook)


def after_rows(check: Callable[[str], object], take_away: Callable[[str], str]) -> None:
    """Have what rows must not bring back taken away before a restore ends; at start-up.

    Args:
        check: called with the place's address before anything is restored; what it raises ends the restore.
        take_away: called with it when the rows are there; returns what it did, in a sentence, or "".
    """
    if (check, take_away) not in _erasing:
        _erasing.append((check, take_away))


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored; ``brought`` counts the originals that weren't there already."""

    manifest: Manifest
    brought: int
    keys: str


def backup_restore(
    url: str,
    *,
    name: str = "",
    has_files: bool = False,
    without_credentials: bool = False,
    say: Callable[[str], None] = lambda words: None,
) -> Restored:
    """Restore a backup where the settings point to.

    Files come first and rows last, in one transaction: whatever ends it before leaves an empty database, and the
    same command continues.

    Args:
        name: of the backup, "" for the newest.
        has_files: the store has files already, of this installation; each is compared, and brought where it differs.
        without_credentials: go on where this server's keys can't read the credentials.

    Raises:
        BackupRefused: something is in the way; the message says what.
        BackupDamaged: the backup isn't what was written.
        StoreAway: a place doesn't answer.
    """
    place, keys = Place(url), backup_keys()
    manifest = backup_chosen(place, name)
    say(f"Restoring {manifest.name}: {manifest.rows:,} rows, {manifest.originals.count:,} originals")
    schema_refuse(manifest)
    with fresh_line() as line:
        empty_refuse(line)
    for check, _ in _erasing:
        check(place.url)
    originals = list(originals_read(place, manifest, keys))
    if not has_files:
        _store_refuse({one.key for one in originals})
    told = (
        "" if without_credentials else keys_restore(keys_part_read(place, manifest, keys), manifest.key_ids)
    )
    is_older = schema_make(manifest)
    brought = _originals_bring(place, originals, keys, say)
    rows_restore(place, manifest, keys, is_older=is_older, say=say)
    for _, take_away in _erasing:
        if done := take_away(place.url):
            say(done)
    for hook in _after:
        hook()
    return Restored(manifest, brought, told)


def rows_restore(
    place: Place,
    manifest: Manifest,
    keys: list[BackupKey],
    *,
    is_older: bool,
    on_loaded: Callable[[psycopg.Connection[Any]], None] = lambda line: None,
    say: Callable[[str], None],
) -> None:
    """Load the rows into the schema that ``schema_make`` made, and bring it to that of this code.

    Args:
        is_older: what ``schema_make`` returned.
        on_loaded: called with a session of the owner, while the schema is still the backup's.
    """
    with fresh_line() as line:
        rows_load(line, place, manifest, keys, say)
        on_loaded(line)
        line.execute("ANALYZE")
    if is_older:
        call_command("migrate", verbosity=0, interactive=False)


def _store_refuse(wanted: set[str]) -> None:
    for kept in store().below(""):
        if kept.key not in wanted:
            raise BackupRefused(
                f"There are files already where they would be restored, for example {kept.key}. Name an empty folder or "
                "bucket by GROUNDWORK_FILES_URL or GROUNDWORK_DATA_DIR; if they are those of this installation, add "
                "--files-in-place."
            )


def keys_part_read(place: Place, manifest: Manifest, keys: list[BackupKey]) -> bytes | None:
    """Return the keys of credentials that a sealed backup has, None of one that has none. Raises BackupDamaged."""
    if manifest.keys is None:
        return None
    where = f"backups/{manifest.name}/{manifest.keys.key}"
    with workroom() as folder:
        place.fetch(where, folder / "keys")
        if file_digest(folder / "keys") != manifest.keys.sha256:
            raise BackupDamaged(where, "it isn't the file that the manifest names")
        with (folder / "keys").open("rb") as stream:
            return b"".join(part_read(stream, where, keys))


def _originals_bring(
    place: Place, originals: list[Original], keys: list[BackupKey], say: Callable[[str], None]
) -> int:
    brought = 0
    target = store()
    with workroom() as folder:
        for number, one in enumerate(originals, 1):
            brought += original_restore(place, one, keys, target, folder)
            if number % _TOLD_EVERY == 0 or number == len(originals):
                say(f"{number} of {len(originals)} originals")
    return brought
