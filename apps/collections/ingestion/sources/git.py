"""Git repositories, read from their object store by dulwich: no git program, no hooks, no filters, no working tree.

Runs in the limited child process (``apps.collections.ingestion.child``): objects of a repository from a stranger may unpack
to anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from apps.collections.ingestion.sources.base import (
    Budget,
    EntryFailure,
    FolderTally,
    Problem,
    Reason,
    Rules,
    SourceFailure,
    SourceLimits,
    safe_path,
    shown,
)
from apps.collections.ingestion.sources.git_worktree import LFS_HEAD, uncommitted
from basics.texts import gettext as _
from basics.texts import gettext_noop, kept

_MAX_POINTER = 1024
_POINTER = gettext_noop(
    "Only a pointer to it is in the repository (Git LFS keeps large files elsewhere). Import the file itself."
)
Send = Callable[[Mapping[str, Any], bytes], None]
_GITLINK = 0o160000
_MAX_DEPTH = 200
_CONTROL_FILES = ("HEAD", "packed-refs", "shallow")


def control_folder(path: Path) -> Path:
    """Return the folder with a repository's objects: ``.git`` of a working tree, or the bare repository itself.

    Raises:
        SourceFailure: there is none, or it borrows objects from elsewhere.
    """
    control = path / ".git" if os.path.lexists(path / ".git") else path
    for part in (control, control / "objects", control / "refs"):
        if not os.path.lexists(part) or not stat.S_ISDIR(part.lstat().st_mode):
            raise SourceFailure(
                "not_a_repository",
                _(
                    "There is no git repository here. A worktree that keeps its objects elsewhere can't be "
                    "read. Choose the main repository, or a bare one."
                ),
            )
    for name in ("objects/info/alternates", "objects/info/http-alternates", "commondir"):
        if os.path.lexists(control / name):
            raise SourceFailure(
                "repository_borrows",
                _(
                    "The repository borrows objects from another one (alternates). Make a full copy with "
                    "“git clone --no-local” and import that."
                ),
            )
    links = [p for p in _control_paths(control) if stat.S_ISLNK(p.lstat().st_mode)]
    if links:
        raise SourceFailure(
            "repository_linked", _("The repository's own files are links. Make a full copy of it.")
        )
    return control


def _control_paths(control: Path) -> Iterator[Path]:
    yield from (control / name for name in _CONTROL_FILES if os.path.lexists(control / name))
    for top in ("objects", "refs"):
        for folder, folders, files in os.walk(control / top):
            yield from (Path(folder) / name for name in (*folders, *files))


def is_control_file(path: str) -> bool:
    """Tell whether a file of a packed repository, by its path inside the control folder, is needed to read it."""
    first, _, rest = path.partition("/")
    if not rest:
        return first in _CONTROL_FILES
    return first in ("objects", "refs") and not rest.startswith("info/")


def repository_read(request: Mapping[str, Any], send: Send) -> None:
    """Send every file of a repository at a revision, and the problems of those that cannot be files.

    Args:
        request: ``path`` of the repository; ``ref``, a branch, tag or commit ("" for HEAD); ``include``, ``exclude``,
            ``with_hidden``, ``with_binary`` as in ``Rules``; ``source_limits``, the fields of ``SourceLimits``.
        send: takes frames: ``{"commit": ...}`` first, then ``{"entry": path}`` with the bytes, or ``{"problem": [...]}``.

    Raises:
        SourceFailure: there is no repository or no such revision.
    """
    from dulwich.object_store import DiskObjectStore

    control = control_folder(Path(request["path"]))
    limits = SourceLimits(**request["source_limits"])
    rules = Rules(
        include=tuple(request["include"]),
        exclude=tuple(request["exclude"]),
        with_hidden=bool(request["with_hidden"]),
        with_binary=bool(request["with_binary"]),
    )
    store = DiskObjectStore(str(control / "objects"))
    try:
        if not request["ref"] and _is_unborn(control):
            send({"commit": "", "time": 0}, b"")
            return
        commit = _commit(store, control, str(request["ref"]))
        committed: dict[str, str] = {}
        pointers: set[str] = set()
        send({"commit": commit.id.decode(), "time": int(commit.commit_time)}, b"")
        budget, tally = Budget(limits), FolderTally(rules)
        for found in _files(store, commit.tree, "", budget, depth=0):
            if isinstance(found, Problem):
                _tell(send, found)
                continue
            path, sha = found
            committed[path] = sha.decode()
            refusal, by_folder = tally.refusal(path)
            if refusal is not None:
                if not by_folder:
                    _tell(send, refusal)
                continue
            try:
                data = _blob(store, sha)
                budget.take(len(data), len(data))
            except EntryFailure as failure:
                _tell(send, Problem(shown(path), failure.reason, failure.message))
                continue
            if data.startswith(LFS_HEAD) and len(data) < _MAX_POINTER:
                pointers.add(path)
                _tell(send, Problem(shown(path), Reason.LFS, _POINTER))
                continue
            send({"entry": path}, data)
        if not request["ref"] and control.name == ".git":
            root = Path(request["path"])
            for problem in uncommitted(root, committed, FolderTally(rules), pointers.__contains__):
                _tell(send, problem)
        for problem in tally.folders():
            _tell(send, problem)
    finally:
        store.close()


def _tell(send: Send, problem: Problem) -> None:
    send({"problem": [problem.path, problem.reason, kept(problem.message), problem.count]}, b"")


def _is_unborn(control: Path) -> bool:
    """Tell whether the repository has no commit yet: its head names a branch, and there is no branch at all."""
    heads = control / "refs" / "heads"
    packed = control / "packed-refs"
    return (
        (control / "HEAD").read_bytes()[:16].startswith(b"ref: refs/heads/")
        and not any(names for _, _, names in os.walk(heads))
        and not (packed.is_file() and b"refs/heads/" in packed.read_bytes()[:20_000_000])
    )


def _commit(store: Any, control: Path, ref: str) -> Any:
    from dulwich.objects import Commit, Tag
    from dulwich.refs import DiskRefsContainer

    refs: Any = DiskRefsContainer(str(control))
    wanted = ref.encode()
    missing = SourceFailure(
        "ref_missing",
        _("The repository has no revision “%(ref)s”. Name a branch, a tag or a whole commit id.")
        % {"ref": shown(ref) or "HEAD"},
    )
    sha: bytes | None = None
    try:
        if not ref:
            sha = refs[b"HEAD"]
        else:
            for prefix in (b"refs/heads/", b"refs/tags/", b"refs/remotes/origin/", b""):
                name = prefix + wanted
                if name.startswith(b"refs/") and name in refs:
                    sha = refs[name]
                    break
    except (KeyError, ValueError) as error:
        raise missing from error
    if sha is None and len(wanted) == 40 and all(ch in b"0123456789abcdef" for ch in wanted):
        sha = wanted
    for _step in range(10):
        if sha is None:
            break
        try:
            found = _object(store, sha)
        except EntryFailure as failure:
            raise missing from failure
        if isinstance(found, Commit):
            return found
        sha = found.object[1] if isinstance(found, Tag) else None
    raise missing


def _object(store: Any, sha: bytes) -> Any:
    try:
        found = store[sha]
        found.check()
    except MemoryError:
        raise
    except KeyError as error:
        raise EntryFailure(
            Reason.DAMAGED, _("The repository lacks this object (is it a shallow or partial copy?).")
        ) from error
    except Exception as error:  # whatever foreign bytes bring out of zlib and the parser
        raise EntryFailure(
            Reason.DAMAGED, _("The object is damaged (%(name)s).") % {"name": type(error).__name__}
        ) from error
    return found


def _blob(store: Any, sha: bytes) -> bytes:
    from dulwich.objects import Blob

    found = _object(store, sha)
    if not isinstance(found, Blob):
        raise EntryFailure(Reason.DAMAGED, _("The repository lists this as a file, but it isn't one."))
    data: bytes = found.data
    return data


def _files(
    store: Any, sha: bytes, prefix: str, budget: Budget, *, depth: int
) -> Iterator[tuple[str, bytes] | Problem]:
    from dulwich.objects import Tree

    if depth > _MAX_DEPTH:
        yield Problem(
            shown(prefix),
            Reason.TOO_DEEP,
            _("More than %(max_depth)s folders deep.") % {"max_depth": _MAX_DEPTH},
        )
        return
    try:
        tree = _object(store, sha)
    except EntryFailure as failure:
        yield Problem(shown(prefix or "/"), failure.reason, failure.message)
        return
    if not isinstance(tree, Tree):
        yield Problem(
            shown(prefix or "/"),
            Reason.DAMAGED,
            _("The repository lists this as a folder, but it isn't one."),
        )
        return
    for item in tree.iteritems():
        budget.count()
        name, mode = item.path.decode("utf-8", "surrogateescape"), item.mode
        where = safe_path(prefix + name)
        if isinstance(where, Problem) or "/" in name or "\\" in name:
            yield (
                where
                if isinstance(where, Problem)
                else Problem(shown(prefix + name), Reason.BAD_NAME, _("This isn't a valid file name."))
            )
        elif stat.S_ISDIR(mode):
            yield from _files(store, item.sha, f"{where}/", budget, depth=depth + 1)
        elif mode == _GITLINK:
            yield Problem(
                where,
                Reason.SUBMODULE,
                _("It is a submodule: another repository at a fixed revision. Import that one separately."),
            )
        elif stat.S_ISLNK(mode):
            yield Problem(
                where, Reason.LINK, _("It is a symbolic link; only what links point to is imported.")
            )
        elif stat.S_ISREG(mode):
            yield where, item.sha
        else:
            yield Problem(where, Reason.SPECIAL, _("It isn't a regular file."))
