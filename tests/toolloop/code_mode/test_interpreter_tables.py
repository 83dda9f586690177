"""What the tables say about the interpreter is true of the version that is installed, and what is brought along is right."""

from __future__ import annotations

import calendar
import heapq
import html
import importlib
import random
import statistics
import string
import textwrap
import urllib.parse
from typing import Any

import pytest

from toolloop.code_mode import CodeMode
from toolloop.code_mode.driver import MontyBackend
from toolloop.code_mode.names import BROUGHT_MODULES, IGNORED_SPECIALS, MISSING_BUILTINS
from toolloop.code_mode.native import NATIVE_NAMES
from toolloop.code_mode.pool import VERSION, monty, pool_open
from toolloop.code_mode.prelude import module_names

STANDARD = {
    "calendar": calendar,
    "heapq": heapq,
    "html": html,
    "statistics": statistics,
    "string": string,
    "textwrap": textwrap,
    "urllib.parse": urllib.parse,
}


def ours(module: str) -> Any:
    return importlib.import_module(f"toolloop.code_mode.sandboxed.{BROUGHT_MODULES[module]}")


async def test_installed_version_is_the_tested_one():
    assert monty().__version__ == VERSION


async def test_module_tables_are_those_of_the_installed_interpreter():
    pool = await pool_open()
    module = monty()
    wrong = []
    async with pool.checkout(limits={"max_suspensions": 5000}) as session:
        for name, known in NATIVE_NAMES.items():
            if name in ("os.path", "__future__"):
                continue
            public = {n for n in dir(importlib.import_module(name)) if not n.startswith("_")}
            for member in public | known:
                try:
                    await session.feed_run(f"from {name} import {member}")
                    found = True
                except module.MontyError:
                    found = False
                # Newer CPythons have names that were not asked for when the table was made.
                if found != (member in known) and not (found and member not in known):
                    wrong.append((name, member))
    assert wrong == []


async def test_builtins_that_are_refused_do_not_exist():
    pool = await pool_open()
    module = monty()
    async with pool.checkout(limits={"max_suspensions": 500}) as session:
        for name in MISSING_BUILTINS:
            if name == "property":
                continue  # It exists, but decorates no method.
            with pytest.raises(module.MontyError):
                await session.feed_run(f"x = {name}")
    assert "__bool__" in IGNORED_SPECIALS


@pytest.mark.parametrize("module", sorted(STANDARD))
def test_brought_modules_have_only_names_of_the_standard_library(module):
    assert {n for n in module_names(module) if not hasattr(STANDARD[module], n)} == set()


@pytest.mark.parametrize("module", sorted(BROUGHT_MODULES))
async def test_every_brought_module_is_understood_by_the_interpreter(module):
    result = await CodeMode(backend=MontyBackend(), tools=[]).execute(f"import {module}\n'ok'")
    assert result.value == "ok", result.to_text()


def test_statistics_agree_with_the_standard_library_to_the_last_bit():
    mine, source = ours("statistics"), random.Random(7)
    for _ in range(300):
        size = source.randint(2, 12)
        kind = source.choice(("int", "float", "wide"))
        data: list[Any] = [
            source.randint(-50, 50)
            if kind == "int"
            else source.uniform(-1, 1) * (10.0 ** source.randint(-8, 8) if kind == "wide" else 1)
            for _ in range(size)
        ]
        for name in (
            "mean",
            "fmean",
            "median",
            "median_low",
            "median_high",
            "stdev",
            "pstdev",
            "variance",
            "pvariance",
            "mode",
            "multimode",
            "quantiles",
        ):
            want, got = getattr(statistics, name)(data), getattr(mine, name)(data)
            assert got == want, (name, data)
            assert type(got) is type(want), (name, data)


def test_text_functions_agree_with_the_standard_library():
    source = random.Random(3)
    words = [
        "a",
        "of",
        "well-known",
        "x--y",
        "tariff",
        "long-winded-word",
        "e-mail",
        "1-2",
        "ein",
        "supercalifragilistic",
    ]
    mine = ours("textwrap")
    for _ in range(300):
        text = " ".join(source.choices(words, k=source.randint(0, 15)))
        width = source.randint(8, 40)
        if "--" in text:
            continue  # A dash between words is not told from hyphens here.
        assert mine.wrap(text, width) == textwrap.wrap(text, width), (text, width)
        assert mine.shorten(text, 30) == textwrap.shorten(text, 30), text
    for text in ("  a\n    b\n  c", "\n  x\n\n  y\n", "a\n b", "\tx\n\ty"):
        assert mine.dedent(text) == textwrap.dedent(text)
        assert mine.indent(text, "> ") == textwrap.indent(text, "> ")


def test_url_functions_agree_with_the_standard_library():
    mine = ours("urllib.parse")
    urls = [
        "https://u:p@Example.com:8080/a/b;x?q=1&r=ü#f",
        "http://x",
        "//y/z",
        "mailto:a@b.c",
        "/p?q",
        "a/b",
        "",
        "http://[::1]:80/x",
        "x://y#",
        "http://a/b/c/d;p?q#s",
    ]
    for url in urls:
        for name in ("urlsplit", "urlparse"):
            want, got = getattr(urllib.parse, name)(url), getattr(mine, name)(url)
            assert list(got) == list(want), url
            assert (got.hostname, got.port, got.username) == (want.hostname, want.port, want.username)
            assert got.geturl() == want.geturl() or url == "x://y#"
        for rest in ("g", "./g", "../g", "/g", "?y", "#s", "//h/g", "g/../h", "http://z/"):
            if url.startswith(("http", "/")):
                assert mine.urljoin(url, rest) == urllib.parse.urljoin(url, rest), (url, rest)
    for text in ("a b&c=ü/", "%41%zz%c3%bc", "100%", "a+b"):
        for name in ("quote", "quote_plus", "unquote", "unquote_plus"):
            assert getattr(mine, name)(text) == getattr(urllib.parse, name)(text), (name, text)
    assert mine.parse_qs("a=1&a=2&b=&c=x+y") == urllib.parse.parse_qs("a=1&a=2&b=&c=x+y")


def test_heaps_agree_with_the_standard_library():
    mine, source = ours("heapq"), random.Random(5)
    heap: list[int] = []
    other: list[int] = []
    for _ in range(300):
        if heap and source.random() < 0.4:
            assert mine.heappop(heap) == heapq.heappop(other)
        else:
            item = source.randint(0, 50)
            mine.heappush(heap, item)
            heapq.heappush(other, item)
        assert heap[:1] == other[:1]
    assert mine.nlargest(3, heap) == heapq.nlargest(3, heap)
    assert mine.nsmallest(3, heap) == heapq.nsmallest(3, heap)
