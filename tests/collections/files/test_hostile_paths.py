"""Whatever a path says and whatever stands in the tree: nothing outside is read, written, listed or removed."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from apps.collections.tree.paths import PathRefused, path_parts
from apps.collections.tree.tree import SourceTree, TreeRefused, tree_open, tree_remove
from tests.collections.files.corpus import PATHS, TRICKS

SECRET = b"secret of the outside"
NAMES = ("trees", "t1", "7")


@dataclass(frozen=True)
class World:
    """A tree, and beside it what must stay as it is."""

    base: Path
    root: Path
    outside: Path

    def picture(self) -> dict[str, tuple[int, int, bytes]]:
        """Return all that is outside of the root: kind, links' targets, contents."""
        seen = {}
        for folder, folders, files in os.walk(self.base, followlinks=False):
            if Path(folder) == self.root:
                folders.clear()
                continue
            for name in [*folders, *files]:
                path = Path(folder, name)
                about = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
                seen[str(path)] = (about.st_mode, about.st_ino, content)
        return seen


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    base = tmp_path / "data"
    root, outside = base.joinpath(*NAMES), tmp_path / "data" / "outside"
    root.mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    for place in (outside, outside / "deep", base, base / "trees", base / "trees" / "t1"):
        (place / "secret.txt").write_bytes(SECRET)
    inner = root / "inner"
    (inner / "deeper").mkdir(parents=True)
    (root / "plain.txt").write_bytes(b"plain")
    (inner / "plain.txt").write_bytes(b"plain")
    links: dict[str, str | Path] = {
        "file-link": outside / "secret.txt",
        "folder-link": outside,
        "up-link": "../../..",
        "absolute-link": "/etc/passwd",
        "etc-link": "/etc",
        "root-link": "/",
        "chain-1": "chain-2",
        "chain-2": outside,
        "loop": "loop",
        "dangling": outside / "new",
        "self-link": ".",
        "proc-link": "/proc/self",
        "fd-link": "/proc/self/fd",
        "inner/file-link": outside / "secret.txt",
        "inner/folder-link": outside,
        "inner/deeper/folder-link": outside,
        "inner/up": "../../..",
        "relative-link": "../secret.txt",
        "inner-link": "inner",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    for place in (root, inner):
        os.link(outside / "secret.txt", place / "hard")
        os.mkfifo(place / "fifo")
    bound = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(root)  # the path of a socket has at most 107 bytes
    try:
        bound.bind("socket")
    finally:
        os.chdir(here)
    for name, minor in (("device-null", 3), ("device-zero", 5)):
        try:
            os.mknod(root / name, 0o600 | stat.S_IFCHR, os.makedev(1, minor))
        except PermissionError:
            (root / name).symlink_to(f"/dev/{name.removeprefix('device-')}")
    yield World(base, root, outside)
    bound.close()


def opened(world: World) -> SourceTree:
    return tree_open(world.base, NAMES)


def read(tree: SourceTree, path: str) -> object:
    return tree.read(path_parts(path), max_bytes=1000)


def raw_read(tree: SourceTree, path: str) -> object:
    """Read as a caller would that forgot to check the path."""
    return tree.read(path.split("/"), max_bytes=1000)


def write(tree: SourceTree, path: str) -> object:
    return tree.write(path_parts(path), b"mine")


def raw_write(tree: SourceTree, path: str) -> object:
    return tree.write(path.split("/"), b"mine")


def remove(tree: SourceTree, path: str) -> object:
    return tree.remove(path_parts(path))


def raw_remove(tree: SourceTree, path: str) -> object:
    return tree.remove(path.split("/"))


def clear(tree: SourceTree, path: str) -> object:
    tree.clear(path.split("/"))
    return None


def listed(tree: SourceTree, path: str) -> object:
    return [entry.path for entry in tree.walk(path_parts(path, is_folder=True))]


def raw_listed(tree: SourceTree, path: str) -> object:
    return [entry.path for entry in tree.entries(path.split("/"))]


# Those that look come first: what the others write inside may bear any name.
ACTS: list[Callable[[SourceTree, str], object]] = [
    read,
    raw_read,
    listed,
    raw_listed,
    write,
    raw_write,
    remove,
    raw_remove,
    clear,
]


def test_corpus_is_large_enough() -> None:
    assert len(set(PATHS)) + len(set(TRICKS)) >= 250


@pytest.mark.parametrize("number", range(len(PATHS) + len(TRICKS)))
def test_nothing_outside_is_touched_when_path_is_hostile(world: World, number: int) -> None:
    path = [*PATHS, *TRICKS][number].replace("{out}", str(world.outside))
    before = world.picture()
    for act in ACTS:
        with opened(world) as tree:
            try:
                answer = act(tree, path)
            except (PathRefused, TreeRefused, FileNotFoundError, UnicodeEncodeError, ValueError):
                answer = None
        assert answer != SECRET, (act.__name__, path)
        if act in (listed, raw_listed):
            assert "secret" not in repr(answer), (act.__name__, path)
        assert world.picture() == before, (act.__name__, path)
        assert (world.outside / "secret.txt").read_bytes() == SECRET
    assert world.root.is_dir()


@pytest.mark.parametrize("path", TRICKS)
def test_reading_is_refused_when_a_trick_stands_in_the_way(world: World, path: str) -> None:
    with opened(world) as tree, pytest.raises((TreeRefused, FileNotFoundError, PathRefused)):
        read(tree, path)


def test_walk_names_links_but_never_enters_them(world: World) -> None:
    with opened(world) as tree:
        found = {entry.path: entry.kind for entry in tree.walk()}
    assert found["folder-link"] == found["hard"] == found["fifo"] == found["inner/up"] == "other"
    assert found["plain.txt"] == "file"
    assert found["inner"] == "folder"
    assert not any(path.endswith("secret.txt") for path in found)


@pytest.mark.parametrize("level", range(len(NAMES)))
def test_root_is_refused_when_a_link_stands_on_the_way_to_it(world: World, level: int) -> None:
    path = world.base.joinpath(*NAMES[: level + 1])
    path.rename(path.with_name("away"))
    path.symlink_to(world.outside)
    with pytest.raises(TreeRefused):
        tree_open(world.base, NAMES)
    if level < len(NAMES) - 1:
        with pytest.raises(TreeRefused):
            tree_remove(world.base, NAMES)
    else:
        tree_remove(world.base, NAMES)  # removes the link alone
    assert (world.outside / "secret.txt").read_bytes() == SECRET


def test_root_stays_the_opened_one_when_it_is_swapped_meanwhile(world: World) -> None:
    with opened(world) as tree:
        world.root.rename(world.base / "moved")
        world.root.symlink_to(world.outside)
        assert tree.read(("plain.txt",), max_bytes=10) == b"plain"
        tree.write(("secret.txt",), b"mine")
    assert (world.outside / "secret.txt").read_bytes() == SECRET
    assert (world.base / "moved" / "secret.txt").read_bytes() == b"mine"


def test_link_is_replaced_not_followed_when_a_file_is_written(world: World) -> None:
    with opened(world) as tree:
        tree.write(("file-link",), b"mine")
        tree.write(("hard",), b"mine")
        assert tree.read(("file-link",), max_bytes=10) == tree.read(("hard",), max_bytes=10)
    assert (world.outside / "secret.txt").read_bytes() == SECRET


def test_whole_tree_is_removed_without_what_its_links_point_to(world: World) -> None:
    before = {k: v[2] for k, v in world.picture().items() if not k.startswith(str(world.root))}
    tree_remove(world.base, NAMES)
    assert not world.root.exists()
    assert {k: v[2] for k, v in world.picture().items()} == {
        k: v for k, v in before.items() if k != str(world.root)
    }
    tree_remove(world.base, NAMES)


def test_reading_ends_when_file_grows_beyond_the_limit(world: World) -> None:
    with opened(world) as tree:
        tree.write(("big",), b"x" * 2000)
        with pytest.raises(TreeRefused, match="2000 bytes"):
            tree.read(("big",), max_bytes=1999)
