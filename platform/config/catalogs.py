"""Compiles the catalogs of translations: ``python -m config.catalogs``, with ``platform/`` on the path and no Django.

The sources are ``platform/locale/<language>/LC_MESSAGES/django.po`` and ``djangojs.po``. Of each comes what Django reads
(``.mo``), and for scripts ``djangojs.js``, which ``web.bundles`` puts in front of a bundle. Neither is in a commit. A language
that has no translation at all isn't compiled, and so isn't offered.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import polib

COMPLETE = ("en",)
"""Languages in which no text may be missing: `make check` fails where one is."""
LOCALE = Path(__file__).resolve().parents[1] / "locale"
DOMAINS = ("django", "djangojs")
_PLURAL = re.compile(r"nplurals\s*=\s*\d+\s*;\s*plural\s*=\s*([n\d\s()?:%!=<>&|+*-]+?)\s*;?\s*\Z")


def catalogs_compile(locale: Path = LOCALE) -> list[str]:
    """Compile every language of a folder, and remove what was compiled of those without a translation.

    Returns:
        The languages that are compiled now.

    Raises:
        ValueError: a catalog has no readable plural forms.
    """
    compiled = []
    for folder in sorted(path for path in locale.glob("*/LC_MESSAGES") if path.is_dir()):
        catalogs = {domain: polib.pofile(str(folder / f"{domain}.po")) for domain in DOMAINS}
        is_translated = any(catalog.translated_entries() for catalog in catalogs.values())
        for domain, catalog in catalogs.items():
            _put(folder / f"{domain}.mo", catalog.to_binary() if is_translated else None)
        words = script_words(catalogs["djangojs"]) if is_translated else None
        _put(folder / "djangojs.js", None if words is None else words.encode())
        if is_translated:
            compiled.append(folder.parent.name)
    return compiled


def catalog_problems(found: Mapping[str, polib.POFile], locale: Path = LOCALE) -> list[str]:
    """Hold the catalogs against the texts of the source.

    Args:
        found: the texts, by domain.
        locale: the folder of the catalogs.

    Returns:
        A line for each text that a catalog lacks, or that a complete language has no translation for.
    """
    problems = []
    for folder in sorted(locale.glob("*/LC_MESSAGES")):
        language = folder.parent.name
        for domain in DOMAINS:
            there = {_key(entry): entry for entry in polib.pofile(str(folder / f"{domain}.po"))}
            for entry in found.get(domain, ()):
                has = there.get(_key(entry))
                if has is None:
                    problems.append(f"{language}, {domain}: has no “{entry.msgid}”")
                elif language in COMPLETE and not has.translated():
                    problems.append(f"{language}, {domain}: “{entry.msgid}” isn't translated")
    return problems


def _key(entry: polib.POEntry) -> tuple[str | None, str, str]:
    return entry.msgctxt, entry.msgid, entry.msgid_plural


def script_words(catalog: polib.POFile) -> str:
    """Return a catalog as the statement that static/js/words.js reads: texts by their English, and which plural a number takes.

    Raises:
        ValueError: its plural forms aren't readable.
    """
    plural = _PLURAL.search(catalog.metadata.get("Plural-Forms", ""))
    if plural is None:
        raise ValueError(f"{catalog.fpath}: no readable Plural-Forms")
    texts: dict[str, str | list[str]] = {}
    for entry in catalog.translated_entries():
        key = f"{entry.msgctxt}\x04{entry.msgid}" if entry.msgctxt else entry.msgid
        forms = [entry.msgstr_plural[n] for n in sorted(entry.msgstr_plural)]
        texts[key] = forms or entry.msgstr
    told = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return f"globalThis.gwWords={{plural:(n)=>Number({plural[1]}),texts:{told}}};"


def _put(path: Path, content: bytes | None) -> None:
    """Write a file whole, or remove it: a server may be reading it."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    written = path.with_name(f"{path.name}.{os.getpid()}")
    written.write_bytes(content)
    written.replace(path)


if __name__ == "__main__":
    sys.stdout.write(f"languages: {', '.join(['en', *catalogs_compile()])}\n")
