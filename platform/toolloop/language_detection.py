"""Tell the language of a short text by its letters and its commonest words; say nothing rather than guess."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

_LONGEST: Final = 2_000  # Characters that are looked at.
# With the signs that Devanagari sets on letters, which ``\w`` leaves out.
# The letters of "i16" and "u_8" are a name's: as words they would be Polish.
_WORD: Final = re.compile(r"(?<![\d_])(?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f])+(?![\d_])")
# The same words of a text in ASCII and lower case, found in half the time.
_ASCII_WORD: Final = re.compile(r"(?<![\d_])[a-z]+(?![\d_])")
_LETTERS_OF_ONE: Final = 3  # Latin letters that say what one of East Asia says.
_LEAST_SHARE: Final = 0.2
_LONG: Final = 40  # Words from which on half the share is enough, if no other language comes near it.
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
        "Dutch": "het een is zijn wat welke wie wanneer waar waarom hoe van in voor met op dit dat niet ik je we kan "
        "kunnen er hoeveel tussen wordt deze",
        "Swedish": "och är att som på för med av inte ett den till var vad hur när vilken vilka har kan från om eller "
        "också mellan efter sin",
        "Danish": "og er at som på til med af ikke den det hvad hvordan hvornår hvilken hvilke har kan fra om eller "
        "også mellem efter blev der",
        "Norwegian": "og er at som på til med av ikke den det hva hvordan når hvilken hvilke har kan fra om eller "
        "også mellom etter ble der",
        "Finnish": "ja on ei se että oli joka jotka kuin mutta myös mikä mitä kuka missä milloin miksi miten kuinka ovat "
        "tai sekä hän ole voi jonka",
        "Hungarian": "a az és egy nem hogy is volt mi milyen melyik mikor hol miért hogyan ki meg vagy van csak mint már "
        "ez azt aki amely hány",
        "Polish": "i w na z do nie się jest że to co jak kiedy gdzie dlaczego który która które oraz przez po był ile kto "
        "jaki jaka od dla",
        "Czech": "a v na se je že to z do co jak kdy kde proč který která které s pro byl nebo jako po od kdo ve ale kolik",
        "Romanian": "și în pe cu nu este care ce din pentru au fost cine când unde cum sau mai al ale prin sunt fi s-a "
        "dintre câți",
        "Turkish": "ve bir bu için ile olarak ne nasıl zaman nerede neden hangi kim olan daha çok var mı mi gibi "
        "sonra kaç tarafından",
        "Indonesian": "yang dan di dari untuk dengan pada ini itu adalah tidak dalam oleh ke apa siapa kapan mana mengapa "
        "bagaimana akan telah atau juga berapa",
        "Vietnamese": "và của là các có trong được cho một những với không người này đã khi nào gì ai ở đâu từ như về "
        "bao nhiêu",
        "Hindi": "के की का में है से को और ने पर यह वह क्या था हैं कि इस एक कौन कब कहाँ कैसे कितने भी थे नहीं किया "
        "कौनसा किस लिए",
        "Marathi": "आणि आहे या व होते होता तो ती ते मध्ये काय कोण कधी कुठे कसे किती नाही आहेत हे ही साठी",
        "Nepali": "र छ को मा ले लाई हो थियो यो पनि गर्न छन् कि के कहाँ कसरी कति भएको गरेको बाट",
    }.items()
}
_KNOWN_OF: Final = {
    word: frozenset(name for name, words in _WORDS.items() if word in words)
    for word in frozenset().union(*_WORDS.values())
}
_NONE: Final[frozenset[str]] = frozenset()
# Words by which nothing is told: other languages write them too, or letters tell these languages.
_MORE_WORDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "Dutch": "de en",
        "Swedish": "de i om en",
        "Danish": "de i om en et",
        "Norwegian": "de i om en et",
        "French": "de en a",
        "Spanish": "de la un o",
        "Italian": "la e i",
        "Portuguese": "de a",
        "Romanian": "de la un o",
        "Turkish": "da de en",
        "German": "in so an auf aus bei nach am als auch sich",
        "Russian": "и в не на что с по как это из к за от он она они его ее их для был была было были который которая "
        "которые какой какая какие где когда почему сколько кто или также чем чего при до у о об но а же ли бы то во со",
        "Arabic": "في من على إلى الى عن أن ان إن ما هو هي التي الذي هذا هذه كان كانت مع لا لم بين متى أين اين كيف لماذا هل "
        "كم أو او ذلك بعد قبل أي اي و قد كما",
        "Persian": "در از به که را این با است برای آن یک خود تا کرد شد بود می چه کدام کجا چگونه چرا چند یا هم ها کی و",
        "Greek": "ο η το οι τα του της των τον την τους τις και να σε με για από που πως είναι ήταν ένα μια ένας ποιος ποια "
        "ποιο πότε πού πώς γιατί τι στο στη στην στον στα στις ή δεν θα",
    }.items()
}
# Letters that one language writes and the others of these do not: a word with one of them counts like one of the above.
_OWN_LETTERS: Final = {
    "Turkish": "ığş",
    "Vietnamese": "ơưđạảấầẩậắặẻẽẹếềểễệỉịọỏốồổộớờởợụủứừửữựỳỵỷỹ",
    "Polish": "łąęśżź",
    "Czech": "ěřů",
    "Hungarian": "őű",
    "Romanian": "țșţ",
    "German": "ß",
    "Danish": "æø",
    "Norwegian": "æø",
}
# Scripts whose languages their letters tell: shares of all letters from which on a text is in the language, in order; ""
# stands for languages that have no name here.
_BY_LETTERS: Final = {
    "CYRILLIC": (
        ("ўқғңөүұһәҳҷӣӯӧӱ", 0.004, ""),
        ("іїєґ", 0.02, "Ukrainian"),
        ("ѓќѕ", 0.004, ""),
        ("јљњћђџ", 0.02, "Serbian"),
        ("ыэё", 0.01, "Russian"),
        ("ъ", 0.01, "Bulgarian"),
    ),
    "ARABIC": (
        ("ۆێڵڕېښړټڼڭۇۈۋڪڄ", 0.01, ""),
        ("ٹڈڑںےہ", 0.02, "Urdu"),
        ("پچژگکی", 0.04, "Persian"),
        ("ةىأإيك", 0.04, "Arabic"),
    ),
}
_SCRIPTS: Final = {
    "HANGUL": "Korean",
    "HEBREW": "Hebrew",
    "GREEK": "Greek",
    "THAI": "Thai",
    "LAO": "Lao",
    "KHMER": "Khmer",
    "MYANMAR": "Burmese",
    "GEORGIAN": "Georgian",
    "ARMENIAN": "Armenian",
    "BENGALI": "Bengali",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
}
_BY_WORDS: Final = frozenset({"LATIN", "DEVANAGARI"})
TAGS: Final = {
    "English": "en",
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Italian": "it",
    "Portuguese": "pt",
    "Dutch": "nl",
    "Swedish": "sv",
    "Danish": "da",
    "Norwegian": "no",
    "Finnish": "fi",
    "Hungarian": "hu",
    "Polish": "pl",
    "Czech": "cs",
    "Romanian": "ro",
    "Turkish": "tr",
    "Indonesian": "id",
    "Vietnamese": "vi",
    "Russian": "ru",
    "Ukrainian": "uk",
    "Serbian": "sr",
    "Bulgarian": "bg",
    "Arabic": "ar",
    "Persian": "fa",
    "Urdu": "ur",
    "Hindi": "hi",
    "Marathi": "mr",
    "Nepali": "ne",
    "Japanese": "ja",
    "Chinese": "zh",
    "Korean": "ko",
    "Hebrew": "he",
    "Greek": "el",
    "Thai": "th",
    "Lao": "lo",
    "Khmer": "km",
    "Burmese": "my",
    "Georgian": "ka",
    "Armenian": "hy",
    "Bengali": "bn",
    "Tamil": "ta",
    "Telugu": "te",
}
"""Languages that ``language_name`` tells, with their BCP 47 tags."""


def language_name(text: str) -> str:
    """Return the language of a text, by its English name; "" where it is not plain.

    The languages of a script that several share are told apart by their commonest words, or by letters of their own.
    """
    return _told(text[:_LONGEST])[0]


def function_words(name: str) -> frozenset[str]:
    """Return the commonest words of a language, which say nothing about a text but its language; few, or none, are known.

    Args:
        name: its English name.
    """
    return _WORDS.get(name, frozenset()) | _MORE_WORDS.get(name, frozenset())


def language_or_script(text: str) -> str:
    """Return the language of a text; where it is not plain, the script it is plainly in, but for Latin: "".

    So that what is not English is told from what may be: "Cyrillic script".
    """
    name, script = _told(text[:_LONGEST])
    return name or (f"{script.title()} script" if script not in ("", "LATIN") else "")


# A search asks about its question, and what tells of the search asks again; passages are found again and again.
@lru_cache(maxsize=64)
def _told(shown: str) -> tuple[str, str]:
    """Return the language, "" where it is not plain, and the script of most letters, "" where none has half of them."""
    if shown.isascii():
        return _by_words(shown), "LATIN"
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in shown if letter.isalpha())
    if not scripts:
        return "", ""
    for dense in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL"):
        scripts[dense] *= _LETTERS_OF_ONE  # So that a few Latin names do not outnumber a sentence.
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana and kana + scripts["CJK"] > sum(scripts.values()) / 2:
        return "Japanese", "CJK"
    script, count = scripts.most_common(1)[0]
    if count <= sum(scripts.values()) / 2:
        return "", ""
    if script == "CJK":
        return "Chinese", script
    if script in _BY_LETTERS:
        return _by_letters(shown.lower(), _BY_LETTERS[script], count), script
    return _by_words(shown) if script in _BY_WORDS else _SCRIPTS.get(script, ""), script


def _by_letters(text: str, letters: tuple[tuple[str, float, str], ...], count: int) -> str:
    for own, share, name in letters:
        if sum(text.count(letter) for letter in own) >= share * count:
            return name
    return ""


def _by_words(text: str) -> str:
    is_ascii = text.isascii()
    words = _ASCII_WORD.findall(text.lower()) if is_ascii else [w.lower() for w in _WORD.findall(text)]
    counts = Counter(words)
    scores = dict.fromkeys(_WORDS, 0)
    # In ASCII no letter tells a language, so that most words tell nothing.
    telling = counts.keys() & _KNOWN_OF.keys() if is_ascii else counts.keys()
    for word in telling:
        for name in _languages_of(word):
            scores[name] += counts[word]
    ranked = sorted(((score, name) for name, score in scores.items()), reverse=True)
    (best, name), (second, _) = ranked[:2]
    is_clear = len(words) >= _LONG and best >= 1.5 * second
    share = _LEAST_SHARE / 2 if is_clear else _LEAST_SHARE
    return name if best >= _LEAST_WORDS and best > second and best >= share * len(words) else ""


def _languages_of(word: str) -> frozenset[str]:
    """Return the languages that a word in lower case speaks for: it is one of their commonest, or has a letter of their own."""
    known = _KNOWN_OF.get(word, _NONE)
    if word.isascii():
        return known
    return known | {name for name, own in _OWN_LETTERS.items() if any(letter in word for letter in own)}
