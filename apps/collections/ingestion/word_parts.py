"""The words of a text in any script, and pairs of letters where a script puts no space between words.

Pairs find a passage as well as words do in Chinese, Japanese and Thai, and need no dictionary (measured with XQuAD in
``benchmarks/languages.py``). Where the script changes a word begins or ends, in Japanese above all: such words come
besides as wholes, and numbers with what they count. A letter is what a reader takes for one: a base with its marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from apps.collections.ingestion.script_runs import HAN as _HAN
from apps.collections.ingestion.script_runs import runs_of

# Ranges of blocks, as in the Unicode Character Database's Blocks.txt.
# Kana, Bopomofo; Hangul too, whose words carry their particles: Lucene pairs it likewise.
_BESIDE_HAN = "\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u1100-\u11ff\uac00-\ud7ff"
# Thai and Lao, Burmese, Khmer, Tai Le to New Tai Lue, Tai Tham, Balinese, Javanese, and what extends them.
_SOUTH_EAST = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f"
    "\ua980-\ua9df\ua9e0-\ua9ff\uaa60-\uaadf"
)
UNSPACED = f"{_HAN}{_BESIDE_HAN}{_SOUTH_EAST}"
"""Letters of scripts without spaces, to stand between the brackets of a regular expression."""

# Points and signs that a writer of Hebrew or Arabic may set or leave out, and the stroke that widens Arabic words.
_OPTIONAL = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
)
# Signs without a width: direction, joining, places where a line may break, variants of a letter.
_UNSEEN = (
    "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
)
_LAST_ALPHABET = 0x1FFFF  # beyond are Han, and signs that are left out
# Written with and without its sign: the alefs of Arabic, the yo of Russian, the dot that Turkish capitals leave behind.
_SAME = str.maketrans({**dict.fromkeys("أإآٱ", "ا"), "ё": "е", "Ё": "Е", "İ": "I"})


class _Patterns(NamedTuple):
    left_out: re.Pattern[str]
    line_break: re.Pattern[str]
    apostrophe: re.Pattern[str]
    word: re.Pattern[str]
    unspaced: re.Pattern[str]
    letter: re.Pattern[str]
    digits: dict[int, str]


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    """Compile at the first text that needs it: ``re`` has no name for marks, so that they are looked for once."""
    kinds = [unicodedata.category(chr(code)) for code in range(_LAST_ALPHABET + 1)]
    marks = "".join(_ranges(code for code, kind in enumerate(kinds) if kind in ("Mn", "Mc")))
    return _Patterns(
        left_out=re.compile(f"[{_OPTIONAL}{_UNSEEN}]"),
        # A line that ends inside a word does not end the word. Two breaks end a paragraph.
        line_break=re.compile(f"(?<=[{UNSPACED}])[ \\t]*\\r?\\n[ \\t]*(?=[{UNSPACED}])"),
        apostrophe=re.compile(r"['’](?=[a-z]{1,2}\b)"),
        word=re.compile(f"[^\\W_](?:[^\\W_]|[{marks}])*"),
        unspaced=re.compile(f"([{UNSPACED}](?:[{UNSPACED}]|[{marks}])*)"),
        letter=re.compile(f"[^{marks}][{marks}]*|[{marks}]+"),
        digits={
            code: str(unicodedata.decimal(chr(code)))
            for code, kind in enumerate(kinds)
            if kind == "Nd" and code > 127
        },
    )


def _ranges(codes: Iterator[int]) -> Iterator[str]:
    """Write rising codes as ranges of a bracket expression."""
    for _, group in groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        found = [code for _, code in group]
        yield f"\\U{found[0]:08x}-\\U{found[-1]:08x}"


def word_parts(text: str, *, wholes: bool = True) -> Iterator[str]:
    """Yield the words of a text in order, as they are written; of scripts without spaces the pairs of letters.

    Args:
        text: normalised by NFKC, so that full-width and half-width letters are the same.
        wholes: give words that a change of script sets apart as wholes too, and numbers with what they count; see
            ``apps.collections.ingestion.script_runs``.

    Of Han the single letters come as well: each means something, and may be all that is asked for. Digits come as 0 to
    9, whatever the script; what may be left out in writing (points, joiners) is left out.
    """
    patterns = _patterns()
    text = patterns.left_out.sub("", text).translate(patterns.digits).translate(_SAME)
    text = patterns.line_break.sub("", text)
    for word in patterns.word.findall(patterns.apostrophe.sub(" ", text)):
        before = ""
        for place, part in enumerate(patterns.unspaced.split(word)):
            if place % 2:
                yield from _pairs(patterns.letter.findall(part))
                if wholes:
                    yield from runs_of(part, before)
            elif part:
                yield part
            before = part


_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")


def set_apart(text: str) -> str:
    """Put blanks around letters of scripts without spaces, so that a code between them is found as one."""
    return text if text.isascii() else _UNSPACED_RUN.sub(r" \g<0> ", text)


_IS_HAN = re.compile(f"[{_HAN}]")


def letters(text: str) -> Iterator[tuple[int, str]]:
    """Yield the letters of a text with their places; marks stand with the letter that they belong to."""
    return ((match.start(), match.group()) for match in _patterns().letter.finditer(text))


def _pairs(letters: list[str]) -> Iterator[str]:
    if len(letters) == 1:
        yield letters[0]
        return
    for one, two in pairwise(letters):
        yield one + two
    yield from (letter for letter in letters if _IS_HAN.match(letter))
