"""Folders on the server, below those that the operator allows; walked by file descriptor, so that no link leads out."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from apps.collections.ingestion.sources.archives import archive_entries_of, is_archive
from apps.collections.ingestion.sources.base import (
    BLOCK,
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
from basics.texts import gettext as _

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_DEPTH = 60  # one descriptor is open per level
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR)


def folder_open(path: str, allowed: Sequence[Path]) -> int:
    """Open a folder of the server and return its descriptor; the caller closes it.

    Args:
        path: absolute, as somebody typed it.
        allowed: folders of the operator; the path must be one of them or below one.

    Raises:
        SourceFailure: ``path_not_allowed``, or ``path_missing``. Below an allowed folder no link is followed.
    """
    pure = PurePosixPath(path)
    refusal = SourceFailure(
        "path_not_allowed",
        _(
            "This path isn't inside a folder that the operator has opened for imports "
            "(GROUNDWORK_IMPORT_PATHS)."
        )
        if allowed
        else _("The operator hasn't opened any server folder for imports (GROUNDWORK_IMPORT_PATHS)."),
        status=403,
    )
    if not pure.is_absolute() or ".." in pure.parts or "\x00" in path:
        raise refusal
    roots = [root for root in allowed if pure.is_relative_to(root)]
    if not roots:
        raise refusal
    root = max(roots, key=lambda one: len(one.parts))
    try:
        # The operator's own path may well lead through links.
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _missing(path) from error
    for part in pure.relative_to(root).parts:
        try:
            inner = os.open(part, _DIRECTORY, dir_fd=descriptor)
        except OSError as error:
            raise (refusal if error.errno == errno.ELOOP else _missing(path)) from error
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _missing(path: str) -> SourceFailure:
    return SourceFailure(
        "path_missing",
        _("There is no folder %(path)s that this server can read.") % {"path": shown(path)},
        status=404,
    )


def folder_entries(descriptor: int, *, rules: Rules, limits: SourceLimits) -> Iterator[Item]:
    """Yield every file below an open folder as an entry or a problem, by name; archives are opened.

    Args:
        descriptor: from ``folder_open``; stays the caller's.
    """
    budget = Budget(limits)
    yield from _walk(descriptor, "", rules, budget, depth=0)


def _walk(folder: int, prefix: str, rules: Rules, budget: Budget, *, depth: int) -> Iterator[Item]:
    with os.scandir(folder) as listing:
        names = sorted(entry.name for entry in listing)
    for name in names:
        budget.count()
        where = safe_path(prefix + name)
        if isinstance(where, Problem) or "\\" in name:
            message = _("The name has characters that a document's path can't have.")
            yield (
                where
                if isinstance(where, Problem)
                else Problem(shown(prefix + name), Reason.BAD_NAME, message)
            )
            continue
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            yield _unreadable(where, error)
            continue
        if stat.S_ISDIR(facts.st_mode):
            yield from _folder(folder, name, where, rules, budget, depth)
        elif (problem := _problem(where, facts)) is not None:
            yield problem
        else:
            yield from _file(folder, name, where, rules, budget)


def _folder(parent: int, name: str, where: str, rules: Rules, budget: Budget, depth: int) -> Iterator[Item]:
    refusal = rules.folder_refusal(where)
    if refusal is not None:
        yield refusal
        return
    if depth >= _MAX_DEPTH:
        yield Problem(
            shown(f"{where}/"),
            Reason.TOO_DEEP,
            _("More than %(max_depth)s folders deep.") % {"max_depth": _MAX_DEPTH},
        )
        return
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        yield _unreadable(where, error)
        return
    try:
        yield from _walk(inner, f"{where}/", rules, budget, depth=depth + 1)
    finally:
        os.close(inner)


def _problem(where: str, facts: os.stat_result) -> Problem | None:
    if stat.S_ISLNK(facts.st_mode):
        return Problem(
            shown(where), Reason.LINK, _("It is a symbolic link; only what links point to is imported.")
        )
    if not stat.S_ISREG(facts.st_mode):
        return Problem(shown(where), Reason.SPECIAL, _("It isn't a regular file (a device, pipe or socket)."))
    if facts.st_nlink > 1:
        return Problem(
            shown(where),
            Reason.LINK,
            _(
                "The file has another name elsewhere (a hard link), which may be outside this folder. "
                "Copy the file."
            ),
        )
    return None


def _unreadable(where: str, error: OSError) -> Problem:
    if error.errno in _LINK_ERRORS:
        return Problem(shown(where), Reason.LINK, _("It became a link while it was being checked."))
    why = error.strerror or type(error).__name__
    return Problem(shown(where), Reason.UNREADABLE, _("The server cannot read it (%(why)s).") % {"why": why})


def _file(folder: int, name: str, where: str, rules: Rules, budget: Budget) -> Iterator[Item]:
    refusal = rules.file_refusal(where)
    is_inner = is_archive(name)
    if refusal is not None and not (is_inner and refusal.reason == Reason.BINARY):
        yield refusal
        return
    if not is_inner:
        yield Entry(where, lambda: _blocks(folder, name, budget))
        return
    if budget.limits.max_depth < 1:
        yield Problem(shown(where), Reason.TOO_DEEP, _("It is an archive. Import it separately."))
        return
    with tempfile.NamedTemporaryFile(dir=budget.limits.scratch or None) as copy:
        try:
            for block in _blocks(folder, name, budget):
                copy.write(block)
            copy.flush()
            tally = FolderTally(rules)
            yield from archive_entries_of(Path(copy.name), f"{where}/", budget, tally, depth=1)
            yield from tally.folders()
        except EntryFailure as failure:
            yield Problem(shown(where), failure.reason, failure.message)
        except SourceFailure as failure:
            if failure.code != "archive_damaged":
                raise
            yield Problem(shown(where), Reason.DAMAGED, failure.message)


def _blocks(folder: int, name: str, budget: Budget) -> Iterator[bytes]:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        found = _unreadable(name, error)
        raise EntryFailure(found.reason, found.message) from error
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        before = os.fstat(descriptor)
        # What was judged by name may have been exchanged since: judge what is open.
        problem = _problem(name, before)
        if problem is not None:
            raise EntryFailure(problem.reason, problem.message)
        done = 0
        while block := stream.read(BLOCK):
            done += len(block)
            budget.take(len(block), done)
            yield block
        after = os.fstat(descriptor)
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise EntryFailure(
            Reason.CHANGED,
            _(
                "The file changed while it was being read. Import it again when it is no longer being "
                "written."
            ),
        )
