"""Turn an answer into safe HTML, block by block; the live view and a reload use the same function.

``basics.markdown`` renders and cleans it; here are the rules that only answers have: citation markers become buttons, and sentences to
check are underlined, both after the cleaning. So nothing a model or a document says can become an attribute, an ``hx-*`` instruction,
a style, a script or an image that is fetched from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from apps.conversations.citations.markers import Piece
from apps.conversations.display.marks import LABELS, NOTES
from apps.conversations.support.sentences import LANGUAGE
from basics.markdown.render import BOX_OPENS, Renderer, Use, attribute, source_clean

# Private-use characters that stand for a marker while Markdown is at work: between the first two where the text says
# it, between the second two where Markdown has understood it as running text (in code it has not).
_OPEN, _CLOSE, _SEEN, _SEEN_END = "\ue000", "\ue001", "\ue002", "\ue003"
# The same for a marked sentence: the number of its reason follows where it begins, _ENDS where it ends.
_FLAG, _SEEN_FLAG = "\ue004", "\ue005"
_ENDS = "9"
_REASONS = tuple(LABELS)
# A marked sentence may begin in one element and end in another, so each stretch of its text is marked by itself.
_PIECE = re.compile(f'{_SEEN_FLAG}(\\d)|<(?:[^<>"]|"[^"]*")*>|{BOX_OPENS}|[^<{_SEEN_FLAG}\ue008\ue009]+|.')
# Tags, and where a box with code or a table begins: no text to underline.
_UNMARKED = "<\ue008\ue009"
_SENTENCE_OVER = re.compile("</(?:p|li|tr|pre|blockquote|h[1-6])>")
# A marker, and the full stop behind it, stay on the line of the word before them.
_LAST_WORD = re.compile(
    f"([^\\s<>&;{_SEEN}-{_SEEN_FLAG}\ue008-\ue00f]{{1,30}}\\s?)((?:{_SEEN}\\d+{_SEEN_END})+[.,;:!?)]*)"
)
_MARKS = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_SEEN_MARKS = re.compile(f"{_SEEN}(\\d+){_SEEN_END}")
_UNSEEN_FLAGS = re.compile(f"{_FLAG}\\d")
# A picture that the answer refers to by its key, with what it calls it behind.
_FIGURE, _FIGURE_SAYS = "\ue006", "\ue007"
_FIGURES = re.compile(f"<p>{_FIGURE}([0-9a-f]{{8}}){_FIGURE_SAYS}([^<{_FIGURE}]*)</p>")
_FIGURE_URL = re.compile("figure:([0-9a-f]{8})")
_UNPLACED = re.compile(f"{_FIGURE}[0-9a-f]{{8}}{_FIGURE_SAYS}")
_MOVED = re.compile(f"{_OPEN}(\\d+){_CLOSE}|{_FLAG}(\\d)")


@dataclass(frozen=True, slots=True)
class Block:
    """One top-level block of an answer; its place in the answer is its identity."""

    index: int
    html: str


def block_element(block: Block, run_id: int | str) -> str:
    """Return a block as the element of a page.

    Not a template: the live view draws the last block of an answer at each of its words.
    """
    return f'<div class="blk" dir="auto" id="r{run_id}-b{block.index}">{block.html}</div>'


def blocks_render(
    pieces: Sequence[Piece],
    *,
    run_id: int,
    labels: Mapping[int, str],
    figure: Callable[[str, str], str | None] = lambda key, alt: None,
) -> list[Block]:
    """Render an answer.

    Args:
        pieces: the answer taken apart at its markers (``citations``).
        run_id: names the answer in the markers' ``data-cite``.
        labels: what each number stands for, shown to screen readers: the document's name.
        figure: returns the HTML of a chart or picture by its key and what the answer calls it, None for none.
    """
    renderer, sentences = _renderer(), count()
    blocks: list[Block] = []
    for block in renderer.blocks(renderer.parse(_source(pieces))):
        if (alone := _FIGURES.search(block.html)) and (drawn := figure(alone[1], unescape(alone[2]))):
            blocks.append(Block(len(blocks), drawn))
            continue
        html = _UNPLACED.sub("", block.html)
        html = _marked(_underlined(html, run_id, sentences), run_id, labels)
        blocks.append(Block(len(blocks), block.filled(html)))
    return blocks


def answer_tokens(pieces: Sequence[Piece]) -> list[Token]:
    """Return an answer as tokens of Markdown, for a document; ``cite`` and ``flag`` are its markers and marked sentences.

    A flag's content is the reason of the sentence that begins there, "" where one ends.
    """
    tokens = _renderer().parse(_source(pieces))
    for token in (each for outer in tokens for each in (outer, *(outer.children or ()))):
        if token.type == "flag":
            token.content = "" if token.content == _ENDS else _REASONS[int(token.content)]
        elif token.type not in ("cite", "task"):
            token.content = source_clean(_UNSEEN_FLAGS.sub("", _MARKS.sub(r"[\1]", token.content)))
    return tokens


def link_leads_out(url: str) -> bool:
    """Tell whether a link of an answer says where it leads; a relative one would act inside this site."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "mailto" or (parts.scheme in {"http", "https"} and bool(parts.netloc))


