"""Read a whole backup without a database, and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from backups.errors import BackupDamaged
from backups.loading import part_rows
from backups.manifest import Manifest
from backups.originals import original_open, originals_read
from backups.parts import BackupKey
from backups.places import Place, workroom
from backups.restoring import keys_part_read
from backups.tables import RowSum

_TOLD_EVERY = 500


def files_problems(
    place: Place, manifest: Manifest, keys: list[BackupKey], say: Callable[[str], None] = lambda words: None
) -> Iterator[str]:
    """Yield what is wrong with the originals and the sealed keys of a backup, all of which are read.

    Raises:
        StoreAway: the place doesn't answer.
    """
    count = 0
    try:
        keys_part_read(place, manifest, keys)
        with workroom() as folder:
            for one in originals_read(place, manifest, keys):
                count += 1
                try:
                    if original_open(place, one.name, one.sha256, keys, folder / "original") != one.size:
                        yield f"{one.key}: its size isn't the one that the backup lists."
                except BackupDamaged as error:
                    yield f"{one.key}: {error.message} Or bring it again: python manage.py backup create --check"
                if count % _TOLD_EVERY == 0:
                    say(f"{count} of {manifest.originals.count} originals")
    except BackupDamaged as error:
        yield error.message
        return
    if count != manifest.originals.count:
        yield f"It lists {count} originals and says that it has {manifest.originals.count}."


def rows_problems(place: Place, manifest: Manifest, keys: list[BackupKey]) -> Iterator[str]:
    """Yield what is wrong with the rows of a backup, all of which are read. Raises StoreAway."""
    for table in manifest.tables:
        found = RowSum()
        try:
            for row in part_rows(place, manifest, table, keys):
                found.add(row)
        except BackupDamaged as error:
            yield error.message
            continue
        if (found.rows, found.checksum) != (table.rows, table.checksum):
            yield f"{table.name}: its rows aren't those that were backed up."
