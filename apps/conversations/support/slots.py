"""Names of a statement held against the sentences that say most of the same: is each in the place that it has there? Pure.

``names.py`` asks how often two words are neighbours anywhere in a passage. Here one place is taken at a time, so that a name
that the passage repeats everywhere is still missed where the statement leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations, pairwise

from apps.conversations.support.names import (
    OPENERS,
    TITLES,
    ReadPassage,
    is_same_name,
    is_short_form,
    neighbours_fit,
)
from apps.conversations.support.reading import Read, Word, key_of, words_of

_REACH = 6  # Neighbours on each side that tell where a name belongs.
_STRAY = 4  # So much farther from it they may stand in the passage.
_FADES = tuple(0.85**n for n in range(_REACH + _STRAY))  # What one counts less with each word between.
_LITTLE_WEIGHT = 0.4
_MOST_NAMES, _MOST_OTHERS = 12, 60  # No text takes seconds.
_LINKS = frozenset({"of", "the", "for", "de", "to"})  # Little words within a name.
_PREPOSITIONS = words_of("by from to in on at with for against of as")
_DATES = frozenset(
    key_of(name)
    for name in (
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september "
        "october november december"
    ).split()
)
_ARTICLES = words_of("the a an")
_NEAR_SUBJECT = 3  # So many words behind who does it a verb in the active voice stands at most.
_BY = 2  # So many words before a name “by” makes it the one who does something.
_STANDINS = words_of(
    "he she it they his her its their him them who which this these"
)  # What stands for a name said before.
_TWO_SENTENCES = 0.08  # What two sentences must hold more than one to be nearer.

Window = tuple[float, int, int]
"""The share of a statement that some sentences of a passage hold, and from which word to which they go."""


@dataclass(frozen=True, slots=True)
class Part:
    """A name in a statement: the keys of its words, and from which word to which it goes, the last one excluded."""

    name: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A word near a name; its key is "" where it is the name that is tried in the other's place."""

    key: str
    is_left: bool
    distance: int
    weight: float


def windows_of(statement: Read, passage: ReadPassage, count: int = 2) -> list[Window]:
    """Return the sentences, or two in a row, that hold most of a statement, the best first; one that holds nothing for none."""
    wanted = {word.key: 3.0 if word.is_number else 1.0 for word in statement.telling}
    whole = sum(wanted.values()) or 1.0
    held = [(start, end, wanted.keys() & keys) for start, end, keys in passage.sentence_keys]
    shares = [sum(wanted[key] for key in keys) / whole for _, _, keys in held]
    found = [(share, start, end) for share, (start, end, _) in zip(shares, held, strict=True)]
    for index, ((start, _, keys), (_, end, more)) in enumerate(pairwise(held)):
        if more - keys:
            both = shares[index] + sum(wanted[key] for key in more - keys) / whole
            found.append((both - _TWO_SENTENCES, start, end))
    return nlargest(count, found) or [(0.0, 0, 0)]


class _Place:
    """A window of a passage: where its words stand."""

    def __init__(self, passage: ReadPassage, window: Window) -> None:
        _, self.start, self.end = window
        self.words = passage.read.words
        self.at: dict[str, list[int]] = {}
        for word in self.words[self.start : self.end]:
            self.at.setdefault(word.key, []).append(word.place)

    def sentences(self, passage: ReadPassage) -> list[_Place]:
        """Return its sentences, each a place of its own: a name belongs to the words of its sentence."""
        own = [(a, b) for a, b in passage.read.sentences if self.start <= a and b <= self.end]
        return [self] if len(own) == 1 else [_Place(passage, (0.0, a, b)) for a, b in own]

    def found(self, name: Sequence[str]) -> list[tuple[int, int]]:
        """Return where a whole name stands."""
        size = len(name)
        return [
            (at, at + size)
            for at in self.at.get(name[0], ())
            if all(word.key == key for word, key in zip(self.words[at : at + size], name, strict=False))
        ]

    def stands_for(self, name: Sequence[str], *, is_known: bool) -> list[tuple[int, int]]:
        """Return where a name stands, or its last word, or a pronoun behind it; any pronoun for a name that is known."""
        found = self.found(name) or self.found(name[-1:])
        if not found and not is_known:
            return []
        first = self.start if is_known else found[0][1]
        return found + [(at, at + 1) for at in range(first, self.end) if self.words[at].key in _STANDINS]


def parts_of(statement: Read, passage: ReadPassage) -> list[Part]:
    """Return the names of a statement: words with a capital that the passage has next to each other, over “of” and the like too."""
    words, found, at = statement.words, [], 0
    while at < len(words):
        end = at + 1
        if _is_part(words[at], passage):
            while (after := _next_part(words, end, passage)) > end:
                end = after
            if end > at + 1 or len(words[at].raw) > 1:
                found.append(Part(tuple(word.key for word in words[at:end]), at, end))
        at = end
    return found


