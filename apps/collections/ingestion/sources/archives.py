"""Files of an archive as entries of an import: names judged, rules applied, archives inside opened to a limit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from apps.collections.ingestion.sources.base import (
    Budget,
    Entry,
    EntryFailure,
    FolderTally,
    Item,
    Problem,
    Reason,
    Rules,
    SourceFailure,
    SourceLimits,
    safe_path,
    shown,
)
from apps.collections.ingestion.sources.tars import TarMembers
from apps.collections.ingestion.sources.zips import ZipMembers
from basics.texts import gettext as _

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
ARCHIVE_SUFFIXES = (".zip", *_TARS)
_UNREADABLE = (".7z", ".rar", ".tar.zst", ".tzst", ".tar.lz4")


def is_archive(name: str) -> bool:
    """Tell by its name whether a file is an archive that can be opened."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def archive_stem(name: str) -> str:
    """Return an archive's name without its ending."""
    for suffix in sorted(ARCHIVE_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def archive_entries(path: Path, name: str, *, rules: Rules, limits: SourceLimits) -> Iterator[Item]:
    """Yield every file of an archive as an entry or a problem.

    Args:
        path: of the archive.
        name: as its owner calls it; tells in messages what it is.
        rules: what is wanted of it.
        limits: what it may cost.

    Raises:
        SourceFailure: it cannot be read, or not any further.
    """
    budget = Budget(limits)
    with path.open("rb") as stream:
        head = stream.read(262 + 6)
    if name.lower().endswith(_UNREADABLE) or head.startswith((b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")):
        raise SourceFailure(
            "archive_unsupported",
            _("This kind of archive can't be read. Pack the files as .zip or .tar.gz and import that."),
        )
    tally = FolderTally(rules)
    yield from archive_entries_of(path, "", budget, tally, depth=0)
    yield from tally.folders()


def members_of(path: Path, budget: Budget) -> Any:
    """Return what lists and reads the files of an archive, by its first bytes; close it.

    Raises:
        SourceFailure: it is damaged.
    """
    with path.open("rb") as stream:
        head = stream.read(4)
    if head[:2] == b"PK":
        return ZipMembers(path, budget)
    return TarMembers(path, budget)


def archive_entries_of(
    path: Path, prefix: str, budget: Budget, tally: FolderTally, *, depth: int
) -> Iterator[Item]:
    """Yield the files of an archive that is part of something larger.

    Args:
        prefix: goes before their names.
        budget: shared with what it is part of.
        tally: has the rules.
        depth: how many archives it lies in.

    Raises:
        SourceFailure: it cannot be read, or not any further.
    """
    archive = members_of(path, budget)
    seen: set[str] = set()
    try:
        for found in archive.members():
            budget.count()
            if isinstance(found, Problem):
                yield Problem(shown(prefix + found.path), found.reason, found.message)
                continue
            name, info = found
            inside = safe_path(name)
            if isinstance(inside, Problem):
                yield Problem(shown(prefix + inside.path), inside.reason, inside.message)
                continue
            where = prefix + inside
            if where in seen:
                yield Problem(
                    shown(where),
                    Reason.DUPLICATE,
                    _("Another entry in the archive has the same name; only the first one is imported."),
                )
                continue
            seen.add(where)
            refusal, by_folder = tally.refusal(where)
            is_inner = is_archive(where)
            if refusal is not None and not (is_inner and refusal.reason == Reason.BINARY):
                if not by_folder:
                    yield refusal
                continue
            if is_inner:
                yield from _nested(archive, info, where, budget, tally, depth)
                continue
            yield Entry(where, lambda info=info: archive.read(info))  # type: ignore[misc]
    finally:
        archive.close()


def _nested(
    archive: Any, info: Any, where: str, budget: Budget, tally: FolderTally, depth: int
) -> Iterator[Item]:
    if depth >= budget.limits.max_depth:
        yield Problem(
            shown(where),
            Reason.TOO_DEEP,
            _("It is an archive inside %(depth)s others and was not opened. Import it separately.")
            % {"depth": depth + 1},
        )
        return
    with tempfile.NamedTemporaryFile(
        suffix=PurePosixPath(where).suffix, dir=budget.limits.scratch or None
    ) as copy:
        try:
            for block in archive.read(info):
                copy.write(block)
            copy.flush()
            yield from archive_entries_of(Path(copy.name), f"{where}/", budget, tally, depth=depth + 1)
        except EntryFailure as failure:
            yield Problem(shown(where), failure.reason, failure.message)
        except SourceFailure as failure:
            if failure.code != "archive_damaged":
                raise
            yield Problem(shown(where), Reason.DAMAGED, failure.message)
