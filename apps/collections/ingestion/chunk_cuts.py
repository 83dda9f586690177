"""Where prose may be cut: at paragraph and sentence ends, else at line ends, else between words."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*(?=\s)\s*|[。！？]")
_WORD_BEFORE = re.compile(r"[\w.]+\Z")

_ABBREVIATIONS = frozenset(
    """
        no nos mr mrs ms dr prof sr jr st vs etc e.g i.e cf al fig figs eq sec secs art arts para paras
        subpara ch chap vol vols pp p ed eds inc ltd co corp dept approx est u.s u.k u.n d.c a.m p.m jan feb
        mar apr jun jul aug sep sept oct nov dec stat reg fed cong ref refs supp rev
    """.split()
)


def prose_pieces(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Cut a stretch of prose into pieces of at most ``size``, each after the first repeating up to ``overlap``.

    Args:
        text: the document's text.
        start: where the stretch begins.
        end: just past its end.
        size: largest piece in characters.
        overlap: characters of the piece before that a piece may repeat.
    """
    start, end = trim(text, start, end)
    while end - start > size:
        cut = _best_cut(text, start, start + size)
        yield start, cut
        # Whatever is left after this cut must be new text: an overlap longer than the rest is pointless.
        start = max(_overlap_start(text, start, cut, overlap), start + 1)
        start, _ = trim(text, start, end)
    if end > start:
        yield start, end


def _best_cut(text: str, start: int, limit: int) -> int:
    """Find the best end in the later half of the window: paragraph, sentence, line, word, anywhere."""
    low = start + (limit - start) // 2
    window = text[low : limit + 1]
    paragraphs = [low + m.end() for m in _PARAGRAPH.finditer(window) if low + m.start() <= limit]
    if paragraphs and _is_end(text, paragraphs[-1]) and paragraphs[-1] > start + (limit - start) * 0.7:
        return min(paragraphs[-1], limit)
    sentences = [cut for cut in _sentence_ends(text, low, limit) if cut <= limit]
    if sentences:
        return sentences[-1]
    if paragraphs:
        return min(paragraphs[-1], limit)
    for mark in ("\n", "; ", " "):
        found = text.rfind(mark, low, limit)
        if found != -1:
            return found + len(mark)
    found = max(text.rfind(mark, start + 1, low) for mark in ("\n", " "))
    return found + 1 if found > start else limit


def _is_end(text: str, offset: int) -> bool:
    return text[max(0, offset - 400) : offset].rstrip()[-1:] in {".", "!", "?", "…"}


def _sentence_ends(text: str, low: int, high: int) -> Iterator[int]:
    """Yield offsets just past a sentence and its blanks, between ``low`` and ``high``."""
    for match in _SENTENCE.finditer(text, low, min(len(text), high + 1)):
        end = match.end()
        following = text[end : end + 1]
        if following and (following.islower() or following in ",;:)"):
            continue
        if text[match.start()] == ".":
            before = _WORD_BEFORE.search(text, max(0, match.start() - 24), match.start())
            word = before.group().lower().strip(".") if before else ""
            is_initial = len(word) == 1 and word.isalpha()
            is_list_number = word.isdigit() and _starts_line(text, match.start() - len(word))
            if word in _ABBREVIATIONS or is_initial or is_list_number:
                continue
        yield end


def _starts_line(text: str, offset: int) -> bool:
    return offset <= 0 or text[max(0, text.rfind("\n", 0, offset) + 1) : offset].strip() == ""


def _overlap_start(text: str, start: int, cut: int, overlap: int) -> int:
    """Choose where the next chunk begins: at a sentence or line start at most ``overlap`` before the cut."""
    if overlap <= 0:
        return cut
    low = max(start + 1, cut - overlap)
    starts = [s for s in _sentence_ends(text, low, cut) if s < cut]
    if starts:
        return starts[0]
    for mark in ("\n", " "):
        found = text.find(mark, low, cut - 1)
        if found != -1:
            return found + 1
    return cut


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a stretch to what stands between the blanks at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
