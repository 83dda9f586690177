"""Somebody swaps files and folders for links while the tree is read and written: no byte comes from or goes outside."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.collections.tree.tree import SourceTree, TreeRefused, tree_open

if sys.platform != "linux":
    pytest.skip("names are exchanged with a call of Linux", allow_module_level=True)
_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
SECRET = b"secret of the outside"
SECONDS = 2.0
NAMES = ("trees", "t1", "7")


class Swapper(threading.Thread):
    """Exchanges two names again and again until told to stop."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._act, self.done, self.turns = act, threading.Event(), 0

    def run(self) -> None:
        while not self.done.is_set():
            self._act()
            self.turns += 1


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step, as an attacker would who wants no gap to be seen."""
    first, second = (ctypes.c_char_p(os.fsencode(path)) for path in (one, other))
    if _LIBC.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@pytest.mark.parametrize("what", ["file", "folder", "hard", "parent"])
def test_nothing_escapes_when_names_are_swapped_for_links_meanwhile(tmp_path: Path, what: str) -> None:
    outside = tmp_path / "outside"
    (outside / "b").mkdir(parents=True)
    for path in (outside / "file.txt", outside / "b" / "file.txt"):
        path.write_bytes(SECRET)
    root = tmp_path.joinpath(*NAMES)
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file.txt").write_bytes(b"inside")
    target, decoy = {
        "file": (root / "a/b/file.txt", root / "a/b/decoy"),
        "hard": (root / "a/b/file.txt", root / "a/b/decoy"),
        "folder": (root / "a/b", root / "a/decoy"),
        "parent": (root / "a", root / "decoy"),
    }[what]
    if what == "hard":
        os.link(outside / "file.txt", decoy)
    elif what == "file":
        decoy.symlink_to(outside / "file.txt")
    elif what == "folder":
        decoy.symlink_to(outside / "b")
    else:
        decoy.symlink_to(outside)
    before = sorted(str(path) for path in outside.rglob("*"))
    swapper = Swapper(lambda: exchange(target, decoy))
    reads = writes = refused = 0
    with tree_open(tmp_path, NAMES) as tree:
        swapper.start()
        end = time.monotonic() + SECONDS
        try:
            # On a busy machine for as long as it takes until all have met each other.
            while time.monotonic() < end or not (
                swapper.turns > 100 and reads and refused and (writes or what in ("file", "hard"))
            ):
                got = _quietly(lambda: tree.read(("a", "b", "file.txt"), max_bytes=100))
                assert got in (None, b"inside", b"mine")
                reads += got is not None
                refused += got is None
                if what in ("folder", "parent"):
                    # Under a swapped name a write may replace the decoy itself, and the race would be over.
                    writes += _quietly(lambda: _written(tree)) is not None
                list(tree.walk())
        finally:
            swapper.done.set()
            swapper.join()
    assert swapper.turns > 100
    assert reads > 0
    assert refused > 0
    assert writes > 0 or what in ("file", "hard")
    assert sorted(str(path) for path in outside.rglob("*")) == before
    assert (outside / "file.txt").read_bytes() == SECRET
    assert (outside / "b" / "file.txt").read_bytes() == SECRET


def _quietly(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TreeRefused, FileNotFoundError):
        return None


def _written(tree: SourceTree) -> object:
    tree.write(("a", "b", "new.txt"), b"mine")
    return tree.write(("a", "b", "file.txt"), b"mine")


def test_reader_sees_a_whole_file_when_writers_replace_it_meanwhile(tmp_path: Path) -> None:
    with tree_open(tmp_path, NAMES) as tree:
        texts = [bytes([letter]) * 100_000 for letter in b"abc"]
        tree.write(("file.txt",), texts[0])
        number = iter(range(10**9))
        writer = Swapper(lambda: (tree.write(("file.txt",), texts[next(number) % 3]), None)[1])
        writer.start()
        end = time.monotonic() + 1
        try:
            while time.monotonic() < end or writer.turns <= 3:
                assert tree.read(("file.txt",), max_bytes=200_000) in texts
        finally:
            writer.done.set()
            writer.join()
        assert writer.turns > 3
        assert [entry.path for entry in tree.entries()] == ["file.txt"]
