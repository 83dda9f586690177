"""What lies in a repository's folder and in no commit: said, so that nobody takes an import of the commit for all of it.

Runs in the limited child process. Files are compared by their bytes; no filter of the repository is run, so what a filter
would change (line ends, large files kept elsewhere) is allowed for here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from apps.collections.ingestion.git.ignores import Ignores
from apps.collections.ingestion.sources.base import FolderTally, Problem, Reason, shown
from basics.texts import gettext as _
from basics.texts import gettext_noop

LFS_HEAD = b"version https://git-lfs.github.com/spec/v1\n"
_MAX_ENTRIES = 100_000
_MAX_BYTES = 50_000_000
_MAX_DEPTH = 60
_HELP = gettext_noop(
    "Commit it and import again, or import the folder itself, which takes files as they are."
)


def uncommitted(
    root: Path, committed: Mapping[str, str], tally: FolderTally, pointer: Callable[[str], bool]
) -> Iterator[Problem]:
    """Yield a problem for each file that differs from the commit, is in no commit, or is left out by ``.gitignore``.

    Args:
        root: the folder.
        committed: names of the bytes of the commit's files, by path.
        tally: the rules of the import; what they leave out is not looked at.
        pointer: tells of a path whether the commit has a pointer to a large file there.
    """
    ignores = Ignores({})
    seen: set[str] = set()
    for found in _walk(root, "", ignores, 0, [_MAX_ENTRIES]):
        if isinstance(found, Problem):
            yield found
            continue
        path, is_ignored = found
        seen.add(path)
        if tally.refusal(path)[0] is not None:
            continue
        if path not in committed:
            if is_ignored:
                yield Problem(shown(path), Reason.IGNORED, _("The repository's .gitignore leaves it out."))
            else:
                yield Problem(
                    shown(path),
                    Reason.UNCOMMITTED,
                    _("It hasn't been committed yet, so it was not imported. %(help)s") % {"help": _(_HELP)},
                )
        elif not pointer(path) and _differs(root / path, committed[path]):
            yield Problem(
                shown(path),
                Reason.UNCOMMITTED,
                _("It has changed since the last commit, whose content was imported. %(help)s")
                % {"help": _(_HELP)},
            )
    gone = [p for p in committed if p not in seen and not pointer(p) and not tally.refusal(p)[0]]
    if seen:  # a repository without any file checked out misses none
        for path in gone:
            yield Problem(
                shown(path),
                Reason.UNCOMMITTED,
                _("It was deleted since the last commit, whose content was imported."),
            )


def _walk(
    root: Path, prefix: str, ignores: Ignores, depth: int, left: list[int]
) -> Iterator[tuple[str, bool] | Problem]:
    """Yield the regular files below a folder with whether they are ignored; no link is followed, no inner repository entered."""
    folder = root / prefix
    names = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if any(entry.name == ".gitignore" and entry.is_file(follow_symlinks=False) for entry in names):
        ignores = ignores.with_file(prefix, _bytes(folder / ".gitignore", 100_000) or b"")
    for entry in names:
        left[0] -= 1
        if left[0] < 0:
            yield Problem(
                shown(prefix) or ".",
                Reason.UNCOMMITTED,
                _("Only the first %(max_entries)s files were checked for uncommitted changes.")
                % {"max_entries": _MAX_ENTRIES},
            )
            return
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name == ".git" or os.path.lexists(root / path / ".git") or depth > _MAX_DEPTH:
                continue
            if ignores.matches(f"{path}/"):
                yield Problem(
                    shown(f"{path}/"), Reason.IGNORED, _("The repository's .gitignore leaves it out.")
                )
                continue
            yield from _walk(root, f"{path}/", ignores, depth + 1, left)
            if left[0] < 0:
                return
        elif entry.is_file(follow_symlinks=False):
            yield path, ignores.matches(path)


def _differs(path: Path, sha: str) -> bool:
    content = _bytes(path, _MAX_BYTES)
    if content is None:
        return False  # it is read nowhere, so nothing can be said of it
    return sha not in (_name(content), _name(content.replace(b"\r\n", b"\n")))


def _bytes(path: Path, most: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        return stream.read() if stat.S_ISREG(found.st_mode) and found.st_size <= most else None


def _name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
