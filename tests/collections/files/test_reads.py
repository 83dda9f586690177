"""Listing, reading, searching, structure, syntax: pages, encodings, limits, and what is hidden."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from apps.collections.documents import access
from apps.collections.files import selectors as file_selectors
from apps.collections.files import services as files_services
from apps.collections.files.checks import check_syntax
from apps.collections.files.history import batch_list, diff_files, diff_revisions, revision_list
from apps.collections.files.search import search_files
from apps.collections.files.selectors import file_list, file_read, project_structure
from apps.collections.models import Collection, FileRevision
from apps.collections.tree.text import file_text
from basics.errors import Denied, DomainError, Invalid, Missing
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.collections.files.conftest import Write

pytestmark = pytest.mark.django_db


@pytest.fixture
def reading(cast: Cast, collection: Collection, scope: None) -> dict[str, Any]:
    return {"actor": cast.actor("member"), "collection": collection}


@pytest.mark.parametrize(
    ("content", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("Gr\u00fc\u00dfe\n".encode(), "Gr\u00fc\u00dfe\n", "utf-8"),
        (b"\xef\xbb\xbfx", "x", "utf-8"),
        ("\ufeffh\u00e9".encode("utf-16-le"), "h\u00e9", "utf-16-le"),
        ("\ufeffh\u00e9".encode("utf-32-be"), "h\u00e9", "utf-32-be"),
        (b"a\r\nb\r\n", "a\nb\n", "utf-8"),
        (b"a\rb\r", "a\nb\n", "utf-8"),
        (b"\x89PNG\r\n\x1a\n\0\0", None, ""),
        (bytes(range(256)), None, ""),
        (b"\xff\xfe\x00", None, ""),
    ],
)
def test_text_is_told_from_bytes(content: bytes, text: str | None, encoding: str) -> None:
    found = file_text(content)
    assert (found.text if found else None) == text
    if found:
        assert found.encoding == encoding
        assert found.encoded(found.text) == content


def test_text_in_an_old_encoding_keeps_its_bytes() -> None:
    content = (
        "\u00dcber die Stra\u00dfe nach K\u00f6ln f\u00e4hrt der Bus t\u00e4glich.\n".encode("latin-1") * 20
    )
    found = file_text(content)
    assert found is not None
    assert found.encoded(found.text) == content
    assert "Stra\u00dfe" in found.text


def test_folder_is_listed_in_pages_folders_first(write: Write, reading: dict[str, Any]) -> None:
    for path in ("b.py", "a/x.txt", "a/y/z.txt", "C/x.txt", "a.txt"):
        write(path, f"text of {path}\n")
    listing = file_list(**reading)
    assert [(e.name, e.is_folder, e.files) for e in listing.entries] == [
        ("a", True, 2),
        ("C", True, 1),
        ("a.txt", False, 1),
        ("b.py", False, 1),
    ]
    assert listing.entries[3].language == "Python"
    page = file_list(**reading, offset=1, limit=2)
    assert ([e.name for e in page.entries], page.total, page.has_more) == (["C", "a.txt"], 4, True)
    assert [e.path for e in file_list(**reading, folder="a/").entries] == ["a/y", "a/x.txt"]
    with pytest.raises(Missing):
        file_list(**reading, folder="nothing")
    with pytest.raises(Invalid):
        file_list(**reading, folder="../..")


def test_lines_are_read_in_ranges_and_pages(write: Write, reading: dict[str, Any]) -> None:
    write("long.txt", "".join(f"line {number}\n" for number in range(1, 1201)))
    first = file_read(**reading, path="long.txt")
    assert (len(first.lines), first.total_lines, first.has_more) == (500, 1200, True)
    part = file_read(**reading, path="long.txt", start=1199, end=5000)
    assert (part.lines, part.has_more) == (["line 1199", "line 1200"], False)
    for start, end in ((0, 5), (5, 4), (1201, None)):
        with pytest.raises(Invalid):
            file_read(**reading, path="long.txt", start=start, end=end)
    write("logo.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
    picture = file_read(**reading, path="logo.png")
    assert (picture.is_binary, picture.lines) == (True, [])
    for path in ("no.txt", "../x", "a\0b", "/etc/passwd", ""):
        with pytest.raises((Missing, Invalid)):
            file_read(**reading, path=path)


def test_search_finds_text_names_and_patterns_in_pages(write: Write, reading: dict[str, Any]) -> None:
    write("a.py", "import os\nOS = 1\n\ndef run(): pass\n")
    write("src/b.py", "def run(x):\n    return os\n")
    write("c.txt", "run\n")
    found = search_files(**reading, query="os")
    assert [(m.path, m.line, m.column) for m in found.matches] == [
        ("a.py", 1, 8),
        ("a.py", 2, 1),
        ("src/b.py", 2, 12),
    ]
    found = search_files(**reading, query="OS", is_case_sensitive=True)
    assert [(m.path, m.text) for m in found.matches] == [("a.py", "OS = 1")]
    assert [m.path for m in search_files(**reading, query="*.py", kind="name").matches] == [
        "a.py",
        "src/b.py",
    ]
    found = search_files(**reading, query=r"^def (\w+)\(", kind="regex", names="*.py", limit=1)
    assert [(m.path, m.line) for m in found.matches] == [("a.py", 4)]
    assert found.next_offset == 1
    rest = search_files(**reading, query=r"^def (\w+)\(", kind="regex", names="*.py", offset=1)
    assert ([m.path for m in rest.matches], rest.next_offset) == (["src/b.py"], None)
    assert search_files(**reading, query="run", folder="src").files_searched == 1
    for bad in ("(", "a" * 501, "", "(?P<x", "(?:(?:a{1000}){1000}){1000}"):
        with pytest.raises(Invalid):
            search_files(**reading, query=bad, kind="regex")


def test_search_ends_in_time_when_the_pattern_explodes(write: Write, reading: dict[str, Any]) -> None:
    write("a.txt", "a" * 5000 + "b\n")
    found = search_files(**reading, query=r"(a|a)*(a|aa)+$c", kind="regex", seconds=0.5)
    assert "ran out of time" in found.note or found.matches == []


def test_structure_counts_what_it_leaves_out(write: Write, reading: dict[str, Any]) -> None:
    for path in ("a/b/c/d.py", "a/e.go", "f.txt"):
        write(path, "x = 1\n")
    root = project_structure(**reading, depth=2)
    assert (root.files, root.size, root.languages) == (3, 18, {"Python": 1, "Go": 1})
    names = {node.name: node for node in root.children}
    assert set(names) == {"a", "f.txt"}
    below = {node.name: node for node in names["a"].children}
    assert (below["b"].is_folder, below["b"].files, below["b"].children) == (True, 1, [])
    assert project_structure(**reading, most=1).left_out == 1


@pytest.mark.servers
@pytest.mark.parametrize(
    ("path", "good", "bad", "line"),
    [
        ("a.py", "x = 1\n", "x = 1\ndef f(:\n", 2),
        ("a.json", '{"a": 1}', '{"a": 1,\n}', 2),
        ("a.toml", "a = 1\n", "a = 1\nb = \n", 2),
        ("a.yaml", "a: [1, 2]\n", "a: [1\nb: }\n", 2),
        ("a.go", "package a\n\nfunc f() {}\n", "package a\n\nfunc f( {}\n", 3),
        ("a.js", "let a = 1;\n", "let a = ;\nlet b = 2\n", 1),
    ],
)
def test_syntax_is_checked(
    write: Write, reading: dict[str, Any], path: str, good: str, bad: str, line: int
) -> None:
    write(path, good)
    assert check_syntax(**reading, path=path).problems == []
    write(path, bad)
    found = check_syntax(**reading, path=path).problems
    assert found
    assert abs(found[0]["line"] - line) <= 1
    assert found[0]["message"]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "(" * 100_000),
        ("a.py", "-" * 500_000 + "1"),
        ("a.py", "a" + ".b" * 300_000),
        ("a.json", "[" * 500_000),
        ("a.yaml", "- " * 50_000),
        ("a.yaml", "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(200))),
        ("a.toml", "a = " + "[" * 100_000),
        ("a.js", "(" * 500_000),
    ],
)
def test_check_ends_when_the_file_is_hostile(
    write: Write, reading: dict[str, Any], path: str, text: str
) -> None:
    write(path, text)
    with suppress(DomainError):  # it was stopped, or it found the problem: both are fine
        check_syntax(**reading, path=path)


def test_differences_of_files_and_revisions_are_shown(write: Write, reading: dict[str, Any]) -> None:
    write("a.txt", "one\ntwo\n")
    write("b.txt", "one\nthree\n")
    assert diff_files(**reading, path="a.txt", other="b.txt").split("\n")[3:] == [" one", "-two", "+three"]
    write("a.txt", "one\nzwei\n")
    revisions = list(FileRevision.objects.filter(path="a.txt").order_by("pk"))
    assert "+zwei" in diff_revisions(**reading, pk=revisions[1].pk)
    assert "+one" in diff_revisions(**reading, pk=revisions[0].pk)
    assert "-two" in diff_revisions(**reading, pk=revisions[0].pk, other=revisions[1].pk)


def test_limited_documents_are_in_no_list_search_structure_or_history(
    cast: Cast, collection: Collection, reading: dict[str, Any], write: Write
) -> None:
    write("open/a.txt", "the word pay\n")
    owner: dict[str, Any] = {"actor": cast.actor("owner"), "collection": collection}
    document = upload(cast, collection, "pay.txt", b"the word pay\n")
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=document, is_restricted=True, roles=["owner"]
    )
    files_services.file_write(tenant=cast.tenant, **owner, path="pay.txt", content="the word pay, twice\n")
    files_services.file_move(tenant=cast.tenant, **owner, path="pay.txt", to="secret/pay.txt")
    for who, names in ((owner, {"open", "secret"}), (reading, {"open"})):
        assert {entry.name for entry in file_list(**who).entries} == names
        assert {n.name for n in project_structure(**who).children} == names
        assert {m.path.split("/")[0] for m in search_files(**who, query="pay").matches} == names
        assert {m.path.split("/")[0] for m in search_files(**who, query="*", kind="name").matches} == names
        shown = revision_list(**who, batches=batch_list(**who))
        assert any("pay" in row.path for row in shown) is (who is owner)
    with pytest.raises(Missing):
        file_read(**reading, path="secret/pay.txt")
    with pytest.raises(Missing):
        file_list(**reading, folder="secret")
    hidden = FileRevision.objects.filter(path__endswith="pay.txt").first()
    assert hidden is not None
    with pytest.raises(Missing):
        diff_revisions(**reading, pk=hidden.pk)


def test_hidden_and_denied_files_are_shown_only_by_the_rules(
    cast: Cast, collection: Collection, reading: dict[str, Any], write: Write
) -> None:
    def rules(**values: Any) -> None:
        files_services.file_rules_update(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, rules=values
        )
        collection.refresh_from_db()

    rules(show_hidden=True)
    for path in (".env", "a/.b/c.txt", "keys/id.pem", "a.txt"):
        write(path, "x y\n")
    assert {e.name for e in file_list(**reading).entries} == {".env", "a", "keys", "a.txt"}
    rules(deny=["*.pem"])
    assert {e.name for e in file_list(**reading).entries} == {"a.txt"}
    with pytest.raises(Missing):
        file_read(**reading, path=".env")
    rules(allow=["keys/"])
    assert {e.name for e in file_list(**reading).entries} == {"keys"}


def test_outsider_sees_nothing(cast: Cast, collection: Collection, write: Write) -> None:
    write("a.txt", "x\n")
    try:
        found = file_selectors.files_visible(actor=cast.actor("outsider"), collection=collection)
    except (Missing, Denied):
        found = {}
    assert found == {}
