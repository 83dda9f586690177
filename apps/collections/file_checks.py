"""Ask the limited child: does a file break its language's grammar, and what does a collection's repository say."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from apps.collections.file_history import text_diff
from apps.collections.file_selectors import file_content, files_visible
from apps.collections.file_store import collection_tree, file_bytes
from apps.collections.file_text import FileText, file_text
from apps.collections.ingestion.code.languages import BY_SUFFIX
from apps.collections.models import Collection, Document
from apps.collections.source_tree.limited import run_limited
from basics.errors import Denied, Invalid
from tenancy.actors import Actor

_SYNTAX_S, _SYNTAX_BYTES = 5, 1_500_000_000
_GIT_S, _GIT_BYTES = 20, 2_000_000_000
_MAX_FILES, _MAX_BYTES = 5_000, 200_000_000
MAX_COMMITS = 200
"""How many commits one reading of the history gives at most."""
TOO_LARGE = "!"  # as the child writes it, which this process need not import
_BY_SUFFIX = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, slots=True)
class SyntaxCheck:
    """What came of a check; ``problems`` are dicts of line, column and message."""

    path: str
    language: str
    problems: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class GitDiff:
    """The difference of one file; ``text`` is a unified diff, ``note`` says why there is none."""

    path: str
    kind: str
    text: str
    note: str = ""


def check_syntax(*, actor: Actor, collection: Collection, path: str) -> SyntaxCheck:
    """Check a source file or a JSON, TOML or YAML file.

    Raises:
        Missing: there is none for the actor.
        Invalid: ``language_unknown``, ``file_binary``.
        DomainError: ``work_too_large`` when the check had to be stopped.
    """
    suffix = PurePosixPath(path).suffix.lower()
    language = BY_SUFFIX[suffix].name if suffix in BY_SUFFIX else _BY_SUFFIX.get(suffix, "")
    stored, content = file_content(actor=actor, collection=collection, path=path)
    if not language:
        known = ", ".join(sorted({*BY_SUFFIX, *_BY_SUFFIX}))
        raise Invalid("language_unknown", f"Only these can be checked: {known}.")
    text = file_text(content)
    if text is None:
        raise Invalid("file_binary", f"“{path}” is no text.")
    found = run_limited(
        "syntax", {"text": text.text, "language": language}, seconds=_SYNTAX_S, memory_bytes=_SYNTAX_BYTES
    )  # fmt: skip
    return SyntaxCheck(stored.path, language, found)


def git_log(
    *,
    actor: Actor,
    collection: Collection,
    ref: str = "HEAD",
    path: str = "",
    skip: int = 0,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Return commits, newest first: id, author, at, subject, message, parents.

    Args:
        ref: a branch, a tag or a commit.
        path: only commits that changed it.

    Raises:
        DomainError: there is no repository, it is damaged or too large.
        Denied: ``git_limited``.
    """
    request = {
        "what": "log",
        "ref": ref,
        "path": path,
        "skip": max(0, skip),
        "limit": min(max(1, limit), MAX_COMMITS),
    }
    rows: list[dict[str, Any]] = _ask(actor, collection, request)
    return rows


def git_status(*, actor: Actor, collection: Collection) -> dict[str, Any]:
    """Return ``branch``, ``staged`` and ``changed`` (path and kind) and ``untracked`` (paths).

    Raises:
        DomainError, Denied: as ``git_log``.
    """
    _check_open(actor, collection)
    files = _checksums(actor, collection)
    found: dict[str, Any] = _ask(actor, collection, {"what": "status", "files": files})
    return found


def git_diff(
    *, actor: Actor, collection: Collection, old: str = "HEAD", new: str = "", path: str = ""
) -> list[GitDiff]:
    """Return what changed from one commit to another, or to the files as they are now; at most 200 files.

    Args:
        old, new: branches, tags or commits; "" for ``new`` means the files now.
        path: only this file, or what is below this folder.

    Raises:
        DomainError, Denied: as ``git_log``.
    """
    _check_open(actor, collection)
    request: dict[str, Any] = {"what": "diff", "old": old, "new": new, "path": path}
    if not new:
        request["files"] = _checksums(actor, collection)
    rows = _ask(actor, collection, request)
    visible = files_visible(actor=actor, collection=collection) if not new else {}
    result = []
    for row in rows:
        before = _decoded(row["old"]) if row["had"] else FileText("", "utf-8")
        after = _decoded(row["new"]) if row["has"] else FileText("", "utf-8")
        if not new and row["path"] in visible:
            after = file_text(file_bytes(collection.pk, actor.tenant_id, visible[row["path"]]))
        kind = "modified" if row["had"] and row["has"] else "added" if row["has"] else "deleted"
        try:
            text, note = text_diff(before, after, old=row["path"], new=row["path"]), ""
        except Invalid as error:
            text, note = "", error.message
        result.append(GitDiff(row["path"], kind, text, note))
    return result


def _decoded(value: str | None) -> FileText | None:
    if value == TOO_LARGE:
        return None
    return file_text(base64.b64decode(value)) if value else FileText("", "utf-8")


def _ask(actor: Actor, collection: Collection, request: dict[str, Any]) -> Any:
    _check_open(actor, collection)
    with collection_tree(actor.tenant_id, collection.pk) as tree:
        return run_limited(
            "git", {**request, "descriptor": tree.descriptor}, seconds=_GIT_S, memory_bytes=_GIT_BYTES,
            descriptors=[tree.descriptor],
        )  # fmt: skip


def _check_open(actor: Actor, collection: Collection) -> None:
    """Refuse a repository's history to who may not see all documents: it holds their bytes under any name."""
    actor.require("collection.read")
    rows = Document.objects.filter(
        tenant_id=actor.tenant_id, collection=collection, is_restricted=True
    )
    if rows.exclude(pk__in=Document.objects.visible_to(actor).values("pk")).exists():
        raise Denied(
            "git_limited",
            "The history of this repository is not open to you: some documents of the collection are limited to others.",
        )


def _checksums(actor: Actor, collection: Collection) -> dict[str, str]:
    """Return the checksum that git gives each file as it is now."""
    files = files_visible(actor=actor, collection=collection)
    if len(files) > _MAX_FILES or sum(file.size for file in files.values()) > _MAX_BYTES:
        raise Invalid("work_too_large", f"The collection has too many files for this: at most {_MAX_FILES} with {_MAX_BYTES} bytes.")  # fmt: skip
    found = {}
    for path, file in files.items():
        content = file_bytes(collection.pk, actor.tenant_id, file)
        head = f"blob {len(content)}\0".encode()
        found[path] = hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
    return found
