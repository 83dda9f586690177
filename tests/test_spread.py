"""A run's tests are handed out by units, each whole to one process and each once."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer

from tests import spread
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/a/test_b.py::TestC::test_d[x-1]", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_c[tests/browser/test_stream.py]", "tests/a/test_b.py"),
        ("tests/browser/test_composer.py::test_c", "tests/browser"),
        ("tests/browser/test_stream.py::test_c[1]", "tests/browser: second"),
        ("tests/conversations/openai/test_clients.py::test_c", "tests/conversations/openai"),
        ("tests/conversations/openai_test.py::test_c", "tests/conversations/openai_test.py"),
    ],
)
def test_unit_is_the_module_or_the_folder_that_stays_together(nodeid: str, unit: str) -> None:
    assert spread.unit_of(nodeid) == unit


def test_what_is_named_is_there() -> None:
    """What is moved or renamed would be begun last, and the run would wait for it."""
    named = [unit.partition(":")[0] for unit in spread.LONGEST]
    named += [f"{spread.BROWSER}/{module}.py" for module in spread.SECOND]
    assert [name for name in (*named, *spread.TOGETHER) if not (ROOT / name).exists()] == []
    assert len(set(spread.LONGEST)) == len(spread.LONGEST)


def test_folders_that_stay_together_are_those_with_a_server_for_all_of_them() -> None:
    """A fixture of a package with servers in a folder that is spread would start them in every process, again and again."""
    fixture = re.compile(r'@pytest\.fixture\(scope="package"\)\ndef (site|api)\(')
    folders = [
        path.parent for path in (ROOT / "tests").rglob("conftest.py") if fixture.search(path.read_text())
    ]
    assert sorted(folder.relative_to(ROOT).as_posix() for folder in folders) == sorted(spread.SITES)


class Process:
    """Stands for a process that runs tests: what it was given, in that order."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def handed_out(tests: list[str], *, dies: int | None = None) -> tuple[list[Process], list[list[str]], Any]:
    """Run the tests in two processes, in turn; the first may die before its n-th. Returns what each has run."""
    config: Any = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=True), getvalue=lambda name: ["popen", "popen"]
    )
    books = spread.Spread(config, Producer("tests", enabled=False))
    nodes: list[Any] = [Process("gw0"), Process("gw1")]
    for node in nodes:
        books.add_node(node)
        books.add_node_collection(node, tests)
    books.schedule()
    ran: list[list[str]] = [[], []]
    while any(node and len(mine) < len(node.given) for node, mine in zip(nodes, ran, strict=True)):
        for number, node in enumerate(nodes):
            if node is None or len(ran[number]) == len(node.given):
                continue
            if number == 0 and len(ran[0]) == dies:
                nodes[0] = None
                books.remove_node(node)
                continue
            item = node.given[len(ran[number])]
            ran[number].append(tests[item])
            books.mark_test_complete(node, item)
    assert books.tests_finished
    return nodes, ran, books


def units(names: dict[str, int]) -> list[str]:
    return [f"tests/{name}.py::test_{n}" for name, count in names.items() for n in range(count)]


def test_each_test_runs_once_and_a_module_in_one_process() -> None:
    tests = units({"test_a": 9, "test_b": 5, "test_c": 4, "test_d": 1, "test_e": 7, "test_f": 1})
    nodes, ran, _ = handed_out(tests)
    assert sorted(ran[0] + ran[1]) == sorted(tests)
    one, other = ({spread.unit_of(test) for test in mine} for mine in ran)
    assert one
    assert other
    assert one & other == set()
    assert all(node.shutting_down for node in nodes)


def test_what_a_process_that_died_had_left_is_run_by_another() -> None:
    tests = units({"test_a": 4, "test_b": 4, "test_c": 4, "test_d": 4})
    _, ran, books = handed_out(tests, dies=2)
    assert sorted(ran[0] + ran[1]) == sorted(tests)
    assert books.collection == tests


def test_tests_of_a_run_are_ordered_by_what_lasts_longest() -> None:
    first, second = spread.LONGEST[3], spread.LONGEST[1]
    tests = [
        *units({"test_small": 1, "test_large": 3}),
        f"{first}::test_x",
        *(f"{second}::test_{n}" for n in range(2)),
    ]
    items: list[Any] = [SimpleNamespace(nodeid=test) for test in tests]
    spread.order(items)
    assert [spread.unit_of(item.nodeid) for item in items] == [
        *([second] * 2),
        first,
        *(["tests/test_large.py"] * 3),
        "tests/test_small.py",
    ]
