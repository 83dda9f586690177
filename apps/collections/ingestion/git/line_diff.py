"""Lines that two texts have in common: the shortest edit script (Myers, 1986), each change set where people expect it.

What is equal at both ends is set aside first. A change that could stand a few lines higher or lower, as an inserted
function between two blank lines can, goes where git puts it: beside a change of the other text, else as low as it can.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_MAX_EDITS = 3000  # beyond it the search costs seconds, and its answer says little

Block = tuple[int, int, int]


def matching_blocks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Block]:
    """Return (start in old, start in new, number of lines) of what both have, in order.

    The algorithm is that of E. Myers, An O(ND) Difference Algorithm and Its Variations, Algorithmica 1 (1986), pages
    251 to 266, with a limit on edits; past it, longest common runs (``difflib``).
    """
    gone, came = changed_lines(old, new)
    blocks: list[Block] = []
    a = b = 0
    while a < len(old) or b < len(new):
        while a < len(old) and gone[a]:
            a += 1
        while b < len(new) and came[b]:
            b += 1
        size = 0
        while a + size < len(old) and not gone[a + size] and not came[b + size]:
            size += 1
        if size:
            blocks.append((a, b, size))
        a, b = a + size, b + size
    return blocks


def changed_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[bytearray, bytearray]:
    """Return for each line of both texts whether it is in one of them only."""
    names: dict[bytes, int] = {}
    a = [names.setdefault(line, len(names)) for line in old]
    b = [names.setdefault(line, len(names)) for line in new]
    gone, came = bytearray(len(a)), bytearray(len(b))
    low, shorter = 0, min(len(a), len(b))
    while low < shorter and a[low] == b[low]:
        low += 1
    high = 0
    while high < shorter - low and a[-1 - high] == b[-1 - high]:
        high += 1
    inner_a, inner_b = a[low : len(a) - high], b[low : len(b) - high]
    if not inner_a or not inner_b:
        gone[low : len(a) - high] = b"\1" * len(inner_a)
        came[low : len(b) - high] = b"\1" * len(inner_b)
    else:
        _mark(inner_a, inner_b, gone, came, low)
    _settle(a, gone, came)
    _settle(b, came, gone)
    return gone, came


def _mark(a: list[int], b: list[int], gone: bytearray, came: bytearray, low: int) -> None:
    """Mark what a shortest edit script removes and adds."""
    # Lines that the other side has nowhere are changes for sure, and the search is shorter without them.
    in_a, in_b = set(a), set(b)
    for place, line in enumerate(a):
        gone[low + place] = line not in in_b
    for place, line in enumerate(b):
        came[low + place] = line not in in_a
    places_a = [place for place, line in enumerate(a) if line in in_b]
    places_b = [place for place, line in enumerate(b) if line in in_a]
    kept_a, kept_b = [a[place] for place in places_a], [b[place] for place in places_b]
    common = _common(kept_a, kept_b)
    for place in set(range(len(kept_a))) - {x for x, _ in common}:
        gone[low + places_a[place]] = 1
    for place in set(range(len(kept_b))) - {y for _, y in common}:
        came[low + places_b[place]] = 1


def _common(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Return the pairs of a longest common subsequence."""
    trace: list[dict[int, int]] = []
    furthest = {1: 0}
    for edits in range(min(len(a) + len(b), _MAX_EDITS) + 1):
        trace.append(dict(furthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= len(a) and y >= len(b):
                return _walked_back(trace, a, b)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [(x + n, y + n) for x, y, size in matcher.get_matching_blocks() for n in range(size)]


def _walked_back(trace: list[dict[int, int]], a: list[int], b: list[int]) -> list[tuple[int, int]]:
    x, y = len(a), len(b)
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest = trace[edits]
        k = x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        from_x = furthest[k + 1] if down else furthest[k - 1]
        from_y = from_x - (k + 1 if down else k - 1)
        while x > from_x and y > from_y and x > 0 and y > 0 and a[x - 1] == b[y - 1]:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs[::-1]


def _settle(lines: list[int], changed: bytearray, other: bytearray) -> None:
    """Move each run of changed lines to where it belongs, joining runs that meet."""
    beside = _gaps(other)
    at = unchanged = 0
    while at < len(lines):
        if not changed[at]:
            at, unchanged = at + 1, unchanged + 1
            continue
        start = at
        while at < len(lines) and changed[at]:
            at += 1
        at, unchanged = _slide(lines, changed, beside, start, at, unchanged)


def _gaps(changed: bytearray) -> list[bool]:
    """Return for each number of unchanged lines whether changed ones come right after so many."""
    gaps = [False]
    for one in changed:
        if one:
            gaps[-1] = True
        else:
            gaps.append(False)
    return gaps


def _slide(
    lines: list[int], changed: bytearray, beside: list[bool], start: int, stop: int, unchanged: int
) -> tuple[int, int]:
    """Put a run where it is best; return its end there and the number of unchanged lines before it."""
    meets = -1
    size = 0
    while size != stop - start:  # runs that it met on the way go along, and may let it go further
        size, meets = stop - start, -1
        while start > 0 and lines[start - 1] == lines[stop - 1]:  # as high as it can
            start, stop, unchanged = start - 1, stop - 1, unchanged - 1
            changed[start], changed[stop] = 1, 0
            while start > 0 and changed[start - 1]:
                start -= 1
        if beside[unchanged]:
            meets = stop
        while stop < len(lines) and lines[start] == lines[stop]:  # as low as it can
            changed[start], changed[stop] = 0, 1
            start, stop, unchanged = start + 1, stop + 1, unchanged + 1
            while stop < len(lines) and changed[stop]:
                stop += 1
            if beside[unchanged]:
                meets = stop
    while meets != -1 and not beside[unchanged]:
        start, stop, unchanged = start - 1, stop - 1, unchanged - 1
        changed[start], changed[stop] = 1, 0
    return stop, unchanged
