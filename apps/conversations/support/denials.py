"""Does a statement deny what its passage affirms, deny what it never denies, or say the opposite? Pure."""

from __future__ import annotations

from collections.abc import Mapping

from apps.conversations.support.names import ReadPassage
from apps.conversations.support.reading import Read, Word, key_of

_NEAR = 8  # Words on each side that tell whether two places speak of the same.
_AROUND_DENIAL = 7
# Denials of a text, and places of a word, that are looked at: no text takes seconds.
_MOST_HEADS, _MOST_PLACES = 8, 60
# Opposites: a word of one side stands for the other side's where it is denied. No pair whose words are often found together.
_OPPOSITES = """
increase rise grow gain climb surge expand improve boost raise | decrease decline fall drop reduce shrink worsen lower diminish
more | fewer less
before prior | after following
above over exceed | below under
begin start open launch | end stop finish close conclude
maximum most | minimum least
allow permit authorize enable legal lawful | prohibit forbid ban bar prevent disable illegal unlawful
require mandatory obligatory compulsory | optional voluntary
include contain | exclude omit
all every always | none never
accept approve agree adopt | reject refuse deny decline
win succeed success victory | lose fail failure defeat
positive | negative
north northern | south southern
east eastern | west western
left | right
public | private
male man boy husband father son brother king | female woman girl wife mother daughter sister queen
old older oldest ancient | young younger new modern recent
large larger largest big bigger biggest great | small smaller smallest
long longer longest | short shorter shortest
high higher highest | low lower lowest
fast faster quick rapid | slow slower gradual
hot warm warmer | cold cool cooler
good better best | bad worse worst poor
strong stronger | weak weaker
easy easier simple | difficult hard harder complex
cheap cheaper | expensive costly
buy purchase | sell
import | export
profit | loss
early earlier | late later
support favor | oppose criticize
add | remove
inside internal | outside external
domestic | foreign
major | minor
same similar | different
temporary | permanent
upper top | bottom
primary | secondary
single | multiple
guilty | innocent
active | inactive
present | absent
happy pleased | unhappy sad disappointed
love enjoy | hate dislike
rich | poor
alive survive | dead
empty | full
create establish build | destroy demolish dissolve
arrive enter join | leave depart quit
true | false
"""


def _sides() -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for line, text in enumerate(_OPPOSITES.strip().splitlines()):
        for side, words in zip((1, -1), text.split("|"), strict=True):
            for key in {key_of(word) for word in words.split()}:
                found.setdefault(key, []).append((line, side))
    return found


_SIDES = _sides()


def denial_doubts(statement: Read, passage: ReadPassage, window: tuple[float, int, int]) -> dict[str, float]:
    """Return what speaks against the denials of a statement, each 0 to 1; all 0 where it denies nothing.

    ``affirmed``: the denied word stands undenied among the same words. ``alone``: the best window denies nothing.
    ``unlike``: no denial of the passage stands among the same words. ``told``: a sentence without a denial has them.
    """
    heads = [word for word in statement.words if word.heads][:_MOST_HEADS]
    doubts = dict.fromkeys(("affirmed", "alone", "unlike", "told"), 0.0)
    if not heads:
        return doubts
    words = passage.read.words
    denials = [word.place for word in words if word.heads]
    doubts["alone"] = float(not any(window[1] <= place < window[2] for place in denials))
    for head in heads:
        best, place = _best_place(statement, head, passage)
        if place >= 0 and not any(w.is_denied for w in words[max(0, place - 3) : place + 4]):
            doubts["affirmed"] = max(doubts["affirmed"], best)
        wanted = {
            word.key: 2.0 if word is head else 1 / (1 + abs(word.place - head.place) / 4)
            for word in statement.telling
            if abs(word.place - head.place) <= _AROUND_DENIAL
        }
        like = max((_share(wanted, passage, at - _NEAR, at + _NEAR + 1) for at in denials), default=0.0)
        doubts["unlike"] = max(doubts["unlike"], 1 - like)
        for start, end in passage.read.sentences:
            if not any(word.heads for word in words[start:end]):
                doubts["told"] = max(doubts["told"], _share(wanted, passage, start, end))
    return doubts


def denial_left_out(statement: Read, passage: ReadPassage) -> float:
    """Return how surely a statement affirms what the passage denies, 0 to 1."""
    words, surest = passage.read.words, 0.0
    denied = {word.key for word in words if word.heads}
    for word in statement.telling:
        if word.key not in denied or any(
            w.is_denied for w in statement.words[max(0, word.place - 3) : word.place + 4]
        ):
            continue
        best, place = _best_place(statement, word, passage)
        if words[place].heads:
            surest = max(surest, best)
    return surest


def opposite_said(statement: Read, passage: ReadPassage, window: tuple[float, int, int]) -> float:
    """Return how surely the best window has a word's opposite where the statement has the word, 0 to 1."""
    opposites = [(word, _SIDES[word.key]) for word in statement.words if word.key in _SIDES]
    if not opposites:
        return 0.0
    there: dict[tuple[int, int], list[Word]] = {}
    for other in passage.read.words[window[1] : window[2]]:
        for side in _SIDES.get(other.key, ()):
            there.setdefault(side, []).append(other)
    surest = 0.0
    for word, sides in opposites:
        for group, sign in sides:
            if (group, sign) in there:
                continue
            for other in there.get((group, -sign), ()):
                if other.is_denied == word.is_denied and other.key not in statement.at:
                    surest = max(surest, near(statement, word, passage, other.place))
    return surest


def near(statement: Read, word: Word, passage: ReadPassage, place: int, reach: int = _NEAR) -> float:
    """Return how much of what stands around a word of the statement stands around a place of the passage, 0 to 1."""
    around = {
        w.key for w in passage.read.words[max(0, place - reach) : place + reach + 1] if w.place != place
    }
    got = whole = 0.0
    for other in statement.words[max(0, word.place - reach) : word.place + reach + 1]:
        if other.is_little or other.key == word.key or other.key not in passage.read.at:
            continue
        weight = 1 / (1 + abs(other.place - word.place) / 4)
        whole += weight
        if other.key in around:
            got += weight
    return got / (whole + 0.5)


def _best_place(statement: Read, word: Word, passage: ReadPassage) -> tuple[float, int]:
    """Return where in the passage a word stands among most of the same words, and how surely; -1 where it does not."""
    best = (0.0, -1)
    for place in passage.read.at.get(word.key, [])[:_MOST_PLACES]:
        sure = near(statement, word, passage, place)
        if best[1] < 0 or sure > best[0]:
            best = (sure, place)
    return best


def _share(wanted: Mapping[str, float], passage: ReadPassage, start: int, end: int) -> float:
    found = {word.key for word in passage.read.words[max(0, start) : end]}
    return sum(weight for key, weight in wanted.items() if key in found) / sum(wanted.values())
