"""Source files through the limited child: hostile ones end as a typed failure or as plain text, never as a hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.code.isolation import ParseEnded, structure_isolated
from apps.collections.ingestion.code.parse import structure_of
from apps.collections.ingestion.code.types import structure_from_json, structure_to_json
from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.frames import page_from_json, page_to_json
from apps.collections.ingestion.types import ExtractedDocument, PageText, ReadFailure

MEMORY = 256 * 1024 * 1024


def read(tmp_path: Path, name: str, data: bytes) -> ExtractedDocument:
    path = tmp_path / "upload"
    path.write_bytes(data)
    return document_extract(path, name=name)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("open.py", b"x=" + b"(" * 1_000_000 + b"1"),
        ("closed.js", b"x=" + b"(" * 1_000_000 + b"1" + b")" * 1_000_000),
        ("templates.cpp", b"a<" * 300_000),
        ("line.c", b"int a = 1; " * 1_000_000),
    ],
)
def test_file_becomes_plain_text_when_it_is_one_hostile_line(tmp_path, name, data):
    document = read(tmp_path, name, data)
    assert document.code is None
    assert "read as plain text" in document.warnings[0]
    assert document.text == data.decode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("deep.rs", b"mod a{\n" * 100_000),
        ("indents.py", b"".join(b" " * i + b"if x:\n" for i in range(1200))),
        ("quotes.py", b"'''\n" + b'"""a\n' * 20_001),
        ("noise.go", b"func { ) ( } := \xe2\x82 \n" * 5_000),
    ],
)
def test_file_is_kept_whole_when_its_grammar_cannot_understand_it(tmp_path, name, data):
    document = read(tmp_path, name, data)
    assert document.warnings
    covered = "".join(chunk.text for chunk in chunk_document(document, path=name))
    assert "".join(covered.split()) == "".join(document.text.split())


def test_parse_is_ended_when_it_runs_away(monkeypatch):
    monkeypatch.setattr("apps.collections.ingestion.code.isolation._BASE_SECONDS", 1)
    monkeypatch.setattr("apps.collections.ingestion.code.isolation._CHARS_PER_SECOND", 10**9)
    with pytest.raises(ParseEnded, match="too long"):
        structure_isolated("x=" + "(" * 1_000_000, "python", memory_bytes=MEMORY)


def test_parse_is_ended_when_it_needs_too_much_memory(monkeypatch):
    monkeypatch.setattr("apps.collections.ingestion.code.isolation._HEADROOM", 0)
    with pytest.raises(ParseEnded, match=r"memory|broke down"):
        structure_isolated("def f(): pass\n" * 500_000, "python", memory_bytes=1024 * 1024)


def test_isolated_structure_is_that_of_the_parser():
    text = "class A:\n    'é'\n    def f(self): g()\n"
    structure = structure_isolated(text, "python", memory_bytes=MEMORY)
    assert structure == structure_of(text, "python")


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("bom.py", b"\xef\xbb\xbfdef f():\r\n    'd\xc3\xa9'\r\n", "def f():\n    'dé'\n"),
        ("mac.py", b"def f():\r    return 1\r", "def f():\n    return 1\n"),
        ("nul.py", b"def f():\n    return 1\n\x00\x00", "def f():\n    return 1\n"),
        ("latin.py", b"def f():\n    return '\xe9'\n", "def f():\n    return 'é'\n"),
        ("wide.py", "def f():\n    return 1\n".encode("utf-16"), "def f():\n    return 1\n"),
    ],
)
def test_function_is_found_when_the_encoding_is_odd(tmp_path, name, data, text):
    document = read(tmp_path, name, data)
    assert document.text == text
    (chunk,) = chunk_document(document, path=f"src/{name}")
    assert (chunk.kind, chunk.text) == ("function", text.rstrip())
    assert chunk.metadata["qualified_name"].endswith(".f")


def test_positions_count_characters_when_the_text_is_not_ascii():
    text = "# 漢字😀\nX = 'é'\n\n\ndef f():\n    '''日本'''\n    return '😀'\n\n\ndef g(): ...\n"
    symbols = {s.name: s for s in structure_of(text, "python").symbols}
    assert text[symbols["g"].char_start : symbols["g"].char_end] == "def g(): ..."
    assert text[symbols["f"].char_start : symbols["f"].char_end].startswith("def f():")
    assert symbols["f"].docstring == "日本"
    assert (symbols["f"].line_start, symbols["g"].line_end) == (5, 10)


def test_binary_is_refused_when_it_is_named_like_code(tmp_path):
    with pytest.raises(ReadFailure) as caught:
        read(tmp_path, "video.ts", b"\x47\x40\x00\x10\x00" * 4000)
    assert caught.value.code == "unsupported_type"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.py", b"x = 1", "text/x-python"),
        ("run", b"#!/usr/bin/env python3\nx = 1", "text/x-python"),
        ("run", b"#!/usr/bin/node\nx = 1", "text/javascript"),
        ("run", b"x = 1", "text/plain"),
        ("a.h", b"int f(void);", "text/x-c"),
        ("a.h", b"#pragma once\nclass A {};", "text/x-c++"),
        ("de.ts", b'<?xml version="1.0"?><!DOCTYPE TS><TS/>', "text/plain"),
        ("a.TSX", b"const a = <b/>", "text/x-tsx"),
    ],
)
def test_language_is_recognised_when_name_or_content_tell(tmp_path, name, data, media_type):
    path = tmp_path / "file"
    path.write_bytes(data)
    detection = detect(path, name, max_bytes=1000)
    assert (detection.media_type, detection.warning) == (media_type, "")


def test_structure_survives_the_wire():
    text = "import a\n@d\nclass A(B):\n    def f(self): self.g()\n"
    structure = structure_of(text, "python")
    page = page_from_json(page_to_json(PageText(number=1, text=text, code=structure)))
    assert page.code == structure
    with pytest.raises(ValueError, match="reparse"):
        structure_from_json(structure_to_json(structure) | {"version": 0})
