"""Read a repository's history from its ``.git`` folder, by descriptors. Runs in the limited child.

Nothing of it is obeyed: no configuration, hooks, filters, attributes or alternates are read, and no program is started.
Objects come from loose files and packs below ``.git/objects`` alone.
"""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from dulwich.diff_tree import tree_changes
from dulwich.errors import NotTreeError
from dulwich.index import read_index
from dulwich.object_format import SHA1
from dulwich.object_store import BaseObjectStore, iter_tree_contents
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag
from dulwich.pack import Pack, PackData, load_pack_index_file
from dulwich.walk import Walker

from apps.collections.source_tree.paths import PathRefused, path_parts
from apps.collections.source_tree.tree import SourceTree, TreeRefused
from basics.errors import DomainError

MAX_OBJECT = 64_000_000
MAX_PACKS = 400_000_000
MAX_ENTRIES = 50_000
MAX_CHANGED = 200
TOO_LARGE = "!"  # in place of a text; no base64 has it
_MAX_TEXT = 1_000_000
_MAX_TEXTS = 16_000_000
_SHA = re.compile(rb"[0-9a-f]{40}")
_TYPES = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}


class Refused(DomainError):
    """What was asked cannot be done; the message is for the person who asked."""

    def __init__(self, message: str) -> None:
        super().__init__("work_refused", message, status=422)


def answer(request: Mapping[str, Any]) -> Any:
    """Do one of ``log``, ``diff`` and ``status`` in the tree whose descriptor the request names."""
    with SourceTree(os.dup(int(request["descriptor"]))) as tree:
        repository = Repository(tree)
        try:
            match request["what"]:
                case "log":
                    return repository.log(request)
                case "diff":
                    return repository.diff(request)
                case "status":
                    return repository.status(request["files"])
        except (KeyError, NotTreeError, zlib.error, AssertionError, ValueError) as error:
            raise Refused(
                f"The repository is incomplete or damaged ({type(error).__name__})."
            ) from error
        raise Refused("There is no such question to a repository.")


class Objects(BaseObjectStore):
    """The objects of a repository, read by descriptors, with a limit on each."""

    def __init__(self, tree: SourceTree) -> None:
        super().__init__(object_format=SHA1)
        self._tree = tree
        self._packs = list(_packs(tree))

    def get_raw(self, name: Any) -> tuple[int, bytes]:
        """Return type and content of an object. Raises KeyError."""
        sha = bytes(name) if len(name) == 40 else bytes(name).hex().encode()
        for pack in self._packs:
            try:
                kind, content = pack.get_raw(ObjectID(sha))
            except KeyError:
                continue
            return kind, content
        text = sha.decode("ascii")
        try:
            packed = self._tree.read((".git", "objects", text[:2], text[2:]), max_bytes=MAX_OBJECT)
        except FileNotFoundError:
            raise KeyError(sha) from None
        except TreeRefused as error:
            raise Refused(error.message) from error
        content = zlib.decompressobj().decompress(packed, MAX_OBJECT)
        head, _, body = content.partition(b"\0")
        kind_name, _, size = head.partition(b" ")
        if kind_name not in _TYPES or not size.isdigit() or int(size) != len(body):
            raise ValueError("a loose object is damaged or too large")
        return _TYPES[kind_name], body

    def __getitem__(self, sha: Any) -> ShaFile:
        kind, content = self.get_raw(sha)
        return ShaFile.from_raw_string(kind, content, sha=sha)

    def __contains__(self, sha: object) -> bool:
        try:
            self.get_raw(sha)
        except KeyError:
            return False
        return True


