"""Chunks of source files: exact, complete, cut where code may be cut."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.collections.ingestion.code.chunks import code_chunks
from apps.collections.ingestion.code.parse import structure_of
from apps.collections.ingestion.code.programming_languages import LANGUAGES, language_of

STDLIB = Path(sysconfig.get_paths()["stdlib"])
PURELIB = Path(sysconfig.get_paths()["purelib"])
INCLUDE = Path(sysconfig.get_paths()["include"])

SHAPES = '''"""Shapes and their areas."""

import math
from typing import Any

LIMIT = 10


# Keeps the area.
@cached
class Shape(Base):
    """A shape with an area."""

    sides: int = 0

    def area(self) -> float:
        """Return the area in square metres."""
        return math.sqrt(self.sides)

    def grow(self, by: int) -> None:
        self.sides += by
        notify(self)


def make(kind: str) -> Shape:
    return Shape(kind)
'''


def chunks_of(text: str, path: str, size: int = 1200):
    language = language_of(path, text.encode(errors="replace")[:65536])
    assert language is not None
    return code_chunks(text, structure_of(text, language.name), path=path, size=size)


def check_cover(text: str, chunks, size: int) -> None:
    """Every character that is not blank is in exactly one chunk, each an exact slice of about the size."""
    position = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        assert chunk.text == text[chunk.char_start : chunk.char_end]
        assert chunk.char_start >= position
        assert not text[position : chunk.char_start].strip()
        assert len(chunk.text) <= size + 64
        lines = (text.count("\n", 0, chunk.char_start) + 1, text.count("\n", 0, chunk.char_end - 1) + 1)
        assert (chunk.metadata["line_start"], chunk.metadata["line_end"]) == lines
        position = chunk.char_end
    assert not text[position:].strip()


def test_class_gives_its_header_and_its_methods_when_it_does_not_fit():
    chunks = chunks_of(SHAPES, "src/geo/shapes.py", size=240)
    assert [(c.kind, c.metadata.get("qualified_name")) for c in chunks] == [
        ("file", "src.geo.shapes"),
        ("class", "src.geo.shapes.Shape"),
        ("function", "src.geo.shapes.Shape.area"),
        ("function", "src.geo.shapes.Shape.grow"),
        ("function", "src.geo.shapes.make"),
    ]
    module, header, area, grow, make = chunks
    assert module.metadata["docstring"] == "Shapes and their areas."
    assert module.metadata["imports"] == ["math", "typing: Any"]
    assert module.metadata["names"] == ["LIMIT", "Shape", "make"]
    assert header.text.startswith("# Keeps the area.\n@cached\nclass Shape(Base):")
    assert header.text.endswith("sides: int = 0")
    assert header.metadata["members"] == ["def area(self) -> float", "def grow(self, by: int) -> None"]
    assert "def grow(self, by: int) -> None" in header.indexed_text
    assert header.metadata["decorators"] == ["@cached"]
    assert header.metadata["bases"] == ["Base"]
    assert area.metadata["docstring"] == "Return the area in square metres."
    assert area.metadata["parent_name"] == "src.geo.shapes.Shape"
    assert area.metadata["calls"] == ["math.sqrt"]
    assert (area.metadata["line_start"], area.metadata["line_end"]) == (16, 18)
    assert grow.metadata["calls"] == ["notify"]
    assert make.metadata["calls"] == ["Shape"]
    check_cover(SHAPES, chunks, 240)


def test_class_is_one_chunk_when_it_fits():
    chunks = chunks_of(SHAPES, "shapes.py", size=1200)
    assert [c.kind for c in chunks] == ["class", "function"]
    assert "Shape.grow" in chunks[0].metadata["symbols"]
    assert chunks[0].text.startswith('"""Shapes')
    check_cover(SHAPES, chunks, 1200)


