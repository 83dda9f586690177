"""A repository's whole history, taken over object by object: what is sent on are packs whose every object was named anew.

Runs in the limited child process. Of a stranger's control folder only object bytes and refs are read. A pack is sent as it
came, after each object in it was unpacked and hashed, with an index made here; loose objects come as one more pack. No
index, configuration, hook, replacement, graft or multi-pack index of the stranger's is looked at, ever: an object has the
name that its bytes have.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any

from apps.collections.ingestion.sources.base import SourceFailure, shown
from apps.collections.ingestion.sources.git import Send, control_folder
from basics.texts import gettext as _

MAX_REFS = 10_000
_NO_DEFAULT = "refs/remotes/origin/HEAD"  # points to a branch that a clone of one branch has not
_BLOCK = 8 * 1024 * 1024
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_SMALL = 20_000_000  # of a file with refs
_SHA = re.compile(r"[0-9a-f]{40}")
_REF = re.compile(r"refs/(heads|tags|remotes)/[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}


def ref_is_safe(name: str) -> bool:
    """Tell whether a name is one that git takes for a branch, a tag or a remote branch, and that leads nowhere else."""
    parts = name.split("/")
    return (
        _REF.fullmatch(name) is not None
        and name.isprintable()
        and not any(not part or part.startswith(".") or part.endswith((".lock", ".")) for part in parts)
        and ".." not in name
        and "@{" not in name
    )


def history_read(request: Mapping[str, Any], send: Send) -> None:
    """Send a repository's refs and all its objects.

    Args:
        request: ``path`` of the repository; ``known``, commits of an earlier import; ``max_bytes``, of all packs together; ``max_object_bytes``, of one unpacked
            object; ``ref``, the revision that the files come from ("" for HEAD).
        send: takes frames: ``{"part": n, "kind": "pack" or "index"}`` with bytes, again and again, then ``{"history": ...}``
            with ``head`` (a branch, which need not exist yet, or a commit when it is detached), ``refs``, ``shallow`` (commits whose
            parents are not there), ``left`` (refs that were left out, shown), ``packs`` (their number), ``has`` (the known commits that it holds).

    Raises:
        SourceFailure: there is no repository, it borrows objects, is damaged or too large.
    """
    control = control_folder(Path(request["path"]))
    budget = _Bytes(int(request["max_bytes"]))
    known = {bytes.fromhex(sha) for sha in request["known"]}
    names: set[bytes] = set()
    try:
        packs = _packs(control, int(request["max_object_bytes"]), budget, names, send)
        refs, left = _refs(control)
        head = _head(control, str(request["ref"]), refs)
        if bytes.fromhex(refs.get(head, head if _SHA.fullmatch(head) else "")) not in {*names, b""}:
            raise SourceFailure(
                "history_damaged", _("The last commit is not in it (a partial or borrowed copy?).")
            )
        left += [shown(name) for name, sha in refs.items() if bytes.fromhex(sha) not in names]
        refs = {name: sha for name, sha in refs.items() if bytes.fromhex(sha) in names}
        shallow = sorted(set(_SHA.findall(_small(control, "shallow"))))
    except (MemoryError, SourceFailure):
        raise
    except Exception as error:  # whatever foreign bytes bring out of zlib and the parser
        raise SourceFailure(
            "history_damaged", _("It is incomplete or damaged (%(name)s).") % {"name": type(error).__name__}
        ) from error
    facts = {
        "head": head,
        "refs": refs,
        "shallow": shallow,
        "left": left[:100],
        "packs": packs,
        "has": sorted(sha.hex() for sha in known & names),
    }
    send({"history": facts}, b"")


class _Bytes:
    """How many bytes of packs may still come."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise SourceFailure(
                "history_too_large",
                _(
                    "The history has more than %(most)s MB, which is the limit here. Import a clone with "
                    "less of it, such as one made with “git clone --no-local --depth 1000”."
                )
                % {"most": self._most // 1000000},
                status=413,
            )


