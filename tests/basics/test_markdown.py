r"""One renderer of Markdown: what is a formula, what isn't, and that nothing of a formula reaches the page but MathML."""

from __future__ import annotations

import re

import pytest

from basics.markdown import formulas
from basics.markdown.formulas import LONGEST, MOST, formula_html
from basics.markdown.render import Renderer, Use

RENDERER = Renderer(Use(formulas=True))
GUIDE = Renderer(Use(pictures=True))
SOURCE = re.compile(r"<annotation[^>]*>([^<]*)</annotation>")


def render(text: str) -> str:
    return RENDERER.render(RENDERER.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "Between $5 and 10$.",
        "US$ 7 or $5, or US$ 3",
        "**$5 million** to **$6 million**",
        "$5 (was $7)",
        "$1,000/month (about 900) or 12,000$ a year",
        "$5-$10, $HOME/bin:$PATH",
        r"\$5 and \$6",
        "`$x$`",
        r"\[1\] and \[sic\] and \(see below\) and \\(a\\)",
        "| a |\n|-|\n| $5 |\n| $6 |",
        "$ x $ and $$ and a$b$c",
    ],
)
def test_prices_code_and_escaped_brackets_are_no_formulas(text: str) -> None:
    assert "math" not in render(text)
    assert "tex" not in render(text)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("a $x$, $5$ and $2^n$", ["$x$", "$5$", "$2^n$"]),
        (r"$100 \text{ euros}$", [r"$100 \text{ euros}$"]),
        (r"\(a_1 * b_2 * c\)", [r"\(a_1 * b_2 * c\)"]),
        (r"see \[x = 1\] there", [r"\[x = 1\]"]),
        ("text:\n$$\na\n= b\n- c\n$$\nmore", ["$$\na\n= b\n- c\n$$"]),
        ("- a\n\n  $$\n  x\n  $$\n- b", ["$$\nx\n$$"]),
        ("| a |\n|-|\n| $x$ |", ["$x$"]),
    ],
)
def test_formulas_are_mathml_and_keep_their_source(text: str, sources: list[str]) -> None:
    html = render(text)
    assert SOURCE.findall(html) == sources
    assert html.count("<math") == len(sources)


def test_half_a_formula_is_its_source_in_the_block_where_it_will_be() -> None:
    whole = "Before.\n\n$$\n\\frac{a}{b}\n= c\n$$\n\nAfter."
    counts = [len(list(RENDERER.blocks(RENDERER.parse(whole[:n])))) for n in range(len(whole) + 1)]
    assert counts == sorted(counts)
    half = render(whole[: whole.index("= c") + 2])
    assert '<code class="tex-source block">$$\n\\frac{a}{b}\n=</code>' in half


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{&#x3c;img src=x onerror=alert(1)&#x3e;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(//evil.example)}{x}",
        r"\class{cite}{x}",
        r'\color{red" onclick="alert(1)}{x}',
        r"\text{</math><button data-cite=1>}",
        "</annotation></semantics></math><script>x</script>",
        "\ue00d0\ue00e &#xe00d;0&#xe00e;",
    ],
)
def test_nothing_of_a_formula_is_html(formula: str) -> None:
    html = render(f"${formula}$") + render(f"$$\n{formula}\n$$")
    tags = set(re.findall(r"<(/?\w+)", html))
    assert tags <= {
        *(
            "p",
            "/p",
            "math",
            "/math",
            "semantics",
            "/semantics",
            "annotation",
            "/annotation",
            "span",
            "/span",
        ),
        *("mrow", "/mrow", "mi", "/mi", "mo", "/mo", "mn", "/mn", "mtext", "/mtext", "mstyle", "/mstyle"),
        *("code", "/code", "msup", "/msup"),
    }
    assert not re.search(r'<[^>]*\b(?:href|style|on\w+)=|class="cite"', html)


