"""Compiles the catalogs of translations: ``python -m config.catalogs``, with ``platform/`` on the path and no Django.

The sources are ``platform/locale/<language>/LC_MESSAGES/django.po`` and ``djangojs.po``. Of each comes what Django reads
(``.mo``), and for scripts ``djangojs.js``, which ``web.bundles`` puts in front of a bundle. Neither is in a commit. A language
that has no translation at all isn't compiled, and so isn't offered.
"""

from __future__ import annotations

import gettext
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polib

COMPLETE = ("en", "ar", "de", "es", "fr", "ja")
"""Languages in which no text may be missing: `make check` fails where one is."""
SOURCE = "en"
"""The language of the source. Its catalog has only what packages say in other words than we do (allauth's pages)."""
LOCALE = Path(__file__).resolve().parents[1] / "locale"
DOMAINS = ("django", "djangojs")
_PLURAL = re.compile(r"nplurals\s*=\s*\d+\s*;\s*plural\s*=\s*([n\d\s()?:%!=<>&|+*-]+?)\s*;?\s*\Z")
_NAMED = re.compile(r"%\(\w+\)[a-z]|\{\w*\}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
RIGHT_TO_LEFT = ("ar", "fa", "he", "ur")
_FROM_LEFT, _END = "\u2068", "\u2069"
_TEXTS = "name|names|path|document|email|host|model|models|workspace|person|people|tool|tools|error|domain|application"
_ISOLATED = re.compile(
    rf"(?P<tag></?[a-zA-Z][^<>]*>)|(?<=[«“„])%\(\w+\)s(?=[»”“])"
    rf"|(?<![/@:._-])%\((?:{_TEXTS})\)s(?![/@:._-][\w%])(?![^<>]*</code>)"
)
"""In a sentence that runs from right to left: what stands in quotes, and what is a name by its own name."""


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
        if folder.parent.name in RIGHT_TO_LEFT:
            _isolate(catalogs.values())
        for domain, catalog in catalogs.items():
            _put(folder / f"{domain}.mo", catalog.to_binary() if is_translated else None)
        words = script_words(catalogs["djangojs"]) if is_translated else None
        _put(folder / "djangojs.js", None if words is None else words.encode())
        if is_translated:
            compiled.append(folder.parent.name)
    return compiled


def _isolate(catalogs: Iterable[polib.POFile]) -> None:
    """Put Unicode's isolates around texts of people in translations; addresses in tags stay as they are.

    Otherwise a name in Latin letters, or one with a number or a bracket at its end, moves the words next to it.
    """
    for catalog in catalogs:
        for entry in catalog:
            entry.msgstr = isolated(entry.msgstr)
            entry.msgstr_plural = {form: isolated(said) for form, said in entry.msgstr_plural.items()}


def isolated(said: str) -> str:
    """Return a translation into a language that is read from right to left with isolates around the texts of people."""
    return _ISOLATED.sub(lambda found: found[0] if found["tag"] else f"{_FROM_LEFT}{found[0]}{_END}", said)


def catalog_problems(found: Mapping[str, polib.POFile], locale: Path = LOCALE) -> list[str]:
    """Hold the catalogs against the texts of the source.

    Args:
        found: the texts, by domain.
        locale: the folder of the catalogs.

    Returns:
        A line for each text that a catalog lacks, or that a complete language has no translation for, and for each
        translation with other placeholders, percent signs or tags than the English has.

    Raises:
        ValueError: a catalog has no readable plural forms.
    """
    problems = []
    for folder in sorted(locale.glob("*/LC_MESSAGES")):
        language = folder.parent.name
        if language == SOURCE:
            continue
        for domain in DOMAINS:
            catalog = polib.pofile(str(folder / f"{domain}.po"))
            most = _largest(catalog)
            there = {_key(entry): entry for entry in catalog}
            for entry in found.get(domain, ()):
                has = there.get(_key(entry))
                if has is None:
                    problems.append(f"{language}, {domain}: has no “{entry.msgid}”")
                elif language in COMPLETE and not has.translated():
                    problems.append(f"{language}, {domain}: “{entry.msgid}” isn't translated")
                else:
                    told = (f"{language}, {domain}: “{entry.msgid}” {fault}" for fault in _faults(has, most))
                    problems.extend(told)
    return problems


def _faults(entry: polib.POEntry, most: Mapping[int, int]) -> Iterator[str]:
    """Yield what a translation would break: a page fails at a placeholder that nobody fills, and loses what isn't said.

    A plural form that is said of 1 or 2 alone may leave the number out (“one row”), and one of 0 alone all else as well
    (“no rows”). ``most`` holds the largest number of each form.
    """
    if not entry.translated():
        return
    one, other = entry.msgid, entry.msgid_plural or entry.msgid
    known, wanted = set(_NAMED.findall(one + other)), set(_NAMED.findall(other))
    tags = [Counter(_TAG.findall(text)) for text in (one, other)]
    is_formatted = bool(known) or "%%" in other
    for form, said in sorted(entry.msgstr_plural.items()) or [(-1, entry.msgstr)]:
        numbers = most.get(form, 200)
        names, tagged = set(_NAMED.findall(said)), Counter(_TAG.findall(said))
        missing = wanted - names
        spare = 0 if numbers > 2 else len(wanted.difference(_NAMED.findall(one))) or 1
        if unknown := names - known:
            yield f"has no {', '.join(sorted(unknown))}, its translation has"
        if numbers and len(missing) > spare:
            yield f"has {', '.join(sorted(missing))}, its translation lacks it"
        if _is_bare(said) if is_formatted else "%%" in said:
            yield "has other percent signs than its translation"
        if not (tagged <= tags[1] if not numbers else tagged in tags):
            yield "has other tags than its translation"


def _is_bare(text: str) -> bool:
    """Tell whether a percent sign stands for itself, which a text that is formatted can't have."""
    return "%" in _NAMED.sub("", text).replace("%%", "")


def _largest(catalog: polib.POFile) -> dict[int, int]:
    """Return the largest number that each plural form is said of, up to 200: no language tells more apart."""
    form = gettext.c2py(_plural_of(catalog))
    return {form(n): n for n in range(201)}


def _key(entry: polib.POEntry) -> tuple[str | None, str, str]:
    return entry.msgctxt, entry.msgid, entry.msgid_plural


def script_words(catalog: polib.POFile) -> str:
    """Return a catalog as the statement that static/js/words.js reads: texts by their English, and which plural a number takes.

    Raises:
        ValueError: its plural forms aren't readable.
    """
    plural = _plural_of(catalog)
    texts: dict[str, str | list[str]] = {}
    for entry in catalog.translated_entries():
        key = f"{entry.msgctxt}\x04{entry.msgid}" if entry.msgctxt else entry.msgid
        forms = [entry.msgstr_plural[n] for n in sorted(entry.msgstr_plural)]
        texts[key] = forms or entry.msgstr
    told = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return f"globalThis.gwWords={{plural:(n)=>Number({plural}),texts:{told}}};"


def _plural_of(catalog: polib.POFile) -> str:
    """Return the expression that chooses a plural form by the number n. Raises ValueError."""
    plural = _PLURAL.search(catalog.metadata.get("Plural-Forms", ""))
    if plural is None:
        raise ValueError(f"{catalog.fpath}: no readable Plural-Forms")
    return plural[1]


def _put(path: Path, content: bytes | None) -> None:
    """Write a file whole, or remove it: a server may be reading it."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    written = path.with_name(f"{path.name}.{os.getpid()}")
    written.write_bytes(content)
    written.replace(path)


if __name__ == "__main__":
    sys.stdout.write(f"languages: {', '.join(catalogs_compile())}\n")
