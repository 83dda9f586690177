r"""Formulas in Markdown, ``$a$``, ``$$a$$``, ``\(a\)`` and ``\[a\]``, as MathML that is made here: no script, no font, no request.

What the converter returns is never written as it is: its tree is built again from the elements and attributes below, so a formula can't
bring a link, a style or an element of HTML. What can't be converted, or is too long, is shown as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LONGEST = 2_000
"""Characters of a formula; a longer one is shown as it was written. Time and size rise with it: 0.14 s, 30 kB at most."""
MOST = 20_000
"""Characters of all formulas of a text; those behind are shown as they were written."""
_DEEPEST = 60
_TAGS = frozenset(
    "menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext "
    "mtr munder munderover".split()
)
_ATTRIBUTES = frozenset(
    "accent accentunder columnalign columnlines columnspacing depth displaystyle fence form height largeop linethickness lspace "
    "mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel separator "
    "stretchy symmetric width".split()
)
_CHILDREN = {
    **dict.fromkeys(("mfrac", "mover", "mroot", "msub", "msup", "munder"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_VALUE = re.compile(r"[\w#.%+ -]{1,60}")
_LENGTHS = frozenset({"depth", "height", "linethickness", "lspace", "rspace", "width"})
_LENGTH = re.compile(r"([+-]?(?:\d{1,6}(?:\.\d{0,6})?|\.\d{1,6}))(em|ex|mu|px|pt|mm|cm|in)?")
_EMS = {"em": 1, "ex": 0.5, "mu": 1 / 18, "px": 1 / 16, "pt": 1 / 12, "mm": 0.25, "cm": 2.5, "in": 6}
_WIDEST, _FURTHEST_BACK = 12, 6
"""Ems of one length, and of all that lead back: with more, a formula could be drawn over what isn't part of the text."""
_ENDS = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
# Not possessive (*+): before 3.11.5, Python is wrong about that with alternatives in it.
_CLOSING = {  # unrolled: each character is looked at once, and once more where there is no end
    "$": re.compile(r"[^\\$]*(?:\\.[^\\$]*)*\$", re.DOTALL),
    "$$": re.compile(r"[^\\$]*(?:(?:\\.|\$(?!\$))[^\\$]*)*\$\$", re.DOTALL),
    r"\)": re.compile(r"[^\\]*(?:\\[^)][^\\]*)*\\\)", re.DOTALL),
    r"\]": re.compile(r"[^\\]*(?:\\[^\]][^\\]*)*\\\]", re.DOTALL),
}
_SIGNS = re.compile(r"[\\^_{}=<>+*|]")
_NUMBER = re.compile(r"[\d.,\s]+")
_WORD = re.compile(r"(?<![\\\w{])[^\W\d_]{4,}")
_COMMAND = re.compile(r"\\[A-Za-z]")
_SHORT_WORD = re.compile(r"\s|[^\W\d_]{2,}")

Moved = Callable[[str], tuple[str, list[tuple[str, str]]]]
"""Takes out of a formula what isn't part of it: returns the formula, and type and content of the tokens to put behind it."""


def formulas_enable(markdown: MarkdownIt, moved: Moved) -> None:
    """Let a parser know formulas: it makes tokens ``formula``, whose content is the formula as it was written.

    Args:
        markdown: the parser.
        moved: what a use has put into the text that can't stay inside a formula.
    """

    def inline(state: StateInline, silent: bool) -> bool:
        return _inline(state, silent, moved)

    def block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return _block(state, start, end, silent, moved)

    markdown.inline.ruler.before("escape", "formula", inline)
    alternatives: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    markdown.block.ruler.before("fence", "formula", block, alternatives)


