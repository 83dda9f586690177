"""Read a text to compare it: its words in order, each with its stem, its sentence, and whether a denial reaches it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from apps.collections.ingestion.word_parts import UNSPACED

_TOKEN = re.compile(r"[^\W\d_]\.(?:[^\W\d_]\.)+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\w\s]")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_WIDE_ENDS = str.maketrans({"。": ".", "！": "!", "？": "?", "，": ",", "、": ",", "；": ";"})
_ENDS = frozenset(".!?;")
_BREAKS = frozenset(",:()") | _ENDS


def words_of(text: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(text.split())


# Words that say too little to count: they point, join, or help a verb.
_LITTLE = words_of(
    "a an and are as at be been being but by can could did do does doing for from had has have having he her hers him his how "
    "i if in into is it its itself may might more most must my of on onto or our shall she should so some such than that the "
    "their them themselves then there these they this those to too up upon us was we were what when where which while who "
    "whom whose why will with would you your also about between both each other only own same very just because during "
    "through over under again after before above below all any out off down against within along among per via s t not no nor "
    "never none without neither cannot except unless like well however therefore thus although though since until still even"
)
# What denies the words behind it. In other languages only words that English does not have.
_DENY = words_of(
    "not no never none neither nor cannot without except unable hardly barely lacks lacked lacking nobody nothing nowhere "
    "nicht kein keine keinen keiner keinem keines niemals ohne pas jamais sans nunca jamás não nem niet geen nooit zonder senza"
)
# What comes after “not” or “no” where nothing is denied: “not only”, “no later than”, “No. 5”.
_NO_DENIAL = words_of(
    "only just merely simply necessarily least less more later earlier fewer sooner until limited matter doubt . one"
)
_CLAUSE = words_of(
    "but because although though while which who whose where when whereas however if so since unless until"
)
_SCOPE = 3  # Words behind a denial that it reaches, those that say too little not counted.

_SHORT = words_of(
    "Mr Mrs Ms Dr St Gen Maj Col Sgt Lt Capt Rev Hon Prof Sen Gov Inc Co Ltd Corp Jr Sr vs No Art Sec Fig"
)
_IRREGULAR = {
    form: root
    for root, forms in {
        "begin": "began begun",
        "build": "built",
        "buy": "bought",
        "bring": "brought",
        "become": "became",
        "come": "came",
        "choose": "chose chosen",
        "draw": "drew drawn",
        "drive": "drove driven",
        "fall": "fell fallen",
        "feel": "felt",
        "find": "found",
        "fight": "fought",
        "fly": "flew flown",
        "get": "got gotten",
        "give": "gave given",
        "go": "went gone",
        "grow": "grew grown",
        "hold": "held",
        "keep": "kept",
        "know": "knew known",
        "lead": "led",
        "leave": "left",
        "lose": "lost loss",
        "make": "made",
        "mean": "meant",
        "meet": "met",
        "pay": "paid",
        "rise": "rose risen",
        "run": "ran",
        "say": "said",
        "see": "saw seen",
        "sell": "sold",
        "send": "sent",
        "show": "shown",
        "sing": "sang sung",
        "speak": "spoke spoken",
        "spend": "spent",
        "stand": "stood",
        "steal": "stole stolen",
        "take": "took taken",
        "teach": "taught",
        "tell": "told",
        "think": "thought",
        "throw": "threw thrown",
        "understand": "understood",
        "wear": "wore worn",
        "win": "won",
        "write": "wrote written",
        "child": "children",
        "man": "men",
        "woman": "women",
        "person": "people",
        "foot": "feet",
        "life": "lives",
        "die": "died dying death dead",
        "high": "height",
        "long": "length",
        "wide": "width",
        "deep": "depth",
        "strong": "strength",
        "seek": "sought",
        "catch": "caught",
        "shoot": "shot",
        "lie": "lay lain",
        "hear": "heard",
        "eat": "ate eaten",
        "break": "broke broken",
        "forbid": "forbade forbidden",
    }.items()
    for form in forms.split()
}
_NUMBERS = {
    word: str(number)
    for number, words in {
        0: "zero",
        1: "one first once",
        2: "two second twice",
        3: "three third thrice",
        4: "four fourth",
        5: "five fifth",
        6: "six sixth",
        7: "seven seventh",
        8: "eight eighth",
        9: "nine ninth",
        10: "ten tenth",
        11: "eleven eleventh",
        12: "twelve twelfth dozen",
        13: "thirteen",
        14: "fourteen",
        15: "fifteen",
        16: "sixteen",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty",
        30: "thirty",
        40: "forty",
        50: "fifty",
        60: "sixty",
        70: "seventy",
        80: "eighty",
        90: "ninety",
        100: "hundred",
    }.items()
    for word in words.split()
}
_SUFFIX = re.compile(
    r"(?:ations?|ators?|ating|ated|ates?|ities|ity|ments?|ings?|ness|ies|ied|ously|ous|ively|ive|ions?|ers?|ors?|edly|ed|ally|al|ly|es|s|e|y)$"
)


@dataclass(slots=True)
class Word:
    """A word of a text.

    Attributes:
        raw: as it is written.
        key: what it is compared by: its stem in lower case, or its number.
        place: its position among the text's words.
        is_little: it says too little to count.
        begins: it is the first word of a sentence.
        is_cut: a comma or the like stands before it.
        is_denied: a “not”, “no”, “never” or the like reaches it.
        heads: it is the first word that such a denial reaches.
    """

    raw: str
    key: str
    place: int
    is_little: bool
    is_number: bool
    is_capital: bool
    begins: bool
    is_cut: bool
    is_denied: bool = False
    heads: bool = False


@dataclass(slots=True)
class Read:
    """A text as its words; ``at`` has the places of each key, ``sentences`` their first and last place, the last one excluded."""

    words: list[Word] = field(default_factory=list)
    at: dict[str, list[int]] = field(default_factory=dict)
    sentences: list[tuple[int, int]] = field(default_factory=list)

    @property
    def telling(self) -> list[Word]:
        """Return the words that say something."""
        return [word for word in self.words if not word.is_little]


@lru_cache(maxsize=20_000)
def key_of(raw: str) -> str:
    """Return what a word is compared by, at most 7 letters: the forms of one word share it."""
    word = raw.lower().replace("’", "'")
    if word[0].isdigit():
        return _number(word)
    word = word.replace(".", "")
    if word.endswith("'s"):
        word = word[:-2]
    word = word.replace("'", "")
    if word in _IRREGULAR:
        word = _IRREGULAR[word]
    if len(word) <= 4:
        return word[:-1] if len(word) == 4 and word.endswith("s") and not word.endswith("ss") else word
    cut = _SUFFIX.sub("", word)
    cut = cut if len(cut) >= 3 else word
    if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "aeiou":
        cut = cut[:-1]
    if cut[-1] in "iy" and len(cut) > 3:
        cut = cut[:-1]
    return cut[:7]


def _number(word: str) -> str:
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", word)
    if re.fullmatch(r"\d+\.\d+", plain):
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def text_read(text: str) -> Read:
    """Read a text that has no markers of citations in it."""
    read = Read()
    begins, is_cut, reach, is_head, start = True, True, 0, False, 0
    tokens = _TOKEN.findall(_UNSPACED.sub(_pairs, text.translate(_WIDE_ENDS)))
    for raw, after in zip(tokens, [*tokens[1:], ""], strict=False):
        if raw == "." and read.words and _is_short(read.words[-1].raw):
            continue
        is_cut = is_cut or raw in _BREAKS
        if raw in _BREAKS:
            reach = 0 if raw not in "()" else reach
            if raw in ".!?":
                start = _sentence_end(read, start)
                begins = True
            continue
        if not raw[0].isalnum():
            continue
        lower = raw.lower().replace("’", "'")
        if lower in _CLAUSE:
            reach = 0
        is_number = raw[0].isdigit() or lower in _NUMBERS
        is_little = not is_number and (lower in _LITTLE or lower.endswith("n't"))
        word = Word(
            raw,
            _NUMBERS.get(lower) or key_of(raw),
            len(read.words),
            is_little,
            is_number,
            raw[0].isupper(),
            begins,
            is_cut,
        )
        if (lower in _DENY or lower.endswith("n't")) and after.lower() not in _NO_DENIAL:
            reach, is_head = _SCOPE, True
        elif reach and not is_little:
            word.is_denied, word.heads = True, is_head
            reach, is_head = reach - 1, False
        begins = is_cut = False
        read.at.setdefault(word.key, []).append(word.place)
        read.words.append(word)
    _sentence_end(read, start)
    return read


def _pairs(run: re.Match[str]) -> str:
    """Return letters of a script without spaces as pairs, which find a passage as well as words do."""
    letters = run[0]
    return f" {' '.join(a + b for a, b in pairwise(letters)) or letters} "


def _is_short(word: str) -> bool:
    return (len(word) == 1 and word.isupper()) or word in _SHORT


def _sentence_end(read: Read, start: int) -> int:
    if len(read.words) > start:
        read.sentences.append((start, len(read.words)))
    return len(read.words)
