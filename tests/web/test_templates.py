"""Templates and scripts keep the strict content security policy, by lint over their sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.walked import each

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
SPRITE = (ROOT / "static" / "icons.svg").read_text()

# Where a value is already clean HTML. Blocks are Markdown rendered by markdown-it (html off) and cleaned by nh3.
SAFE_ALLOWED = {"conversations/_blocks.html"}

FORBIDDEN = {
    "an inline style": re.compile(r"\sstyle\s*=", re.I),
    "a style element": re.compile(r"<style[\s>]", re.I),
    "a script without src": re.compile(r"<script(?![^>]*\ssrc=)[^>]*>", re.I),
    "an event handler attribute": re.compile(r"<[a-z][^>]*\son[a-z]+\s*=", re.I | re.S),
    "hx-on": re.compile(r"\bhx-on\b", re.I),
    "a js: or javascript: value": re.compile(r"=\s*[\"']\s*(js|javascript):", re.I),
    "a trigger filter": re.compile(r"hx-trigger\s*=\s*(\"[^\"]*\[|'[^']*\[)", re.I),
}


def offences(source: str, name: str = "") -> list[str]:
    """Return what in a template's source the policy or the house forbids."""
    found = [label for label, pattern in FORBIDDEN.items() if pattern.search(source)]
    if re.search(r"\|\s*safe\b|\{%\s*autoescape\s+off|\bsafeseq\b", source) and name not in SAFE_ALLOWED:
        found.append("unescaped output")
    return found


@each("path", TEMPLATES)
def test_template_is_clean_under_the_policy(path: Path):
    name = path.relative_to(ROOT / "templates").as_posix()
    source = path.read_text()
    assert offences(source, name) == []
    for icon in re.findall(r"icons\.svg' %}#i-([a-z0-9-]+)\"", source):
        assert f'id="i-{icon}"' in SPRITE, f"{name}: no icon {icon}"


@pytest.mark.parametrize(
    "hostile",
    [
        '<p style="color:red">',
        "<style>p{}</style>",
        "<script>alert(1)</script>",
        '<img src="x"\n onerror="alert(1)">',
        '<b hx-on:click="x()">',
        "<b hx-on::after-request='x()'>",
        '<a href="javascript:x()">',
        "<b hx-vals='js:{a:1}'>",
        '<b hx-trigger="click[ctrlKey]">',
        "{{ answer|safe }}",
        "{% autoescape off %}{{ x }}{% endautoescape %}",
    ],
)
def test_lint_finds_the_offence(hostile: str):
    assert offences(hostile)


# A number in a reader's format, such as 61,2, is none for a browser that draws: figures came out as one dot in four languages.
DRAWN = re.compile(r"\s(?:cx|cy|r|rx|ry|x|y|x1|x2|y1|y2|width|height|viewBox)=\"([^\"]*)\"")


def test_numbers_that_a_browser_draws_by_are_in_no_language() -> None:
    localized = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in TEMPLATES
        for found in DRAWN.finditer(path.read_text())
        for value in re.findall(r"\{\{(.*?)\}\}", found[1])
        if not re.search(r"\|(?:unlocalize|stringformat|add:)", value)
    ]
    assert localized == []


# A formatter that takes two neighbouring tags of a sentence for two lines leaves "the system , now" on the page.
PARTED = re.compile(r"(?:end\w+ %\}|\}\}|[\w>])\s+\{%[^%]*%\}\s*[,.;:!?)](?!\w)")


@each("path", TEMPLATES)
def test_no_sentence_gets_a_space_before_its_comma(path: Path):
    assert PARTED.findall(path.read_text()) == []


def test_the_parted_sentence_is_found():
    assert PARTED.search("by {% if a %}{{ a }}{% endif %}\n  {% if b %}, through a model{% endif %}")
    assert not PARTED.search("by {% if a %}{{ a }}{% endif %}{% if b %}, through a model{% endif %}")


def test_templates_exist():
    assert len(TEMPLATES) > 40


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_script_needs_no_eval(path: Path):
    source = path.read_text()
    for forbidden in (r"\beval\(", r"new Function\b", r"document\.write", r"setAttribute\(\s*[\"']style"):
        assert not re.search(forbidden, source), forbidden


@pytest.mark.parametrize("path", sorted((ROOT / "static" / "css").glob("*.css")), ids=lambda p: p.name)
def test_stylesheet_closes_what_it_opens_and_stays_small(path: Path):
    source = path.read_text()
    assert source.count("{") == source.count("}"), "a rule is not closed: everything after it is lost"
    assert len(source) < 40 * 1024, "split it per component"
    for name in re.findall(r"url\(([^)\"']+)\)", source):
        assert (path.parent / name).is_file(), name


@pytest.mark.parametrize("path", sorted((ROOT / "static" / "css").glob("*.css")), ids=lambda p: p.name)
def test_no_has_selects_just_anything_below(path: Path):
    """A browser keeps one set of what any ``:has()`` may change. One rule whose last part names no element, class or id puts
    everything into it: then each word of an answer restyles the whole conversation (7 ms at 600 elements)."""
    assert not wide_has(path.read_text())


def wide_has(source: str) -> list[str]:
    """Return the selectors that look by ``:has()`` and end in a part that any element may be."""
    found = []
    for selectors in re.findall(r"(?:^|[{}])([^{}@]+)\{", re.sub(r"/\*.*?\*/", "", source, flags=re.S)):
        for selector in re.split(r",(?![^(]*\))", selectors):
            plain = re.sub(r":has\((?:[^()]|\([^()]*\))*\)", ":HAS", selector.strip())
            last = re.split(r"[\s>+~](?![^(]*\))", plain)[-1]
            if ":HAS" in plain and re.match(r"\*|:(?!HAS|is\()", last):
                found.append(selector.strip())
    return found


def test_the_wide_selectors_are_found():
    assert wide_has(".checks>div:has(>:nth-child(10))>*{x:y}")
    assert wide_has("a:has(b) :nth-child(2){x:y}")
    assert wide_has("a:has(b) :not(.c){x:y}")
    assert wide_has("@media (max-width:1px){.a:has(>b)>:first-child,.c{x:y}}") == [".a:has(>b)>:first-child"]
    assert not wide_has(".a:has(.b) :is(.c,.d){x:y}.a:has(>:nth-child(5)){x:y}.e>*{x:y}")


HEAD = re.compile(
    r"<(?:span|h1)\s([^<>]*aria-current=\"page\"(?:\{\{.*?\}\}|[^<>])*)>\s*\{\{ ?\w+\.(?:name|title)\b[^{}]*\}\}\s*</"
)


def test_a_name_in_the_head_of_a_page_ends_in_an_ellipsis_and_is_whole_on_hover():
    """A phone has no room for long names of people's things, and their script may run the other way."""
    heads = {
        f"{path.relative_to(ROOT)}: {found[0]}": found[1]
        for path in TEMPLATES
        if "admin" not in path.parts
        for found in HEAD.finditer(path.read_text())
    }
    assert len(heads) > 10
    assert [
        head for head, said in heads.items() if not all(x in said for x in ("clip", "title=", 'dir="'))
    ] == []
