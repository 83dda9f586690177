"""Languages for a test: small catalogs in a folder, compiled as the product's are, in place of the committed ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polib
from django.test import override_settings

from config.catalogs import DOMAINS, LOCALE, catalogs_compile
from tenancy.portal_languages import languages_offered
from web.bundles import bundle

Texts = Mapping[str, str | Sequence[str]]
"""Translations by their English; of a plural by its singular, a form for each."""


def catalog_write(folder: Path, language: str, pages: Texts, scripts: Texts = {}) -> None:  # noqa: B006 - never changed
    """Write the catalogs of a language, with the committed ones' headers and plurals."""
    there = folder / language / "LC_MESSAGES"
    there.mkdir(parents=True, exist_ok=True)
    for domain, texts in zip(DOMAINS, (pages, scripts), strict=True):
        catalog = polib.pofile(str(LOCALE / language / "LC_MESSAGES" / f"{domain}.po"))
        catalog[:] = []
        for english, said in texts.items():
            if isinstance(said, str):
                catalog.append(polib.POEntry(msgid=english, msgstr=said))
            else:
                forms = dict(enumerate(said))
                catalog.append(polib.POEntry(msgid=english, msgid_plural=f"{english}s", msgstr_plural=forms))
        catalog.save(str(there / f"{domain}.po"))


@contextmanager
def languages_in(folder: Path) -> Iterator[None]:
    """Offer the languages of a folder, and no others besides English."""
    catalogs_compile(folder)
    try:
        with override_settings(LOCALE_PATHS=[folder]):
            languages_offered.cache_clear()
            bundle.cache_clear()
            yield
    finally:
        languages_offered.cache_clear()
        bundle.cache_clear()