def _source(pieces: Sequence[Piece]) -> str:
    return "".join(
        source_clean(piece.text)
        + "".join(f"{_OPEN}{n}{_CLOSE}" for n in piece.numbers)
        + (_FLAG + _ENDS if piece.ends else "")
        + (f"{_FLAG}{_REASONS.index(piece.mark)}" if piece.mark else "")
        for piece in pieces
    )


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
    return _MARKS.sub(lambda match: f"[{int(match[1])}]", html)


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
        if flag is None and reason and piece.strip() and piece[0] not in _UNMARKED:
            kind = "nosrc quiet" if reason == LANGUAGE else "nosrc"
            parts.append(f'<span class="{kind}"{name} title="{attribute(NOTES[reason])}">{piece}</span>')
            name = ""
        elif flag is None:
            parts.append(piece)
        if reason and _FLAG + _ENDS in piece:  # it ends in code, where Markdown leaves the flag as it is
            reason = ""
    return "".join(parts)


@lru_cache(maxsize=1)
def _renderer() -> Renderer:
    return Renderer(
        Use(
            link=link_leads_out,
            schemes=frozenset({"http", "https", "mailto"}),
            link_titles=True,
            link_rel="noopener noreferrer nofollow",
            formulas=True,
            extend=_extended,
            moved=_marks_moved,
        )
    )


def _extended(markdown: MarkdownIt) -> None:
    markdown.inline.ruler.before("text", "cite", _cite_rule)
    # The text rule runs over everything that is no special character, so it must stop at ours.
    markdown.inline.ruler.at("text", _text_rule)
    markdown.add_render_rule("cite", _cite_render)
    markdown.add_render_rule("image", _image_render)
    markdown.add_render_rule("flag", _flag_render)


def _marks_moved(formula: str) -> tuple[str, list[tuple[str, str]]]:
    """Put markers that stand in a formula behind it."""
    behind = [("cite", m[1]) if m[1] else ("flag", m[2]) for m in _MOVED.finditer(formula)]
    return _MOVED.sub("", formula), behind


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


def _image_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    """Leave a place for a figure of the conversation; of any other picture, its text: nothing is fetched from elsewhere."""
    token = tokens[idx]
    text = escape(self.renderInlineAsText(token.children or [], options, env))
    found = _FIGURE_URL.fullmatch(str(token.attrGet("src") or ""))
    return text if found is None else f"{_FIGURE}{found[1]}{_FIGURE_SAYS}{text}"


def _cite_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    return f"{_SEEN}{tokens[idx].content}{_SEEN_END}"


def _flag_render(self: RendererHTML, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
    return f"{_SEEN_FLAG}{tokens[idx].content}"
