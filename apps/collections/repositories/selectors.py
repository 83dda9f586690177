"""Reads of a collection's repositories: status, log, diff, blame. Paths are those of the collection, as everywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from apps.collections.files.history import text_diff
from apps.collections.files.selectors import files_visible
from apps.collections.models import Collection, Document, Repository
from apps.collections.tree.limited import run_limited
from apps.collections.tree.rules import FileRules
from apps.collections.tree.store import StoredFile, file_bytes
from apps.collections.tree.text import FileText, file_text
from basics.errors import Denied, DomainError, Invalid
from basics.texts import gettext as _
from blobs.leases import blob_open
from tenancy.actors import Actor

_SECONDS, _MEMORY = 30, 3_000_000_000  # packs are mapped, not read; the rest is what answers need
_MAX_FILES, _MAX_BYTES = 20_000, 500_000_000
MAX_COMMITS = 200
"""How many commits one reading of the history gives at most."""
TOO_LARGE = "!"  # as the child writes it, which this process need not import


@dataclass(frozen=True, slots=True)
class GitDiff:
    """The difference of one file; ``text`` is a unified diff, ``note`` says why there is none."""

    path: str
    kind: str
    text: str
    note: str = ""


def repository_list(*, actor: Actor, collection: Collection) -> list[Repository]:
    """Return the repositories of a collection by their folders; none to whom their history is closed."""
    actor.require("collection.read")
    rows = Repository.objects.visible_to(actor).filter(collection=collection)
    found = list(rows.defer("refs", "left_out", "shallow").order_by("folder"))
    return found if _is_open(actor, collection) else []


def repository_get(
    *, actor: Actor, collection: Collection, repository: str = "", path: str = ""
) -> Repository:
    """Return the repository that a question is about.

    Args:
        repository: its folder; "" for the only one, or for the one that ``path`` lies in.
        path: of a file or folder in the collection.

    Raises:
        DomainError: ``no_repository``, or ``repository_unclear`` when there are several.
        Denied: ``git_limited``, some of what it may hold is limited to others.
    """
    actor.require("collection.read")
    _check_open(actor, collection)
    rows = list(Repository.objects.visible_to(actor).filter(collection=collection).order_by("folder"))
    if not rows:
        raise DomainError("no_repository", _("This collection has no repository."), status=422)
    wanted = repository.strip("/")
    fitting = [row for row in rows if row.folder == wanted] if wanted else rows
    above = [row for row in rows if path and _is_below(path.strip("/"), row.folder)]
    if above and not wanted:
        fitting = [max(above, key=lambda row: len(row.folder))]
    if not fitting:
        names = ", ".join(f"“{row.folder}”" for row in rows[:20])
        raise DomainError(
            "no_repository",
            _("There is no repository in “%(wanted)s”. Repositories: %(names)s.")
            % {"wanted": wanted, "names": names},
            status=422,
        )
    if len(fitting) > 1:
        names = ", ".join(f"“{row.folder}”" for row in rows[:20])
        raise DomainError(
            "repository_unclear",
            _("This collection has several repositories. Choose one by its folder: %(names)s.")
            % {"names": names},
            status=422,
        )
    if fitting[0].is_limited and actor.kind != "system" and actor.role != "owner":
        raise _closed()
    return fitting[0]


def git_log(
    *,
    actor: Actor,
    collection: Collection,
    ref: str = "HEAD",
    path: str = "",
    skip: int = 0,
    limit: int = 50,
    repository: str = "",
) -> list[dict[str, Any]]:
    """Return commits, newest first: id, author, at, subject, message, parents.

    Args:
        ref: a branch, a tag or a commit.
        path: only commits that changed it.
        repository: its folder, where the collection has several.

    Raises:
        DomainError: there is no repository, or no such revision.
        Denied: ``git_limited``.
    """
    row = repository_get(actor=actor, collection=collection, repository=repository, path=path)
    _check_shown(collection, path)
    request = {
        "what": "log",
        "ref": ref,
        "path": _inside(row, path),
        "skip": max(0, skip),
        "limit": min(max(1, limit), MAX_COMMITS),
    }
    rows: list[dict[str, Any]] = repository_ask(row, request)
    return rows


def git_status(*, actor: Actor, collection: Collection, repository: str = "") -> dict[str, Any]:
    """Return how the files differ from the last commit.

    Returns:
        ``repository`` (its folder), ``branch`` ("" when the head is detached), ``commit``, ``changed`` (path and kind),
        ``untracked`` (paths), ``ignored`` and ``left_out`` (how many files .gitignore and the import leave out).

    Raises:
        DomainError, Denied: as ``git_log``.
    """
    row = repository_get(actor=actor, collection=collection, repository=repository)
    return status_of(actor, collection, row, files_below(actor, collection, row))


def status_of(
    actor: Actor, collection: Collection, row: Repository, files: Mapping[str, StoredFile]
) -> dict[str, Any]:
    """Return how some files, by their paths in the repository, differ from the last commit of it."""
    request = {"what": "status", "files": checksums(actor, collection, files), "left_out": row.left_out}
    found: dict[str, Any] = repository_ask(row, request)
    rules = FileRules.of(collection.file_rules)
    changed = [{**one, "path": _outside(row, one["path"])} for one in found["changed"]]
    found["changed"] = [one for one in changed if rules.shows(one["path"])]
    found["untracked"] = [_outside(row, path) for path in found["untracked"]]
    return {"repository": row.folder, **found}


def git_diff(
    *,
    actor: Actor,
    collection: Collection,
    old: str = "HEAD",
    new: str = "",
    path: str = "",
    repository: str = "",
) -> list[GitDiff]:
    """Return what changed from one commit to another, or to the files as they are now; at most 200 files.

    Args:
        old, new: branches, tags or commits; "" for ``new`` means the files now, "root" for ``old`` an empty folder.
        path: only this file, or what is below this folder.
        repository: its folder, where the collection has several.

    Raises:
        DomainError, Denied: as ``git_log``.
    """
    row = repository_get(actor=actor, collection=collection, repository=repository, path=path)
    request: dict[str, Any] = {"what": "diff", "old": old, "new": new, "path": _inside(row, path)}
    now = files_below(actor, collection, row) if not new else {}
    if not new:
        request |= {"files": checksums(actor, collection, now), "left_out": row.left_out}
    rules = FileRules.of(collection.file_rules)
    result = []
    for one in repository_ask(row, request):
        where = _outside(row, one["path"])
        if not rules.shows(where):
            continue  # what the rules hide is hidden in the history too
        before = _decoded(one["old"]) if one["had"] else FileText("", "utf-8")
        after = _decoded(one["new"]) if one["has"] else FileText("", "utf-8")
        if not new and one["path"] in now:
            after = file_text(file_bytes(collection.pk, actor.tenant_id, now[one["path"]]))
        kind = "modified" if one["had"] and one["has"] else "added" if one["has"] else "deleted"
        try:
            text, note = text_diff(before, after, old=where, new=where), ""
        except Invalid as error:
            text, note = "", error.message
        result.append(GitDiff(where, kind, text, note))
    return result


def git_blame(
    *, actor: Actor, collection: Collection, path: str, ref: str = "HEAD", repository: str = ""
) -> dict[str, Any]:
    """Return who brought each line of a file, as of a commit.

    Returns:
        ``path``, ``ref`` (the commit), ``text`` (lines), ``runs``: line, lines, id, author, at, subject, and ``was``, the
        file's path in that commit where it had another one.

    Raises:
        DomainError: there is no repository, no such revision or no such file in it, or it is no text.
        Denied: ``git_limited``, ``path_denied``.
    """
    row = repository_get(actor=actor, collection=collection, repository=repository, path=path)
    _check_shown(collection, path)
    request = {"what": "blame", "ref": ref, "path": _inside(row, path)}
    found: dict[str, Any] = repository_ask(row, request)
    for run in found["runs"]:
        run["was"] = run["was"] and _outside(row, run["was"])
    return {"path": path, **found}


def repository_ask(row: Repository, request: Mapping[str, Any]) -> Any:
    """Let the limited child answer about a repository; it gets packs by descriptor, refs by value, and nothing else.

    Raises:
        DomainError: what the child refused, or ``work_too_large``.
    """
    with ExitStack() as stack:
        pairs: list[list[int]] = []
        for pack in row.packs.order_by("pk"):
            opened = [stack.enter_context(blob_open(key)) for key in (pack.file, pack.index)]
            pairs.append([file.fileno() for file in opened])
        return run_limited(
            "git",
            {**request, "packs": pairs, "head": row.head, "refs": row.refs, "shallow": row.shallow},
            seconds=_SECONDS,
            memory_bytes=_MEMORY,
            descriptors=[descriptor for pair in pairs for descriptor in pair],
        )


def files_below(actor: Actor, collection: Collection, row: Repository) -> dict[str, StoredFile]:
    """Return the files that belong to a repository now, by their paths inside it."""
    found = files_visible(actor=actor, collection=collection)
    others = [
        one
        for one in Repository.objects.filter(tenant_id=actor.tenant_id, collection=collection).values_list(
            "folder", flat=True
        )
        if one != row.folder and _is_below(one, row.folder)
    ]
    return {
        _inside(row, path): file
        for path, file in found.items()
        if _is_below(path, row.folder) and not any(_is_below(path, other) for other in others)
    }


def checksums(actor: Actor, collection: Collection, files: Mapping[str, StoredFile]) -> dict[str, str]:
    """Return the name that git gives each file's bytes as they are now."""
    if len(files) > _MAX_FILES or sum(file.size for file in files.values()) > _MAX_BYTES:
        raise Invalid(
            "work_too_large",
            _("The collection has too many files for this: at most %(max_files)s with %(max_bytes)s bytes.")
            % {"max_files": _MAX_FILES, "max_bytes": _MAX_BYTES},
        )
    found = {}
    for path, file in files.items():
        content = file_bytes(collection.pk, actor.tenant_id, file)
        head = f"blob {len(content)}\0".encode()
        found[path] = hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
    return found


