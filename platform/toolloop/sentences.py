"""Where the sentences of a paragraph end, in any script. Pure, by marks and lists of words; no model is asked.

A full stop after an abbreviation, an initial, a list's number or inside a code ends nothing. Where an abbreviation may end a
sentence too ("in the U.S. The rate"), the next word decides. A script without marks (Thai) gives one sentence a paragraph.
"""

from __future__ import annotations

import re

_CLOSERS = r"[\"'”“’»›)\]]*"  # “ closes „
# Numbers of notes stand behind the mark: "of ducks.[5][6] The", "the duty.[^3] The", "the duty.¹² The".
_NOTES = r"(?:\\?\[\^?\[?\w{1,3}(?:[,–-]\s?\d{1,3})*\\?\](?:\]?\([^()\s]{0,300}\))?|[¹²³⁰⁴-⁹†‡]{1,6}|<sup>[\w, ]{1,12}</sup>)*"
# What is raised on the page is a plain number in its text: "the duty.12 The", "is it free?3 It".
_RAISED = r"(?:(?<=[^\W\d_][.!?])|(?<=[.!?][\"”’)]))\d{1,2}(?:,\d{1,2})*(?=\s+[\"“(]?[A-Z])"
_NO_SPACE = "\u3040-\u30ff\u3400-\u9fff"
_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]{{1,200}}{_CLOSERS}{_NOTES}(?:{_RAISED})?(?=\s|\Z)"
    rf"|[؟۔।॥።።၊။។]{_CLOSERS}{_NOTES}(?:\d{{1,2}}(?=\s))?(?=\s|\Z)"
    rf"|(?:[。！？｡]{{1,200}}|(?<=[{_NO_SPACE}])[!?]{{1,200}}(?=[{_NO_SPACE}「『（]))[」』”’）】〉》]*{_NOTES})"
)
# A note's mark behind a blank: "the duty. [12] The". In a list of sources it begins the next entry.
_NOTE_APART = re.compile(r"\s?\[\^?\d{1,3}\](?=\s+\S)")
_OPENED = {"(": ")", "[": "]", "（": "）", "「": "」", "『": "』"}
_CLOSED = frozenset(_OPENED.values())
_BLANKS = re.compile(r"\s*")
_BRACKET = re.compile(f"[{re.escape(''.join([*_OPENED, *_CLOSED]))}]")
_INSIDE_MOST = 400
"""Characters between brackets or quotation marks up to which what they hold belongs to the sentence around them."""
# A mark that looks the same on both sides opens behind a blank, and closes behind a letter: 5" is a length.
_QUOTES = '"“„«'
_QUOTED = re.compile(
    rf"(?:„[^„“”]{{1,{_INSIDE_MOST}}}[“”]|“[^“”]{{1,{_INSIDE_MOST}}}”|«[^«»]{{1,{_INSIDE_MOST}}}»"
    rf"|(?<![^\s(\[—–:=])\"(?=[^\s\"])[^\"]{{1,{_INSIDE_MOST}}}(?<=\S)\")"
)
_WORD_BEFORE = re.compile(r"[\w.&§°-]{1,30}\Z")
_WORD_AFTER = re.compile(r"[\"'“‘«(\[]*(\w+)")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,3}\Z")
# "Section 3. Definitions apply": what a sentence is headed by is no sentence.
_HEADED = re.compile(
    r"\(?(?:section|sec\.|article|art\.|chapter|annex|note|part|table|figure|fig\.|rule|title|appendix|schedule|exhibit|item|step|"
    r"abschnitt|artikel|kapitel|anhang|tabelle|chapitre|tableau|artículo|capítulo|§)\s*[\w.-]{1,8}\Z",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)(?:\d{4}\.(?:\s?\d{1,2}\.?)?|\d{1,2}\.)\s?\d{1,2}\Z")
_OUTLINE = re.compile(r"\(?(?:\w{2,6}\s?)?\d+(?:\.\d+)*\Z")  # "ETA 1.1.2. Training"
_SAID = "とっなのはがも"  # what goes on after a quotation in Japanese: "「はい。」と言った。"
_ROMAN = re.compile(r"[ivxlc]{1,6}\Z")

