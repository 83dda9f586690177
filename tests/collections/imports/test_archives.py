"""Hostile archives: every entry ends as bytes or as a problem, within its bounds; nothing leads out."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from apps.collections.ingestion.sources.archives import archive_entries
from apps.collections.ingestion.sources.base import Entry, EntryFailure, Rules, SourceFailure, SourceLimits
from apps.collections.ingestion.sources.folders import folder_entries, folder_open
from tests.collections.imports.quine import zip_quine
from tests.collections.imports.support import make_tar, make_zip

LIMITS = SourceLimits(max_entries=200, max_bytes=80_000_000, max_file_bytes=40_000_000)


def read(tmp_path: Path, data: bytes, name: str = "a.zip", limits: SourceLimits = LIMITS) -> dict[str, str]:
    """Return for each entry its size as text, or its reason; the archive's own failure under “!”."""
    path = tmp_path / "archive"
    path.write_bytes(data)
    found: dict[str, str] = {}
    try:
        for item in archive_entries(path, name, rules=Rules(), limits=limits):
            if isinstance(item, Entry):
                try:
                    found[item.path] = str(sum(len(block) for block in item.read()))
                except EntryFailure as failure:
                    found[item.path] = str(failure.reason)
            else:
                found[item.path] = str(item.reason)
    except SourceFailure as failure:
        found["!"] = failure.code
    return found


@pytest.mark.parametrize(
    "name", ["../up.md", "/etc/passwd", "a/../../b.md", "C:\\windows\\x.md", "..\\..\\x.md", "\\\\host\\x.md"]
)
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_name_that_leads_out_is_listed(tmp_path: Path, name: str, make: object) -> None:
    found = read(tmp_path, make({name: b"x", "good.md": b"y"}))  # type: ignore[operator]
    assert found.pop("good.md") == "1"
    assert list(found.values()) == ["unsafe_path"]


