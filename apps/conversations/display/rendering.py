"""Turn an answer into safe HTML, block by block; the live view and a reload use the same function.

Markdown (raw HTML off) is rendered per top-level block, cleaned by nh3 against a short list of tags and attributes, and
only then are citation markers put in as buttons. So nothing a model or a document says can become an attribute, an
``hx-*`` instruction, a style, a script or an image that is fetched from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from apps.conversations.citations.markers import Piece
from apps.conversations.display.marks import LABELS, NOTES
from apps.conversations.support.sentences import LANGUAGE

# Private-use characters that stand for a marker while Markdown is at work: between the first two where the text says
# it, between the second two where Markdown has understood it as running text (in code it has not).
_OPEN, _CLOSE, _SEEN, _SEEN_END = "\ue000", "\ue001", "\ue002", "\ue003"
# The same for a marked sentence: the number of its reason follows where it begins, _ENDS where it ends.
_FLAG, _SEEN_FLAG = "\ue004", "\ue005"
_ENDS = "9"
# Before and after what has a copy button, which the cleaner would take away.
_CODE, _TABLE, _COPIED = "\ue006", "\ue007", "\ue008"
_OURS = re.compile(f"[{_OPEN}-{_COPIED}]")
_COPY = {_CODE: gettext_lazy("Copy this code"), _TABLE: gettext_lazy("Copy this table")}
_COPIED_OPENS = (
    '<div class="copyable"><button class="copy" type="button" data-copy-next aria-label="{}"></button>'
)
_REASONS = tuple(LABELS)
# A marked sentence may begin in one element and end in another, so each stretch of its text is marked by itself.
_PIECE = re.compile(f'{_SEEN_FLAG}(\\d)|<(?:[^<>"]|"[^"]*")*>|[^<{_SEEN_FLAG}]+')
_SENTENCE_OVER = re.compile("</(?:p|li|tr|pre|blockquote|h[1-6])>")
# A marker, and the full stop behind it, stay on the line of the word before them.
_LAST_WORD = re.compile(
    f"([^\\s<>&;{_SEEN}-{_SEEN_FLAG}]{{1,30}}\\s?)((?:{_SEEN}\\d+{_SEEN_END})+[.,;:!?)]*)"
)
# Markdown turns a reference to a character into the character: these would be taken for ours.
_FORGED = re.compile(r"&#(?:x0*e00[0-8]|0*573(?:4[4-9]|5[0-2]));", re.IGNORECASE)
_MARKS = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_SEEN_MARKS = re.compile(f"{_SEEN}(\\d+){_SEEN_END}")
_UNSEEN_FLAGS = re.compile(f"{_FLAG}\\d")
_HIGHLIGHT_MOST = 20_000

_CODE_CLASSES = frozenset(name for name in STANDARD_TYPES.values() if name)
_ALIGN = {"text-align:right": "ta-r", "text-align:center": "ta-c"}
_CLEANER = nh3.Cleaner(
    tags=set(
        """
        a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr
        ul
    """.split()
    ),
    clean_content_tags={"script", "style"},
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    allowed_classes={
        "span": set(_CODE_CLASSES),
        "pre": {"hl"},
        "th": set(_ALIGN.values()),
        "td": set(_ALIGN.values()),
    },
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
    attribute_filter=lambda tag, name, value: (
        None if tag == "a" and name == "href" and not _is_absolute(value) else value
    ),
    strip_comments=True,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One top-level block of an answer; its place in the answer is its identity."""

    index: int
    html: str


def blocks_render(pieces: Sequence[Piece], *, run_id: int, labels: Mapping[int, str]) -> list[Block]:
    """Render an answer.

    Args:
        pieces: the answer taken apart at its markers (``citations``).
        run_id: names the answer in the markers' ``data-cite``.
        labels: what each number stands for, shown to screen readers: the document's name.
    """
    text = "".join(
        _OURS.sub("", piece.text)
        + "".join(f"{_OPEN}{n}{_CLOSE}" for n in piece.numbers)
        + (_FLAG + _ENDS if piece.ends else "")
        + (f"{_FLAG}{_REASONS.index(piece.mark)}" if piece.mark else "")
        for piece in pieces
    )
    tokens = _markdown().parse(_FORGED.sub("\ufffd", text))
    blocks: list[Block] = []
    sentences = count()
    for start, end in _top_level(tokens):
        raw = _markdown().renderer.render(tokens[start:end], _markdown().options, {})
        html = _underlined(_CLEANER.clean(raw), run_id, sentences)
        blocks.append(Block(len(blocks), _marked(html, run_id, labels)))
    return blocks


def text_render(text: str) -> list[Block]:
    """Render an answer as it stands, without markers that lead to sources."""
    return blocks_render([Piece(text)], run_id=0, labels={})


