"""The structure of source files: against Python's own parser, and feature by feature elsewhere."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from pathlib import Path

import pytest

from apps.collections.ingestion.code.parse import structure_of
from apps.collections.ingestion.code.types import CALLABLE_KINDS, SymbolKind

STDLIB = Path(sysconfig.get_paths()["stdlib"])


def by_ast(tree: ast.AST, prefix: str = "") -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for child in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}".lstrip(".")
            kind = "class" if isinstance(child, ast.ClassDef) else "function"
            found.add((kind, name, ast.get_docstring(child) or ""))
        found |= by_ast(child, name)
    return found


def test_definitions_are_those_of_ast_when_files_are_the_standard_library():
    expected_total = agreed = 0
    for path in sorted(STDLIB.glob("*.py"))[::3] + sorted(STDLIB.glob("asyncio/*.py")):
        text = path.read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            expected = by_ast(ast.parse(text))
        found = {
            ("function" if s.kind in CALLABLE_KINDS else "class", s.qualified_name, s.docstring)
            for s in structure_of(text, "python").symbols
            if s.kind != SymbolKind.VARIABLE
        }
        expected_total += len(expected)
        agreed += len(expected & found)
        assert not {f[:2] for f in found} - {e[:2] for e in expected}, path
    assert expected_total > 2000
    assert agreed / expected_total >= 0.995


def names(text: str, language: str) -> list[tuple[str, str]]:
    return [(str(s.kind), s.qualified_name) for s in structure_of(text, language).symbols]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "javascript",
            "exports.a = function () {};\nB.prototype.c = function () {};\nexport default () => 1;\n"
            "class D { #e = 1; get f() { return 1 } g = () => 2 }\nconst h = async () => {}, i = 2;\nfunction* j() {}",
            [
                ("function", "a"),
                ("method", "B.c"),
                ("function", "default"),
                ("class", "D"),
                ("method", "D.f"),
                ("method", "D.g"),
                ("function", "h"),
                ("variable", "i"),
                ("function", "j"),
            ],
        ),
        (
            "typescript",
            "interface A { b(): void }\nenum C { D }\ntype E = string;\nnamespace F { export function g() {} }\n"
            "abstract class H { abstract i(): void }",
            [
                ("interface", "A"),
                ("method", "A.b"),
                ("enum", "C"),
                ("type", "E"),
                ("module", "F"),
                ("function", "F.g"),
                ("class", "H"),
                ("method", "H.i"),
            ],
        ),
        (
            "go",
            "package p\ntype A struct { B }\ntype C interface { D() }\nfunc (a *A) E() {}\nfunc F[T any](x T) {}\nvar g = 1\nconst (\n\th = 1\n\ti = 2\n)",
            [
                ("struct", "A"),
                ("interface", "C"),
                ("method", "C.D"),
                ("method", "A.E"),
                ("function", "F"),
                ("variable", "g"),
                ("variable", "h"),
                ("variable", "i"),
            ],
        ),
        (
            "rust",
            "trait A { fn b(&self); }\nstruct C<T>(T);\nimpl<T> A for C<T> { fn b(&self) {} }\nmod d { pub fn e() {} }\nmacro_rules! f { () => {} }",
            [
                ("interface", "A"),
                ("method", "A::b"),
                ("struct", "C"),
                ("impl", "C"),
                ("method", "C::b"),
                ("module", "d"),
                ("function", "d::e"),
                ("macro", "f"),
            ],
        ),
        (
            "java",
            "class A { A() {} int b() { return 1; } class C {} }\nrecord D(int e) {}\nenum F { G; void h() {} }",
            [
                ("class", "A"),
                ("method", "A.A"),
                ("method", "A.b"),
                ("class", "A.C"),
                ("class", "D"),
                ("enum", "F"),
                ("method", "F.h"),
            ],
        ),
        (
            "cpp",
            "namespace a { template <class T> class B : C<T> { void d() {} }; }\nvoid a::B::e() {}\nB::~B() {}\nint* f() { return 0; }",
            [
                ("module", "a"),
                ("class", "a::B"),
                ("method", "a::B::d"),
                ("method", "a::B::e"),
                ("method", "B::~B"),
                ("function", "f"),
            ],
        ),
        (
            "c",
            "struct A { int b; };\ntypedef struct { int c; } D;\n#define E(x) x\nstatic int (*f(void))(int) { return 0; }",
            [("struct", "A"), ("struct", "D"), ("macro", "E"), ("function", "f")],
        ),
    ],
)
def test_symbols_are_named_as_the_language_does(language, text, expected):
    assert names(text, language) == expected


def test_callee_is_cut_to_its_last_name_when_its_receiver_is_an_expression():
    structure = structure_of("def f():\n    a(1).b().c()\n    x[0].d()\n    (lambda: 1)()\n", "python")
    assert [c.callee for c in structure.calls] == ["?.c", "?.b", "a", "?.d"]
    assert all(c.symbol == 0 for c in structure.calls)


def test_long_chain_of_calls_costs_no_square():
    text = "x" + "\n.a(1)" * 3000
    assert [c.callee for c in structure_of(text, "javascript").calls] == ["?.a", "x.a"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "python",
            "import a.b, c as d\nfrom .e import (f, g as h)\nfrom i import *\nfrom __future__ import j",
            [("a.b", "", "a.b"), ("c", "", "d"), (".e", "f", "f"), (".e", "g", "h"), ("i", "*", "")],
        ),
        (
            "javascript",
            "import a, {b as c} from './d'; import * as e from 'f'; const {g: h} = require('./i'); export * from './j'",
            [("./d", "default", "a"), ("./d", "b", "c"), ("f", "", "e"), ("./i", "g", "h"), ("./j", "*", "")],
        ),
        ("go", 'import ( a "b/c"\n"d/e"\n. "f" )', [("b/c", "", "a"), ("d/e", "", "e"), ("f", "*", "")]),
        (
            "rust",
            "use a::{b::C, d as e, self}; use f::*; mod g;",
            [("a::b", "C", "C"), ("a", "d", "e"), ("a", "", "a"), ("f", "*", ""), ("self::g", "", "g")],
        ),
        ("java", "import a.b.C; import d.*;", [("a.b", "C", "C"), ("d", "*", "")]),
        ("c", '#include <a.h>\n#include "b/c.h"', [("a.h", "", ""), ("b/c.h", "", "")]),
    ],
)
def test_imports_are_read_in_every_language(language, text, expected):
    assert [(i.module, i.name, i.alias) for i in structure_of(text, language).imports] == expected