@lru_cache(maxsize=500)
def formula_html(written: str) -> str:
    """Return a formula as MathML with its source as annotation; as code, as it was written, if it can't be converted.

    Args:
        written: with its delimiters.
    """
    opens = written[:2] if written[:2] in _ENDS else written[:1]
    closes = _ENDS.get(opens, "")
    source = escape(written, quote=False)
    is_whole = bool(closes) and len(written) > len(opens) + len(closes) and written.endswith(closes)
    tree = _converted(written[len(opens) : -len(closes)].strip()) if is_whole else None
    is_display = opens in ("$$", r"\[")
    if tree is None:
        return f'<code class="tex-source{" block" if is_display else ""}">{source}</code>'
    # A browser shows the first child of <semantics>; copying and screen readers may use the second.
    inner = f'<semantics>{tree}<annotation encoding="application/x-tex">{source}</annotation></semantics>'
    if is_display:
        return f'<span class="tex"><math display="block">{inner}</math></span>'
    return f"<math>{inner}</math>"


def _converted(formula: str) -> str | None:
    if not 0 < len(formula) <= LONGEST:
        return None
    # Loading it takes 0.1 s and 12 MB, which a text without formulas doesn't need.
    from latex2mathml import exceptions
    from latex2mathml.converter import convert_to_element

    # A formula that is wrong ends in one of the converter's own errors, or in a plain one of its tokens and tables.
    its_own = (e for e in vars(exceptions).values() if isinstance(e, type) and issubclass(e, Exception))
    plain = (AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)
    fails: tuple[type[Exception], ...] = (*its_own, *plain)
    try:
        root = convert_to_element(formula)
    except fails:
        return None
    steps = (_ems(each.get(name, "")) or 0 for each in root.iter() for name in ("width", "lspace"))
    return None if sum(min(step, 0) for step in steps) < -_FURTHEST_BACK else _rebuilt(root, 0)


def _ems(length: str) -> float | None:
    """Return about how many ems a length has; None where it is none that we know, or too long."""
    match = _LENGTH.fullmatch(length)
    found = None if match is None else float(match[1]) * _EMS[match[2] or "em"]
    return None if found is None or abs(found) > _WIDEST else found


def _rebuilt(element: Element, depth: int, is_sized: bool = False) -> str | None:
    """Return an element as HTML, with the allowed elements and attributes alone; None if it is nested too deeply or lacks a part.

    Args:
        is_sized: it stands in one with a size of its own, and has none: sizes in sizes would soon fill the page.
    """
    if depth > _DEEPEST:
        return None
    tag = element.tag if element.tag in _TAGS else "mrow"
    kept = "".join(
        f' {name}="{value}"'
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES
        and _VALUE.fullmatch(value)
        and not (name in _LENGTHS and _ems(value) is None)
        and not (name == "mathsize" and is_sized)
    )
    is_sized = is_sized or "mathsize" in element.attrib
    parts = [_text(element.text or "")] if len(element) == 0 else []
    for child in element:
        part = _rebuilt(child, depth + 1, is_sized)
        if part is None:
            return None
        parts.append(part)
    if (wanted := _CHILDREN.get(tag, len(parts))) > len(parts):
        return None
    if (
        extra := len(parts) - wanted
    ):  # the converter puts a bracketed matrix with an exponent so: its brackets are children too
        parts = [f"<mrow>{''.join(parts[: extra + 1])}</mrow>", *parts[extra + 1 :]]
    return f"<{tag}{kept}>{''.join(parts)}</{tag}>"


_REFERENCE = re.compile(r"&#x([0-9A-Fa-f]{1,6});")


def _text(text: str) -> str:
    """Return an element's words. The converter writes signs as references, in words that it doesn't escape."""
    return escape(_REFERENCE.sub(lambda match: _character(int(match[1], 16)), text), quote=False)


def _character(number: int) -> str:
    is_sign = 0x20 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xF8FF
    return chr(number) if is_sign else "\ufffd"


