"""Words of Chinese and Japanese that a change of script sets apart, and numbers with what they count: terms beside pairs.

A pair tells 首都 in 首都圏 from 首都 no more than the pairs of a katakana word tell that they stand side by side. Japanese
writes most nouns in one script and what joins them in another, so a run of Han or of katakana is a word or a name more
often than not; measured with JSQuAD and JaQuAD, by BM25 in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Ranges of blocks, as in the Unicode Character Database's Blocks.txt.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
"""Han letters, to stand between the brackets of a regular expression."""
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"

WHOLE = "|"
"""What a term for a whole run begins with: no word has it, so a run of two letters is another term than the pair."""
_LONGEST_HAN = 8  # letters; beyond, a run is a clause, which no question repeats
_LONGEST_KATAKANA = 40
_RUN = re.compile(f"[{HAN}]{{2,}}|[{_KATAKANA}]{{2,}}")
_KANA = re.compile(f"[{_KATAKANA}]")

# One word in the spellings that the Cabinet's notice on loan words allows beside each other (Gairaigo no hyoki, 1991):
# violin with v or b, film with a small or large i, computer with or without the long mark at its end.
_V_ROW = (("ヴァ", "バ"), ("ヴィ", "ビ"), ("ヴェ", "ベ"), ("ヴォ", "ボ"), ("ヴュ", "ビュ"), ("ヴ", "ブ"))
_ONE_SPELLING = str.maketrans("ァィゥェォヂヅヰヱ", "アイウエオジズイエ")
_LONG_MARK, _SHORTEST_STEM = "ー", 3  # letters left; a shorter word is another without its mark

_DIGITS = {letter: value for value, letter in enumerate("〇一二三四五六七八九")}
_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
# One numeral alone begins many words (一般, 三重): it counts something before these.
_COUNTERS = "年月日時分秒週人名回個件条項章節号番円元歳階位度倍点天"
_NUMERAL = re.compile(
    f"([〇一二三四五六七八九]{{2,}}|(?=[〇一二三四五六七八九十百千万]{{2}}|[十百千万])[一二三四五六七八九十百千万]+"
    f"|[一二三四五六七八九](?=[{_COUNTERS}]))([{HAN}{_KATAKANA}])"
)
_ENDS_IN_COUNT = re.compile(r"[0-9A-Za-z]+\Z")
_COUNTED = re.compile(f"[{HAN}{_KATAKANA}]")


def runs_of(part: str, before: str) -> Iterator[str]:
    """Yield the whole runs of a part in Chinese or Japanese script, and its numbers with the letter behind each.

    Args:
        part: letters of scripts without spaces, normalised by NFKC.
        before: what stands right before it in other letters, "" for nothing; its digits may count what ``part`` begins with.
    """
    if (count := _ENDS_IN_COUNT.search(before)) and _COUNTED.match(part):
        yield f"{count.group()}{part[0]}"
    for numeral in _NUMERAL.finditer(part):
        yield f"{_value(numeral[1])}{numeral[2]}"
    for run in _RUN.finditer(part):
        word = run.group()
        if _KANA.match(word):
            if len(word) <= _LONGEST_KATAKANA:
                yield WHOLE + _one_spelling(word)
        elif len(word) <= _LONGEST_HAN:
            yield WHOLE + word


def _one_spelling(word: str) -> str:
    for written, plain in _V_ROW:
        word = word.replace(written, plain)
    if word.endswith(_LONG_MARK) and len(word) > _SHORTEST_STEM:
        word = word.rstrip(_LONG_MARK)
    return word.translate(_ONE_SPELLING)


def _value(numeral: str) -> str:
    """Write a numeral of Han letters in digits: 二〇二一 by place, 二千二十一 by units."""
    if not any(letter in _UNITS for letter in numeral):
        return "".join(str(_DIGITS[letter]) for letter in numeral)
    total, thousands, digit = 0, 0, 0
    for letter in numeral:
        if letter == "万":
            total += ((thousands + digit) or 1) * _UNITS[letter]
            thousands = digit = 0
        elif letter in _UNITS:
            thousands += (digit or 1) * _UNITS[letter]
            digit = 0
        else:
            digit = digit * 10 + _DIGITS[letter]
    return str(total + thousands + digit)
