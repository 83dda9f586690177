"""Lines of Arabic and Hebrew as they are drawn: letters joined, and in the order of the eye. For a PDF, which has neither.

Joined forms are those that Unicode names, so any font with them will do. The order is that of the Unicode bidirectional algorithm for one
level: what runs the other way is turned as a whole, numbers and Latin words keep their order, signs go with what stands around them.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from unicodedata import bidirectional, category, decomposition

_FORMS = ((0xFB50, 0xFDFB), (0xFE80, 0xFEFC))
_MIRRORED = {**dict(zip("([{<«‹", ")]}>»›", strict=True)), **dict(zip(")]}>»›", "([{<«‹", strict=True))}
MARKS = (0xE100, 0xF8FF)
"""Characters that stand for something else, a reference to a footnote: they keep their place among the words around them."""


def joined(text: str) -> str:
    """Return a text with each Arabic letter in the form that its neighbours give it."""
    forms = _forms()
    letters = list(text)
    found: list[str] = []
    place = 0
    while place < len(letters):
        letter = letters[place]
        after = place + 1
        pair = letter + letters[after] if after < len(letters) else ""
        name, step = (pair, 2) if pair in forms else (letter, 1)
        if name not in forms:
            found.append(letter)
            place += 1
            continue
        before = _neighbour(letters, place, -1)
        behind = _neighbour(letters, place + step - 1, 1)
        is_bound = "medial" in forms.get(before, {}) and "final" in forms[name]
        goes_on = "initial" in forms[name] and "final" in forms.get(behind, {})
        kind = {(True, True): "medial", (True, False): "final", (False, True): "initial"}.get(
            (is_bound, goes_on), "isolated"
        )
        found.append(forms[name].get(kind, letter))
        place += step
    return "".join(found)


def seen(line: str, is_turned: bool) -> str:
    """Return a line in the order in which it is drawn, from the left.

    Args:
        is_turned: whether it runs from right to left as a whole.
    """
    clusters: list[str] = []
    for character in line:
        if clusters and category(character) == "Mn":
            clusters[-1] += character
        else:
            clusters.append(character)
    kinds = _resolved([_kind(each[0]) for each in clusters], is_turned)
    pairs = list(zip(kinds, clusters, strict=True))
    if is_turned:
        return _turned(pairs)
    groups = groupby(pairs, key=lambda pair: pair[0] != "L")
    return "".join(
        _turned(list(group)) if is_right else "".join(each for _, each in group) for is_right, group in groups
    )


def _turned(pairs: list[tuple[str, str]]) -> str:
    """Return clusters from the last to the first, but numbers and Latin words as they are."""
    parts: list[str] = []
    for is_right, group in groupby(reversed(pairs), key=lambda pair: pair[0] == "R"):
        stretch = [each for _, each in group]
        parts += [_MIRRORED.get(each, each) for each in stretch] if is_right else reversed(stretch)
    return "".join(parts)


def has_right_to_left(text: str) -> bool:
    """Tell whether any letter of a text runs from right to left."""
    return any(bidirectional(character) in ("R", "AL") for character in text)


def _kind(character: str) -> str:
    if MARKS[0] <= ord(character) <= MARKS[1]:
        return "N"
    kind = bidirectional(character)
    return {"R": "R", "AL": "R", "L": "L", "EN": "E", "AN": "E"}.get(kind, "N")


def _resolved(kinds: list[str], is_turned: bool) -> list[str]:
    """Give signs and spaces the direction of what stands on both sides of them, otherwise that of the line.

    A number behind a Latin word belongs to it; any other one (``E``) counts as part of what runs from right to left, though its digits don't.
    """
    base = "R" if is_turned else "L"
    found, place, strong = list(kinds), 0, base
    for index, kind in enumerate(kinds):
        if kind == "E" and strong == "L":
            found[index] = "L"
        strong = kind if kind in "LR" else strong
    while place < len(found):
        if found[place] != "N":
            place += 1
            continue
        end = place
        while end < len(found) and found[end] == "N":
            end += 1
        before = found[place - 1].replace("E", "R") if place else base
        behind = found[end].replace("E", "R") if end < len(found) else base
        # A point or a comma inside of a number is part of it.
        is_inside = end == place + 1 and place and end < len(found) and found[place - 1] == found[end] == "E"
        found[place:end] = ["E"] if is_inside else [before if before == behind else base] * (end - place)
        place = end
    return found


def _neighbour(letters: list[str], place: int, step: int) -> str:
    place += step
    while 0 <= place < len(letters) and category(letters[place]) == "Mn":
        place += step
    return letters[place] if 0 <= place < len(letters) else ""


@cache
def _forms() -> dict[str, dict[str, str]]:
    """Return the forms of each letter, and of lam with alef, by "isolated", "final", "initial" and "medial"."""
    found: dict[str, dict[str, str]] = {}
    for first, last in _FORMS:
        for code in range(first, last + 1):
            kind, _, rest = decomposition(chr(code)).partition("> ")
            letters = "".join(chr(int(each, 16)) for each in rest.split())
            is_ligature = (
                len(letters) == 2 and letters[0] == "\u0644" and letters[1] in "\u0622\u0623\u0625\u0627"
            )
            if kind.startswith("<") and (len(letters) == 1 or is_ligature):
                found.setdefault(letters, {}).setdefault(kind[1:], chr(code))
    return found
