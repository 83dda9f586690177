"""Read and write a folder without ever leaving it, whoever changes it meanwhile.

Every step is taken from an open directory by one name (``openat`` with ``O_NOFOLLOW``), so a link in the way ends the walk,
and what was checked is what is used: there is no path between a check and a use that somebody could swap. A file is judged
after it is open, by its descriptor: a regular file with one name. A hard link to something outside has two.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from apps.collections.tree.paths import MAX_DEPTH
from basics.errors import DomainError
from basics.texts import gettext as _

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20
_REPLACED_TRIES = 20
TEMPORARY = ".gw-tmp-"

Parts = Sequence[str]


class TreeRefused(DomainError):
    """Something stands in the tree that must not be used: a link, a device, a file with other names outside."""

    def __init__(self, path: str, sentence: str, **facts: int) -> None:
        super().__init__("path_refused", sentence % {"path": path, **facts}, status=422, data={"path": path})


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands under a name.

    Attributes:
        path: names joined by slashes, from the root.
        kind: "file", "folder", or "other" for what may not be used.
        size: bytes of a file.
        changed_ns: time of its last change, in nanoseconds.
        inode: its number; with size and time it tells a replaced file.
    """

    path: str
    kind: str
    size: int
    changed_ns: int
    inode: int


class SourceTree:
    """An open root folder. Use it as a context manager; it must not outlive the block.

    Args:
        root: descriptor of the folder; closed at the end.
    """

    def __init__(self, root: int) -> None:
        self._root = root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    @property
    def descriptor(self) -> int:
        """Give the root's descriptor, for a child process that inherits it; it stays this object's."""
        return self._root

    def read(self, parts: Parts, *, max_bytes: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileNotFoundError: there is none.
            TreeRefused: it isn't a plain file, has more names than this one, is too large, or a link leads to it.
        """
        name = "/".join(parts)
        for _try in range(_REPLACED_TRIES):
            with self._parent(parts) as folder, _refusing(name):
                descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
            found = os.fstat(descriptor)
            if found.st_nlink:
                break
            os.close(descriptor)  # another writer replaced it between our open and our look
        else:
            raise FileNotFoundError(errno.ENOENT, "replaced again and again", name)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            _plain(found, name)
            if found.st_size > max_bytes:
                sentence = _("“%(path)s” cannot be used: it has %(size)s bytes, more than %(most)s.")
                raise TreeRefused(name, sentence, size=found.st_size, most=max_bytes)
            blocks, size = [], 0
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > max_bytes:
                    sentence = _("“%(path)s” cannot be used: it has more than %(most)s bytes.")
                    raise TreeRefused(name, sentence, most=max_bytes)
                blocks.append(block)
        return b"".join(blocks)

    def write(self, parts: Parts, content: bytes) -> Entry:
        """Put bytes under a name in one step: whoever reads sees the old file or the new one, whole.

        Folders on the way are made. A link that stands under the name is replaced, never followed.

        Raises:
            TreeRefused: a file stands where a folder must, or a folder where the file must.
        """
        name = "/".join(parts)
        with self._parent(parts, is_making=True) as folder:
            temporary = TEMPORARY + secrets.token_hex(8)
            descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                    found = os.fstat(stream.fileno())
                with _refusing(name):
                    os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                _unlink(temporary, folder)
                raise
            os.fsync(folder)
        return Entry(name, "file", found.st_size, found.st_mtime_ns, found.st_ino)

    def remove(self, parts: Parts) -> bool:
        """Delete what stands under a name, and folders above that are empty then; links go, not their targets.

        Returns:
            Whether there was something.

        Raises:
            TreeRefused: it is a folder, or a link leads to it.
        """
        name = "/".join(parts)
        try:
            with self._parent(parts) as folder, _refusing(name):
                os.unlink(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            return False
        for depth in range(len(parts) - 1, 0, -1):
            try:
                with self._parent(parts[:depth]) as folder:
                    os.rmdir(parts[depth - 1], dir_fd=folder)
            except OSError:
                break  # it holds something else, or is gone: both are fine
        return True

    def stat(self, parts: Parts) -> Entry | None:
        """Return what stands under a name, None if nothing does. A link is an "other", not its target."""
        name = "/".join(parts)
        try:
            with self._parent(parts) as folder, _refusing(name):
                return _entry(name, os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def entries(self, parts: Parts = ()) -> list[Entry]:
        """Return what a folder holds, by name.

        Raises:
            FileNotFoundError: there is no such folder.
            TreeRefused: a link leads to it, or it is no folder.
        """
        with self._folder(parts) as folder:
            return _entries(folder, parts)

    def walk(self, parts: Parts = ()) -> Iterator[Entry]:
        """Yield all that is below a folder, folders before what they hold; links and devices as "other"."""
        try:
            found = self.entries(parts)
        except (FileNotFoundError, TreeRefused):
            return  # swapped or removed since it was listed
        for entry in found:
            yield entry
            if entry.kind == "folder" and len(parts) < MAX_DEPTH:
                yield from self.walk((*parts, entry.path.rsplit("/", 1)[-1]))

    def clear(self, parts: Parts) -> None:
        """Delete what stands under a name with all that is below it."""
        found = self.stat(parts)
        if found is None:
            return
        if found.kind != "folder":
            self.remove(parts)
            return
        with self._parent(parts) as folder, _refusing(found.path):
            _remove_below(folder, parts[-1])

    @contextmanager
    def _folder(self, parts: Parts, *, is_making: bool = False) -> Iterator[int]:
        if len(parts) > MAX_DEPTH:
            sentence = _("“%(path)s” cannot be used: folders can be at most %(most)s levels deep.")
            raise TreeRefused("/".join(parts[:3]) + "/…", sentence, most=MAX_DEPTH)
        current = os.open(".", _FOLDER, dir_fd=self._root)
        try:
            for depth, part in enumerate(parts, start=1):
                _single(part)
                name = "/".join(parts[:depth])
                with _refusing(name):
                    if is_making:
                        with suppress(FileExistsError):  # opened below: a link is told from a folder
                            os.mkdir(part, 0o700, dir_fd=current)
                    following = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    @contextmanager
    def _parent(self, parts: Parts, *, is_making: bool = False) -> Iterator[int]:
        if not parts:
            raise TreeRefused("", _("“%(path)s” cannot be used: the root isn't a file."))
        _single(parts[-1])
        with self._folder(parts[:-1], is_making=is_making) as folder:
            yield folder


def tree_open(base: Path, names: Parts, *, is_making: bool = True) -> SourceTree:
    """Open a root folder below a folder that the operator named; each name on the way may be no link.

    Args:
        base: the operator's folder, which may be a link.
        names: folders below it, the last one the root.
        is_making: make what is missing.

    Raises:
        FileNotFoundError: it does not exist and is not to be made.
        TreeRefused: a link or a file stands in the way.
    """
    if is_making:
        base.mkdir(parents=True, exist_ok=True)
    start = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with SourceTree(start) as outer, outer._folder(names, is_making=is_making) as found:
        return SourceTree(os.dup(found))


def tree_remove(base: Path, names: Parts) -> None:
    """Delete a root folder with all that is in it; nothing if there is none."""
    try:
        with tree_open(base, names[:-1], is_making=False) as outer:
            outer.clear(names[-1:])
    except FileNotFoundError:
        return


def _single(name: str) -> None:
    """Refuse what the kernel would not take as one name in this folder: the last net, below ``path_parts``."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise TreeRefused(repr(name), _("“%(path)s” cannot be used: it isn't a file name."))


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Turn what the kernel says about links, devices and wrong kinds into a refusal."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        why = {
            errno.ELOOP: _("“%(path)s” cannot be used: there is a link."),
            errno.EMLINK: _("“%(path)s” cannot be used: there is a link."),
            errno.ENOTDIR: _(
                "“%(path)s” cannot be used: there is a file or a link where a folder is needed."
            ),
            errno.EISDIR: _("“%(path)s” cannot be used: it is a folder."),
            errno.ENXIO: _("“%(path)s” cannot be used: it isn't a plain file."),
            errno.ENODEV: _("“%(path)s” cannot be used: it isn't a plain file."),
            errno.EACCES: _("“%(path)s” cannot be used: it can't be opened."),
            errno.EPERM: _("“%(path)s” cannot be used: it can't be changed."),
            errno.ENAMETOOLONG: _("“%(path)s” cannot be used: its name is too long."),
            errno.ENOTEMPTY: _("“%(path)s” cannot be used: it is a folder."),
            errno.EEXIST: _("“%(path)s” cannot be used: it is a folder."),
        }.get(error.errno or 0)
        if why is None:
            raise
        raise TreeRefused(name, why) from error


def _plain(found: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TreeRefused(name, _("“%(path)s” cannot be used: it isn't a plain file."))
    if found.st_nlink != 1:
        raise TreeRefused(name, _("“%(path)s” cannot be used: it has another name elsewhere (a hard link)."))


def _entry(path: str, found: os.stat_result) -> Entry:
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "other"
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        kind = "file"
    return Entry(path, kind, found.st_size, found.st_mtime_ns, found.st_ino)


def _entries(folder: int, parts: Parts) -> list[Entry]:
    found = []
    with os.scandir(folder) as names:
        for name in sorted(entry.name for entry in names):
            try:
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since it was listed
            found.append(_entry("/".join((*parts, name)), about))
    return found


def _unlink(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return  # renamed already


def _remove_below(parent: int, name: str) -> None:
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        for entry in _entries(folder, ()):
            if entry.kind == "folder":
                _remove_below(folder, entry.path)
            else:
                _unlink(entry.path, folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)
