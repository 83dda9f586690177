"""Binary files are refused by what they hold, and text that was garbled before it came is called so."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.garbled import garbled_warning
from apps.collections.ingestion.media_types import TEXT
from apps.collections.ingestion.types import ReadFailure

rng = random.Random(5)
PROGRAMS = {
    "marked": b"\xff\xfe" + rng.randbytes(6000),
    "marked-big": b"\xfe\xff" + rng.randbytes(6000),
    # Small numbers of two bytes, as sounds, tables and machine code of small processors have them.
    "samples": b"".join(struct.pack("<H", rng.randrange(0, 200)) for _ in range(4000)),
    "opcodes": bytes(rng.choice((0, 1, 5, 0x1B, 0x90, 0xC3)) if i % 2 == 0 else 0 for i in range(6000)),
    "ascii-with-mark": b"\xff\xfe" + b"int main(void) { return 0; }" * 80,
    "marked-32": b"\xff\xfe\x00\x00" + rng.randbytes(6000),
}
TEXTS = {
    "chinese": "这是一份关于关税的文件。\r\n第二行说明税率为百分之五。" * 20,
    "english": "The rate of duty is five percent.\r\nThe second line says why.\r\n" * 20,
    "russian": "Ставка пошлины составляет пять процентов.\n" * 20,
    "log": "\x1b[32mok\x1b[0m 12 files were read\n" * 30,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_binary_files_are_refused_by_content(tmp_path: Path, name: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(PROGRAMS[name])
    with pytest.raises(ReadFailure) as error:
        detect(path, "notes.txt", max_bytes=10**7)
    assert error.value.code == "unsupported_type"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_in_wide_encodings_is_still_text(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / "notes.txt"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(mark + TEXTS[name].encode(encoding))
    assert detect(path, "notes.txt", max_bytes=10**7).media_type == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "Die Gebühr beträgt fünf Prozent für Müller.",
        "Le café coûte déjà trop cher à l’été.",
        "Ставка пошлины",
        "税率为百分之五",
    ],
)
def test_garbled_text_is_said_and_whole_text_is_not(text: str) -> None:
    assert garbled_warning([text] * 3) == ""
    broken = text.encode().decode("latin-1")
    said = garbled_warning([f"{broken} "] * 4)
    assert "garbled" in said
    assert "could not be decoded" in garbled_warning(["a\ufffdb " * 5])
