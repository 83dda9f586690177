"""What file tools may touch in a collection: allow and deny patterns, sizes, quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from pathspec import GitIgnoreSpec

from basics.errors import Denied, Invalid
from basics.texts import gettext as _

GIT_FOLDER = ".git"
MAX_PATTERNS = 100
_MAX_PATTERN = 200
# Per number: what an operator's disk and a worker's memory can bear.
RANGES = {
    "max_file_bytes": (1, 50_000_000),
    "max_total_bytes": (1, 50_000_000_000),
    "max_files": (1, 200_000),
}


def pattern_read(pattern: str) -> GitIgnoreSpec:
    """Return what a pattern as in ``.gitignore`` matches. Raises Invalid, ``search_invalid``."""
    try:
        return GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:
        raise Invalid("search_invalid", _("The pattern is invalid: %(error)s.") % {"error": error}) from error


@dataclass(frozen=True)
class FileRules:
    """The rules of one collection.

    Attributes:
        allow: patterns as in ``.gitignore``; when there are some, only paths that match are shown and written.
        deny: patterns of paths that are neither shown nor written, whatever ``allow`` says.
        show_hidden: whether names that begin with a dot are shown and written. ``.git`` never is.
        read_only: whether nothing may be written.
        max_file_bytes: of one file that tools write.
        max_total_bytes: of all files together.
        max_files: how many there may be.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    show_hidden: bool = False
    read_only: bool = False
    max_file_bytes: int = 2_000_000
    max_total_bytes: int = 2_000_000_000
    max_files: int = 50_000

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FileRules:
        """Read rules as ``Collection.file_rules`` holds them; what is absent has its default.

        Raises:
            Invalid: ``file_rules_invalid``, with the fields in ``data``.
        """
        problems: dict[str, list[str]] = {}
        known = {field.name for field in fields(cls)}
        for name in sorted(set(values) - known):
            problems[name] = [_("Unknown rule. Known: %(known)s.") % {"known": ", ".join(sorted(known))}]
        kept = {name: values[name] for name in known & set(values)}
        for name in ("allow", "deny"):
            if name in kept:
                kept[name], problem = _patterns(kept[name])
                if problem:
                    problems[name] = [problem]
        for name in ("show_hidden", "read_only"):
            if name in kept and not isinstance(kept[name], bool):
                problems[name] = [_("Give true or false.")]
        for name, (low, high) in RANGES.items():
            number = kept.get(name, low)
            if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
                problems[name] = [
                    _("Give a whole number from %(low)s to %(high)s.") % {"low": low, "high": high}
                ]
        if problems:
            first, texts = next(iter(problems.items()))
            raise Invalid(
                "file_rules_invalid",
                f"{first}: {texts[0]}",
                data={"fields": problems},
            )
        return cls(**kept)

    def as_json(self) -> dict[str, Any]:
        """Return the rules as ``Collection.file_rules`` holds them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def shows(self, path: str) -> bool:
        """Tell whether a path may be listed, read and searched."""
        return not self._why_hidden(path)

    def check_write(self, path: str, size: int) -> None:
        """Raise unless a file of this size may be written at a path.

        Raises:
            Denied: ``files_read_only`` or ``path_denied``.
            Invalid: ``file_too_large``.
        """
        if self.read_only:
            raise Denied(
                "files_read_only",
                _(
                    "The files of this collection can't be changed: its settings make them read-only (read_only)."
                ),
            )
        if why := self._why_hidden(path):
            raise Denied("path_denied", why % {"path": path}, data={"path": path})
        if size > self.max_file_bytes:
            raise Invalid(
                "file_too_large",
                _(
                    "“%(path)s” would have %(size)s bytes; the limit is %(max_file_bytes)s. Split it, or raise max_file_bytes in the collection's file rules."
                )
                % {"path": path, "size": size, "max_file_bytes": self.max_file_bytes},
                data={"path": path, "max_bytes": self.max_file_bytes},
                status=413,
            )

    def check_quota(self, *, files: int, total_bytes: int) -> None:
        """Raise when all files together would be too many or too large.

        Raises:
            Invalid: ``quota_exceeded`` (413).
        """
        if files > self.max_files or total_bytes > self.max_total_bytes:
            raise Invalid(
                "quota_exceeded",
                _(
                    "The collection would have %(files)s files with %(total_bytes)s bytes; its limits are %(max_files)s files and %(max_total_bytes)s bytes. Delete some first, or raise the limits in its file rules."
                )
                % {
                    "files": files,
                    "total_bytes": total_bytes,
                    "max_files": self.max_files,
                    "max_total_bytes": self.max_total_bytes,
                },
                status=413,
            )

    def _why_hidden(self, path: str) -> str:
        """Return why a path can't be written, a sentence with a place for ``path``; "" where nothing hides it."""
        parts = path.split("/")
        if is_git(path):
            return _("“%(path)s” can't be written: file tools can't change a repository's history.")
        if not self.show_hidden and any(part.startswith(".") for part in parts):
            return _("“%(path)s” can't be written: hidden files are off here (show_hidden).")
        if self.deny and self._deny.match_file(path):
            return _("“%(path)s” can't be written: a deny pattern of the collection matches it.")
        if self.allow and not self._allow.match_file(path):
            return _("“%(path)s” can't be written: no allow pattern of the collection matches it.")
        return ""

    @cached_property
    def _allow(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.allow)

    @cached_property
    def _deny(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.deny)


def is_git(path: str) -> bool:
    """Tell whether a path lies in a repository's own folder, in any spelling some system takes for it."""
    return any(part.rstrip(". ").casefold() == GIT_FOLDER for part in path.split("/"))


def is_hidden(path: str) -> bool:
    """Tell whether a name of the path begins with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def _patterns(value: Any) -> tuple[tuple[str, ...], str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        return (), _("Give a list of patterns.")
    if len(value) > MAX_PATTERNS or any(len(one) > _MAX_PATTERN for one in value):
        text = _("Use at most %(patterns)s patterns of at most %(characters)s characters each.")
        return (), text % {"patterns": MAX_PATTERNS, "characters": _MAX_PATTERN}
    try:
        GitIgnoreSpec.from_lines(value)
    except ValueError as error:
        return (), _("A pattern is invalid: %(error)s.") % {"error": error}
    return tuple(value), ""
