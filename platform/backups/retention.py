"""Retention of backups: how many stay, and the removal of older ones with what no backup needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from backups.manifest import manifest_read
from backups.originals import originals_read
from backups.places import Place, manifest_key
from backups.services import backup_keys
from backups.snapshot import alone

UNFINISHED_KEPT = timedelta(days=1)
"""How long files of an unfinished backup stay: another server's may be on the way."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed: names of backups, files of unfinished ones, originals that no backup names any more."""

    backups: list[str]
    unfinished: int
    originals: int


def backup_prune(url: str, *, keep: int) -> Pruned:
    """Remove all backups of a place but the newest, then what no backup needs any more.

    Args:
        keep: how many stay.

    Raises:
        BackupRefused: a backup is being written.
        BackupDamaged: a backup that stays can't be read, so that nobody knows which originals it needs; only
            whole backups were removed then.
        StoreAway: the place doesn't answer.
    """
    if keep < 1:
        raise ValueError("the newest backup always stays")
    place = Place(url)
    with alone():
        names = place.names()
        gone, kept = names[:-keep], names[-keep:]
        for name in gone:
            place.store.remove(manifest_key(name))  # first: what is half removed is no backup
            place.store.remove_below(f"backups/{name}/")
        needed: set[str] = set()
        for name in kept:
            manifest = manifest_read(place, name, backup_keys())
            needed.update(one.name for one in originals_read(place, manifest, backup_keys()))
        before = timezone.now() - UNFINISHED_KEPT
        unfinished = [
            one.key
            for one in place.store.below("backups/")
            if one.key.split("/")[1] not in kept and one.changed_at < before
        ]
        unneeded = [
            one.key
            for one in place.store.below("originals/")
            if one.key.rpartition("/")[2].removesuffix(".gwp") not in needed and one.changed_at < before
        ]
        for key in [*unfinished, *unneeded]:
            place.store.remove(key)
    return Pruned(gone, len(unfinished), len(unneeded))
