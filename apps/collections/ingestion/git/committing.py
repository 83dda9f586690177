"""A commit: new bytes, the folders that change with them, and the commit object, as one small pack. Runs in the limited child."""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from collections.abc import Mapping
from typing import Any

from dulwich.index import validate_path_element_default, validate_path_element_hfs, validate_path_element_ntfs
from dulwich.object_format import SHA1
from dulwich.pack import pack_object_header, write_pack_index_v2

from apps.collections.ingestion.git.objects import Objects, Refused
from basics.texts import gettext as _

_FOLDER, _FILE, _KIND = 0o040000, 0o100644, 0o170000
_NUMBERS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}

Node = dict[bytes, Any]


def commit_make(objects: Objects, head: str | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """Make a commit on top of the last one.

    Args:
        objects: of the repository.
        head: its last commit, None before the first.
        request: ``changes``, path to bytes in base64, None for a file that is gone; ``author``, name with address;
            ``time``, in seconds since 1970; ``message``; ``merge``, numbers of packs whose objects go into the new one.

    Returns:
        ``commit`` and ``tree``, and ``pack`` and ``index`` in base64.

    Raises:
        Refused: nothing differs from the last commit, or a path cannot be in a repository.
    """
    made = _Made()
    old = objects.commit(head).tree if head else None
    known = objects.files(old) if old else {}
    root: Node = {}
    for path, content in request["changes"].items():
        file = known.get(path)
        raw = file.raw if file else path.encode()
        node = root
        *folders, name = raw.split(b"/")
        for part in (*folders, name):
            _name_check(part, path)
        for part in folders:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise Refused(_("“%(path)s” is inside a file.") % {"path": path})
        sha = None if content is None else made.add("blob", base64.b64decode(content))
        node[name] = None if sha is None else (file.mode if file else _FILE, sha)
    tree = _tree(objects, made, old, root) or made.add("tree", b"")
    if tree == (old or made.add("tree", b"")):
        raise Refused(_("There is nothing to commit: the files are as in the last commit."))
    who = f"{request['author']} {int(request['time'])} +0000"
    lines = [f"tree {tree}", *([f"parent {head}"] if head else []), f"author {who}", f"committer {who}"]
    body = "\n".join(lines) + f"\n\n{request['message'].strip()}\n"
    commit = made.add("commit", body.encode())
    for number in request["merge"]:
        made.take(objects.packs[number])
    pack, index = made.pack()
    return {
        "commit": commit,
        "tree": tree,
        "pack": base64.b64encode(pack).decode(),
        "index": base64.b64encode(index).decode(),
    }


def _name_check(name: bytes, path: str) -> None:
    """Refuse a name that some system's git would take for its own folder, or for a way out."""
    is_good = all(
        check(name)
        for check in (validate_path_element_default, validate_path_element_ntfs, validate_path_element_hfs)
    )
    if not is_good or b"\0" in name or b"\\" in name or len(name) > 255:
        raise Refused(_("“%(path)s” can't be in a repository. Rename the file.") % {"path": path[:200]})


def _tree(objects: Objects, made: _Made, old: str | None, node: Node) -> str | None:
    """Return a folder with its changes made; None when nothing is left in it."""
    entries = {name: (mode, sha) for name, mode, sha in (objects.tree(old) if old else ())}
    for name, change in node.items():
        mode, sha = entries.get(name, (0, ""))
        if isinstance(change, dict):
            if mode and mode & _KIND not in (_FOLDER, 0o100000):
                raise Refused(
                    _("“%(path)s” is a link or a submodule in the repository.")
                    % {"path": name.decode(errors="replace")}
                )
            inner = _tree(objects, made, sha if mode & _KIND == _FOLDER else None, change)
            if inner is not None:
                entries[name] = (_FOLDER, inner)
            elif mode & _KIND == _FOLDER:
                del entries[name]
        elif change is not None:
            if mode & _KIND not in (0, 0o100000, _FOLDER):
                raise Refused(
                    _("“%(path)s” is a link or a submodule in the repository.")
                    % {"path": name.decode(errors="replace")}
                )
            entries[name] = change
        elif mode and mode & _KIND != _FOLDER:
            del entries[name]
    if not entries:
        return None
    # Git orders folders as if their names ended with a slash.
    ordered = sorted(entries.items(), key=lambda one: one[0] + b"/" * (one[1][0] & _KIND == _FOLDER))
    return made.add(
        "tree", b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(sha)) for name, (mode, sha) in ordered)
    )


class _Made:
    """Objects that a new pack gets."""

    def __init__(self) -> None:
        self._objects: dict[bytes, tuple[int, bytes]] = {}

    def add(self, kind: str, content: bytes) -> str:
        """Add an object and return its name."""
        head = f"{kind} {len(content)}\0".encode()
        name = hashlib.sha1(head + content, usedforsecurity=False).digest()
        self._objects[name] = (_NUMBERS[kind], content)
        return name.hex()

    def take(self, pack: Any) -> None:
        """Add all objects of a pack."""
        for name in pack.index:
            self._objects[bytes.fromhex(name.decode("ascii"))] = pack.get_raw(name)

    def pack(self) -> tuple[bytes, bytes]:
        """Return the pack, without deltas, and its index."""
        body = io.BytesIO()
        body.write(b"PACK" + (2).to_bytes(4, "big") + len(self._objects).to_bytes(4, "big"))
        entries = []
        for name, (kind, content) in sorted(self._objects.items()):
            packed = bytes(pack_object_header(kind, None, len(content), SHA1)) + zlib.compress(content)
            entries.append((name, body.tell(), zlib.crc32(packed)))
            body.write(packed)
        checksum = hashlib.sha1(body.getvalue(), usedforsecurity=False).digest()
        body.write(checksum)
        index = io.BytesIO()
        write_pack_index_v2(index, entries, checksum)
        return body.getvalue(), index.getvalue()