def _inline(state: StateInline, silent: bool, moved: Moved) -> bool:
    text, start = state.src, state.pos
    opens = text[start : start + 2]
    if opens not in ("$$", r"\(", r"\["):
        if opens[:1] != "$":
            return False
        opens = "$"
    closes, first = _ENDS[opens], start + len(opens)
    end = _closing(text, first, min(state.posMax, first + LONGEST), closes)
    if end is None or not text[first:end].strip():
        return False
    if not (_is_formula(text, start, end) if opens == "$" else _is_meant(text[first:end], opens)):
        return False
    after = end + len(closes)
    if not silent:
        formula, behind = moved(text[start:after])
        state.push("formula", "math", 0).content = formula
        for kind, content in behind:
            state.push(kind, "", 0).content = content
    state.pos = after
    return True


def _closing(text: str, start: int, end: int, closes: str) -> int | None:
    """Return where a formula's closing delimiter begins: the first one that ends before ``end`` and isn't escaped."""
    if text.find(closes, start, end) < 0:  # faster by far, and most brackets that open no formula end here
        return None
    found = _CLOSING[closes].match(text, start, end)
    return None if found is None else found.end() - len(closes)


def _is_formula(text: str, start: int, end: int) -> bool:
    """Tell whether what stands between two dollar signs is a formula, and not words between two prices."""
    inside = text[start + 1 : end]
    before, after = text[start - 1 : start], text[end + 1 : end + 2]
    if inside[0].isspace() or inside[-1].isspace() or before.isalnum() or after.isalnum() or after == "$":
        return False
    if "`" in inside or "**" in inside:
        return False
    if not inside[0].isdigit() or _NUMBER.fullmatch(inside):
        return True
    if _COMMAND.search(inside):
        return True
    return not _WORD.search(inside) and bool(_SIGNS.search(inside) or not _SHORT_WORD.search(inside))


def _is_meant(inside: str, opens: str) -> bool:
    r"""Tell whether ``\(a\)`` or ``\[a\]`` is a formula, and not a bracket that was escaped, as in ``\[1\]`` and ``\(see below\)``."""
    if opens == "$$" or _SIGNS.search(inside):
        return True
    return opens == r"\(" and not _WORD.search(inside)


def _block(state: StateBlock, start: int, end: int, silent: bool, moved: Moved) -> bool:
    r"""Read ``$$`` or ``\[`` at the beginning of a line: up to its end, and as long as no line is blank.

    One that hasn't ended where the text does is on its way: it is shown as it was written until it has.
    """
    if state.is_code_block(start):
        return False
    at = state.bMarks[start] + state.tShift[start]
    opens = state.src[at : at + 2]
    if opens not in ("$$", r"\["):
        return False
    closes, last = _ENDS[opens], None
    limit = at + LONGEST
    if state.eMarks[end - 1] > limit and _closing(state.src, at + 2, limit, closes) is None:
        return False  # too long, and no line of it has to be looked at
    for line in range(start, end):
        if line > start and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return False
        begins = at + 2 if line == start else state.bMarks[line] + state.tShift[line]
        if begins > limit:
            return False
        found = _closing(state.src, begins, state.eMarks[line], closes)
        if found is not None:
            if state.src[found + 2 : state.eMarks[line]].strip(" .,;:" + _MARKS):
                return False
            if line == start and not _is_meant(state.src[begins:found], opens):
                return False
            last = line
            break
    if silent:
        return True
    after = end if last is None else last + 1
    formula, behind = moved(state.getLines(start, after, state.blkIndent, False).strip())
    whole, closed, rest = formula.rpartition(closes) if last is not None else (formula, "", "")
    state.push("paragraph_open", "p", 1).map = [start, after]
    inline: Any = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = "", [start, after], []
    inner = StateInline("", state.md, state.env, inline.children)
    inner.push("formula", "math", 0).content = whole + closed
    if rest.strip():
        inner.push("text", "", 0).content = rest.strip()
    for kind, content in behind:
        inner.push(kind, "", 0).content = content
    state.push("paragraph_close", "p", -1)
    state.line = after
    return True


_MARKS = "".join(map(chr, range(0xE000, 0xE010))) + "0123456789"
"""What uses put behind a formula stays with it, see ``Moved``."""
