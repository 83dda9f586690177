"""The texts of this package in the reader's language, though it knows no framework: whoever starts the process lends how.

The functions have the names that ``makemessages`` looks for. Until something is lent, and in programs that use this
package alone, texts stay as they are written, in English.

They return ``Told``: a text that also knows its English with its values marked, which is what a row keeps of it. Whoever
shows the row later asks ``told`` for it in their own language, which need not be the language of whoever caused it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from decimal import Decimal

_VALUE, _TEXT, _END = "\u2068", "\u2066", "\u2069"
"""Around a value (Unicode's FIRST STRONG ISOLATE), around a text of ours as a value (LEFT-TO-RIGHT ISOLATE), and after both."""
_HOLE = _VALUE + _END
MARKS = _VALUE + _TEXT + _END
_MARKS = re.compile(f"[{MARKS}]")
_UNSTORABLE = re.compile(r"[\x00\u2066-\u2069\ud800-\udfff]")
_PLAIN_VALUE = re.compile(f"{_VALUE}([^{_VALUE}{_TEXT}{_END}]*){_END}")
_LEAST = 24
"""Characters that a cut value keeps at least: no number is longer, so that none is ever cut to another one."""
_NUMBER = re.compile(r"[-−+$]?\d{1,3}(?:,?\d{3})*(?:\.\d+)?")
_PLACEHOLDER = re.compile(r"%\((\w+)\)([-+ #0]*\d*(?:\.\d+)?[a-zA-Z])|%%")


class Translations(Protocol):
    """What is lent: the functions of gettext in the language that is active, and what there is to translate."""

    def language(self) -> str:
        """Return the code of the language that is active."""

    def gettext(self, text: str) -> str:
        """Return a text in it."""

    def ngettext(self, one: str, other: str, number: int) -> str:
        """Return the form of a text that a number takes in it."""

    def pgettext(self, context: str, text: str) -> str:
        """Return a text as it is meant in a context."""

    def number(self, text: str) -> str:
        """Return a number that is written in English, as the active language writes it."""

    def entries(self, language: str) -> Iterable[tuple[str, str, str]]:
        """Yield (context, text, plural) of all that is translated into a language, "" for what it lacks."""


_lent: Translations | None = None


def translations_lend(translations: Translations | None) -> None:
    """Translate by these from now on, None for not at all; at start-up."""
    global _lent
    _lent = translations
    _forms.cache_clear()


class Told(str):
    """A text in the language that was active when it was made, which can be kept and told to others in theirs.

    Attributes:
        kept: its English, each value between Unicode's isolates. Without knowledge of this module it reads as plain
            English. Names stay in it as they are, so whatever looks for them in stored texts finds them.
    """

    kept: str

    def __new__(cls, text: str, kept: str | None = None) -> Told:
        """Make one of a text and its English; the same where only the English is given."""
        self = super().__new__(cls, text)
        self.kept = text if kept is None else kept
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.kept

    @classmethod
    def of(cls, kept: str) -> Told:
        """Return what a row keeps, as its English."""
        return cls(_MARKS.sub("", kept), kept)

    def __mod__(self, values: Any) -> Told:
        """Fill the placeholders; a value that is a text of ours will be told in the reader's language too.

        Raises:
            TypeError: the values are no mapping: without names translators couldn't reorder them.
        """
        if not isinstance(values, Mapping):
            raise TypeError("a text for people has named placeholders")
        clean = {
            name: value if isinstance(value, Told | int | float) else _UNSTORABLE.sub("", str(value))
            for name, value in values.items()
        }
        return Told(str.__mod__(self, clean), _filled(self.kept, clean))


def gettext(text: str) -> Told:
    """Return a text in the language that is active, as it is where nothing was lent."""
    return Told(text if _lent is None else _lent.gettext(text), text)


def ngettext(one: str, other: str, number: int) -> Told:
    """Return the form of a text that a number takes in the language that is active."""
    english = one if number == 1 else other
    return Told(english if _lent is None else _lent.ngettext(one, other, number), english)


def pgettext(context: str, text: str) -> Told:
    """Return a word in the language that is active, as it is meant in a context; as it is where nothing was lent."""
    return Told(text if _lent is None else _lent.pgettext(context, text), text)


def number_told(value: float | Decimal, places: int | None = 0, sign: str = "") -> Told:
    """Return a number as the active language writes it: 12,345.6 in English, 12.345,6 in German.

    As a value of a kept text it is written again in the language of each reader.

    Args:
        value: the number.
        places: the digits after the point; None for those that it has, up to six digits in all.
        sign: what stands before it: a currency's, or a plus.
    """
    written = sign + (f"{value:,.6g}" if places is None else f"{value:,.{places}f}")
    return Told(written if _lent is None else _lent.number(written), written)


def gettext_noop(text: str) -> str:
    """Return a text as it is, marked for translators; ``gettext`` is called where it is used."""
    return text


def sentences(*texts: str) -> Told:
    """Return texts one after the other, each told in the reader's language later; empty ones are left out."""
    said = [text if isinstance(text, Told) else Told(text) for text in texts if text]
    return Told(" ".join(said), " ".join(_TEXT + text.kept + _END for text in said))


def kept(text: str) -> str:
    """Return what to keep of a text: of a ``Told`` its English with its values marked, any other as it is.

    For JSON; a column has ``tenancy.fields`` do it.
    """
    return text.kept if isinstance(text, Told) else text


def english(text: str) -> str:
    """Return a kept text as programs get it: in English, without marks."""
    return _MARKS.sub("", text)


def shortened(text: str, most: int) -> Told:
    """Return a text that has at most so many characters when it is kept.

    Long values lose their ends, words of ours don't. Where that isn't enough it becomes plain English that ends in an
    ellipsis, and is told as that.

    Args:
        text: a text of ours, or any other.
        most: the characters that its column takes, marks included.
    """
    whole = kept(text)
    if len(whole) <= most:
        return text if isinstance(text, Told) else Told.of(text)
    lengths = [len(value) for value in _PLAIN_VALUE.findall(whole)]
    room = most - len(whole) + sum(lengths)
    caps = range(max(lengths, default=0) - 1, _LEAST - 1, -1)
    cap = next((cap for cap in caps if sum(min(length, cap) for length in lengths) <= room), 0)
    if not cap:
        return Told(_cut(english(whole), most))
    return Told.of(_PLAIN_VALUE.sub(lambda found: _VALUE + _cut(found[1], cap) + _END, whole))


def told(text: str) -> str:
    """Return a kept text in the language that is active.

    What isn't translated, or was kept before texts had marks and has values, stays English. Values keep their isolates
    in a translation: a name in another script doesn't disturb the order of the words around it.

    Args:
        text: what a row keeps, or the ``Told`` that was read from it.
    """
    text = kept(text)
    if _lent is None or not text:
        return english(text)
    skeleton, values = _parts(text)
    if values and not skeleton.replace(_HOLE, "").strip() and all(one[0] == _TEXT for one in values):
        return " ".join(told(one[1:-1]) for one in values)
    for form in _forms(_lent.language()).get(skeleton, ()):
        if len(form.names) == len(values):
            return form.told(_lent, values)
    return english(text)


class _Form:
    """One of the texts that can be kept: its key in the catalogs, and which placeholder each value fills."""

    __slots__ = ("context", "names", "one", "other")

    def __init__(self, context: str, one: str, other: str, names: tuple[str, ...]) -> None:
        self.context, self.one, self.other, self.names = context, one, other, names

    def told(self, lent: Translations, values: list[str]) -> str:
        shown = dict(zip(self.names, values, strict=True))
        if self.other:
            text = lent.ngettext(self.one, self.other, _number(shown))
        elif self.context:
            text = lent.pgettext(self.context, self.one)
        else:
            text = lent.gettext(self.one)
        return _PLACEHOLDER.sub(lambda found: _shown(shown, found), text) if shown else text


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _number(values: Mapping[str, str]) -> int:
    """Return the number that a text with a plural is about: the value named so, else the first that is one."""
    digits = {name: english(value).replace(",", "") for name, value in values.items()}
    named = [digits[name] for name in ("n", "count", "number", "total") if name in digits]
    return next((int(value) for value in (*named, *digits.values()) if value.isdecimal()), 1)


def _shown(values: Mapping[str, str], found: re.Match[str]) -> str:
    if found[1] is None:
        return "%"
    value = values.get(found[1], "")
    if not value.startswith(_TEXT):
        return value
    inner = value[1:-1]
    said = _lent.number(inner) if _lent and _NUMBER.fullmatch(inner) else told(inner)
    return _VALUE + said + _END


@lru_cache(maxsize=16)
def _forms(language: str) -> dict[str, list[_Form]]:
    """Return the texts of a catalog by their English with empty places for their values."""
    forms: dict[str, list[_Form]] = {}
    for context, one, other in _lent.entries(language) if _lent else ():
        for text in dict.fromkeys((one, other or one)):
            names = tuple(found[1] for found in _PLACEHOLDER.finditer(text) if found[1])
            skeleton = _PLACEHOLDER.sub(lambda found: _HOLE if found[1] else "%", text) if names else text
            same = forms.setdefault(skeleton, [])
            same.insert(len(same) if context else 0, _Form(context, one, other, names))
    return forms


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """Fill the placeholders of an English text, with marks around the values."""

    def value(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        given = values[found[1]]
        if isinstance(given, Told):
            return _TEXT + given.kept + _END
        return _VALUE + str(f"%{found[2]}" % (given,)) + _END

    return _PLACEHOLDER.sub(value, text)


def _parts(text: str) -> tuple[str, list[str]]:
    """Return a kept text with empty places, and what stood in them with its marks."""
    values: list[str] = []
    skeleton: list[str] = []
    depth = start = 0
    for found in _MARKS.finditer(text):
        if found[0] != _END:
            depth += 1
            if depth == 1:
                skeleton.append(text[start : found.start()])
                start = found.start()
        elif depth:
            depth -= 1
            if depth == 0:
                values.append(text[start : found.end()])
                skeleton.append(_HOLE)
                start = found.end()
    return "".join((*skeleton, text[start:])), values
