"""Which commits there are, in git's order, and who wrote each line of a file."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from apps.collections.ingestion.git.line_diff import matching_blocks
from apps.collections.ingestion.git.objects import Commit, Objects, Refused
from basics.texts import gettext as _
from basics.texts import number_told

MAX_LINES = 50_000
_MAX_RENAMES = 400  # pairs of files compared for one rename
_SIMILAR = 0.5


def commits(objects: Objects, start: str, path: str = "") -> Iterator[Commit]:
    """Yield commits, newest first; with a path only those that changed it, as ``git log -- path`` simplifies history.

    A commit whose file is as in one of its parents is left out, and only that parent is followed: branches that did not
    matter for the file are not looked at.
    """
    parts = path.encode().split(b"/") if path else []
    number = count()
    seen = {start}
    waiting = [(-objects.commit(start).time, next(number), start)]
    while waiting:
        *_age, sha = heapq.heappop(waiting)
        commit = objects.commit(sha)
        parents = [parent for parent in commit.parents if objects.holds(parent)]
        is_shown = True
        if parts:
            here = objects.at(commit.tree, parts)
            same = next((p for p in parents if objects.at(objects.commit(p).tree, parts) == here), None)
            is_shown = same is None and (bool(parents) or here is not None)
            parents = parents if same is None else [same]
        for parent in parents:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(waiting, (-objects.commit(parent).time, next(number), parent))
        if is_shown:
            yield commit


@dataclass(slots=True)
class _Suspect:
    """A file of a commit that may have brought lines: (place in the final file, line here) of each."""

    commit: str
    path: bytes
    sha: str
    lines: list[tuple[int, int]]


def blame(objects: Objects, start: str, path: str) -> tuple[list[bytes], list[tuple[str, str]]]:
    """Return the lines of a file, and for each the commit that brought it and the file's path there.

    Lines go back to a parent as long as the parent's file has them too; a file that a parent has not is looked for among
    those that the commit removed (a rename).

    Raises:
        Refused: there is no such file, or it has too many lines.
    """
    found = objects.at(objects.commit(start).tree, path.encode().split(b"/"))
    if found is None or found[0] & 0o170000 != 0o100000:
        raise Refused(_("That commit has no file “%(path)s”.") % {"path": path})
    lines = _lines(objects.blob(found[1]))
    if len(lines) > MAX_LINES:
        raise Refused(
            _("Blame isn't available for files with more than %(lines)s lines.")
            % {"lines": number_told(MAX_LINES)}
        )
    answer: list[tuple[str, str]] = [("", "")] * len(lines)
    first = _Suspect(start, path.encode(), found[1], [(n, n) for n in range(len(lines))])
    suspects = {(start, path.encode()): first}
    number = count()
    waiting = [(-objects.commit(start).time, next(number), (start, path.encode()))]
    while waiting:
        suspect = suspects.pop(heapq.heappop(waiting)[2], None)
        if suspect is None or not suspect.lines:
            continue
        for origin in _origins(objects, suspect):
            key = (origin.commit, origin.path)
            if key in suspects:
                suspects[key].lines += origin.lines
            else:
                suspects[key] = origin
            heapq.heappush(waiting, (-objects.commit(origin.commit).time, next(number), key))
        for place, _line in suspect.lines:
            answer[place] = (suspect.commit, suspect.path.decode("utf-8", "replace"))
    return lines, answer


def _origins(objects: Objects, suspect: _Suspect) -> Iterator[_Suspect]:
    """Yield what parents have of a suspect's lines, and take those from it."""
    commit = objects.commit(suspect.commit)
    parts = suspect.path.split(b"/")
    files: list[tuple[str, bytes, str]] = []
    for parent in commit.parents:
        if not objects.holds(parent):
            continue
        tree = objects.commit(parent).tree
        at = objects.at(tree, parts)
        if at is not None and at[0] & 0o170000 == 0o100000:
            files.append((parent, suspect.path, at[1]))
        elif (renamed := _renamed_from(objects, tree, commit.tree, suspect)) is not None:
            files.append((parent, *renamed))
    for parent, path, sha in files:
        if sha == suspect.sha:
            lines, suspect.lines = suspect.lines, []
            yield _Suspect(parent, path, sha, lines)
            return
    here = _lines(objects.blob(suspect.sha)) if files else []
    for parent, path, sha in files:
        came = _mapped(_lines(objects.blob(sha)), here)
        passed = [(place, came[line]) for place, line in suspect.lines if line in came]
        if passed:
            suspect.lines = [one for one in suspect.lines if one[1] not in came]
            yield _Suspect(parent, path, sha, passed)


def _mapped(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    """Return for each line of the new text that the old one has, its number there."""
    return {b + step: a + step for a, b, size in matching_blocks(old, new) for step in range(size)}


def _renamed_from(objects: Objects, old: str, new: str, suspect: _Suspect) -> tuple[bytes, str] | None:
    """Return the file that a commit moved to where the suspect is: the same bytes, or the most alike, half at least."""
    gone = [
        (path, before)
        for path, before, after in objects.changes(old, new)
        if before is not None and after is None
    ]
    for path, before in gone:
        if before == suspect.sha:
            return path.encode(), before
    if not gone or len(gone) > _MAX_RENAMES:
        return None
    content = objects.blob(suspect.sha)
    pieces = _pieces(content)
    best: tuple[float, str, str] | None = None
    for path, before in gone:
        other = objects.blob(before)
        large = max(len(content), len(other))
        if not large or min(len(content), len(other)) < large * _SIMILAR:
            continue
        alike = sum((pieces & _pieces(other)).values()) / large
        if alike >= _SIMILAR and (best is None or alike > best[0]):
            best = (alike, path, before)
    return None if best is None else (best[1].encode(), best[2])


def _pieces(content: bytes) -> Counter[bytes]:
    """Count the bytes of each different line, long ones cut to pieces of 64."""
    found: Counter[bytes] = Counter()
    for line in _lines(content):
        for start in range(0, len(line), 64):
            piece = line[start : start + 64]
            found[piece] += len(piece)
    return found


def _lines(content: bytes) -> list[bytes]:
    """Cut at line feeds alone, each kept with its line."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])
