"""Tell the language of a short text by its letters and its commonest words; say nothing rather than guess."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

_LONGEST: Final = 2_000  # Characters that are looked at.
_WORD: Final = re.compile(r"[^\W\d_]+")
_LEAST_SHARE: Final = 0.2
_LEAST_WORDS: Final = 3  # Two stand in every SQL query.
# Words that are frequent in one of these languages and rare or absent in the others.
_WORDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "English": "the is are was what which how who when where why does did do of and to in for with from this that you "
        "your my it can could should would please have has there about between not",
        "German": "der die das und ist sind wie was welche welcher welches wer wann wo warum nicht mit für von im ein eine "
        "einen auf den dem des zu es ich du sie wir bitte kann können gibt hat haben über zwischen wird werden",
        "French": "le la les des est sont quel quelle quels quelles qui quand où pourquoi comment et un une du dans pour avec "
        "ce cette il elle nous vous je que pas sur au aux ne combien entre peut a-t",
        "Spanish": "el los las es son qué cuál cuáles quién cuándo dónde por cómo y un una del en para con este esta que no su "
        "al lo se cuánto cuántos entre puede hay está están",
        "Italian": "il lo gli è sono quale quali chi quando dove perché come e un una del della di nel per con questo questa "
        "che non si al alla quanto quanti tra può ci",
        "Portuguese": "o os as é são qual quais quem quando onde porque como e um uma do da no na para com este esta que não "
        "se ao quanto quantos entre pode há está você",
        "Dutch": "de het een is zijn wat welke wie wanneer waar waarom hoe en van in voor met op dit dat niet ik je we kan "
        "kunnen er hoeveel tussen wordt deze",
    }.items()
}
_SCRIPTS: Final = {
    "HANGUL": "Korean",
    "HEBREW": "Hebrew",
    "GREEK": "Greek",
    "THAI": "Thai",
    "GEORGIAN": "Georgian",
    "ARMENIAN": "Armenian",
}


def language_name(text: str) -> str:
    """Return the language of a text, by its English name; "" where it is not plain.

    Scripts that several languages share (Cyrillic, Arabic, Devanagari) are not told apart, and so not named.
    """
    shown = text[:_LONGEST]
    if shown.isascii():
        return _by_words(shown)
    scripts = Counter(
        unicodedata.name(letter, "").partition(" ")[0] for letter in shown if letter.isalpha()
    )
    if not scripts:
        return ""
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana and kana + scripts["CJK"] > sum(scripts.values()) / 2:
        return "Japanese"
    script, count = scripts.most_common(1)[0]
    if count <= sum(scripts.values()) / 2:
        return ""
    if script == "CJK":
        return "Chinese"
    return _by_words(shown) if script == "LATIN" else _SCRIPTS.get(script, "")


def _by_words(text: str) -> str:
    words = [word.lower() for word in _WORD.findall(text)]
    scores = sorted(
        ((sum(word in known for word in words), name) for name, known in _WORDS.items()),
        reverse=True,
    )
    (best, name), (second, _) = scores[0], scores[1]
    is_plain = best >= _LEAST_WORDS and best > second and best >= _LEAST_SHARE * len(words)
    return name if is_plain else ""
