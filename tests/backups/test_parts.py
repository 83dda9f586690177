"""Parts of a backup: whatever was changed in one is found before its content is used."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from backups.errors import BackupDamaged, BackupRefused
from backups.parts import CHUNK, BackupKey, PartWriter, part_read, part_write

KEY = BackupKey(bytes(range(32)))
OTHER = BackupKey(bytes(32))
MODES = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])


def written(content: bytes, key: BackupKey | None, name: str = "b/rows/1") -> bytes:
    out = io.BytesIO()
    writer = PartWriter(out, name, key)
    for start in range(0, len(content), 70_000):
        writer.write(content[start : start + 70_000])
    told = writer.close()
    assert (told.size, told.content_size) == (len(out.getvalue()), len(content))
    return out.getvalue()


def read(raw: bytes, name: str = "b/rows/1", *keys: BackupKey) -> bytes:
    return b"".join(part_read(io.BytesIO(raw), name, keys or (KEY,)))


@MODES
@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_content_comes_back(key: BackupKey | None, size: int) -> None:
    for content in (bytes(size), random.Random(size).randbytes(size)):
        assert read(written(content, key)) == content


@MODES
def test_a_flipped_byte_is_found_wherever_it_is(key: BackupKey | None) -> None:
    chosen = random.Random(7)
    content = chosen.randbytes(CHUNK // 2) + b"the same again " * 100_000
    raw = written(content, key)
    places = [*range(60), *range(len(raw) - 60, len(raw)), *chosen.sample(range(len(raw)), 200)]
    for place in places:
        damaged = bytearray(raw)
        damaged[place] ^= 1 << chosen.randrange(8)
        with pytest.raises((BackupDamaged, BackupRefused)):
            read(bytes(damaged))


@MODES
def test_what_is_cut_moved_or_doubled_is_found(key: BackupKey | None) -> None:
    raw = written(bytes(3 * CHUNK), key)
    for length in [*range(80), len(raw) // 2, len(raw) - 1]:
        with pytest.raises(BackupDamaged):
            read(raw[:length])
    with pytest.raises(BackupDamaged, match="more follows"):
        read(raw + b"\0")
    frame = (len(raw) - 33) // 3  # all frames are of the same bytes, and so of the same length
    with pytest.raises(BackupDamaged):
        read(raw[: 33 + frame] + raw[33:])
    with pytest.raises(BackupDamaged):
        read(raw[:33] + raw[33 + frame :])


@MODES
def test_a_part_under_another_name_is_found(key: BackupKey | None) -> None:
    with pytest.raises(BackupDamaged):
        read(written(b"rows", key), "b/rows/2")


def test_a_sealed_part_needs_its_key_and_shows_nothing() -> None:
    raw = written(b"a secret word " * 1000, KEY)
    assert b"secret" not in raw
    with pytest.raises(BackupRefused, match="another key"):
        read(raw, "b/rows/1", OTHER)
    with pytest.raises(BackupRefused, match="no backup key"):
        list(part_read(io.BytesIO(raw), "b/rows/1", ()))
    assert read(raw, "b/rows/1", OTHER, KEY) == b"a secret word " * 1000


def test_two_parts_of_the_same_content_differ_when_sealed() -> None:
    assert written(b"same", KEY)[33:] != written(b"same", KEY)[33:]


def test_a_frame_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("backups.parts.CHUNK", 64 * CHUNK)
        raw = written(bytes(64 * CHUNK), None)
    with pytest.raises(BackupDamaged, match="decompressed"):
        read(raw)


def test_a_part_is_written_to_a_file(tmp_path: Path) -> None:
    told = part_write(tmp_path / "part", "n", KEY, [b"one ", b"two"])
    assert told.size == (tmp_path / "part").stat().st_size
    with (tmp_path / "part").open("rb") as stream:
        assert b"".join(part_read(stream, "n", [KEY])) == b"one two"


def test_keys_are_read_from_text_and_never_shown() -> None:
    assert BackupKey.from_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=") == KEY
    assert "1" not in repr(KEY)
    with pytest.raises(ValueError, match="32 bytes"):
        BackupKey.from_text("AAEC")
