"""The house's layout: what would break outside pytest, in a fresh interpreter, and what must be written down."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import grimp
import pytest

from docs import ownership

ROOT = Path(__file__).resolve().parent.parent
TOP = {
    "apps",
    "benchmarks",
    "clients",
    "deploy",
    "docs",
    "platform",
    "requirements",
    "static",
    "templates",
    "tests",
}


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code as `manage.py` would, with the two roots on the path and nothing imported yet."""
    start = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'platform')!r}];"
    return subprocess.run([sys.executable, "-I", "-c", start + code], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["platform", "collections"])
def test_standard_library_is_not_shadowed(name: str):
    found = run(f"import {name}, uuid; print({name}.__file__)")
    assert found.returncode == 0, found.stderr
    assert Path(found.stdout.strip()).is_relative_to(Path(sys.base_prefix).resolve()) or (
        "lib/python" in found.stdout and "site-packages" not in found.stdout
    )
    assert not Path(found.stdout.strip()).is_relative_to(ROOT)


def test_source_root_holds_packages_only():
    loose = [p.name for p in (ROOT / "platform").glob("*.py")]
    assert loose == [], "platform/ is a source root: no __init__.py, no loose modules"
    assert (ROOT / "apps" / "__init__.py").is_file()


def test_apps_are_imported_by_their_full_name():
    assert run("import apps.collections, collections; collections.OrderedDict").returncode == 0
    assert run("import conversations").returncode != 0


def test_the_loop_needs_no_framework():
    code = (
        "import toolloop.loop, basics.errors; import sys; "
        "print([m for m in ('django', 'psycopg', 'openai', 'anthropic', 'google.genai') if m in sys.modules])"
    )
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "[]"


def test_children_that_read_files_need_no_framework():
    code = (
        "import apps.collections.tree.child, apps.collections.tree.syntax; "
        "import apps.collections.ingestion.child, apps.collections.ingestion.git.repository; import sys; "
        "print([m for m in ('django', 'psycopg') if m in sys.modules])"
    )
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "[]"


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return listed.stdout.split("\n")


def test_top_level_has_the_agreed_folders():
    found = {p.split("/", 1)[0] for p in tracked() if "/" in p}
    assert {f for f in found if not f.startswith(".")} - TOP == set(), (
        "move it into a folder of TOP, or add it there"
    )


def test_every_module_says_in_its_first_line_what_it_answers_for():
    """`make ownership` prints these, and they are how a stranger finds the room."""
    said = dict(ownership.modules())
    assert len(said) > 1000
    assert [name for name, what in said.items() if len(what) < 8] == [], (
        "add a docstring: what is this module for?"
    )


def test_every_tests_folder_is_a_package():
    missing = [
        str(p.relative_to(ROOT))
        for p in (ROOT / "tests").rglob("*")
        if p.is_dir()
        and p.name != "__pycache__"
        and list(p.glob("*.py"))
        and not (p / "__init__.py").exists()
    ]
    assert missing == [], "add an empty __init__.py to each of these folders"


def test_modules_stay_readable_in_one_sitting():
    """About 400 lines; longer ones become packages."""
    long = {
        path: count
        for path in tracked()
        if re.match(r"(platform|apps)/.+\.py$", path)
        and "/migrations/" not in path
        and (ROOT / path).exists()
        if (count := len((ROOT / path).read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}, "split it into modules of one noun each, or make it a package"


PROSE = re.compile(
    r'"\{%[^"]*%\}"|"[^"{}<>]{40,}"|\{% (?:block)?translate .*?%\}|\bd="[^"]*"|url\("data:image/svg[^"]*"\)'
)
"""A sentence given to a tag, a text to translate with its values, a path of an SVG: no formatter breaks them, and
nobody reads them as structure."""


@pytest.mark.parametrize("kind", ["html", "css", "js"])
def test_templates_styles_and_scripts_are_laid_out_to_be_read(kind: str):
    """A file kept on a few endless lines passes every other test, and no change to it can be reviewed."""
    lines = [
        (f"{path}:{number}", line)
        for path in tracked()
        if re.match(rf"(templates|static)/.+\.{kind}$", path)
        and "/vendor/" not in path
        and (ROOT / path).exists()
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
    ]
    assert sum(len(line) for _, line in lines) < 60 * len(lines)
    assert [place for place, line in lines if len(PROSE.sub("", line)) > 160] == [], "run `make format`"


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of more than one module that reach each other.

    Args:
        imports: what each module imports itself.

    A module with nothing left to import, or that nobody left imports, is in no circle and is taken out; what stays are
    circles and the ways between them, which are told apart by what each reaches.
    """
    left = {module: set(found) for module, found in imports.items()}
    while left:
        wanted = set().union(*left.values())
        kept = {m: found & set(left) for m, found in left.items() if found & set(left) and m in wanted}
        if kept == left:
            break
        left = kept

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        ahead = [module]
        while ahead:
            new = left[ahead.pop()] - found
            found |= new
            ahead += new
        return found

    reach = {module: reached(module) for module in left}
    groups = {frozenset(m for m in reach[one] if one in reach[m]) for one in reach if one in reach[one]}
    return [set(group) for group in groups if len(group) > 1]


def test_circles_are_found():
    imports = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set()}
    found = circles(imports)
    assert sorted(map(sorted, found)) == [["a", "b"], ["d", "e"]]


def test_no_modules_import_each_other_in_a_circle():
    """Not for types alone either: what needs another's type takes a Protocol, or both types move below the two."""
    packages = {p.split("/")[1] for p in tracked() if re.match(r"platform/[^/]+/__init__\.py$", p)}
    graph = grimp.build_graph("apps", *sorted(packages), exclude_type_checking_imports=False, cache_dir=None)
    assert {"apps.tools.apps", "toolloop.loop"} <= graph.modules
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert [sorted(group) for group in circles(imports)] == []


DEFINED = re.compile(r"^(?:(@.+)\n(?:.*\n)??)?(?:async def|def|class) ([a-z]\w+|[A-Z]\w+)", re.M)
WITHOUT_CALLER = {
    "thread_is_holding": "the guard that tests/conftest.py puts around every test",
    "plugins_forget": "a test forgets plug-ins that it wrote itself",
    "query_weights": "what the benchmark of search by words compares the index with",
}
"""Public functions and classes that only tests or benchmarks use, and why they stay."""


def test_whatever_is_public_has_a_caller_outside_of_tests():
    """By words, so that templates, settings and names in strings count; what a decorator registers is called by its name."""
    words: Counter[str] = Counter()
    defined: dict[str, str] = {}
    for path in tracked():
        if not re.match(r"(platform|apps|templates)/.+\.(py|html)$", path) or not (ROOT / path).exists():
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        words.update(re.findall(r"\w+", text))
        if path.endswith(".py") and not re.search(r"/migrations/|/management/|^platform/toolloop/", path):
            defined.update((name, path) for registered, name in DEFINED.findall(text) if not registered)
    unused = {name: path for name, path in defined.items() if words[name] == 1}
    registered_by_django = {n for n in unused if n.endswith(("Config", "Admin", "Scheme"))}
    assert "work_stop" in defined
    assert {n: p for n, p in unused.items() if n not in registered_by_django | set(WITHOUT_CALLER)} == {}, (
        "give it a door, or delete it with its tests"
    )
    assert set(WITHOUT_CALLER) <= set(unused), "this one has a caller by now, or is gone"
