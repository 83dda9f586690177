"""Names and numbers of a statement held against a passage: is one missing, and does another fit better in its place? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations, islice

from apps.conversations.support.reading import Read, Word, key_of, text_read, words_of

_REACH = 4  # Neighbours on each side that tell where a name belongs.
_FADE = 0.85  # What a neighbour counts less with each word between.
_LITTLE_WEIGHT = 0.4
# Names or numbers of a statement, and of a passage, that are tried in each other's place: no text takes seconds.
_MOST_OWN, _MOST_OTHERS = 12, 400
_ALIKE = 4  # Names that share so many first letters are one: “Khloé” and “Khloe”.
_SHARED = 0.5  # Of a statement's telling words, that a sentence holds at least to say the same.
_BY = 2  # So many words before a name “by” makes it the one who does something.
TITLES = words_of("i mr mrs ms dr sir st the")
# Words that begin sentences without being names.
OPENERS = words_of(
    "yes no however additionally also absolutely currently depending according based furthermore moreover finally overall "
    "sure although though while when if since because after before during despite once first second third then thus "
    "therefore hence meanwhile instead other another one two three many some most several all each every both these those "
    "such here there what how why where please note remember let given unlike like later today now various different using "
    "including among within without under over between through throughout across until upon besides regarding concerning "
    "considering following sorry thanks hello"
)
_VERBS_OF_ONE = words_of("is was has says said claims makes made")
_NOT_OF_NAMES = ("ing", "ness", "tion", "ity", "ment", "ism", "ance", "ence")
_PLACES = (
    "american=united,us,usa,america british=britain,uk,united,kingdom,english french=france dutch=netherlands,holland "
    "english=england welsh=wales irish=ireland scottish=scotland spanish=spain greek=greece swiss=switzerland "
    "danish=denmark swedish=sweden polish=poland turkish=turkey us=united,america usa=united,america,us "
    "uk=united,kingdom,britain america=us,usa,united britain=uk,british germany=german france=french spain=spanish "
    "united=us,usa,uk states=us,usa kingdom=uk"
)
_SAME = {
    key_of(name): {key_of(other) for other in others.split(",")}
    for name, others in (entry.split("=") for entry in _PLACES.split())
}


class ReadPassage:
    """A passage, or several joined, read once for all statements that are held against it."""

    def __init__(self, text: str) -> None:
        self.read: Read = text_read(text)

    def has(self, word: Word) -> bool:
        """Tell whether a word stands in it, in whatever form."""
        return word.key in self.read.at or (len(word.key) > 4 and word.key[:4] in self._beginnings)

    def has_name(self, word: Word) -> bool:
        """Tell whether a word of a name stands in it: itself, its people or country, or what its initials are short for."""
        if self.has(word) or not _SAME.get(word.key, set()).isdisjoint(self.read.at):
            return True
        short = word.raw.replace("’", "'").removesuffix("'s").replace(".", "")
        if len(short) > 2 and short.endswith("s") and short[:-1].isupper():
            short = short[:-1]
            if key_of(short) in self.read.at:
                return True
        return short.isupper() and 2 <= len(short) <= 6 and short.lower() in self._initials

    @cached_property
    def sentence_keys(self) -> list[tuple[int, int, set[str]]]:
        """Where its sentences begin and end, and the keys that each has."""
        words = self.read.words
        return [(start, end, {word.key for word in words[start:end]}) for start, end in self.read.sentences]

    @cached_property
    def capitals(self) -> set[str]:
        """Keys that are written with a capital within a sentence."""
        return {word.key for word in self.read.words if word.is_capital and not word.begins}

    @cached_property
    def smalls(self) -> set[str]:
        """Keys that are written without a capital."""
        return {word.key for word in self.read.words if not word.is_capital}

    @cached_property
    def names(self) -> dict[tuple[str, ...], list[Word]]:
        """Its names by their keys: neighbouring words that are always written with a capital."""
        names = self.capitals - self.smalls
        found = runs_of(
            word
            for word in self.read.words
            if word.is_capital
            and word.key in names
            and not word.is_little
            and not word.is_number
            and len(word.raw) > 1
            and word.raw.lower() not in OPENERS
        )
        return {tuple(word.key for word in run): run for run in found}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], int]:
        """How far a word stands behind another one at least, for those that stand near each other."""
        words, found = [word.key for word in self.read.words], {}
        for distance in range(_REACH + 1, 0, -1):
            found.update(dict.fromkeys(zip(words, words[distance:], strict=False), distance))
        return found

    @cached_property
    def _beginnings(self) -> set[str]:
        return {key[:4] for key in self.read.at if len(key) > 4}

    @cached_property
    def _initials(self) -> set[str]:
        return initials_of(self.read, is_capital=True)


def initials_of(read: Read, *, is_capital: bool) -> set[str]:
    """Return what short forms the words of a text could have, in lower case, little words left out.

    Args:
        is_capital: of words that are written with a capital alone.
    """
    found: set[str] = set()
    run = ""
    for word in read.words:
        if word.is_little:
            continue
        run = (run + word.raw[0].lower())[-6:] if word.is_capital or not is_capital else ""
        found |= {run[-length:] for length in range(2, len(run) + 1)}
    return found


def names_in(statement: Read, passage: ReadPassage) -> list[Word]:
    """Return the words of a statement that belong to names; how the passage writes them helps to tell."""
    return [word for word in statement.words if _is_name(word, statement, passage)]


def _is_name(word: Word, statement: Read, passage: ReadPassage) -> bool:
    lower = word.raw.lower()
    if not word.is_capital or word.is_number or word.is_little or len(word.raw) < 2 or lower in TITLES:
        return False
    if word.key in passage.smalls and (word.begins or word.key not in passage.capitals):
        return False
    if not word.begins or word.key in passage.capitals:
        return not word.begins or lower not in OPENERS
    if lower in OPENERS or lower.endswith("ly") or word.key in passage.read.at:
        return False
    after = statement.words[word.place + 1 : word.place + 2]
    if not after:
        return False
    is_alone = after[0].raw in _VERBS_OF_ONE and not lower.endswith(_NOT_OF_NAMES)
    return is_alone or after[0].is_capital


def names_missing(statement: Read, names: Iterable[Word], passage: ReadPassage, around: ReadPassage) -> bool:
    """Tell whether a name stands neither in the passage nor in what is around: question and titles."""
    own = initials_of(statement, is_capital=False)
    return any(
        not passage.has_name(word) and not around.has_name(word)
        for word in names
        if not (word.raw.isupper() and word.raw.lower() in own)
    )


def runs_of(words: Iterable[Word]) -> list[list[Word]]:
    """Join words that stand next to each other with nothing between."""
    runs: list[list[Word]] = []
    for word in words:
        if runs and runs[-1][-1].place + 1 == word.place and not word.is_cut:
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def is_same_name(own: Sequence[Word], other: Sequence[Word]) -> bool:
    """Tell whether one name is a short form or another spelling of the other (“Khloe” and “Khloé”), or no name at all."""
    one, two = _joined(own), _joined(other)
    return len(two) < 2 or one[:_ALIKE] == two[:_ALIKE] or is_short_form(own, other)


def is_short_form(own: Sequence[Word], other: Sequence[Word]) -> bool:
    """Tell whether one of two names is the other's initials: “U.S.”, “CFPs”."""
    short = ["".join(word.raw[0] for word in words if not word.is_little).lower() for words in (own, other)]
    return any(
        _joined(words).removesuffix("s") == initials.removesuffix("s")
        for words, initials in zip((own, other), reversed(short), strict=True)
    )


