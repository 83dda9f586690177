"""Edges of the code graph: what they point to, in each language, and that a change concerns only what it can."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.collections.ingestion.code.edges import CodeFile, EdgeKind, file_edges
from apps.collections.ingestion.code.modules import module_key
from apps.collections.ingestion.code.parse import structure_of
from apps.collections.ingestion.code.programming_languages import language_of
from apps.collections.ingestion.code.resolution import Definition, ResolvedEdge, definitions_of, file_resolve
from apps.collections.ingestion.code.types import SymbolKind


def code_file(path: str, text: str) -> CodeFile:
    language = language_of(path, text.encode())
    assert language is not None
    return CodeFile(path, structure_of(text, language.name))


def provided_names(file: CodeFile) -> frozenset[str]:
    """Give the names under which edges of other files may find something in this one, its module's own included."""
    names = {s.name for s in file.structure.symbols if s.kind != SymbolKind.IMPL}
    key = module_key(file.path, file.language, file.structure.package)
    return frozenset(names | {key}) - {""}


class CodeIndex:
    """The definitions of a collection by name; files come and go one by one."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, list[Definition]]] = defaultdict(dict)
        self._files: dict[str, CodeFile] = {}

    def put(self, file: CodeFile) -> frozenset[str]:
        """Add or replace a file. Returns the names whose edges, anywhere, must be resolved again."""
        names = self.drop(file.path)
        self._files[file.path] = file
        for name, definitions in definitions_of(file).items():
            self._by_name[name][file.path] = definitions
        return names | provided_names(file)

    def drop(self, path: str) -> frozenset[str]:
        """Remove a file, if it is there. Returns the names whose edges must be resolved again."""
        file = self._files.pop(path, None)
        if file is None:
            return frozenset()
        names = provided_names(file)
        for name in names:
            self._by_name[name].pop(path, None)
        return names

    def candidates(self, name: str) -> list[Definition]:
        """Give the definitions of a name, in an order that does not depend on history."""
        return sorted({d for found in self._by_name.get(name, {}).values() for d in found})


def resolve_edges(files: Iterable[CodeFile]) -> list[ResolvedEdge]:
    """Resolve all edges of a collection, file by file in the order of their paths."""
    ordered = sorted(files, key=lambda file: file.path)
    index = CodeIndex()
    for file in ordered:
        index.put(file)
    return [
        resolved
        for file in ordered
        for resolved in file_resolve(file, file_edges(file.path, file.structure), index.candidates)
    ]


def targets(*files: tuple[str, str]) -> dict[tuple[str, str, str], tuple[str, bool]]:
    """Map (kind, source, written) to (full name of the target, is it ambiguous)."""
    return {
        (str(r.edge.kind), r.edge.source, r.edge.written): (
            r.resolution.target.full if r.resolution.target else "",
            r.resolution.is_ambiguous,
        )
        for r in resolve_edges([code_file(path, text) for path, text in files])
    }


PYTHON = (
    (
        "src/app/models.py",
        "class Base:\n    def save(self): ...\n\nclass User(Base):\n    def rename(self):\n        self.save()\n",
    ),
    ("src/app/util.py", "LIMIT = 3\ndef helper(): ...\ndef unused(): helper()\n"),
    ("src/app/__init__.py", "from .util import helper\n"),
    (
        "src/app/views.py",
        "import app.util\nimport os\nfrom app import models as m, helper as h\nfrom .models import User\n"
        "from ..other import gone\n"
        "class Admin(m.User):\n    def show(self, x):\n        User()\n        app.util.helper()\n"
        "        h()\n        self.rename()\n        x.save()\n        os.getcwd()\n        print(1)\n",
    ),
)


@pytest.mark.parametrize(
    ("kind", "source", "written", "target", "is_ambiguous"),
    [
        ("calls", "Admin.show", "User", "src.app.models.User", False),
        ("calls", "Admin.show", "app.util.helper", "src.app.util.helper", False),
        ("calls", "Admin.show", "h", "src.app.util.helper", False),
        ("calls", "Admin.show", "self.rename", "src.app.models.User.rename", False),
        ("calls", "Admin.show", "x.save", "src.app.models.Base.save", True),
        ("calls", "Admin.show", "os.getcwd", "", False),
        ("calls", "Admin.show", "print", "", False),
        ("calls", "unused", "helper", "src.app.util.helper", False),
        ("calls", "User.rename", "self.save", "src.app.models.Base.save", False),
        ("inherits", "Admin", "m.User", "src.app.models.User", False),
        ("inherits", "User", "Base", "src.app.models.Base", False),
        ("imports", "", "app.util", "src.app.util", False),
        ("imports", "", "os", "", False),
        ("imports", "", ".models : User", "src.app.models.User", False),
        ("imports", "", "app : models", "src.app.models", False),
        ("imports", "", "app : helper", "src.app.util.helper", False),
        ("imports", "", "..other : gone", "", False),
        ("defines", "Admin", "Admin.show", "src.app.views.Admin.show", False),
        ("defines", "", "LIMIT", "src.app.util.LIMIT", False),
    ],
)
def test_python_edge_finds_its_target_when_imports_say_where(kind, source, written, target, is_ambiguous):
    assert targets(*PYTHON)[kind, source, written] == (target, is_ambiguous)


def test_javascript_edge_finds_its_target_when_the_path_is_relative():
    found = targets(
        ("web/lib/index.ts", "export function start() {}\n"),
        ("web/lib/shape.ts", "export class Shape { area() { return 1 } }\n"),
        (
            "web/app.tsx",
            "import {start as go} from './lib'; import {Shape} from './lib/shape.js'; import * as s from './lib/shape';\n"
            "import React from 'react';\nclass Box extends Shape { draw() { this.area(); go(); new s.Shape(); React.x() } }\n",
        ),
    )
    assert found["calls", "Box.draw", "go"] == ("web/lib.start", False)
    assert found["calls", "Box.draw", "s.Shape"] == ("web/lib/shape.Shape", False)
    assert found["calls", "Box.draw", "this.area"] == ("web/lib/shape.Shape.area", False)
    assert found["calls", "Box.draw", "React.x"] == ("", False)
    assert found["inherits", "Box", "Shape"] == ("web/lib/shape.Shape", False)
    assert found["imports", "", "./lib"] == ("web/lib", False)
    assert found["imports", "", "react"] == ("", False)


def test_go_edge_finds_its_target_when_package_or_import_path_match():
    found = targets(
        ("pkg/store/a.go", "package store\nfunc Open() {}\nfunc closeAll() { Open() }\n"),
        ("pkg/store/b.go", "package store\ntype T struct{}\nfunc (t T) Run() { Open() }\n"),
        (
            "cmd/main.go",
            'package main\nimport st "example.com/x/pkg/store"\nimport "fmt"\nfunc main() { st.Open(); fmt.Println(); Open() }\n',
        ),
    )
    assert found["calls", "T.Run", "Open"] == ("pkg/store.Open", False)
    assert found["calls", "main", "st.Open"] == ("pkg/store.Open", False)
    assert found["calls", "main", "fmt.Println"] == ("", False)
    assert found["calls", "main", "Open"] == ("", False)
    assert found["imports", "", "example.com/x/pkg/store"] == ("pkg/store", False)


def test_java_edge_finds_its_target_when_imported_or_in_the_same_package():
    found = targets(
        ("src/a/Util.java", "package a; public class Util { static void go() {} void own() { go(); } }"),
        ("src/a/Near.java", "package a; class Near extends Util { void f() { Util.go(); own(); } }"),
        ("src/b/Far.java", "package b; import a.Util; class Far { void f() { Util.go(); new Util(); } }"),
    )
    assert found["calls", "Util.own", "go"] == ("a.Util.go", False)
    assert found["calls", "Near.f", "Util.go"] == ("a.Util.go", False)
    assert found["calls", "Near.f", "own"] == ("a.Util.own", False)
    assert found["calls", "Far.f", "Util.go"] == ("a.Util.go", False)
    assert found["calls", "Far.f", "Util"] == ("a.Util", False)
    assert found["inherits", "Near", "Util"] == ("a.Util", False)


def test_rust_and_c_edges_are_ambiguous_when_a_name_is_defined_twice():
    rust = targets(
        (
            "src/net/conn.rs",
            "pub struct Conn; impl Conn { pub fn open() {} fn again(&self) { Self::open(); helper() } }",
        ),
        ("src/main.rs", "use crate::net::conn::Conn; fn helper() {} fn main() { Conn::open(); }"),
    )
    assert rust["calls", "main", "Conn::open"] == ("net::conn::Conn::open", False)
    assert rust["calls", "Conn::again", "Self::open"] == ("net::conn::Conn::open", False)
    assert rust["calls", "Conn::again", "helper"] == ("crate::helper", False)
    c = targets(
        ("a/one.c", "int once(void) { return 1; }\nint twice(void) { return 1; }"),
        ("b/two.c", "int twice(void) { return 2; }"),
        ("c/use.c", '#include "../a/one.h"\nint main(void) { once(); twice(); return 0; }'),
        ("a/one.h", "int once(void);"),
    )
    assert c["calls", "main", "once"] == ("once", False)
    assert c["calls", "main", "twice"] == ("", True)
    assert c["imports", "", "../a/one.h"] == ("a/one.h", False)


def test_edges_are_the_same_when_resolved_twice():
    files = [code_file(path, text) for path, text in PYTHON]
    assert resolve_edges(files) == resolve_edges(list(reversed(files)))


_NAMES = st.sampled_from(["a", "b", "c"])
_LINES = st.one_of(
    st.builds("def {}(): {}()".format, _NAMES, _NAMES),
    st.builds("class {}({}):\n    def {}(self): self.{}()".format, _NAMES, _NAMES, _NAMES, _NAMES),
    st.builds("from .{} import {} as {}".format, _NAMES, _NAMES, _NAMES),
    st.builds("from .{} import *".format, _NAMES),
    st.builds("import {}\n{}.{}()".format, _NAMES, _NAMES, _NAMES),
)
_TEXTS = st.lists(_LINES, max_size=5).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(
    before=st.dictionaries(_NAMES, _TEXTS, min_size=1, max_size=3),
    changes=st.lists(st.tuples(_NAMES, st.none() | _TEXTS), min_size=1, max_size=4),
)
def test_resolution_is_that_of_the_whole_when_only_what_a_change_names_is_done_again(before, changes):
    index = CodeIndex()
    files = {name: code_file(f"p/{name}.py", text) for name, text in before.items()}
    for file in files.values():
        index.put(file)
    known = {r.edge: r for r in resolve_edges(files.values())}
    for name, text in changes:
        path = f"p/{name}.py"
        known = {edge: r for edge, r in known.items() if edge.path != path}
        files.pop(name, None)
        names = index.drop(path)
        if text is not None:
            files[name] = code_file(path, text)
            names |= index.put(files[name])
        for file in files.values():
            todo = [
                edge
                for edge in file_edges(file.path, file.structure)
                if edge.path == path or edge.name in names
            ]
            known |= {r.edge: r for r in file_resolve(file, todo, index.candidates)}
    assert known == {r.edge: r for r in resolve_edges(files.values())}


def test_edges_name_what_is_imported_when_an_alias_hides_it():
    edges = file_edges("m.py", structure_of("from a import b as c\nc()\n", "python"))
    assert [e.name for e in edges if e.kind == EdgeKind.CALLS] == ["b"]