def test_long_function_is_cut_before_statements_and_keeps_its_signature():
    body = "".join(
        f"    if value == {i}:\n        total += {i}\n        log('''\nnot a statement\n''')\n"
        for i in range(40)
    )
    text = f"def long(value: int) -> int:\n    total = 0\n{body}    return total\n"
    chunks = chunks_of(text, "long.py", size=400)
    assert len(chunks) > 5
    for part, chunk in enumerate(chunks[1:], start=1):
        assert chunk.text.startswith(("    if value", "    return"))
        assert chunk.metadata["part"] == part
        assert chunk.metadata["qualified_name"] == "long.long"
        assert "def long(value: int) -> int" in chunk.indexed_text
        assert chunk.metadata["parent"] == [0, len(text) - 1]
    check_cover(text, chunks, 400)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.ts",
            "/** Adds. */\nexport const add = (a: number) => a + 1;\n\nexport class Box { open() { add(1) } }\n",
            [("function", "a.add", "Adds."), ("class", "a.Box", None)],
        ),
        (
            "p/a.go",
            "package p\n\n// Run runs.\nfunc (s *Server) Run() { s.go() }\n",
            [("function", "p.Server.Run", "Run runs.")],
        ),
        (
            "src/a.rs",
            "/// Opens.\n#[inline]\npub fn open() {}\n\nimpl A { fn b() {} }\n",
            [("function", "a::open", "Opens."), ("class", "a::A", None)],
        ),
        (
            "A.java",
            "package q;\n/** Is A. */\npublic class A { /** Does. */ void b() {} }\n",
            [("class", "q.A", "Is A.")],
        ),
        ("a.c", "/* Adds. */\nint add(int a) { return a; }\n", [("function", "add", "Adds.")]),
        ("a.hpp", "namespace n { struct S { void f() {} }; }\n", [("class", "n::S", None)]),
    ],
)
def test_chunk_knows_name_and_doc_comment_in_every_language(path, text, expected):
    chunks = chunks_of(text, path)
    assert [(c.kind, c.metadata["qualified_name"], c.metadata.get("docstring")) for c in chunks] == expected
    check_cover(text, chunks, 1200)


def _real_files() -> list[Path]:
    python = sorted(STDLIB.glob("*.py")) + sorted(STDLIB.glob("asyncio/*.py"))
    others = sorted(
        path
        for suffix in ("*.js", "*.c", "*.cpp", "*.ts")
        for path in PURELIB.rglob(suffix)
        if path.stat().st_size < 200_000
    )
    headers = sorted(INCLUDE.rglob("*.h")) if INCLUDE.exists() else []
    picked = random.Random(4)
    return [path for group in (python, others, headers) for path in picked.sample(group, min(25, len(group)))]


@pytest.mark.parametrize("size", [200, 1200])
def test_every_character_is_covered_when_files_are_real(size):
    files = _real_files()
    assert len(files) >= 25
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        language = language_of(path.name, text.encode(errors="replace"))
        assert language is not None
        chunks = code_chunks(text, structure_of(text, language.name), path=path.name, size=size)
        check_cover(text, chunks, size)


_SCRAPS = st.sampled_from(
    [
        "class A:\n",
        "def f(x):\n",
        "    def g(self):\n",
        "        return 1\n",
        "    x = 1\n",
        "}\n",
        "{\n",
        "/* c */\n",
        "// d\n",
        "# e\n",
        "fn h() {\n",
        "func i() {\n",
        "impl A {\n",
        "namespace n {\n",
        "template<class T>\n",
        "'''\n",
        '"""d"""\n',
        "export const j = () => {\n",
        "@dec\n",
        "\n",
        "\n\n",
        ";",
        "é漢😀",
        "int k(int a) { return a; }\n",
        "import a.b\n",
        "use a::{b, c};\n",
        "#include <x.h>\n",
        "public class B { void m() {} }\n",
        "\t",
        "(" * 30,
        "\f",
        "x" * 300,
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(_SCRAPS, max_size=30).map("".join),
    language=st.sampled_from(sorted(LANGUAGES)),
    size=st.sampled_from([1, 7, 60, 200, 1200]),
)
def test_every_character_is_covered_when_the_text_is_no_program(text, language, size):
    check_cover(text, code_chunks(text, structure_of(text, language), path="x", size=size), size)


def test_chunking_refuses_a_size_below_one():
    with pytest.raises(ValueError, match="at least 1"):
        code_chunks("x = 1", structure_of("x = 1", "python"), path="x.py", size=0)