def _packs(control: Path, max_object: int, budget: _Bytes, held: set[bytes], send: Send) -> int:
    """Send every pack with an index of it made here; return how many, and add to ``held`` the names of all objects."""
    number = 0
    folder = control / "objects" / "pack"
    names = sorted(entry.name for entry in os.scandir(folder)) if folder.is_dir() else []
    for name in names:
        if name.endswith(".pack"):
            with _opened(folder / name, budget) as stream:
                held |= _pack_send(stream, number, max_object, send)
            number += 1
    loose = _loose(control, max_object, budget)
    first = next(loose, None)
    if first is not None:
        with open("loose.pack", "w+b") as stream:
            _pack_write(stream, first, loose)
            stream.seek(0)
            held |= _pack_send(stream, number, max_object, send)
        number += 1
    return number


def _opened(path: Path, budget: _Bytes) -> IO[bytes]:
    stream = os.fdopen(os.open(path, _FILE), "rb")
    found = os.fstat(stream.fileno())
    if not stat.S_ISREG(found.st_mode):
        stream.close()
        raise SourceFailure(
            "history_damaged",
            _("%(name)s of the repository isn't a plain file.") % {"name": shown(path.name)},
        )
    budget.take(found.st_size)
    return stream


def _pack_send(stream: IO[bytes], number: int, max_object: int, send: Send) -> set[bytes]:
    """Send a pack and its index; return the names of its objects."""
    from dulwich.object_format import SHA1
    from dulwich.pack import PackData, write_pack_index_v2

    data = PackData.from_file(stream, SHA1)
    entries = sorted(_named(data, max_object))
    stored = data.get_stored_checksum()
    index = io.BytesIO()
    write_pack_index_v2(index, entries, stored)
    data.close()
    stream.seek(0)
    digest, kept = hashlib.sha1(usedforsecurity=False), b""
    while block := stream.read(_BLOCK):
        send({"part": number, "kind": "pack"}, block)
        whole = kept + block
        digest.update(whole[:-20])
        kept = whole[-20:]
    if digest.digest() != stored or kept != stored:
        raise ValueError("a pack is damaged, or was changed while it was read")
    send({"part": number, "kind": "index"}, index.getvalue())
    return {entry[0] for entry in entries}


def _named(data: Any, max_object: int) -> Iterator[tuple[bytes, int, int | None]]:
    """Unpack every object of a pack and yield the name that its bytes have, its place and its checksum."""
    from dulwich.pack import PackIndexer, UnpackedObject

    class Limited(PackIndexer):
        def _result(self, unpacked: UnpackedObject) -> Any:
            chunks = unpacked.obj_chunks
            if sum(map(len, [chunks] if isinstance(chunks, bytes) else chunks or ())) > max_object:
                raise _object_too_large(max_object)
            return super()._result(unpacked)

    # No reference outside of the pack is followed: a thin pack is refused.
    yield from Limited.for_pack_data(data, resolve_ext_ref=None)


