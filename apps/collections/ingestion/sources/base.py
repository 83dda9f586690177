"""What every source yields: entries with their bytes, and the problems of what cannot be one. Nothing is left out in silence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from basics.errors import DomainError
from basics.texts import gettext as _

BLOCK = 64 * 1024
_RATIO_FLOOR = 20_000_000  # small archives of regular text may pack well; below this nobody is harmed
_DRIVE = re.compile(r"^[A-Za-z]:")


class Reason(StrEnum):
    """Why something of a source became no document; stable codes."""

    HIDDEN = "hidden"
    IGNORED = "ignored"
    EXCLUDED = "excluded"
    BINARY = "binary"
    EMPTY = "empty"
    UNSUPPORTED = "unsupported_type"
    UNSAFE_PATH = "unsafe_path"
    BAD_NAME = "bad_name"
    LINK = "link"
    SPECIAL = "special_file"
    ENCRYPTED = "encrypted"
    DUPLICATE = "duplicate_name"
    DAMAGED = "damaged"
    TOO_LARGE = "too_large"
    BOMB = "bomb"
    OVERLAP = "overlapping_entries"
    TOO_DEEP = "nested_too_deep"
    SUBMODULE = "submodule"
    LFS = "lfs_pointer"
    UNCOMMITTED = "uncommitted"
    HISTORY = "history"
    UNREADABLE = "unreadable"
    CHANGED = "changed_while_read"
    ADDRESS = "address_refused"
    FETCH = "fetch_failed"
    REFUSED = "refused"
    NO_TEXT = "no_text"


SKIPS = frozenset(
    {Reason.HIDDEN, Reason.IGNORED, Reason.EXCLUDED, Reason.BINARY, Reason.EMPTY, Reason.UNSUPPORTED}
)
"""Left out by a rule, as expected; all other reasons are problems that somebody should look at."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a source that became no document.

    Attributes:
        path: where it is in the source, fit to be shown and stored.
        reason: a code.
        message: what happened and what to do, in a sentence.
        count: how many entries it stands for (a folder that is left out as a whole).
    """

    path: str
    reason: Reason
    message: str
    count: int = 1

    @property
    def is_skip(self) -> bool:
        """Tell whether a rule left it out, as expected."""
        return self.reason in SKIPS


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a source. Its bytes can be read until the next one is asked for.

    Attributes:
        path: relative, with single slashes, safe to be a document's path.
        read: gives the bytes in pieces; raises EntryFailure when they cannot be had.
        facts: what else is known, JSON-serialisable (a web page's address, say).
    """

    path: str
    read: Callable[[], Iterator[bytes]]
    facts: dict[str, str] = field(default_factory=dict)


Item = Entry | Problem