def _joined(name: Sequence[Word]) -> str:
    return "".join(word.raw for word in name).lower().replace(".", "")


_Sequence = list[tuple[str, bool]]


def others_fit(statement: Read, runs: Sequence[Sequence[Word]], passage: ReadPassage) -> float:
    """Return how much better another name of the passage fits where one of the statement stands, 0 to 1."""
    sequence, best = _sequence(statement.words), 0.0
    for run in runs[:_MOST_OWN]:
        start, end = run[0].place, run[-1].place + 1
        own = neighbours_fit(sequence, start, end, passage)
        for name, words in islice(passage.names.items(), _MOST_OTHERS):
            if statement.at.keys().isdisjoint(name) and not is_same_name(run, words):
                best = max(best, neighbours_fit(sequence, start, end, passage, _sequence(words)) - own)
    return best


def exchange_fits(statement: Read, runs: Sequence[Sequence[Word]], passage: ReadPassage) -> float:
    """Return how much better the statement fits with two of its names, or two numbers, exchanged, 0 to 1."""
    sequence, best = _sequence(statement.words), 0.0
    for index, one in enumerate(runs[:_MOST_OWN]):
        for two in runs[index + 1 : _MOST_OWN]:
            if {word.key for word in one} & {word.key for word in two} or is_short_form(one, two):
                continue
            (a, b), (c, d) = (one[0].place, one[-1].place + 1), (two[0].place, two[-1].place + 1)
            if b < c and all(word.is_capital or word.raw in ("and", "or") for word in statement.words[b:c]):
                continue  # names in a row have no order
            if _is_passive(statement, one, two) != any(
                passage.pairs.get(("by", run[0].key), _REACH) <= _BY for run in (one, two)
            ):
                continue  # one of them speaks in the passive voice
            changed = sequence[:a] + sequence[c:d] + sequence[b:c] + sequence[a:b] + sequence[d:]
            first, last = a + d - c, d - (b - a)
            now = neighbours_fit(sequence, a, b, passage) + neighbours_fit(sequence, c, d, passage)
            then = neighbours_fit(changed, a, first, passage) + neighbours_fit(changed, last, d, passage)
            best = max(best, (then - now) / 2)
    return best


