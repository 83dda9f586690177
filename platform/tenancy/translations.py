"""Django's translations, as ``basics.texts`` borrows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polib
from django.conf import settings
from django.utils import translation
from django.utils.formats import get_format

from tenancy.portal_languages import ENGLISH


class DjangoTranslations:
    """Tells texts in the language that Django has active."""

    def language(self) -> str:
        """Return the code of the language that is active; English where translation is switched off."""
        return translation.get_language() or ENGLISH

    def gettext(self, text: str) -> str:
        """Return a text in it; an empty one stays empty (a catalog has its own header there)."""
        return translation.gettext(text) if text else text

    def ngettext(self, one: str, other: str, number: int) -> str:
        """Return the form of a text that a number takes in it."""
        return translation.ngettext(one, other, number)

    def pgettext(self, context: str, text: str) -> str:
        """Return a text as it is meant in a context."""
        return translation.pgettext(context, text)

    def number(self, text: str) -> str:
        """Return a number that is written in English, as the language writes it."""
        # After Arabic letters a sign would go to the other side of its number.
        mark = "\u200e" if translation.get_language_bidi() and not text[0].isdigit() else ""
        marks = {",": str(get_format("THOUSAND_SEPARATOR")), ".": str(get_format("DECIMAL_SEPARATOR"))}
        return mark + "".join(marks.get(one, one) for one in text)

    def entries(self, language: str) -> Iterator[tuple[str, str, str]]:
        """Yield (context, text, plural) of a language's compiled catalog: what gettext itself keeps lacks the plurals."""
        for path in settings.LOCALE_PATHS:
            compiled = Path(path) / language / "LC_MESSAGES" / "django.mo"
            if compiled.is_file():
                for entry in polib.mofile(str(compiled)):
                    yield entry.msgctxt or "", entry.msgid, entry.msgid_plural or ""
