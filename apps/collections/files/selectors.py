"""Reads of a collection's files; each starts from what the actor may see and what the rules show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from apps.collections.ingestion.code.programming_languages import BY_SUFFIX
from apps.collections.models import Collection
from apps.collections.tree.paths import path_parts
from apps.collections.tree.rules import FileRules, pattern_read
from apps.collections.tree.store import StoredFile, file_bytes, files_stored, tree_tidy
from apps.collections.tree.text import file_text, file_text_in
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor, system_actor

PAGE_LINES = 500
MAX_LINES = 2000
MAX_READ_BYTES = 20_000_000
PAGE_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class Listed:
    """One name in a folder.

    Attributes:
        name, path: its name, and its path from the root.
        is_folder: whether it holds others.
        size: bytes; of a folder, of all files below it.
        files: how many files it stands for.
        language: of a source file, else "".
        changed_at: the last change of it or below it.
        document_id: None for folders and files that are no documents.
    """

    name: str
    path: str
    is_folder: bool
    size: int
    files: int
    language: str
    changed_at: datetime
    document_id: int | None = None
    is_restricted: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a folder: folders first, then files, by name."""

    folder: str
    entries: list[Listed]
    total: int
    offset: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class FileRead:
    """Lines of a file.

    Attributes:
        lines: those asked for, without their ends.
        start: number of the first one, from 1.
        total_lines: of the whole file; 0 for a file that is no text.
        encoding: "" for a file that is no text.
        sha256: of the whole file: send it back as ``expected`` with an edit.
    """

    path: str
    lines: list[str]
    start: int
    total_lines: int
    size: int
    encoding: str
    newline: str
    language: str
    sha256: str
    is_binary: bool
    document_id: int | None
    changed_at: datetime

    @property
    def has_more(self) -> bool:
        """Tell whether lines follow."""
        return self.start - 1 + len(self.lines) < self.total_lines


@dataclass
class TreeNode:
    """A folder or file of the structure; ``left_out`` counts entries beyond depth or number."""

    name: str
    size: int = 0
    files: int = 0
    is_folder: bool = True
    languages: dict[str, int] = field(default_factory=dict)
    children: list[TreeNode] = field(default_factory=list)
    left_out: int = 0


def files_visible(
    *, actor: Actor, collection: Collection, folder: str = "", path: str | None = None
) -> dict[str, StoredFile]:
    """Return the files that the actor may see and the rules show, by path; the folder on disk is tidied first."""
    actor.require("collection.read")
    everyone = system_actor(actor.tenant_id)
    tree_tidy(actor.tenant_id, collection.pk, lambda: files_stored(everyone, collection.pk))
    rules = FileRules.of(collection.file_rules)
    stored = files_stored(actor, collection.pk, folder=folder, path=path)
    return {name: stored[name] for name in sorted(stored) if rules.shows(name)}


def file_list(
    *,
    actor: Actor,
    collection: Collection,
    folder: str = "",
    offset: int = 0,
    limit: int = PAGE_ENTRIES,
    pattern: str = "",
    is_recursive: bool = False,
    show_hidden: bool | None = None,
) -> Listing:
    """List a folder.

    Args:
        pattern: only files that match it, as in ``.gitignore``, such as ``*.py``; folders that hold none are left out.
        is_recursive: list every file below the folder, by its path from there, in place of folders.
        show_hidden: False leaves out names that begin with a dot; True needs a collection whose rules show them; None
            goes by these rules.

    Raises:
        Missing: no file below it is for the actor.
        Invalid: it is no path inside the collection; ``hidden_files_off``; ``search_invalid``, the pattern.
    """
    folder = "/".join(path_parts(folder, is_folder=True))
    found = files_visible(actor=actor, collection=collection, folder=folder)
    if folder and not found:
        raise Missing("folder")
    if show_hidden and not FileRules.of(collection.file_rules).show_hidden:
        raise Invalid(
            "hidden_files_off",
            _("Hidden files are switched off for this collection (Files, Rules)."),
            data={"field": "show_hidden"},
        )
    below = len(folder) + 1 if folder else 0
    if show_hidden is False:
        found = {
            p: f for p, f in found.items() if not any(part.startswith(".") for part in p[below:].split("/"))
        }
    if pattern:
        wanted = pattern_read(pattern)
        found = {path: file for path, file in found.items() if wanted.match_file(path[below:])}
    entries = _files(folder, found.values()) if is_recursive else _entries(folder, found.values())
    page = entries[offset : offset + limit]
    return Listing(folder, page, len(entries), offset, offset + len(page) < len(entries))


def _listed(file: StoredFile, name: str) -> Listed:
    return Listed(
        name,
        file.path,
        False,
        file.size,
        1,
        language_label(file.path),
        file.changed_at,
        file.document_id,
        file.is_restricted,
    )


def _files(folder: str, files: Iterable[StoredFile]) -> list[Listed]:
    start = len(folder) + 1 if folder else 0
    return [_listed(file, file.path[start:]) for file in files]