def _is_part(word: Word, passage: ReadPassage) -> bool:
    if not word.is_capital or word.is_number or word.is_little or (lower := word.raw.lower()) in TITLES:
        return False
    return not word.begins or (lower not in OPENERS and word.key in passage.capitals)


def _next_part(words: Sequence[Word], at: int, passage: ReadPassage) -> int:
    """Return where a name ends that continues at a place, the place itself where it doesn't."""
    last = at
    while last < len(words) and last - at < 2 and words[last].raw in _LINKS and not words[last].is_cut:
        last += 1
    if last == len(words) or words[last].is_cut or not _is_part(words[last], passage):
        return at
    pairs = zip(words[at - 1 : last], words[at : last + 1], strict=True)
    return last + 1 if all(passage.pairs.get((a.key, b.key)) == 1 for a, b in pairs) else at


def exchange_fits_nearby(
    statement: Read, parts: Sequence[Part], passage: ReadPassage, windows: Iterable[Window]
) -> float:
    """Return how much better a window fits a statement with two of its names exchanged, 0 to 1.

    Names of one list have no order. Where one of the two texts speaks in the passive voice, their order around the verb
    decides. Nothing is said where both names keep the preposition before them: “from A by B” is “by B from A”.
    """
    groups: dict[tuple[str, ...], list[Part]] = {}
    for part in parts:
        groups.setdefault(part.name, []).append(part)
    places = [_Place(passage, window) for window in windows]
    best = 0.0
    for one, two in combinations(list(groups)[:_MOST_NAMES], 2):
        if (
            set(one) <= set(two)
            or set(two) <= set(one)
            or is_short_form(*(_said(statement, groups[n]) for n in (one, two)))
        ):
            continue
        spots = [*groups[one], *groups[two]]
        if all(_is_list(statement, parts, a, b) for a in groups[one] for b in groups[two]):
            continue
        around = {
            part: _neighbours(statement, part, groups[two if part.name == one else one]) for part in spots
        }
        for place in places:
            there = {one: place.found(one), two: place.found(two)}
            if not (there[one] and there[two]):
                continue
            if _has_other_voice(statement, spots, place, there):
                is_turned = any(
                    _is_turned(statement, part, other, place, there)
                    for part in spots
                    for other in spots
                    if part.name != other.name and part.end <= other.start
                )
                best = 1.0 if is_turned else best
                continue
            now = then = 0.0
            for part, near in around.items():
                other = two if part.name == one else one
                now += _best_fit(near, place, there[part.name], there[other])
                then += _best_fit(near, place, there[other], there[part.name])
            if then - now > best * len(spots) and not _keeps_links(statement, spots, place, there):
                best = (then - now) / len(spots)
    return best


def other_fits_nearby(
    statement: Read,
    parts: Sequence[Part],
    passage: ReadPassage,
    around: ReadPassage,
    windows: Iterable[Window],
) -> float:
    """Return how much better another name of a window fits where one of the statement stands, 0 to 1.

    What the question or a title names stands in the sentences about it as a pronoun, so that any pronoun may be it; another
    name only where it, or its last word, stands before the pronoun.
    """
    best = 0.0
    sequence = [(word.key, word.is_little) for word in statement.words]
    for place in [_Place(passage, window) for window in windows]:
        others = [
            (sentence, run)
            for sentence in place.sentences(passage)
            for run in _runs(sentence, passage)
            if not {word.key for word in run} <= statement.at.keys()
        ][:_MOST_OTHERS]
        for part in parts[:_MOST_NAMES] if others else ():
            near = _neighbours(statement, part, ())
            known = all(key in around.read.at for key in part.name)
            most = sum(one.weight for one in near if one.key in place.at)
            words = statement.words[part.start : part.end]
            own = max(
                _best_fit(near, place, place.stands_for(part.name, is_known=known), ()),
                neighbours_fit(sequence, part.start, part.end, passage),
            )
            if most - own <= best:
                continue
            for sentence, run in others:
                if _is_date(words) == _is_date(run) and not is_same_name(words, run):
                    fit = _fit(near, sentence, run[0].place, run[-1].place + 1, ())
                    best = max(best, fit - own)
    return best


def _is_date(name: Sequence[Word]) -> bool:
    return any(word.key in _DATES for word in name)


def _runs(place: _Place, passage: ReadPassage) -> list[list[Word]]:
    """Return the names of a window: words with a capital next to each other."""
    found: list[list[Word]] = []
    for word in place.words[place.start : place.end]:
        if not _is_part(word, passage):
            continue
        if found and found[-1][-1].place + 1 == word.place and not word.is_cut:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _is_list(statement: Read, parts: Sequence[Part], one: Part, two: Part) -> bool:
    """Tell whether two names stand in one list: three with commas, or two with “and” or “or”."""
    first, last = sorted((parts.index(one), parts.index(two)))
    links = [_link(statement, parts, index) for index in range(first, last)]
    if "" in links:
        return False
    near = [_link(statement, parts, index) for index in (first - 1, last)]
    return "and" in links or last - first > 1 or any(near)


