"""The objects of a repository: packs by descriptor, trees and commits read once, files of a tree by path."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from dulwich.object_format import SHA1
from dulwich.objects import RawObjectID, parse_tree
from dulwich.pack import Pack, PackData, load_pack_index_file

from basics.errors import DomainError
from basics.texts import gettext as _
from basics.texts import number_told

MAX_ENTRIES = 200_000
MAX_DEPTH = 200
_COMMIT, _TREE, _BLOB, _TAG = 1, 2, 3, 4
_ENCODINGS = frozenset(
    {
        "iso-8859-1",
        "iso-8859-15",
        "latin-1",
        "latin1",
        "windows-1252",
        "cp1252",
        "koi8-r",
        "euc-jp",
        "shift_jis",
        "gbk",
        "big5",
    }
)
_KIND, _FOLDER, _FILE = 0o170000, 0o040000, 0o100000

Item = tuple[bytes, int, str]


class Refused(DomainError):
    """What was asked cannot be done; the message is for the person who asked."""

    def __init__(self, message: str) -> None:
        super().__init__("work_refused", message, status=422)


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit says.

    Attributes:
        sha, tree, parents: names of objects, in hex.
        time: seconds since 1970 of the committer, by which commits are ordered.
        author: with the address; author_time likewise.
        message: all of it.
    """

    sha: str
    tree: str
    parents: tuple[str, ...]
    time: int
    author: str
    author_time: int
    message: str


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A regular file of a tree: the name of its bytes, its mode, and its path as the tree has it."""

    sha: str
    mode: int
    raw: bytes


class Objects:
    """The objects of a repository.

    Args:
        packs: descriptors of each pack and its index.
        shallow: commits whose parents are not there.
    """

    def __init__(self, packs: Sequence[Sequence[int]], shallow: Sequence[str] = ()) -> None:
        self.packs = [_pack(*pair) for pair in packs]
        self._shallow = frozenset(shallow)
        self.tree = lru_cache(maxsize=50_000)(self._tree)
        self.commit = lru_cache(maxsize=None)(self._commit)

    def raw(self, sha: str) -> tuple[int, bytes]:
        """Return type and content of an object. Raises KeyError."""
        name = RawObjectID(bytes.fromhex(sha))
        for pack in self.packs:
            try:
                kind, content = pack.get_raw(name)
            except KeyError:
                continue
            return kind, content
        raise KeyError(sha)

    def holds(self, sha: str) -> bool:
        """Tell whether there is an object of this name."""
        name = RawObjectID(bytes.fromhex(sha))
        return any(name in pack for pack in self.packs)

    def named(self, prefix: str) -> set[str]:
        """Return the names of commits that begin so; at least four characters."""
        low = bytes.fromhex(prefix + "0" * (-len(prefix) % 2))
        found: set[str] = set()
        for pack in self.packs:
            for name in pack.index.iter_prefix(low[: len(prefix) // 2]):
                sha = bytes(name).hex()
                if sha.startswith(prefix) and sha not in found and self.raw(sha)[0] == _COMMIT:
                    found.add(sha)
        return found

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a file."""
        kind, content = self.raw(sha)
        if kind != _BLOB:
            raise ValueError("no file")
        return content

    def peeled(self, sha: str) -> str:
        """Return the commit that a name is of, or that its tag names."""
        for _step in range(5):
            kind, content = self.raw(sha)
            if kind == _COMMIT:
                return sha
            if kind != _TAG or content[:7] != b"object ":
                break
            sha = content[7:47].decode("ascii")
            bytes.fromhex(sha)
        raise Refused(_("This isn't a commit."))

    def _commit(self, sha: str) -> Commit:
        kind, content = self.raw(sha)
        if kind != _COMMIT:
            raise ValueError("no commit")
        head, _, message = content.partition(b"\n\n")
        tree, parents, author, committer = "", [], b"", b""
        encoding = "utf-8"
        for line in head.split(b"\n"):
            word, _, value = line.partition(b" ")
            if word == b"tree" and not tree:
                tree = _name(value)
            elif word == b"parent":
                parents.append(_name(value))
            elif word == b"author" and not author:
                author = value
            elif word == b"committer" and not committer:
                committer = value
            elif word == b"encoding":
                encoding = _codec(value)
        if not tree:
            raise ValueError("a commit without a tree")
        if sha in self._shallow:
            parents = []
        who, when = _person(author, encoding)
        text = message.decode(encoding, "replace")
        return Commit(sha, tree, tuple(parents), _person(committer, encoding)[1], who, when, text)

    def _tree(self, sha: str) -> tuple[Item, ...]:
        kind, content = self.raw(sha)
        if kind != _TREE:
            raise ValueError("no folder")
        return tuple((name, mode, bytes(one).decode("ascii")) for name, mode, one in _parsed(content))

    def at(self, tree: str, path: Sequence[bytes]) -> tuple[int, str] | None:
        """Return mode and name of what a tree has at a path, None for nothing."""
        mode, sha = _FOLDER, tree
        for part in path:
            if mode & _KIND != _FOLDER:
                return None
            found = next(((m, s) for name, m, s in self.tree(sha) if name == part), None)
            if found is None:
                return None
            mode, sha = found
        return mode, sha

    def files(self, tree: str) -> dict[str, TreeFile]:
        """Return the regular files of a tree by path (NFC); links and submodules are none."""
        found: dict[str, TreeFile] = {}
        seen = count(1)
        waiting: list[tuple[bytes, str, int]] = [(b"", tree, 0)]
        while waiting:
            prefix, sha, depth = waiting.pop()
            for name, mode, one in self.tree(sha):
                if next(seen) > MAX_ENTRIES or depth > MAX_DEPTH:
                    raise Refused(
                        _("The repository has more than %(files)s files or %(levels)s levels of folders.")
                        % {"files": number_told(MAX_ENTRIES), "levels": MAX_DEPTH}
                    )
                raw = prefix + name
                if mode & _KIND == _FOLDER:
                    waiting.append((raw + b"/", one, depth + 1))
                elif mode & _KIND == _FILE:
                    found[path_shown(raw)] = TreeFile(one, mode, raw)
        return found

    def changes(self, old: str | None, new: str | None) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield path, old and new name of each regular file in which two trees differ, in the order of trees."""
        yield from self._changes(old, new, b"", 0, count(1))

    def _changes(
        self, old: str | None, new: str | None, prefix: bytes, depth: int, seen: count[int]
    ) -> Iterator[tuple[str, str | None, str | None]]:
        before, after = self._sides(old), self._sides(new)
        for name in sorted({*before, *after}):
            if next(seen) > MAX_ENTRIES or depth > MAX_DEPTH:
                raise Refused(
                    _("More than %(files)s files or %(levels)s levels of folders differ.")
                    % {"files": number_told(MAX_ENTRIES), "levels": MAX_DEPTH}
                )
            a, b = before.get(name), after.get(name)
            if a == b:
                continue
            shas = a and a[1], b and b[1]
            if name.endswith(b"/"):
                yield from self._changes(*shas, prefix + name, depth + 1, seen)
            else:
                yield path_shown(prefix + name), *shas

    def _sides(self, tree: str | None) -> dict[bytes, tuple[int, str]]:
        """Return folders (with a slash) and regular files of a tree."""
        found: dict[bytes, tuple[int, str]] = {}
        for name, mode, sha in self.tree(tree) if tree else ():
            if mode & _KIND == _FOLDER:
                found[name + b"/"] = (mode, sha)
            elif mode & _KIND == _FILE:
                found[name] = (mode, sha)
        return found


def path_shown(raw: bytes) -> str:
    """Return a path of a tree as a text that can be stored and sent; NFC, as the paths of documents are."""
    return unicodedata.normalize("NFC", raw.decode("utf-8", "replace"))


def _pack(data: int, index: int) -> Pack:
    stream = os.fdopen(os.dup(data), "rb")
    return Pack.from_objects(
        PackData.from_file(stream, SHA1), load_pack_index_file("index", os.fdopen(os.dup(index), "rb"), SHA1)
    )


def _parsed(content: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    for entry in parse_tree(content, 20):
        yield entry[0], entry[1], entry[2]


def _name(value: bytes) -> str:
    if len(value) != 40:
        raise ValueError("no name of an object")
    bytes.fromhex(value.decode("ascii"))
    return value.decode("ascii")


def _codec(value: bytes) -> str:
    name = value.decode("ascii", "replace").lower()
    return name if name in _ENCODINGS else "utf-8"


def _person(value: bytes, encoding: str) -> tuple[str, int]:
    """Return name with address, and seconds since 1970, of a line such as ``Ann <ann@example.org> 1700000000 +0100``."""
    who, _, rest = value.rpartition(b"> ")
    seconds = rest.split(b" ", 1)[0]
    time = int(seconds) if seconds.isdigit() and len(seconds) < 13 else 0
    return (who + b">" if who else value).decode(encoding, "replace"), time