def _entries(folder: str, files: Iterable[StoredFile]) -> list[Listed]:
    prefix = f"{folder}/" if folder else ""
    below: dict[str, list[StoredFile]] = {}
    entries = []
    for file in files:
        name, slash, _rest = file.path[len(prefix) :].partition("/")
        if slash:
            below.setdefault(name, []).append(file)
        else:
            entries.append(_listed(file, name))
    folders = [
        Listed(
            name,
            prefix + name,
            True,
            sum(f.size for f in inside),
            len(inside),
            "",
            max(f.changed_at for f in inside),
        )
        for name, inside in below.items()
    ]
    by_name = lambda entry: (entry.name.casefold(), entry.name)  # noqa: E731
    return sorted(folders, key=by_name) + sorted(entries, key=by_name)


def file_get(*, actor: Actor, collection: Collection, path: str) -> StoredFile:
    """Return one file.

    Raises:
        Missing: there is none for the actor.
        Invalid: it is no path inside the collection.
    """
    actor.require("collection.read")
    name = unicodedata.normalize("NFC", path)
    if "\0" not in name and name.isprintable():
        found = files_visible(actor=actor, collection=collection, path=name).get(name)
        if found is not None:
            return found
    path_parts(path)
    raise Missing("file")


def file_content(*, actor: Actor, collection: Collection, path: str) -> tuple[StoredFile, bytes]:
    """Return a file with its bytes.

    Raises:
        Missing, Invalid: as ``file_get``; ``file_too_large`` beyond what is read at once.
    """
    stored = file_get(actor=actor, collection=collection, path=path)
    if stored.size > MAX_READ_BYTES:
        raise Invalid(
            "file_too_large",
            _("“%(path)s” has %(size)s bytes; at most %(max_read_bytes)s are read here. Download it instead.")
            % {"path": path, "size": stored.size, "max_read_bytes": MAX_READ_BYTES},
            status=413,
        )
    return stored, file_bytes(collection.pk, actor.tenant_id, stored)


def file_read(
    *,
    actor: Actor,
    collection: Collection,
    path: str,
    start: int = 1,
    end: int | None = None,
    encoding: str = "",
) -> FileRead:
    """Read lines of a file.

    Args:
        encoding: what its bytes are text in; "" recognises it.
        start: first line, from 1.
        end: last line, inclusive; None reads a page of 500 lines. At most 2000 lines come at once.

    Raises:
        Missing, Invalid: as ``file_content`` and ``file_text_in``; ``range_invalid``.
    """
    stored, content = file_content(actor=actor, collection=collection, path=path)
    text = file_text_in(content, encoding) if encoding else file_text(content)
    lines = text.lines if text else []
    last = start + PAGE_LINES - 1 if end is None else end
    if start < 1 or last < start or (start > max(1, len(lines)) and text is not None):
        raise Invalid(
            "range_invalid",
            _("“%(path)s” has %(lines)s lines; there is no range %(start)s to %(last)s.")
            % {"path": path, "lines": len(lines), "start": start, "last": last},
        )
    chosen = lines[start - 1 : min(last, start - 1 + MAX_LINES)]
    return FileRead(
        stored.path,
        chosen,
        start,
        len(lines),
        stored.size,
        text.encoding if text else "",
        text.newline if text else "",
        language_label(stored.path),
        stored.sha256,
        text is None,
        stored.document_id,
        stored.changed_at,
    )


def language_label(path: str) -> str:
    """Return the name of a source file's language, "" if it is none."""
    language = BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
    return language.label if language else ""


def project_structure(
    *, actor: Actor, collection: Collection, folder: str = "", depth: int = 3, most: int = 200
) -> TreeNode:
    """Return the tree below a folder with sizes and languages.

    Args:
        depth: levels shown; what is deeper counts into its folder.
        most: entries shown per folder.
    """
    folder = "/".join(path_parts(folder, is_folder=True))
    found = files_visible(actor=actor, collection=collection, folder=folder)
    if folder and not found:
        raise Missing("folder")
    root = TreeNode(folder or ".")
    index: dict[str, TreeNode] = {"": root}
    skip = len(folder) + 1 if folder else 0
    for file in found.values():
        names = file.path[skip:].split("/")
        language = language_label(file.path)
        at = root
        _count(at, file.size, language)
        for level, name in enumerate(names, start=1):
            if level > depth:
                break
            key = "/".join(names[:level])
            node = index.get(key)
            if node is None:
                if len(at.children) >= most:
                    at.left_out += 1
                    break
                node = index[key] = TreeNode(name, is_folder=level < len(names))
                at.children.append(node)
            at = node
            _count(at, file.size, language)
    return root


def _count(node: TreeNode, size: int, language: str) -> None:
    node.size += size
    node.files += 1
    if language:
        node.languages[language] = node.languages.get(language, 0) + 1


def as_json(node: TreeNode) -> dict[str, Any]:
    """Return a structure as JSON values."""
    value: dict[str, Any] = {"name": node.name, "size": node.size}
    if node.is_folder:
        value |= {"files": node.files, "languages": node.languages}
        value["children"] = [as_json(child) for child in node.children]
        if node.left_out:
            value["left_out"] = node.left_out
    return value
