"""Names and texts of a server made safe to show to models and to people."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_NAME_MAX = 64
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_SERVER = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,31}")
# Joiners that emoji and several scripts cannot do without.
_JOINERS = frozenset("\u200c\u200d")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def server_name_is_valid(name: str) -> bool:
    """Tell whether a name can be a prefix: letters, digits, ``-``, at most 32, no ``_`` (it separates)."""
    return _SERVER.fullmatch(name) is not None


def tool_name(server: str, name: str) -> str:
    """Return the name a model sees for a tool: ``<server>__<tool>``.

    What providers do not take, letters of other scripts that look like ASCII ones included, becomes ``_``: a homoglyph
    must not pass as the tool it imitates. A name that is too long ends in a hash of the whole.
    """
    full = f"{server}__{_OTHER.sub('_', name)}"
    if len(full) <= _NAME_MAX:
        return full
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{full[: _NAME_MAX - 9]}_{digest}"


def text_clean(text: str, limit: int) -> str:
    """Take out what a reader cannot see (controls, bidirectional overrides, tag characters, private use), and cut.

    Hidden characters in a tool's description are a known way to give a model orders that no reviewer sees.
    """
    kept = "".join(
        char for char in text if char in "\n\t" or char in _JOINERS or unicodedata.category(char)[0] != "C"
    )
    return kept if len(kept) <= limit else f"{kept[:limit]}… [cut]"


def output_clean(text: str) -> str:
    """Take control characters out of a result; anything else is data and stays."""
    return _CONTROLS.sub("", text)


def name_shown(name: str) -> str:
    """Return a server's own name for a tool in ASCII, so that look-alike letters and controls show."""
    shown = ascii(name)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