def order_turned(statement: Read, runs: Sequence[Sequence[Word]], passage: ReadPassage) -> float:
    """Return how much two names stand on the wrong side of the words between them, 0 to 1.

    A sentence of the passage decides that has both names once and half of what the statement tells, the nearest one. It
    says nothing where one of the two is in the passive voice, as its names stand the other way round.
    """
    worst = 0.0
    for one, two in combinations(runs[:_MOST_OWN], 2):
        start, end = one[-1].place + 1, two[0].place
        between = [word for word in statement.words[start:end] if not word.is_little]
        if (
            all(word.is_capital for word in between)
            or any(word.begins for word in statement.words[start : end + 1])
            or {word.key for word in one} & {word.key for word in two}
        ):
            continue
        if (nearest := _nearest(statement, one, two, passage)) is None:
            continue
        first, second, once = nearest
        low, high = min(first, second), max(first, second)
        has_by = "by" in {word.key for word in passage.read.words[low:high]}
        if has_by != any(word.key == "by" for word in statement.words[start:end]):
            continue
        places = [once[word.key] for word in between if word.key in once and len(statement.at[word.key]) == 1]
        right = sum((first < place) + (place < second) for place in places)
        wrong = sum((second < place) + (place < first) for place in places)
        worst = max(worst, (wrong - right) / (2 * len(places)) if places else 0.0)
    return worst


def _nearest(
    statement: Read, one: Sequence[Word], two: Sequence[Word], passage: ReadPassage
) -> tuple[int, int, dict[str, int]] | None:
    """Return where both names stand in the sentence that shares most with a statement, and the words it has once."""
    own = {word.key for word in (*one, *two)}
    told = {word.key for word in statement.telling if len(statement.at[word.key]) == 1} - own
    best, most = None, _SHARED * len(told)
    for start, end in passage.read.sentences:
        keys = [word.key for word in passage.read.words[start:end]]
        if (first := _only(keys, one)) is None or (second := _only(keys, two)) is None:
            continue
        counts = Counter(keys)
        once = {key: place for place, key in enumerate(keys, start) if counts[key] == 1}
        shared = len(told & once.keys())
        if shared and shared >= most and (best is None or shared > most):
            best, most = (start + first, start + second, once), shared
    return best


def _only(keys: Sequence[str], run: Sequence[Word]) -> int | None:
    """Return where a name stands among keys, None unless it stands there once."""
    name = [word.key for word in run]
    if name[0] not in keys:
        return None
    found = [n for n in range(len(keys) - len(name) + 1) if keys[n : n + len(name)] == name]
    return found[0] if len(found) == 1 else None


def _is_passive(statement: Read, *runs: Sequence[Word]) -> bool:
    before = (statement.words[max(0, run[0].place - _BY) : run[0].place] for run in runs)
    return any(word.key == "by" for words in before for word in words)


def numbers_fit(statement: Read, passage: ReadPassage) -> float:
    """Return how much better another number of the passage fits where one of the statement stands, 0 to 1."""
    sequence, best = _sequence(statement.words), 0.0
    mine = [[w] for w in statement.words if w.is_number and w.raw[0].isdigit() and w.key in passage.read.at]
    if not mine:
        return 0.0
    mine = mine[:_MOST_OWN]
    others = {w.key for w in passage.read.words if w.is_number and w.raw[0].isdigit()} - statement.at.keys()
    for (word,) in mine:
        own = neighbours_fit(sequence, word.place, word.place + 1, passage)
        for key in sorted(others)[:_MOST_OTHERS]:
            best = max(
                best, neighbours_fit(sequence, word.place, word.place + 1, passage, [(key, False)]) - own
            )
    return max(best, exchange_fits(statement, mine, passage))


def _sequence(words: Iterable[Word]) -> _Sequence:
    return [(word.key, word.is_little) for word in words]


def neighbours_fit(
    sequence: _Sequence, start: int, end: int, passage: ReadPassage, piece: _Sequence | None = None
) -> float:
    """Return the share of neighbours that the passage has in the same order around the same words, near ones counting more.

    Args:
        piece: what to put in place of the words from ``start`` to ``end``.
    """
    first = piece[0][0] if piece else sequence[start][0]
    last = piece[-1][0] if piece else sequence[end - 1][0]
    got = whole = 0.0
    pairs = passage.pairs
    for distance in range(1, _REACH + 1):
        for place, is_left in ((start - distance, True), (end + distance - 1, False)):
            if not 0 <= place < len(sequence):
                continue
            key, is_little = sequence[place]
            weight = (_LITTLE_WEIGHT if is_little else 1.0) * _FADE ** (distance - 1)
            whole += weight
            found = pairs.get((key, first) if is_left else (last, key))
            if found:
                got += weight * _FADE ** abs(found - distance)
    return got / whole if whole else 0.0
