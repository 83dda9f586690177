"""Search in files: by text, by name, by regular expression, with a limit on the time it may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import regex

from apps.collections.files.selectors import files_visible
from apps.collections.models import Collection
from apps.collections.tree.paths import path_parts
from apps.collections.tree.rules import pattern_read
from apps.collections.tree.store import StoredFile, file_bytes
from apps.collections.tree.text import file_text
from basics.errors import Invalid
from basics.patterns import pattern_compile
from basics.texts import gettext as _
from tenancy.actors import Actor

Kind = Literal["text", "name", "regex"]
SEARCH_S = 5.0
MAX_PATTERN = 500
PAGE = 50
MAX_PAGE = 200
MAX_OFFSET = 10_000
_MAX_BYTES = 5_000_000
_MAX_LINE = 400


@dataclass(frozen=True, slots=True)
class FileMatch:
    """A line that matches, or a file whose name does (``line`` is 0 then)."""

    path: str
    line: int = 0
    column: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class FileMatches:
    """A page of matches.

    Attributes:
        next_offset: where the next page begins, None at the end.
        files_searched: how many files were read for this page and those before.
        note: a sentence when something was left out: time over, files too large.
    """

    matches: list[FileMatch]
    next_offset: int | None
    files_searched: int
    note: str


def search_files(
    *,
    actor: Actor,
    collection: Collection,
    query: str,
    kind: Kind = "text",
    folder: str = "",
    names: str = "",
    is_case_sensitive: bool = False,
    offset: int = 0,
    limit: int = PAGE,
    seconds: float = SEARCH_S,
) -> FileMatches:
    """Find lines or files.

    Args:
        query: a text; for "name" a pattern as in ``.gitignore`` such as ``*.py``; for "regex" a regular expression.
        folder: only below it.
        names: only files that match this pattern.
        offset: matches to leave out: ``next_offset`` of the page before.
        seconds: the search ends after this time and says so.

    Raises:
        Invalid: ``search_invalid`` for a pattern that cannot be read or is too long.
    """
    folder = "/".join(path_parts(folder, is_folder=True))
    if not query or len(query) > MAX_PATTERN or "\0" in query:
        raise Invalid(
            "search_invalid",
            _("Give a query of 1 to %(max_pattern)s characters.") % {"max_pattern": MAX_PATTERN},
        )
    if not 0 <= offset <= MAX_OFFSET or not 1 <= limit <= MAX_PAGE:
        raise Invalid(
            "search_invalid",
            _("offset can be at most %(max_offset)s, and limit at most %(max_page)s.")
            % {"max_offset": MAX_OFFSET, "max_page": MAX_PAGE},
        )
    files = files_visible(actor=actor, collection=collection, folder=folder)
    if names:
        files = {path: file for path, file in files.items() if pattern_read(names).match_file(path)}
    if kind == "name":
        chosen = [FileMatch(path) for path in files if pattern_read(query).match_file(path)]
        page = chosen[offset : offset + limit]
        more = offset + limit if offset + limit < len(chosen) else None
        return FileMatches(page, more, len(files), "")
    finder = _finder(query, kind, is_case_sensitive)
    return _Search(collection, actor, finder, seconds).page(files, offset, limit)


def _finder(query: str, kind: Kind, is_case_sensitive: bool) -> Callable[[str, float], Iterator[Any]]:
    flags = regex.MULTILINE | (0 if is_case_sensitive else regex.IGNORECASE)
    try:
        if kind == "text":
            pattern = regex.compile(regex.escape(query), flags)
        else:
            pattern = pattern_compile(query, flags)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise Invalid(
            "search_invalid", _("The regular expression is invalid: %(error)s.") % {"error": error}
        ) from error
    return lambda text, seconds: pattern.finditer(text, timeout=seconds)


class _Search:
    """One search over many files, until the page is full or the time is over."""

    def __init__(
        self,
        collection: Collection,
        actor: Actor,
        finder: Callable[[str, float], Iterator[Any]],
        seconds: float,
    ) -> None:
        self._collection, self._actor, self._finder = collection, actor, finder
        self._end = time.monotonic() + seconds
        self._large = 0

    def page(self, files: dict[str, StoredFile], offset: int, limit: int) -> FileMatches:
        """Return one page; a match more than it holds tells that there is another."""
        found: list[FileMatch] = []
        seen = searched = 0
        is_late = False
        for file in files.values():
            searched += 1
            try:
                for match in self._matches(file):
                    seen += 1
                    if seen > offset:
                        found.append(match)
                    if len(found) > limit:
                        break
            except TimeoutError:
                is_late = True
            if is_late or len(found) > limit:
                break
        more = offset + limit if len(found) > limit else None
        notes = []
        if is_late:
            notes.append(
                _(
                    "The search ran out of time after %(searched)s of %(count)s files. Search in a folder, "
                    "or for something simpler."
                )
                % {"searched": searched, "count": len(files)}
            )
        if self._large:
            notes.append(_("%(count)s files are too large to be searched.") % {"count": self._large})
        return FileMatches(found[:limit], more, searched, " ".join(notes))

    def _matches(self, file: StoredFile) -> Iterator[FileMatch]:
        if time.monotonic() > self._end:
            raise TimeoutError
        if file.size > _MAX_BYTES:
            self._large += 1
            return
        text = file_text(file_bytes(self._collection.pk, self._actor.tenant_id, file))
        if text is None:
            return
        line, start, last = 1, 0, 0
        for match in self._finder(text.text, max(0.01, self._end - time.monotonic())):
            line += text.text.count("\n", last, match.start())
            last = match.start()
            start = text.text.rfind("\n", 0, match.start()) + 1
            end = text.text.find("\n", match.start())
            shown = text.text[start : end if end >= 0 else None]
            yield FileMatch(file.path, line, match.start() - start + 1, shown[:_MAX_LINE])