def _decoded(value: str | None) -> FileText | None:
    if value == TOO_LARGE:
        return None
    return file_text(base64.b64decode(value)) if value else FileText("", "utf-8")


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _inside(row: Repository, path: str) -> str:
    clean = path.strip("/")
    if not row.folder or not clean:
        return clean
    if not _is_below(clean, row.folder):
        raise Invalid(
            "path_invalid",
            _("“%(path)s” isn't in the repository “%(folder)s”.")
            % {"path": path[:200], "folder": row.folder},
        )
    return clean[len(row.folder) + 1 :]


def _outside(row: Repository, path: str) -> str:
    return f"{row.folder}/{path}" if row.folder else path


def _check_shown(collection: Collection, path: str) -> None:
    if path.strip("/") and not FileRules.of(collection.file_rules).shows(path.strip("/")):
        raise Denied(
            "path_denied",
            _("“%(path)s” can't be shown here: the collection's file rules hide it.") % {"path": path[:200]},
        )


def _check_open(actor: Actor, collection: Collection) -> None:
    if not _is_open(actor, collection):
        raise _closed()


def _is_open(actor: Actor, collection: Collection) -> bool:
    """Tell whether an actor may see all documents: a repository's history holds their bytes under any name."""
    rows = Document.objects.filter(tenant_id=actor.tenant_id, collection=collection, is_restricted=True)
    return not rows.exclude(pk__in=Document.objects.visible_to(actor).values("pk")).exists()


def _closed() -> Denied:
    return Denied(
        "git_limited",
        _(
            "You can't see the history of this repository, because some documents of the collection are, or "
            "were, limited to other people."
        ),
    )