def _packs(tree: SourceTree) -> Iterator[Pack]:
    folder = (".git", "objects", "pack")
    try:
        names = [entry.path.rsplit("/", 1)[-1] for entry in tree.entries(folder)]
    except FileNotFoundError:
        return
    except TreeRefused as error:
        raise Refused(error.message) from error
    left = MAX_PACKS
    for name in names:
        base, dot, kind = name.rpartition(".")
        if not dot or kind != "idx" or f"{base}.pack" not in names:
            continue
        try:
            index = tree.read((*folder, name), max_bytes=left)
            data = tree.read((*folder, f"{base}.pack"), max_bytes=left - len(index))
        except TreeRefused as error:
            raise Refused(
                f"The repository is too large to be read here, or damaged: {error.message}"
            ) from error
        left -= len(index) + len(data)
        yield Pack.from_objects(
            PackData.from_file(BytesIO(data), SHA1, len(data)),
            load_pack_index_file(name, BytesIO(index), SHA1),
        )


class Repository:
    """One repository, read only."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        found = tree.stat((".git",))
        if found is None:
            raise Refused(
                "This collection holds no repository: there is no .git folder at its root."
            )
        if found.kind != "folder":
            raise Refused("The .git of this collection is no folder, so its history is not here.")
        self._objects = Objects(tree)

    def resolve(self, name: str) -> ObjectID:
        """Return the commit that a branch, tag, full or abbreviated id names."""
        wanted = name.encode("utf-8", errors="replace")
        sha = self._ref(wanted) if not _SHA.fullmatch(wanted) else wanted
        for prefix in (b"refs/heads/", b"refs/tags/", b"refs/remotes/"):
            sha = sha or self._ref(prefix + wanted)
        sha = sha or self._abbreviated(wanted)
        if sha is None:
            raise Refused(f"There is no commit, branch or tag “{name}”.")
        found = self._objects[sha]
        for _ in range(5):
            if isinstance(found, Tag):
                found = self._objects[found.object[1]]
        if not isinstance(found, Commit):
            raise Refused(f"“{name}” is no commit.")
        return ObjectID(found.id)

    def _ref(self, name: bytes) -> bytes | None:
        for _ in range(5):
            if name != b"HEAD" and not name.startswith(b"refs/"):
                return None
            try:
                parts = path_parts(name.decode())
                content = self._tree.read((".git", *parts), max_bytes=1000).strip()
            except (UnicodeDecodeError, PathRefused, TreeRefused):
                return None
            except FileNotFoundError:
                return self._packed_refs().get(name)
            if not content.startswith(b"ref:"):
                return content if _SHA.fullmatch(content) else None
            name = content[4:].strip()
        return None

    def _packed_refs(self) -> dict[bytes, bytes]:
        try:
            content = self._tree.read((".git", "packed-refs"), max_bytes=20_000_000)
        except (FileNotFoundError, TreeRefused):
            return {}
        rows = (
            line.split(b" ", 1) for line in content.splitlines() if line[:1] not in (b"#", b"^")
        )
        return {row[1]: row[0] for row in rows if len(row) == 2 and _SHA.fullmatch(row[0])}

    def _abbreviated(self, prefix: bytes) -> bytes | None:
        if not re.fullmatch(rb"[0-9a-f]{4,39}", prefix):
            return None
        found = set()
        for entry in Walker(self._objects, [self.resolve("HEAD")], max_entries=MAX_ENTRIES):
            if entry.commit.id.startswith(prefix):
                found.add(entry.commit.id)
        return bytes(found.pop()) if len(found) == 1 else None

    def log(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return commits, newest first."""
        skip, most = int(request["skip"]), int(request["limit"])
        paths = [request["path"].encode()] if request.get("path") else None
        walker = Walker(
            self._objects, [self.resolve(request["ref"])], max_entries=skip + most, paths=paths
        )
        commits = [entry.commit for entry in walker][skip:]
        return [_shown(commit) for commit in commits]

    def diff(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return changed files with what they held before and after, between commits or from one to the files now."""
        old = self._tree_of(self.resolve(request["old"]))
        if request.get("new"):
            changed = self._between(old, self._tree_of(self.resolve(request["new"])))
        else:
            changed = self._to_files(old, request["files"])
        wanted = request.get("path") or ""
        rows: list[dict[str, Any]] = []
        left = _MAX_TEXTS
        for path, before, after in changed:
            if wanted and path != wanted and not path.startswith(f"{wanted}/"):
                continue
            if len(rows) >= MAX_CHANGED:
                break
            texts = [self._blob(sha, left) for sha in (before, after)]
            left -= sum(len(text or "") for text in texts)
            rows.append({"path": path, "old": before and texts[0], "new": after and texts[1],
                         "had": before is not None, "has": after is not None})  # fmt: skip
        return rows

    def _tree_of(self, commit: ObjectID) -> ObjectID:
        found = self._objects[commit]
        if not isinstance(found, Commit):
            raise Refused("This is no commit.")
        return ObjectID(found.tree)

    def _between(
        self, old: ObjectID, new: ObjectID
    ) -> Iterator[tuple[str, str | None, str | None]]:
        for change in tree_changes(self._objects, old, new):
            path = (change.new.path if change.new else None) or (
                change.old.path if change.old else None
            )
            before = change.old.sha.decode() if change.old and change.old.sha else None
            after = change.new.sha.decode() if change.new and change.new.sha else None
            yield (path or b"").decode(errors="replace"), before, after

    def _to_files(
        self, old: ObjectID, files: Mapping[str, str]
    ) -> Iterator[tuple[str, str | None, str | None]]:
        tracked = self._files_of(old)
        for path in sorted(tracked):
            if tracked[path] != files.get(path):
                yield path, tracked[path], "now" if path in files else None

    def _files_of(self, tree: ObjectID) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in iter_tree_contents(self._objects, tree):
            if len(found) >= MAX_ENTRIES:
                raise Refused(f"The repository has more than {MAX_ENTRIES} files.")
            if (
                entry.mode is not None
                and entry.mode & 0o170000 == 0o100000
                and entry.path
                and entry.sha
            ):
                found[entry.path.decode(errors="replace")] = entry.sha.decode()
        return found

    def _blob(self, sha: str | None, left: int) -> str | None:
        if sha is None or sha == "now":
            return None
        found = self._objects[sha.encode()]
        if not isinstance(found, Blob) or len(found.data) > min(left, _MAX_TEXT):
            return TOO_LARGE
        return base64.b64encode(found.data).decode()

    def status(self, files: Mapping[str, str]) -> dict[str, Any]:
        """Compare the last commit, the index and the files now."""
        try:
            head: dict[str, str] = self._files_of(self._tree_of(self.resolve("HEAD")))
        except Refused:
            head = {}  # no commit yet
        index = self._index() or head
        return {
            "branch": self._branch(),
            "staged": _changes(head, index),
            "changed": [row for row in _changes(index, files) if row["kind"] != "added"],
            "untracked": sorted(set(files) - set(index)),
        }

    def _index(self) -> dict[str, str]:
        try:
            content = self._tree.read((".git", "index"), max_bytes=MAX_OBJECT)
        except (FileNotFoundError, TreeRefused):
            return {}
        found = {}
        for entry in read_index(BytesIO(content)):
            if entry.mode & 0o170000 == 0o100000:
                found[entry.name.decode(errors="replace")] = bytes(entry.sha).decode()
        return found

    def _branch(self) -> str:
        try:
            content = (
                self._tree.read((".git", "HEAD"), max_bytes=1000).strip().decode(errors="replace")
            )
        except (FileNotFoundError, TreeRefused):
            return ""
        return content.removeprefix("ref:").strip().removeprefix("refs/heads/")


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[dict[str, str]]:
    rows = []
    for path in sorted(set(old) | set(new)):
        if old.get(path) != new.get(path):
            kind = "added" if path not in old else "deleted" if path not in new else "modified"
            rows.append({"path": path, "kind": kind})
    return rows


def _shown(commit: Commit) -> dict[str, Any]:
    text = commit.message.decode(errors="replace")
    try:
        at = datetime.fromtimestamp(commit.author_time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        at = ""
    return {
        "id": commit.id.decode(),
        "author": commit.author.decode(errors="replace")[:200],
        "at": at,
        "subject": text.split("\n", 1)[0][:300],
        "message": text[:5000],
        "parents": [parent.decode() for parent in commit.parents],
    }