_TITLES = frozenset(
    """
    mr mrs ms dr prof hon rev gen sen rep gov maj lt adm cmdr cpl pres capt sgt st mt messrs sr sra srta mme mlle m hr fr herr frau dott sig ing dipl
    vs v cf e.g i.e eg viz ca z.b d.h u.a vgl bzw ggf inkl sog p.ex bijv т.е напр ул им
""".split()
)
_NUMBERED = frozenset(
    """
    no nos nr núm num n° № sec secs sect art arts para paras par subpara fig figs eq eqs ch chap chaps vol vols pp p pg pgs
    pt pts table tables figure figures ref refs doc docs dkt rin tab app ex cl col cols r l fn s abs ziff kap bd rn rz pos tz § str рис стр табл ст гл п
""".split()
)
_MAY_END = frozenset(
    """
    inc ltd co corp llc cos bros plc gmbh dept div est approx etc al jr ed eds rev supp stat reg fed cong res pub ser ann
    assn assoc ave blvd rd ste bldg admin natl intl govt univ inst tel ext min max avg incl excl resp usw uvm jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun esq ph.d g kg km cm mm lb lbs oz ft sq hr hrs г т.д т.п др тыс млн
""".split()
)
_STARTERS = frozenset(
    """
    a an the this that these those it its he she they we you i in on at by for from with under over to of as if when while
    where since after before during although though because however therefore thus hence moreover further furthermore also
    all any both each every either neither no none not some such many most more other another there here then what which who
    how why our their your his her and but or so yet once until unless upon within without between among through per see
    der die das ein eine im in am es er sie wir ihr dies diese dieser dieses wenn nach mit auf für bei von zu aus als auch
    le la les un une des il elle ils elles nous vous ce cette ces dans en pour par sur avec si el los las una lo se su sus
    esta este estos estas con por para como cuando o os as um uma na no nos nas dos das gli il è i
    в на и это эта этот он она они мы вы если при по с к для из за не
""".split()
)
_AFTER_ORDINAL = frozenset(
    """
    januar februar märz april mai juni juli august september oktober november dezember jänner quartal jahrhundert kapitel
    absatz artikel auflage jahr tag teil januari februari maart mei augustus oktober ledna února března dubna května
""".split()
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Cut a paragraph into sentences.

    Args:
        text: one paragraph; lines may break inside of it, and what stands at its begin begins a line.

    Returns:
        Offsets of each sentence without the blanks around it, as (start, end); what has no mark at its end is one too.
    """
    spans: list[tuple[int, int]] = []
    brackets = _brackets(text)
    is_list = _NOTE_APART.match(text) is not None
    start = first = at = 0  # of the sentence: where it is cut off, its first character
    for match in _END.finditer(text):
        while at < len(brackets) and brackets[at][1] < match.end():
            at += 1
        begun = brackets[at][0] if at < len(brackets) else len(text)
        if begun < match.start() and (
            first < begun or text[begun] in "「『" or _goes_on(text, *brackets[at])
        ):
            continue  # "(E.D. Mo. 2024)", he wrote "It is. I saw it." there: the sentence goes on behind the mark
        if match.start() < start or not _is_end(text, start, match):
            continue
        apart = None if is_list else _NOTE_APART.match(text, match.end())
        end = match.end() if apart is None else apart.end()
        _add(spans, text, start, end)
        start = end
        first = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
    _add(spans, text, start, len(text))
    return spans


def _brackets(text: str) -> list[tuple[int, int]]:
    """Return where short brackets and quotations open and close, those inside of others left out, in order."""
    found: list[tuple[int, int]] = []
    opened: list[tuple[int, str]] = []
    for match in _BRACKET.finditer(text):
        at, mark = match.start(), match.group()
        if mark not in _CLOSED:
            opened.append((at, _OPENED[mark]))
        elif opened and opened[-1][1] == mark:
            begun, _ = opened.pop()
            if at - begun <= _INSIDE_MOST:
                while found and found[-1][0] > begun:
                    found.pop()
                found.append((begun, at))
    quoted = [(match.start(), match.end() - 1) for match in _QUOTED.finditer(text)]
    outer: list[tuple[int, int]] = []
    for begun, end in sorted((*found, *quoted)) if quoted else found:
        if not outer or begun > outer[-1][1]:
            outer.append((begun, end))
    return outer


def _goes_on(text: str, begun: int, end: int) -> bool:
    """Tell whether a sentence that begins with a quotation goes on behind it: '"It is. I saw it," he said'."""
    behind = text[end + 1 : end + 4].lstrip()[:1]
    return text[begun] in _QUOTES and (behind.islower() or behind in tuple(",:;"))


def is_complete(text: str) -> bool:
    """Tell whether a text ends in the mark of a sentence's end."""
    tail = text.rstrip()[-12:]
    return any(match.end() == len(tail) for match in _END.finditer(tail))


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    inside = text[start:end]
    if inside.strip():
        lead = len(inside) - len(inside.lstrip())
        spans.append((start + lead, start + len(inside.rstrip())))


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    mark = match.group()
    if mark[0] not in ".!?…":
        # The line may break between the quotation and what goes on.
        return mark[-1] not in "」』" or text[match.end() : match.end() + 4].lstrip()[:1] not in tuple(_SAID)
    rest = text[match.end() : match.end() + 60].lstrip()
    if not rest:
        return True
    if rest[0].islower() or rest[0] in ",;:)]" or mark.startswith("...."):
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    before = _WORD_BEFORE.search(text, max(start, match.start() - 30), match.start())
    word = before.group() if before else ""
    plain = word.strip(".-").casefold()
    following = _WORD_AFTER.match(rest)
    after = following[1] if following else ""
    said = text[start : match.start()].strip()
    if (said.strip("( ") == word and _is_label(word)) or (
        len(said) < 40 and (_HEADED.match(said) or (len(said) < 14 and _OUTLINE.match(said)))
    ):
        return False
    if _DATE.search(text, max(start, match.start() - 12), match.start()) and rest[0].isalnum():
        # "2020.3.11. 코로나": a date as East Asia writes it.
        return rest[0].isupper()
    if plain.isdigit() and len(plain) < 3:
        if said.removesuffix(word).rstrip().endswith((":", ";")):
            return False
        return said != word and after.casefold() not in _AFTER_ORDINAL
    if len(plain) == 1 and plain.isalpha() and word.islower():
        return False
    is_start = after.casefold() in _STARTERS
    if plain in _TITLES:
        return False
    if plain in _NUMBERED and (word[-1:] != "s" or len(word) > 1):
        is_number = rest[0].isdigit() or rest[0] in "(§#" or bool(_ROMAN.match(after.casefold()))
        # "The answer is no. Trucks pay": a word, not the sign of a number.
        return not is_number and (is_start or (plain == "no" and word == "no"))
    if (len(plain) == 1 and plain.isalpha()) or plain in _MAY_END:
        return is_start
    return is_start if _DOTTED.match(word) else True


def _is_label(word: str) -> bool:
    """Tell whether what stands before the first full stop is the letter or the Roman number of a list's entry."""
    plain = word.strip(".").casefold()
    return len(plain) == 1 or bool(_ROMAN.match(plain))
