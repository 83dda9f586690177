"""One renderer of Markdown for all that shows it: what a use allows is its ``Use``, and nothing else leaves as HTML.

Raw HTML is off. The text is rendered by top-level block and cleaned by nh3 against the use's list; what the cleaner can't know (buttons,
check marks, formulas) is put in only after it, in places that private-use characters keep. So nothing that a text says becomes an
attribute, an instruction, a style, a script, or an image fetched from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from basics.markdown.formulas import MOST, Moved, formula_html, formulas_enable
from basics.texts import gettext as _

# Places of what is put in after the cleaning. A use has U+E000 to U+E007 for its own.
_CODE, _TABLE, _LABELLED, _BOX_ENDS, _CHECK, _FORMULA, _FORMULA_ENDS = map(chr, range(0xE008, 0xE00F))
_OURS = re.compile("[\ue000-\ue00f]")
# Markdown turns a reference to a character into the character: these would be taken for ours.
_FORGED = re.compile(r"&#(?:x0*e00[0-9a-f]|0*573(?:4[4-9]|5\d));", re.IGNORECASE)
BOX_OPENS = f"[{_CODE}{_TABLE}][^{_LABELLED}]*{_LABELLED}"
"""Pattern of where a box begins: a use that takes cleaned HTML apart leaves it whole."""
_BOX = re.compile(f"([{_CODE}{_TABLE}])([^{_LABELLED}]*){_LABELLED}")
_CHECKED = re.compile(f"{_CHECK}([01])")
_SLOT = re.compile(f"{_FORMULA}(\\d+){_FORMULA_ENDS}")
_ANY_SLOT = re.compile("[\ue008-\ue00f]")
_TASK = re.compile(r"\[([ xX])\]\s")
_HIGHLIGHT_MOST = 20_000
_ALIGN = {"text-align:right": "ta-r", "text-align:center": "ta-c"}
_CODE_CLASSES = frozenset(name for name in STANDARD_TYPES.values() if name)
_TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()
)


@dataclass(frozen=True, slots=True)
class Use:
    """What one use of Markdown allows, beyond text, lists, tables and code.

    Attributes:
        link: returns whether a link may lead to an address; otherwise it leads nowhere.
        schemes: of addresses with one.
        link_titles: whether links may have titles.
        link_rel: what links say of where they lead; None where they lead to our own pages.
        pictures: whether pictures are shown; otherwise their text is.
        formulas: whether there are formulas.
        extend: adds the use's own rules to the parser.
        moved: what the use's own characters in a formula become.
    """

    link: Callable[[str], bool] = bool
    schemes: frozenset[str] = frozenset({"https", "mailto"})
    link_titles: bool = False
    link_rel: str | None = None
    pictures: bool = False
    formulas: bool = False
    extend: Callable[[MarkdownIt], None] | None = None
    moved: Moved = field(default=lambda formula: (formula, []))


class _Markdown(MarkdownIt):
    """A parser whose words for an address hold none of our places, though the address spells one (``%EE%80%8B``, ``xn--``)."""

    def normalizeLinkText(self, link: str) -> str:
        said = super().normalizeLinkText(link)
        return "".join(each for each in said if each in link or not _OURS.match(each))


class Renderer:
    """Renders Markdown for one use; made once a process."""

    def __init__(self, use: Use) -> None:
        self._cleaner = _cleaner(use)
        self._markdown = markdown = _Markdown("commonmark", {"html": False, "linkify": False})
        markdown.enable(["table", "strikethrough"])
        markdown.core.ruler.push("tasks", _tasks_rule)
        rules = {
            "fence": _fence_render,
            "code_block": _fence_render,
            "table_open": lambda *_: f"{_TABLE}{_LABELLED}<table>\n",
            "table_close": lambda *_: f"</table>{_BOX_ENDS}\n",
            "th_open": _cell_render,
            "td_open": _cell_render,
            "task": lambda self, tokens, idx, options, env: _CHECK + tokens[idx].content,
            "formula": _formula_render,
        }
        if not use.pictures:
            rules["image"] = _image_render
        for name, rule in rules.items():
            markdown.add_render_rule(name, rule)
        if use.formulas:
            formulas_enable(markdown, use.moved)
        if use.extend is not None:
            use.extend(markdown)

    def parse(self, text: str) -> list[Token]:
        """Return the tokens of a text; what could be taken for one of our places is removed, see ``source_clean`` for a use's own."""
        return self._markdown.parse(_FORGED.sub("\ufffd", _ANY_SLOT.sub("", text)))

    def blocks(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """Yield each top-level block, clean, its places still empty."""
        env: dict[str, Any] = {"formulas": [], "left": MOST}
        start = depth = 0
        for index, token in enumerate(tokens):
            depth += token.nesting
            if depth == 0:
                raw = self._markdown.renderer.render(tokens[start : index + 1], self._markdown.options, env)
                yield Block(self._cleaner.clean(raw), env["formulas"])
                start = index + 1

    def render(self, tokens: Sequence[Token]) -> str:
        """Return the whole as HTML, clean and filled."""
        return "".join(block.filled(block.html) for block in self.blocks(tokens))


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block, clean.

    Attributes:
        html: with places that are still empty.
        formulas: of the text, by the numbers in their places.
    """

    html: str
    formulas: Sequence[str]

    def filled(self, html: str) -> str:
        """Return the block's HTML, or what a use has made of it, with buttons, check marks and formulas in their places."""

        def formula(match: re.Match[str]) -> str:
            number = int(match[1])
            return self.formulas[number] if number < len(self.formulas) else ""

        html = _BOX.sub(_box_opens, html).replace(_BOX_ENDS, "</div>")
        html = _CHECKED.sub(lambda match: _check(match[1] == "1"), html)
        return _ANY_SLOT.sub("", _SLOT.sub(formula, html))


def source_clean(text: str) -> str:
    """Return a text without the characters that places are kept with."""
    return _OURS.sub("", text)


def attribute(text: object) -> str:
    """Return a text as an attribute's value between double quotes."""
    return escape(str(text), quote=False).replace('"', "&quot;")


def _cleaner(use: Use) -> nh3.Cleaner:
    attributes: dict[str, set[str]] = {"a": {"href"}, "ol": {"start"}}
    if use.link_titles:
        attributes["a"].add("title")
    if use.pictures:
        attributes["img"] = {"src", "srcset", "sizes", "alt", "width", "height", "loading"}

    def kept(tag: str, name: str, value: str) -> str | None:
        return None if tag == "a" and name == "href" and not use.link(value) else value

    return nh3.Cleaner(
        tags=set(_TAGS) | ({"img"} if use.pictures else set()),
        clean_content_tags={"script", "style"},
        attributes=attributes,
        allowed_classes={
            "span": set(_CODE_CLASSES),
            "pre": {"hl"},
            "th": set(_ALIGN.values()),
            "td": set(_ALIGN.values()),
        },
        url_schemes=set(use.schemes),
        link_rel=use.link_rel,
        attribute_filter=kept,
        strip_comments=True,
    )


def _box_opens(match: re.Match[str]) -> str:
    """Return the beginning of a box: with code, its language and a switch for long lines; always a button that copies."""
    is_code, label = match[1] == _CODE, match[2]
    copy = attribute(_("Copy this code") if is_code else _("Copy this table"))
    shown = f'data-word="{attribute(_("Copy"))}" data-copied="{attribute(_("Copied"))}"'
    button = f'<button class="copy" type="button" data-copy-next {shown} aria-label="{copy}"></button>'
    if not is_code:
        return f'<div class="copyable">{button}'
    wrap = escape(_("Wrap lines"), quote=False)
    return (
        f'<div class="copyable code"><span class="code-of">{label}</span>'
        f'<button class="wrap" type="button" data-wrap-lines>{wrap}</button>{button}'
    )


def _check(is_done: bool) -> str:
    label = attribute(_("Done") if is_done else _("Not done"))
    return (
        f'<input class="task" type="checkbox" disabled{" checked" if is_done else ""} aria-label="{label}">'
    )


def _tasks_rule(state: StateCore) -> None:
    """Turn ``[ ]`` and ``[x]`` at the beginning of a list's item into check marks."""
    for before, token in zip(state.tokens, state.tokens[2:], strict=False):
        if token.type != "inline" or before.type != "list_item_open":
            continue
        for index, child in enumerate(token.children or []):
            if child.type == "text" and (match := _TASK.match(child.content)):
                child.content = child.content[match.end() :]
                task = Token("task", "", 0, content="01"[match[1] != " "])
                token.children = [*(token.children or [])[:index], task, *(token.children or [])[index:]]
            if child.content and child.type == "text":
                break


def _image_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Show an image's text and leave the image out: fetching it would tell a stranger who reads what."""
    token = tokens[idx]
    return escape(self.renderInlineAsText(token.children or [], options, env))


def _fence_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    token = tokens[idx]
    language = (token.info.split() or [""])[0][:40]
    code, label = escape(token.content, quote=False), source_clean(language)
    if language.lower() == "mermaid":
        label = _("Diagram (Mermaid source)")
    elif language and len(token.content) <= _HIGHLIGHT_MOST:
        try:
            lexer = get_lexer_by_name(language, stripnl=False)
        except ClassNotFound:
            pass  # a language that isn't known has its name, and no colours
        else:
            code, label = highlight(token.content, lexer, HtmlFormatter(nowrap=True)), lexer.name
    label = escape(label, quote=False)
    return f'{_CODE}{label}{_LABELLED}<pre class="hl"><code>{code}</code></pre>{_BOX_ENDS}\n'


def _cell_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Say a column's alignment by class: the page's policy allows no style attributes."""
    style = str(tokens[idx].attrGet("style") or "")
    name = _ALIGN.get(style)
    return f'<{tokens[idx].tag} class="{name}">' if name else f"<{tokens[idx].tag}>"


def _formula_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Keep a place for a formula; those behind the first ``MOST`` characters stay as they were written."""
    written = source_clean(tokens[idx].content)
    env["left"] -= len(written)
    if env["left"] < 0:
        return escape(written, quote=False)
    env["formulas"].append(formula_html(written))
    return f"{_FORMULA}{len(env['formulas']) - 1}{_FORMULA_ENDS}"
