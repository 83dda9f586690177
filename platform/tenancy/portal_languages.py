"""The languages that people are spoken to in: those whose catalogs are compiled here, and which of them a person has chosen."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

ENGLISH = "en"


@cache
def languages_offered() -> dict[str, str]:
    """Return the codes and own names of the languages whose catalogs are compiled here, English first."""
    return {
        code: name
        for code, name in settings.LANGUAGES
        if code == ENGLISH
        or any((Path(path) / code / "LC_MESSAGES" / "django.mo").is_file() for path in settings.LOCALE_PATHS)
    }


def person_language(user: Any) -> str:
    """Return the language that a person has chosen, "" for none or one that is no longer offered.

    Args:
        user: a ``User``; None and ``AnonymousUser`` have chosen none.
    """
    chosen = getattr(user, "language", "")
    return chosen if chosen in languages_offered() else ""