@pytest.mark.parametrize(
    "formula",
    [
        r"\frac{" * 300 + "1" + "}{2}" * 300,
        r"\left(" * 280 + r"\right)" * 280,
        "{" * 900 + "}" * 900,
        r"\begin{matrix}" * 140,
        r"\newcommand{\a}{\a\a}\a",
        "x_",
        r"\frac{1",
        "x" * (LONGEST + 1),
    ],
)
def test_what_cannot_be_converted_is_shown_as_it_was_written(formula: str) -> None:
    html = formula_html(f"$${formula}$$")
    assert html == f'<code class="tex-source block">$${formula}$$</code>'


@pytest.mark.parametrize(
    "formula", [r"a\hspace{-99em}b", r"a\hspace{-99vw}b", r"\rule{99em}{99em}", r"{a \above 99em b}"]
)
def test_length_that_would_leave_the_text_is_left_out(formula: str) -> None:
    html = formula_html(f"${formula}$").partition("<annotation")[0]
    assert html.startswith("<math>")
    assert "99" not in html


def test_small_steps_back_do_not_add_up_and_sizes_do_not_multiply() -> None:
    assert "<math" in formula_html(r"$a\hspace{-1em}b$")
    assert "<math" not in formula_html("$a" + r"\hspace{-1em}" * 7 + "b$")
    assert formula_html(r"${\Huge a {\Huge b {\Huge c}}}$").count("mathsize=") == 1


def test_work_on_formulas_that_never_end_grows_with_the_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def counted(text: str, start: int, end: int, closes: str) -> int | None:
        looks.append(end - start)
        return closing(text, start, end, closes)

    def work(lines: int) -> int:
        looks.clear()
        assert "end" in render("\\[\\\\]\n" * lines + "\nend")
        assert max(looks) <= LONGEST
        return len(looks)

    closing = formulas._closing
    monkeypatch.setattr(formulas, "_closing", counted)
    assert work(2_000) - work(1_000) <= 4 * 1_000


def test_matrix_with_an_exponent_is_one_base() -> None:
    html = formula_html(r"$\begin{pmatrix}1\end{pmatrix}^{-1}$")
    assert re.search(
        r"<msup><mrow><mo>\(</mo><mtable>.*</mtable><mo>\)</mo></mrow><mrow>.*</mrow></msup>", html
    )


def test_formulas_of_a_text_have_a_bound() -> None:
    one = "$" + "x+" * 450 + "x$ "
    html = render(one * 40)
    assert html.count("<math") == MOST // (len(one) - 1)


@pytest.mark.parametrize("place", [f"%EE%80%{n:X}" for n in range(0x80, 0x90)])
def test_address_cannot_spell_one_of_our_places(place: str) -> None:
    html = render(f"$x$ <https://a.example/{place}0%EE%80%8E> b")
    assert html.count("<math") == 1
    assert "div" not in html
    assert not re.search("[\ue000-\uf8ff]", html)
    assert f"https://a.example/{place}0" in html


def test_tasks_are_check_marks_that_cannot_be_changed() -> None:
    html = render("- [ ] a\n- [x] **b**\n- [y] c\n\n[ ] d")
    assert html.count("<input ") == 2 == html.count(" disabled")
    assert html.count(" checked") == 1
    assert "[y] c" in html
    assert "[ ] d" in html


def test_code_has_its_language_and_a_diagram_says_what_it_is() -> None:
    html = render("```mermaid\ngraph TD\n```\n\n```py\nx = 1\n```\n\n```<b>\nx\n```\n\n    plain")
    assert re.findall(r'"code-of">([^<]*)<', html) == ["Diagram (Mermaid source)", "Python", "&lt;b&gt;", ""]
    assert html.count("data-copy-next") == html.count("data-wrap-lines") == 4


def test_a_use_has_only_what_it_allows() -> None:
    picture = "![a](https://x.example/a.png)"
    assert "<img" not in render(picture)
    assert '<img src="https://x.example/a.png" alt="a">' in GUIDE.render(GUIDE.parse(picture))
    assert "<math" not in GUIDE.render(GUIDE.parse("$x$"))
