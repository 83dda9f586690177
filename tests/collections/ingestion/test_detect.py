from __future__ import annotations

import random
import zipfile

import pytest

from apps.collections.ingestion import media_types as kinds
from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.types import ReadFailure

MB = 1024 * 1024


def detected(tmp_path, name, data, max_bytes=MB):
    path = tmp_path / "upload"
    path.write_bytes(data)
    return detect(path, name, max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.pdf", b"%PDF-1.7\n...", kinds.PDF),
        ("a.md", b"# Title\n", kinds.MARKDOWN),
        ("a.txt", b"hello", kinds.TEXT),
        ("a.csv", b"a,b\n1,2\n", kinds.CSV),
        ("a.html", b"<p>hello", kinds.HTML),
        ("noname", b"<!DOCTYPE html><html>", kinds.HTML),
        ("noname", b"just text", kinds.TEXT),
        ("utf16.txt", "hello".encode("utf-16"), kinds.TEXT),
        ("utf16le.txt", "hello there, world".encode("utf-16-le"), kinds.TEXT),
        ("bm.txt", b"BM is how this text begins", kinds.TEXT),
        ("nul.txt", b"a log line\n" * 50 + b"\x00" + b"more\n", kinds.TEXT),
    ],
)
def test_type_is_found_when_content_or_name_tells(tmp_path, name, data, expected):
    assert detected(tmp_path, name, data).media_type == expected


def test_file_is_read_as_what_it_is_when_name_lies(tmp_path):
    found = detected(tmp_path, "report.txt", b"%PDF-1.4\n%\xe2\xe3")
    assert found.media_type == kinds.PDF
    assert "report.txt" in found.warning
    assert "PDF" in found.warning


def test_text_is_read_as_text_when_named_pdf(tmp_path):
    found = detected(tmp_path, "report.pdf", b"plain words")
    assert found.media_type == kinds.TEXT
    assert found.warning


@pytest.mark.parametrize(
    ("name", "data", "code", "said"),
    [
        ("a.pdf", b"", "empty_file", "0 bytes"),
        ("a.txt", b" \n\t\n ", "empty_file", "blanks"),
        ("a.pdf", b"\x00\x00\x00\x20ftypisom....", "unsupported_type", "MP4 video"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "unsupported_type", "old Office"),
        ("a.bin", bytes(range(256)) * 40, "unsupported_type", "unknown binary"),
        ("a.pdf", bytes(range(256)) * 40, "corrupt_file", "PDF"),
        ("a.docx", b"PK\x03\x04 cut off", "corrupt_file", "damaged"),
    ],
)
def test_failure_names_the_reason_when_file_cannot_be_read(tmp_path, name, data, code, said):
    with pytest.raises(ReadFailure) as caught:
        detected(tmp_path, name, data)
    assert caught.value.code == code
    assert said in caught.value.message


def test_size_is_refused_when_over_the_limit(tmp_path):
    with pytest.raises(ReadFailure) as caught:
        detected(tmp_path, "a.txt", b"x" * 2000, max_bytes=1000)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("member", "said"), [("xl/workbook.bin", "XLSB"), ("META-INF/MANIFEST.MF", "Java"), ("x.txt", "ZIP")]
)
def test_archive_is_named_when_it_is_no_document(tmp_path, member, said):
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "x")
    with pytest.raises(ReadFailure) as caught:
        detect(path, "a.docx", max_bytes=MB)
    assert caught.value.code == "unsupported_type"
    assert said in caught.value.message


def test_noise_is_refused_when_it_is_named_like_text(tmp_path):
    for seed in range(50):
        noise = b"a" + random.Random(seed).randbytes(20_000)
        with pytest.raises(ReadFailure) as caught:
            detected(tmp_path, "notes.txt", noise)
        assert caught.value.code == "unsupported_type"


def test_table_is_read_when_its_fields_are_padded_with_zeros(tmp_path):
    rows = b"\n".join(b"8471.30.%04d,2.5\0%%,a\0b" % n for n in range(2000))
    assert detected(tmp_path, "rates.csv", rows).media_type == kinds.CSV
