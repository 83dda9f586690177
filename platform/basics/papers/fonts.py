"""The fonts of a PDF: which of them shows a character, and what none of them can show."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from pathlib import Path
from unicodedata import category, name

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont

TEXT, BOLD, ITALIC, MONO = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono"
_FOLDER = Path(__file__).parent / "fonts"
# Not in the file: every reader of PDF brings its own for these names, or takes one of the system.
_JAPANESE, _CHINESE, _KOREAN = "HeiseiKakuGo-W5", "STSong-Light", "HYSMyeongJo-Medium"
INSTEAD = "[…]"
"""What stands where a character can't be shown."""


class Chooser:
    """Chooses the font of each character of one document.

    Args:
        text: all of the document's text: Chinese characters look as the Japanese write them where there is Japanese.
    """

    def __init__(self, text: str) -> None:
        fonts_register()
        is_japanese = any("\u3040" <= character <= "\u30ff" for character in text)
        self._han = _JAPANESE if is_japanese else _CHINESE
        self.missing: set[str] = set()

    def stretches(self, text: str, font: str) -> list[tuple[str, str]]:
        """Return a text as stretches of one font each; what can't be shown is replaced, and noted in ``missing``."""
        parts = []
        for found, group in groupby(text, key=lambda character: self._font(character, font)):
            stretch = "".join(group)
            if not found:
                self.missing |= {_script(character) for character in stretch} - {""}
                stretch, found = (INSTEAD, TEXT) if any(map(_script, stretch)) else ("", TEXT)
            parts.append((stretch, found))
        return [part for part in parts if part[0]]

    def _font(self, character: str, font: str) -> str:
        code = ord(character)
        for each in (font, TEXT):
            if code in _glyphs(each):
                return each
        if 0xAC00 <= code <= 0xD7A3 or 0x1100 <= code <= 0x11FF or 0x3130 <= code <= 0x318F:
            return _KOREAN
        if 0x3040 <= code <= 0x30FF:
            return _JAPANESE
        if (
            0x3000 <= code <= 0x303F
            or 0x3400 <= code <= 0x9FFF
            or 0xF900 <= code <= 0xFAFF
            or 0xFF00 <= code <= 0xFFEF
        ):
            return self._han
        return ""


@cache
def fonts_register() -> None:
    """Read the fonts, once a process and not before a PDF is made."""
    for font in (TEXT, BOLD, ITALIC, MONO):
        pdfmetrics.registerFont(TTFont(font, _FOLDER / f"{font}.ttf"))
    for font in (_JAPANESE, _CHINESE, _KOREAN):
        pdfmetrics.registerFont(UnicodeCIDFont(font))


@cache
def _glyphs(font: str) -> frozenset[int]:
    return frozenset(pdfmetrics.getFont(font).face.charToGlyph)


def _script(character: str) -> str:
    """Return what a character belongs to, for the note on what is missing; "" for what has no shape of its own."""
    if category(character) in ("Mn", "Cf", "Cc", "Co", "Cn"):
        return ""
    return "Symbols" if category(character)[0] in "SP" else name(character, "Symbols").split()[0].capitalize()