class EntryFailure(Exception):
    """One entry cannot be read; the source goes on."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class SourceFailure(DomainError):
    """The source cannot be read, or not any further."""

    default_status = 422


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """What one import may bring.

    Attributes:
        max_entries: files and folders, left out ones included.
        max_bytes: unpacked, in all.
        max_file_bytes: unpacked, of one file.
        max_ratio: unpacked to packed bytes of an archive.
        max_depth: archives inside archives; 0 opens none.
        scratch: folder for temporary files, "" for the system's.
    """

    max_entries: int = 50_000
    max_bytes: int = 4_000_000_000
    max_file_bytes: int = 200_000_000
    max_ratio: int = 200
    max_depth: int = 2
    scratch: str = ""


@dataclass(slots=True)
class Budget:
    """What of the limits is used; shared by an archive and those inside it."""

    limits: SourceLimits
    entries: int = 0
    bytes: int = 0

    def count(self) -> None:
        """Note one more entry. Raises SourceFailure beyond the limit."""
        self.entries += 1
        if self.entries > self.limits.max_entries:
            raise SourceFailure(
                "too_many_entries",
                _(
                    "There are more than %(max_entries)s entries. What was imported so far is kept; import "
                    "parts of it, or ask the operator to raise GROUNDWORK_IMPORT_MAX_FILES."
                )
                % {"max_entries": self.limits.max_entries},
            )

    def take(self, size: int, of_file: int, packed: int | None = None) -> None:
        """Note unpacked bytes.

        Args:
            size: of this piece.
            of_file: of this file so far, this piece included.
            packed: what they were unpacked from, where that is known.

        Raises:
            EntryFailure: the file is too large or a bomb.
            SourceFailure: all files together are too large.
        """
        self.bytes += size
        if self.bytes > self.limits.max_bytes:
            raise SourceFailure(
                "too_large",
                _(
                    "Unpacked, it has more than %(max_bytes)s MB. What was imported so far is kept; import "
                    "parts of it, or ask the operator to raise GROUNDWORK_IMPORT_MAX_MB."
                )
                % {"max_bytes": self.limits.max_bytes // 1000000},
                status=413,
            )
        if of_file > self.limits.max_file_bytes:
            raise EntryFailure(
                Reason.TOO_LARGE,
                _("The file has more than %(max_file_bytes)s MB, the limit for one file.")
                % {"max_file_bytes": self.limits.max_file_bytes // 1000000},
            )
        if packed is not None and of_file > max(_RATIO_FLOOR, self.limits.max_ratio * packed):
            raise EntryFailure(
                Reason.BOMB,
                _("It unpacks to more than %(max_ratio)s times its size, as malicious archives do.")
                % {"max_ratio": self.limits.max_ratio},
            )


def shown(name: str) -> str:
    """Return a name that can be stored and shown: no control characters, no half characters, not too long."""
    clean = name.encode("utf-8", "replace").decode("utf-8")
    clean = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in clean)
    return clean if len(clean) <= 300 else f"{clean[:297]}…"


def safe_path(name: str) -> str | Problem:
    """Return an entry's name as a relative path, or the problem with it.

    Backslashes separate folders too: archives made on Windows have them, and no system should be led out by one.
    """
    unified = unicodedata.normalize("NFC", name.replace("\\", "/"))
    parts = [part for part in unified.split("/") if part not in ("", ".")]
    if unified.startswith("/") or ".." in parts or _DRIVE.match(unified):
        return Problem(
            shown(name),
            Reason.UNSAFE_PATH,
            _(
                "The name points outside the source (absolute, with a drive letter or with “..”), so it "
                "was left out."
            ),
        )
    too_long = len(unified) > 900 or any(len(part) > 255 for part in parts)
    if not parts or too_long or not all(ch.isprintable() for ch in unified):
        return Problem(
            shown(name),
            Reason.BAD_NAME,
            _(
                "The name is empty, too long, or holds control characters or characters that cannot be "
                "decoded."
            ),
        )
    return "/".join(parts)


_IGNORED_FOLDERS = frozenset(
    {"node_modules", "__pycache__", "__MACOSX", "venv", "bower_components", "site-packages"}
    | {".git", ".hg", ".svn", ".bzr"}
)
_IGNORED_FILES = frozenset({"thumbs.db", "desktop.ini"})

_BINARY_SUFFIXES = frozenset(
    """
        .7z .a .aac .apk .avi .bin .bmp .bz2 .class .db .deb .dll .dmg .dylib .ear .eot .exe .flac .gif .gz
        .heic .ico .img .iso .jar .jpeg .jpg .ko .lib .lz4 .m4a .mkv .mov .mp3 .mp4 .mpeg .msi .npy .npz .o
        .obj .ogg .onnx .otf .parquet .pdb .pickle .pkl .png .psd .pyc .pyd .pyo .rar .rpm .safetensors .so
        .sqlite .sqlite3 .swf .tif .tiff .ttf .war .wasm .wav .webm .webp .whl .wmv .woff .woff2 .xz .zst
    """.split()
)


class Rules:
    """Which files of a source are wanted.

    Args:
        include: patterns as in .gitignore; where given, only files that match one are taken.
        exclude: patterns as in .gitignore, left out.
        with_hidden: take files and folders whose names begin with a dot (never those of version control).
        with_binary: take files whose names say that they contain no text.
        ignored: paths that the repository which they lie in leaves out.
    """

    def __init__(
        self,
        *,
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
        with_hidden: bool = False,
        with_binary: bool = False,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self._ignored = ignored
        self._given: dict[str, Any] = {
            "include": include,
            "exclude": exclude,
            "with_hidden": with_hidden,
            "with_binary": with_binary,
        }
        # Not at the top: whatever reads a document loads this module for its errors, in a process that knows no patterns.
        from pathspec import GitIgnoreSpec

        self._include = GitIgnoreSpec.from_lines(include) if include else None
        self._exclude = GitIgnoreSpec.from_lines(exclude) if exclude else None
        self._with_hidden, self._with_binary = with_hidden, with_binary

    def without(self, ignored: frozenset[str]) -> Rules:
        """Return the same rules, and these paths left out."""
        return Rules(**self._given, ignored=self._ignored | ignored)

    def folder_refusal(self, path: str) -> Problem | None:
        """Return why a folder is left out with all that is in it, None when it is not."""
        name = PurePosixPath(path).name
        if name in _IGNORED_FOLDERS:
            return Problem(
                shown(f"{path}/"),
                Reason.IGNORED,
                _("Folders with this name don't contain documents of your own."),
            )
        if name.startswith(".") and not self._with_hidden:
            return Problem(shown(f"{path}/"), Reason.HIDDEN, _("Its name begins with a dot."))
        if self._exclude is not None and self._exclude.match_file(f"{path}/"):
            return Problem(shown(f"{path}/"), Reason.EXCLUDED, _("It matches an exclude pattern."))
        return None

    def file_refusal(self, path: str) -> Problem | None:
        """Return why a file is left out, judging its own name only, None when it is not."""
        pure = PurePosixPath(path)
        name = pure.name.lower()
        if path in self._ignored:
            return Problem(shown(path), Reason.IGNORED, _("The repository's .gitignore leaves it out."))
        if name in _IGNORED_FILES or pure.name.startswith("._"):
            return Problem(shown(path), Reason.IGNORED, _("It is a helper file of the operating system."))
        if name.startswith(".") and not self._with_hidden:
            return Problem(shown(path), Reason.HIDDEN, _("Its name begins with a dot."))
        if self._exclude is not None and self._exclude.match_file(path):
            return Problem(shown(path), Reason.EXCLUDED, _("It matches an exclude pattern."))
        if self._include is not None and not self._include.match_file(path):
            return Problem(shown(path), Reason.EXCLUDED, _("It matches no include pattern."))
        if pure.suffix.lower() in _BINARY_SUFFIXES and not self._with_binary:
            return Problem(
                shown(path),
                Reason.BINARY,
                _("Files of the type %(lower)s contain no text.") % {"lower": pure.suffix.lower()},
            )
        return None


class FolderTally:
    """Applies rules to paths that come in any order, and says once per left-out folder how much it held."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[str, Problem | None] = {"": None}
        self._counts: dict[str, int] = {}

    def refusal(self, path: str) -> tuple[Problem | None, bool]:
        """Return why a file is left out, and whether that was its folder's fault, which ``folders`` tells later."""
        parent, _, _ = path.rpartition("/")
        problem = self._folder(parent)
        if problem is not None:
            self._counts[problem.path] = self._counts.get(problem.path, 0) + 1
            return problem, True
        return self._rules.file_refusal(path), False

    def _folder(self, path: str) -> Problem | None:
        if path not in self._known:
            parent, _, _ = path.rpartition("/")
            self._known[path] = self._folder(parent) or self._rules.folder_refusal(path)
        return self._known[path]

    def folders(self) -> Iterator[Problem]:
        """Yield the folders that were left out, each with the number of its files."""
        told: set[str] = set()
        for problem in self._known.values():
            if problem is not None and problem.path in self._counts and problem.path not in told:
                told.add(problem.path)
                count = self._counts[problem.path]
                yield Problem(problem.path, problem.reason, problem.message, count)
