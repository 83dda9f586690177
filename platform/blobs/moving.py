"""Copy everything from one store into another: again and again without harm, each file compared by its hash."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from blobs.errors import BlobMissing
from blobs.keys import is_key
from blobs.leases import content_of, file_digest
from blobs.stores import Store


@dataclass(slots=True)
class Copied:
    """What a copy has done so far.

    Attributes:
        copied, copied_bytes: files that were not there, or not whole.
        there: files that were there.
        replaced: of those copied, the ones in whose place there was something else.
        damaged: keys whose bytes here are not those that the key names; they are left out.
        foreign: names of files here that are no keys, and not ours; they are left out.
        extra: keys that only the target has: deleted here since an earlier copy.
    """

    copied: int = 0
    copied_bytes: int = 0
    there: int = 0
    replaced: int = 0
    damaged: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)


def store_copy(
    source: Store,
    target: Store,
    *,
    is_verified: bool = False,
    is_pruned: bool = False,
    on_progress: Callable[[Copied], None],
) -> Copied:
    """Copy what ``target`` lacks; what was removed from ``source`` meanwhile is passed over.

    Args:
        is_pruned: delete from the target what only it has.
        is_verified: read what is there already too; without it the size must do.

    Raises:
        StoreAway: one of them does not answer.
    """
    done = Copied()
    sizes = {kept.key: kept.size for kept in target.below("")}
    with tempfile.TemporaryDirectory(prefix="groundwork-copy-") as folder:
        here, back = Path(folder) / "here", Path(folder) / "back"
        seen: set[str] = set()
        for kept in source.below(""):
            if not is_key(kept.key):
                done.foreign.append(kept.key)
                continue
            seen.add(kept.key)
            is_there = sizes.get(kept.key) == kept.size
            if is_there and not is_verified:
                done.there += 1
                on_progress(done)
                continue
            here.unlink(missing_ok=True)  # a folder that has taken it shares its bytes
            try:
                source.fetch(kept.key, here)
            except BlobMissing:
                continue
            digest, wanted = file_digest(here), content_of(kept.key)
            if wanted not in ("", digest):
                done.damaged.append(kept.key)
                continue
            if is_there:
                target.fetch(kept.key, back)
                is_there = file_digest(back) == digest
            if is_there:
                done.there += 1
            else:
                target.put(kept.key, here)
                target.fetch(kept.key, back)
                if file_digest(back) != digest:
                    done.damaged.append(kept.key)
                    continue
                done.copied += 1
                done.copied_bytes += kept.size
                done.replaced += kept.key in sizes
            on_progress(done)
        done.extra = sorted(sizes.keys() - seen)
        for key in done.extra if is_pruned else ():
            target.remove(key)
    return done