def _link(statement: Read, parts: Sequence[Part], index: int) -> str:
    """Return what joins a name to the next one: "and", ",", "" where it is not in a list with it."""
    if not 0 <= index < len(parts) - 1:
        return ""
    after = parts[index + 1].start
    between = statement.words[parts[index].end : after]
    if not between:
        return "," if statement.words[after].is_cut else ""
    return "and" if len(between) == 1 and between[0].raw in ("and", "or") else ""


def _said(statement: Read, parts: Sequence[Part]) -> Sequence[Word]:
    return statement.words[parts[0].start : parts[0].end]


def _neighbours(statement: Read, part: Part, others: Sequence[Part]) -> list[_Neighbour]:
    """Return the words near a name, each with its share of all; what is one of the others is one word without a key."""
    found: list[tuple[str, bool, int, float]] = []
    words = statement.words
    for is_left in (True, False):
        for distance in range(1, _REACH + 1):
            at = part.start - distance if is_left else part.end + distance - 1
            if not 0 <= at < len(words):
                break
            key = words[at].key
            if (other := next((one for one in others if one.start <= at < one.end), None)) is not None:
                if at != (other.end - 1 if is_left else other.start):
                    continue
                key = ""
            weight = (_LITTLE_WEIGHT if words[at].is_little else 1.0) * _FADES[distance - 1]
            found.append((key, is_left, distance, weight))
    whole = sum(weight for *_, weight in found) or 1.0
    return [_Neighbour(key, is_left, distance, weight / whole) for key, is_left, distance, weight in found]


def _best_fit(
    near: Sequence[_Neighbour],
    place: _Place,
    spots: Sequence[tuple[int, int]],
    others: Sequence[tuple[int, int]],
) -> float:
    """Return the share of neighbours that stand around one of the spots as around the name, on the same side and as far, 0 to 1."""
    return max((_fit(near, place, start, end, others) for start, end in spots), default=0.0)


def _fit(
    near: Sequence[_Neighbour], place: _Place, start: int, end: int, others: Sequence[tuple[int, int]]
) -> float:
    got = 0.0
    for one in near:
        places = (
            place.at.get(one.key, ()) if one.key else [last - 1 if one.is_left else at for at, last in others]
        )
        best = 0.0
        for at in places:
            distance = start - at if one.is_left else at - end + 1
            if 1 <= distance <= _REACH + _STRAY:
                best = max(best, _FADES[abs(distance - one.distance)])
        got += one.weight * best
    return got


_There = dict[tuple[str, ...], list[tuple[int, int]]]


def _has_other_voice(statement: Read, spots: Sequence[Part], place: _Place, there: _There) -> bool:
    """Tell whether “by” stands before a name in only one of the two texts."""
    here = any(word.key == "by" for part in spots for word in _before(statement.words, part.start))
    return here != any(
        word.key == "by" for found in there.values() for at, _ in found for word in _before(place.words, at)
    )


def _before(words: Sequence[Word], at: int) -> Sequence[Word]:
    return words[max(0, at - _BY) : at]


def _is_turned(statement: Read, first: Part, second: Part, place: _Place, there: _There) -> bool:
    """Tell whether two names stand in the same order around a verb that is passive in only one of the two texts."""
    here = statement.words[first.end : second.start]
    for _, start in there[first.name]:
        for end, _ in there[second.name]:
            other = place.words[start:end]
            if len(other) > 2 * _REACH:
                continue
            one, two = _verb_before_by(here), _verb_before_by(other)
            active = (other if one else here)[:_NEAR_SUBJECT]
            if bool(one) != bool(two) and (one or two) in {word.key for word in active}:
                return True
    return False


def _verb_before_by(words: Sequence[Word]) -> str:
    """Return what is done by the one whose name follows, "" where no “by” stands before it."""
    for at in range(len(words) - 1, max(0, len(words) - 1 - _BY), -1):
        if words[at].key == "by":
            verb = words[at - 1]
            return "" if verb.is_little or verb.is_capital else verb.key
        if not words[at].is_little:  # “by using A”
            return ""
    return ""


def _keeps_links(statement: Read, spots: Sequence[Part], place: _Place, there: _There) -> bool:
    """Tell whether each name has the same preposition before it in both texts."""
    for part in spots:
        before = _preposition(statement.words, part.start)
        if not before or all(_preposition(place.words, at) != before for at, _ in there[part.name]):
            return False
    return True


def _preposition(words: Sequence[Word], at: int) -> str:
    """Return the preposition before a name, over an article; "" where there is none."""
    if at and words[at - 1].key in _ARTICLES:
        at -= 1
    return words[at - 1].key if at and words[at - 1].key in _PREPOSITIONS else ""