def test_links_and_devices_are_listed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, kind in enumerate(
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
        ):
            info = tarfile.TarInfo(f"{number}.md")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert list(read(tmp_path, out.getvalue()).values()) == ["link", "link"] + ["special_file"] * 3
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        packed.writestr(link, "/etc/passwd")
    assert read(tmp_path, out.getvalue()) == {"link.md": "link"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_is_read_in_every_packing(tmp_path: Path, mode: str) -> None:
    files = {"a.md": b"x" * 70_000, "deep/" * 30 + "b.md": os.urandom(5000), "ü/ö.md": b"z"}
    found = read(tmp_path, make_tar(files, mode))
    assert found == {name: str(len(data)) for name, data in files.items()}


def test_bombs_are_cut(tmp_path: Path) -> None:
    bomb = make_zip({"bomb.txt": b"\0" * 39_000_000, "good.md": b"x"})
    assert read(tmp_path, bomb) == {"bomb.txt": "bomb", "good.md": "1"}
    assert read(tmp_path, make_tar({"bomb.txt": b"\0" * 39_000_000}))["!"] == "archive_bomb"
    many = make_zip({f"{n}.md": b"" for n in range(300)})
    assert read(tmp_path, many) == {"!": "too_many_entries"}


def test_overlapping_entries_are_listed(tmp_path: Path) -> None:
    data = bytearray(make_zip({"a.md": b"x" * 3000, "b.md": b"y" * 3000}))
    second = data.rfind(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    assert set(read(tmp_path, bytes(data)).values()) == {"overlapping_entries"}


def test_archives_inside_are_opened_to_a_limit(tmp_path: Path) -> None:
    data = make_zip({"page.md": b"x"})
    for _ in range(4):
        data = make_zip({"in.zip": data})
    assert read(tmp_path, data) == {"in.zip/in.zip/in.zip": "nested_too_deep"}


def test_archives_that_multiply_inside_each_other_end_at_the_shared_budget(tmp_path: Path) -> None:
    data = make_zip({f"{n}.md": b"x" for n in range(16)})
    for _ in range(5):
        data = make_zip({f"{n}.zip": data for n in range(16)})
    limits = SourceLimits(max_entries=200, max_bytes=80_000_000, max_file_bytes=40_000_000, max_depth=20)
    assert read(tmp_path, data, limits=limits)["!"] == "too_many_entries"


@pytest.mark.parametrize("depth", [2, 60])
def test_archive_that_holds_itself_ends_at_the_depth(tmp_path: Path, depth: int) -> None:
    data = zip_quine()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = archive.namelist()
        assert archive.read(name) == data, "it is what it is said to be"
    limits = SourceLimits(max_entries=200, max_bytes=80_000_000, max_file_bytes=40_000_000, max_depth=depth)
    ((path, reason),) = read(tmp_path, data, limits=limits).items()
    assert reason == "nested_too_deep"
    assert path.count(".zip") == 3 or depth > 2  # long paths are shown shortened


def test_endless_nesting_ends_at_the_depth(tmp_path: Path) -> None:
    data = make_zip({"page.md": b"x"})
    for _ in range(60):
        data = make_zip({"r/r.zip": data})
    assert read(tmp_path, data) == {"r/r.zip/r/r.zip/r/r.zip": "nested_too_deep"}


def test_encrypted_duplicate_and_damaged_entries_are_listed(tmp_path: Path) -> None:
    data = bytearray(make_zip({"a.md": b"secret" * 50, "b.md": b"y"}))
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    assert read(tmp_path, bytes(data)) == {"a.md": "encrypted", "b.md": "1"}
    assert read(tmp_path, make_tar({"x.md": b"1", "./x.md": b"22"})) == {"x.md": "duplicate_name"}
    data = bytearray(make_zip({"a.md": os.urandom(500)}))
    data[60] ^= 255
    assert read(tmp_path, bytes(data)) == {"a.md": "damaged"}


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_cut_off_archive_says_so(tmp_path: Path, share: float, make: object) -> None:
    data = make({f"{n}.md": os.urandom(3000) for n in range(9)})  # type: ignore[operator]
    assert read(tmp_path, data[: int(len(data) * share)])["!"] == "archive_damaged"


def test_folder_is_walked_without_following_links(tmp_path: Path) -> None:
    root = tmp_path / "open"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("a")
    (root / "docs" / "in.zip").write_bytes(make_zip({"z.md": b"zz"}))
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    (root / "link.md").symlink_to(secret)
    (root / "out").symlink_to(tmp_path)
    os.link(secret, root / "hard.md")
    os.mkfifo(root / "pipe.md")
    descriptor = folder_open(str(root), [root])
    try:
        items = list(folder_entries(descriptor, rules=Rules(), limits=LIMITS))
    finally:
        os.close(descriptor)
    problems = {item.path: str(item.reason) for item in items if not isinstance(item, Entry)}
    assert problems == {"link.md": "link", "out": "link", "hard.md": "link", "pipe.md": "special_file"}
    assert [item.path for item in items if isinstance(item, Entry)] == ["docs/a.md", "docs/in.zip/z.md"]
    for hostile in (f"{root}/../secret.md", f"{root}/out", str(tmp_path), "/etc", "relative", f"{root}x"):
        with pytest.raises(SourceFailure):
            folder_open(hostile, [root])


@pytest.mark.parametrize(
    ("stand_in", "stored"),
    [(b"gr_n.md", b"gr\x81n.md"), (b"gr__n.md", "grün.md".encode())],
    ids=["cp437", "utf-8 without its flag"],
)
def test_name_is_read_when_its_encoding_is_not_told(tmp_path: Path, stand_in: bytes, stored: bytes) -> None:
    data = make_zip({stand_in.decode(): b"text"})
    assert data.count(stand_in) == 2
    assert read(tmp_path, data.replace(stand_in, stored)) == {"grün.md": "4"}
