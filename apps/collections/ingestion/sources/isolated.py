"""Sources that are read in the limited child process: git repositories and Chroma folders, on the server or in an archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.sources.archives import members_of
from apps.collections.ingestion.sources.base import (
    Budget,
    Entry,
    EntryFailure,
    Item,
    Problem,
    Reason,
    SourceFailure,
    SourceLimits,
    safe_path,
)
from apps.collections.ingestion.sources.chroma import DATABASE
from apps.collections.ingestion.sources.git import is_control_file
from apps.collections.ingestion.types import ReaderLimits
from basics.texts import Told
from basics.texts import gettext as _

_CHROMA_FILES = frozenset(
    {DATABASE, f"{DATABASE}-wal", "index_metadata.pickle", "header.bin", "data_level0.bin"}
)


def isolated_entries(
    action: str,
    path: Path,
    options: Mapping[str, Any],
    *,
    limits: SourceLimits,
    child: ReaderLimits,
    on_fact: Callable[[Mapping[str, Any]], None] = lambda facts: None,
    on_tick: Callable[[], None] | None = None,
) -> Iterator[Item]:
    """Yield what the child finds in a repository or a Chroma folder.

    Args:
        action: ``git`` or ``chroma``.
        path: the folder.
        options: what ``repository_read`` or ``chroma_read`` takes besides.
        limits: what the import may bring.
        child: what the child may cost.
        on_fact: told the commit of a repository.
        on_tick: called at least every half second; what it raises stops the child.

    Raises:
        SourceFailure: it cannot be read.
        ReadFailure: the child ran out of time or memory.
    """
    request = {"action": action, "path": str(path.resolve()), "source_limits": asdict(limits), **options}
    for header, blob in run_child(request, child, on_tick=on_tick):
        if "source_failure" in header:
            raise SourceFailure(header["source_failure"], Told.of(header["message"]))
        if "commit" in header:
            on_fact(header)
        elif "problem" in header:
            where, reason, message, count = header["problem"]
            yield Problem(where, Reason(reason), Told.of(message), int(count))
        elif "entry" in header:
            yield Entry(str(header["entry"]), lambda blob=blob: iter([blob]))  # type: ignore[misc]


def packed_repositories(archive: Path, limits: SourceLimits) -> list[str]:
    """Return the ``.git`` folders in an archive, each with its slash, those nearest to the top first.

    None of one that is damaged or has too many entries: the import of its files says so, and keeps what came before.
    """
    try:
        found = _bases(archive, Budget(limits), "git")
    except SourceFailure:
        return []
    return [base for base in found if base == ".git/" or base.endswith("/.git/")]


def unpacked_folder(
    archive: Path, into: Path, action: str, limits: SourceLimits, base: str | None = None
) -> Path:
    """Unpack what is needed of a packed repository or Chroma folder, and return where it lies.

    Only files of the forms that such folders have are written, under their checked names; no links, no configuration.

    Args:
        base: where it lies in the archive; None looks for it.

    Raises:
        SourceFailure: there is nothing of the kind in the archive, or it is damaged or too large.
    """
    budget = Budget(limits)
    base = _base(archive, budget, action) if base is None else base
    with closing(members_of(archive, budget)) as members:
        for found in members.members():
            if isinstance(found, Problem):
                continue
            name, info = found
            inside = safe_path(name)
            if isinstance(inside, Problem) or not inside.startswith(base):
                continue
            rest = inside[len(base) :]
            if not _is_wanted(rest, action):
                continue
            file = into / rest
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                _write(file, members.read(info))
            except EntryFailure as failure:
                raise SourceFailure(
                    "archive_damaged", _("%(rest)s: %(message)s") % {"rest": rest, "message": failure.message}
                ) from failure
            except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
                raise SourceFailure(
                    "archive_damaged", _("The archive has %(rest)s twice.") % {"rest": rest}
                ) from error
    for folder in ("objects", "refs") if action == "git" else ():
        (into / folder).mkdir(exist_ok=True)  # archives need not hold empty folders
    return into


def _is_wanted(rest: str, action: str) -> bool:
    if action == "git":
        return is_control_file(rest)
    return rest.count("/") <= 1 and PurePosixPath(rest).name in _CHROMA_FILES


def _write(file: Path, blocks: Iterator[bytes]) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        for block in blocks:
            stream.write(block)


def _base(archive: Path, budget: Budget, action: str) -> str:
    """Return the folder of the archive that holds the repository or the database, with its slash, "" for the top."""
    fitting = _bases(archive, budget, action)
    if not fitting:
        what = "git repository (its .git folder, or a bare one)" if action == "git" else DATABASE
        raise SourceFailure("source_missing", _("The archive contains no %(what)s.") % {"what": what})
    budget.entries = 0
    return fitting[0]


def _bases(archive: Path, budget: Budget, action: str) -> list[str]:
    heads: list[str] = []
    objects: set[str] = set()
    marker = "HEAD" if action == "git" else DATABASE
    with closing(members_of(archive, budget)) as members:
        for found in members.members():
            budget.count()
            name = "" if isinstance(found, Problem) else safe_path(found[0])
            if not isinstance(name, str) or not name:
                continue
            folder, _, last = name.rpartition("/")
            if last == marker:
                heads.append(f"{folder}/" if folder else "")
            if "objects/" in name:
                objects.add(name[: name.index("objects/")])
    return sorted(
        (base for base in heads if action != "git" or base in objects), key=lambda base: (len(base), base)
    )