def _marked(html: str, run_id: int, labels: Mapping[int, str]) -> str:
    """Put the markers in: buttons in running text, plain ``[1]`` in code and titles."""

    def button(match: re.Match[str]) -> str:
        number = int(match[1])
        said = _("Source %(number)s: %(name)s") % {"number": number, "name": labels.get(number, "")}
        label = escape(said, quote=True)
        return (
            f'<button class="cite" type="button" data-cite="{run_id}-{number}" '
            f'aria-label="{label}">{number}</button>'
        )

    if _SEEN in html:  # the search for a last word takes as long as Markdown
        html = _LAST_WORD.sub(r'<span class="nb">\1\2</span>', html)
        html = _SEEN_MARKS.sub(button, html)
    html = _UNSEEN_FLAGS.sub("", html)
    for mark, label in _COPY.items():
        if mark in html:
            html = html.replace(mark, _COPIED_OPENS.format(_attribute(label)))
    html = html.replace(_COPIED, "</div>")
    return _MARKS.sub(lambda match: f"[{int(match[1])}]", html)


def _attribute(text: object) -> str:
    return escape(str(text), quote=False).replace('"', "&quot;")


def _underlined(html: str, run_id: int, sentences: Iterator[int]) -> str:
    """Underline the marked sentences without moving anything; the first stretch of each has the id that notes lead to."""
    if _SEEN_FLAG not in html:
        return html
    parts: list[str] = []
    reason, name = "", ""
    for match in _PIECE.finditer(html):
        piece, flag = match[0], match[1]
        if flag is not None or (reason and _SENTENCE_OVER.match(piece)):
            if reason:
                parts.append(
                    f'<span class="vh nosrc-note"> ({escape(str(LABELS[reason]), quote=False)}) </span>'
                )
                reason = ""
            if flag is not None and flag != _ENDS:
                reason, name = _REASONS[int(flag)], f' id="r{run_id}-m{next(sentences)}"'
        if flag is None and reason and piece.strip() and not piece.startswith("<"):
            kind = "nosrc quiet" if reason == LANGUAGE else "nosrc"
            parts.append(f'<span class="{kind}"{name} title="{_attribute(NOTES[reason])}">{piece}</span>')
            name = ""
        elif flag is None:
            parts.append(piece)
        if reason and _FLAG + _ENDS in piece:  # it ends in code, where Markdown leaves the flag as it is
            reason = ""
    return "".join(parts)


def _top_level(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return where each top-level block's tokens begin and end."""
    spans, start, depth = [], 0, 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            spans.append((start, index + 1))
            start = index + 1
    return spans


def _is_absolute(url: str) -> bool:
    """Tell whether a link says where it leads; a relative one would act inside this site."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "mailto" or (parts.scheme in {"http", "https"} and bool(parts.netloc))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False})
    markdown.enable(["table", "strikethrough"])
    markdown.inline.ruler.before("text", "cite", _cite_rule)
    # The text rule runs over everything that is no special character, so it must stop at ours.
    markdown.inline.ruler.at("text", _text_rule)
    markdown.add_render_rule("cite", _cite_render)
    markdown.add_render_rule("flag", _flag_render)
    markdown.add_render_rule("image", _image_render)
    markdown.add_render_rule("fence", _fence_render)
    markdown.add_render_rule("table_open", lambda *_: f"{_TABLE}<table>\n")
    markdown.add_render_rule("table_close", lambda *_: f"</table>{_COPIED}\n")
    for cell in ("th_open", "td_open"):
        markdown.add_render_rule(cell, _cell_render)
    return markdown


_TEXT_ENDS = re.compile(f"[\\n!#$%&*+\\-:<=>@\\[\\]\\\\^_`{{}}~{_OPEN}{_FLAG}]")


def _text_rule(state: StateInline, silent: bool) -> bool:
    found = _TEXT_ENDS.search(state.src, state.pos, state.posMax)
    end = found.start() if found is not None else state.posMax
    if end == state.pos:
        return False
    if not silent:
        state.pending += state.src[state.pos : end]
    state.pos = end
    return True


def _cite_rule(state: StateInline, silent: bool) -> bool:
    if state.src.startswith(_FLAG, state.pos):
        if not silent:
            state.push("flag", "", 0).content = state.src[state.pos + 1]
        state.pos += 2
        return True
    match = _MARKS.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        token = state.push("cite", "", 0)
        token.content = match[1]
    state.pos = match.end()
    return True


def _cite_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    return f"{_SEEN}{tokens[idx].content}{_SEEN_END}"


def _flag_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    return f"{_SEEN_FLAG}{tokens[idx].content}"


def _image_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Show an image's text and leave the image out: fetching it would tell a stranger who reads what."""
    token = tokens[idx]
    return escape(self.renderInlineAsText(token.children or [], options, env))


def _fence_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    token = tokens[idx]
    language = (token.info.split() or [""])[0][:40]
    code = escape(token.content, quote=False)
    if language and len(token.content) <= _HIGHLIGHT_MOST:
        try:
            lexer = get_lexer_by_name(language, stripnl=False)
        except ClassNotFound:
            return _copied(code)
        code = highlight(token.content, lexer, HtmlFormatter(nowrap=True))
    return _copied(code)


def _copied(code: str) -> str:
    return f'{_CODE}<pre class="hl"><code>{code}</code></pre>{_COPIED}\n'


def _cell_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Say a column's alignment by class: the page's policy allows no style attributes."""
    style = str(tokens[idx].attrGet("style") or "")
    name = _ALIGN.get(style)
    return f'<{tokens[idx].tag} class="{name}">' if name else f"<{tokens[idx].tag}>"
