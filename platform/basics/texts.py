"""The texts of this package in the reader's language, though it knows no framework: whoever starts the process lends how.

The functions have the names that ``makemessages`` looks for. Until something is lent, and in programs that use this
package alone, texts stay as they are written, in English.
"""

from __future__ import annotations

from collections.abc import Callable

_gettext: Callable[[str], str] | None = None
_pgettext: Callable[[str, str], str] | None = None


def translations_lend(gettext: Callable[[str], str], pgettext: Callable[[str, str], str]) -> None:
    """Translate by these from now on; at start-up.

    Args:
        gettext: returns a text in the language that is active.
        pgettext: the same for a text with a context, which comes first.
    """
    global _gettext, _pgettext
    _gettext, _pgettext = gettext, pgettext


def gettext(text: str) -> str:
    """Return a text in the language that is active, as it is where nothing was lent."""
    return text if _gettext is None else _gettext(text)


def pgettext(context: str, text: str) -> str:
    """Return a word in the language that is active, as it is meant in a context; as it is where nothing was lent."""
    return text if _pgettext is None else _pgettext(context, text)
