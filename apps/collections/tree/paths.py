"""Paths inside a collection, as people and models write them, taken apart into names that a folder can hold."""

from __future__ import annotations

import unicodedata

from basics.errors import Invalid
from basics.texts import gettext as _

MAX_PATH = 1000
MAX_DEPTH = 60
MAX_NAME_BYTES = 255
# What some system or font reads as a dot, a slash or a backslash: a path that looks like another one is refused.
_LOOKALIKES = frozenset(
    "\u2024\u2025\u2026\u2044\u2215\u29f8\u29f5\u2216\ufe52\ufe68\uff0e\uff0f\uff3c\u3002\uff61"
)


class PathRefused(Invalid):
    """A text is no path inside the collection."""

    def __init__(self, message: str) -> None:
        super().__init__("path_invalid", message, data={"fields": {"path": [message]}})


def path_parts(path: str, *, is_folder: bool = False) -> tuple[str, ...]:
    """Take a relative path apart.

    Nothing is repaired: a path that would have to be read in some other way than it is written is refused. Only the
    Unicode form is settled (NFC), so that one name is one file.

    Args:
        path: names joined by single slashes, such as ``src/main.py``.
        is_folder: "" and "." are the root, and a slash may end it.

    Raises:
        PathRefused: with a sentence that says what is wrong.
    """
    clean = unicodedata.normalize("NFC", path)
    if is_folder:
        clean = clean[:-1] if clean.endswith("/") and clean != "/" else clean
        if clean in ("", "."):
            return ()
    if not clean:
        raise PathRefused(_("Give a path, such as “src/main.py”."))
    if len(clean) > MAX_PATH:
        raise PathRefused(_("A path has at most %(max_path)s characters.") % {"max_path": MAX_PATH})
    if clean.startswith("/") or "\\" in clean:
        raise PathRefused(_("Write the path from the collection's root, with “/” between names."))
    if not clean.isprintable() or not _LOOKALIKES.isdisjoint(clean):
        raise PathRefused(_("The path contains a character that is invisible or looks like another one."))
    parts = tuple(clean.split("/"))
    if len(parts) > MAX_DEPTH:
        raise PathRefused(_("Folders can be at most %(max_depth)s levels deep.") % {"max_depth": MAX_DEPTH})
    for part in parts:
        _name_check(part)
    return parts


def _name_check(name: str) -> None:
    if name in ("", ".", ".."):
        raise PathRefused(_("The path can't contain empty names, “.” or “..”."))
    if name != name.strip() or name.endswith("."):
        raise PathRefused(_("A name can't begin or end with a space, or end with a dot."))
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise PathRefused(_("The path isn't valid text.")) from error
    if size > MAX_NAME_BYTES:
        raise PathRefused(
            _("A name has at most %(max_name_bytes)s bytes.") % {"max_name_bytes": MAX_NAME_BYTES}
        )