def _object_too_large(max_object: int) -> SourceFailure:
    return SourceFailure(
        "history_too_large",
        _("The history holds an object of more than %(max_object)s MB unpacked, the limit here.")
        % {"max_object": max_object // 1000000},
        status=413,
    )


def _loose(control: Path, max_object: int, budget: _Bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield name, type and content of each loose object; the name is that of its bytes, whatever its file is called."""
    for folder in sorted((control / "objects").iterdir()):
        if not re.fullmatch(r"[0-9a-f]{2}", folder.name) or not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            if not re.fullmatch(r"[0-9a-f]{38}", file.name):
                continue
            with _opened(file, budget) as stream:
                packed = stream.read()
            unpack = zlib.decompressobj()
            content = unpack.decompress(packed, max_object + 100)
            if unpack.unconsumed_tail:
                raise _object_too_large(max_object)
            head, _, body = content.partition(b"\0")
            kind, _, size = head.partition(b" ")
            if kind not in _KINDS or size != str(len(body)).encode():
                raise ValueError("a loose object is damaged")
            yield hashlib.sha1(content, usedforsecurity=False).digest(), _KINDS[kind], body


def _pack_write(
    stream: IO[bytes], first: tuple[bytes, int, bytes], rest: Iterator[tuple[bytes, int, bytes]]
) -> None:
    """Write loose objects as one pack, without deltas; the number of them goes to its head at the end."""
    from dulwich.object_format import SHA1
    from dulwich.pack import pack_object_header

    digest = hashlib.sha1(usedforsecurity=False)
    places: set[bytes] = set()
    with open("loose.body", "w+b") as bodies:
        for sha, kind, body in chain((first,), rest):
            if sha in places:
                continue
            places.add(sha)
            bodies.write(bytes(pack_object_header(kind, None, len(body), SHA1)))
            bodies.write(zlib.compress(body))
        bodies.seek(0)
        head = b"PACK" + (2).to_bytes(4, "big") + len(places).to_bytes(4, "big")
        digest.update(head)
        stream.write(head)
        while block := bodies.read(_BLOCK):
            digest.update(block)
            stream.write(block)
    stream.write(digest.digest())
    stream.flush()


def _small(control: Path, name: str) -> str:
    """Return a small file of the control folder, "" when there is none."""
    try:
        descriptor = os.open(control / name, _FILE)
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_SMALL:
            raise ValueError(f"{name} isn't a small plain file")
        return stream.read(_MAX_SMALL).decode("utf-8", "replace")


def _refs(control: Path) -> tuple[dict[str, str], list[str]]:
    """Return branches, tags and remote branches with what they name, and the names that were left out."""
    found: dict[str, str] = {}
    links: dict[str, str] = {}
    left: list[str] = []
    for line in _small(control, "packed-refs").splitlines():
        sha, _, name = line.partition(" ")
        if _SHA.fullmatch(sha):
            found[name] = sha
    for folder, folders, files in os.walk(control / "refs"):
        folders.sort()
        for file in sorted(files):
            name = os.path.relpath(os.path.join(folder, file), control)
            text = _small(control, name).strip()
            if _SHA.fullmatch(text):
                found[name] = text
            elif text.startswith("ref:"):
                links[name] = text[4:].strip()
            else:
                left.append(shown(name))
            if len(found) + len(links) + len(left) > 10 * MAX_REFS:
                raise ValueError("too many refs")
    found |= {name: found[target] for name, target in links.items() if target in found}
    left += [shown(name) for name in links if name not in found and name != _NO_DEFAULT]
    safe = {name: sha for name, sha in found.items() if ref_is_safe(name)}
    left += [shown(name) for name in found if name not in safe and not _is_ours_to_drop(name)]
    kept = dict(sorted(safe.items())[:MAX_REFS])
    return kept, sorted({*left, *(shown(name) for name in safe if name not in kept)})


def _is_ours_to_drop(name: str) -> bool:
    """Tell whether a ref is of the bookkeeping of git or a forge, not worth a word: stashes, notes, pull requests."""
    return name.startswith(("refs/stash", "refs/notes/", "refs/pull/", "refs/bisect/"))


def _head(control: Path, ref: str, refs: Mapping[str, str]) -> str:
    """Return the branch that the files are of, or the commit where that is no branch; "refs/heads/x" may not exist yet."""
    if ref:
        for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/origin/"):
            if prefix + ref in refs:
                return prefix + ref if prefix == "refs/heads/" else refs[prefix + ref]
        if ref in refs:
            return ref if ref.startswith("refs/heads/") else refs[ref]
        return ref
    text = _small(control, "HEAD").strip()
    if text.startswith("ref:"):
        name = text[4:].strip()
        if name.startswith("refs/heads/") and ref_is_safe(name):
            return name
        raise ValueError("HEAD names no branch")
    if not _SHA.fullmatch(text):
        raise ValueError("HEAD is damaged")
    return text
