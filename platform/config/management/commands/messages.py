"""The catalogs of translations, from the texts that are marked in the source; needs GNU gettext."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polib
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import makemessages

from config.catalogs import DOMAINS, catalog_problems

_IGNORED = [
    *("tests", "benchmarks", "clients", "deploy", "docs", "requirements", "var", "staticfiles"),
    *(
        "apps/collections/demo",
        "templates/admin",
        "templates/styleguide.html",
        "static/vendor",
        "static/js/admin.js",
        "*/migrations/*",
    ),
]


class Command(makemessages.Command):
    help = "Put every text that is marked for translation into the catalogs; --check says what they lack."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="Change nothing; fail where a catalog lacks a text, or a complete language a translation.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the catalogs of all languages, or hold them against the source.

        Raises:
            CommandError: something is missing, or GNU gettext isn't there.
        """
        self._is_check: bool = options["check"]
        self._found: dict[str, polib.POFile] = {}
        os.chdir(settings.ROOT)
        for domain in DOMAINS:
            chosen = {
                **dict.fromkeys(
                    ("exclude", "extensions", "all", "symlinks", "no_location", "keep_pot"), None
                ),
                "locale": [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE],
                "ignore_patterns": list(_IGNORED),
                "use_default_ignore_patterns": True,
                "domain": domain,
                "verbosity": 0,
                "no_wrap": True,
                "add_location": "file",
                "no_obsolete": True,
            }
            super().handle(**(options | chosen | {"exclude": [], "extensions": []}))
        if self._is_check and (problems := catalog_problems(self._found)):
            raise CommandError("\n".join([*problems, "Run `make messages`, and translate what is new."]))

    def build_potfiles(self) -> list[str]:
        """Leave the moment out of the texts found: it would differ between two branches that mark the same."""
        potfiles: list[str] = super().build_potfiles()
        for name in potfiles:
            path = Path(name)
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(x for x in lines if not x.startswith('"POT-Creation-Date')), "utf-8")
            self._found[self.domain] = polib.pofile(name)
        return potfiles

    def write_po_file(self, potfile: str, locale: str) -> None:
        """Bring a language's catalog up to date, unless it is only looked at."""
        if not self._is_check:
            super().write_po_file(potfile, locale)
