"""Catalogs of translations: what is committed compiles, and what a catalog lacks is told."""

from __future__ import annotations

import datetime
import gettext
import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.utils import formats
from django.utils.translation import gettext as gettext_of
from django.utils.translation import ngettext, npgettext, override, pgettext

from config import catalogs
from config.catalogs import (
    DOMAINS,
    LOCALE,
    SOURCE,
    catalog_problems,
    catalogs_compile,
    isolated,
    script_words,
)
from tests.catalogs import catalog_write

ROOT = Path(__file__).resolve().parents[2]
PLURALS = {
    "de": (2, {1: 0, 0: 1, 2: 1}),
    "fr": (2, {0: 0, 1: 0, 2: 1}),
    "es": (2, {1: 0, 0: 1, 2: 1}),
    "ja": (1, {0: 0, 1: 0, 7: 0}),
    "ar": (6, {0: 0, 1: 1, 2: 2, 3: 3, 10: 3, 103: 3, 11: 4, 99: 4, 100: 5, 102: 5}),
}
NAMED = re.compile(r"\|(?:date|time):(?P<quote>[\"'])(.+?)(?P=quote)")
PLACEHOLDER = re.compile(r"%\((\w+)\)[a-z]")
# What other programs or a scale of time read, the same in every language.
INTERNATIONAL = {"c", "Y-m-d", "e", "U.u"}


def found(text: str) -> dict[str, polib.POFile]:
    texts = polib.POFile()
    texts.append(polib.POEntry(msgid=text))
    return {"django": texts}


def test_every_language_has_its_catalogs() -> None:
    offered = {code for code, _name in settings.LANGUAGES}
    assert {path.name for path in LOCALE.iterdir() if path.is_dir()} == offered == {*PLURALS, SOURCE}
    assert set(catalogs.COMPLETE) <= offered


@pytest.mark.parametrize("language", PLURALS)
def test_plurals_are_the_languages_own_in_pages_and_scripts(language: str, tmp_path: Path) -> None:
    many, numbers = PLURALS[language]
    forms = [f"form {n}" for n in range(many)]
    catalog_write(tmp_path, language, {"%(n)s row": forms}, {"%(n)s file": forms})
    assert catalogs_compile(tmp_path) == [language]
    there = tmp_path / language / "LC_MESSAGES"
    for domain, noun in (("django", "row"), ("djangojs", "file")):
        assert f"nplurals={many}" in polib.pofile(str(there / f"{domain}.po")).metadata["Plural-Forms"]
        with (there / f"{domain}.mo").open("rb") as file:
            catalog = gettext.GNUTranslations(file)
        said = {n: catalog.ngettext(f"%(n)s {noun}", f"%(n)s {noun}s", n) for n in numbers}
        assert said == {n: f"form {form}" for n, form in numbers.items()}
    deno = ROOT / ".venv" / "bin" / "deno"
    asked = f"console.log([{','.join(map(str, numbers))}].map((n)=>ngettext('%(n)s file','%(n)s files',n)).join())"
    words = (ROOT / "static/js/words.js").read_text(encoding="utf-8")
    script = f"{(there / 'djangojs.js').read_text(encoding='utf-8')}\n{words}\n{asked}"
    ran = subprocess.run(
        [deno, "run", "--no-config", "-"], input=script, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == ",".join(f"form {form}" for form in numbers.values())


def test_what_is_committed_compiles_and_only_what_is_translated(tmp_path: Path) -> None:
    shutil.copytree(LOCALE, tmp_path / "locale", ignore=shutil.ignore_patterns("*.mo", "*.js"))
    compiled = catalogs_compile(tmp_path / "locale")
    for folder in (tmp_path / "locale").glob("*/LC_MESSAGES"):
        translated = any(
            polib.pofile(str(folder / f"{domain}.po")).translated_entries() for domain in DOMAINS
        )
        assert translated == (folder.parent.name in compiled) == (folder / "django.mo").is_file()


def test_language_that_lost_its_last_translation_is_not_compiled_any_more(tmp_path: Path) -> None:
    catalog_write(tmp_path, "de", {"Row": "Zeile"}, {"File": "Datei"})
    assert catalogs_compile(tmp_path) == ["de"]
    catalog_write(tmp_path, "de", {})
    assert catalogs_compile(tmp_path) == []
    assert {path.suffix for path in (tmp_path / "de" / "LC_MESSAGES").iterdir()} == {".po"}


def test_fuzzy_translation_is_not_said(tmp_path: Path) -> None:
    catalog_write(tmp_path, "de", {"Row": "Zeile", "Column": "Spalte"})
    path = tmp_path / "de" / "LC_MESSAGES" / "django.po"
    catalog = polib.pofile(str(path))
    catalog[0].flags.append("fuzzy")
    catalog.save()
    catalogs_compile(tmp_path)
    with path.with_suffix(".mo").open("rb") as file:
        said = gettext.GNUTranslations(file)
    assert (said.gettext("Row"), said.gettext("Column")) == ("Row", "Spalte")


def test_plural_forms_that_are_no_arithmetic_are_refused() -> None:
    catalog = polib.POFile()
    catalog.metadata["Plural-Forms"] = "nplurals=2; plural=alert(1);"
    with pytest.raises(ValueError, match="Plural-Forms"):
        script_words(catalog)


def test_catalog_without_a_text_of_the_source_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog_write(tmp_path, "de", {"Row": ""})
    monkeypatch.setattr(catalogs, "COMPLETE", ("en",))
    assert catalog_problems(found("Row"), tmp_path) == []
    assert catalog_problems(found("Cell"), tmp_path) == ["de, django: has no “Cell”"]
    monkeypatch.setattr(catalogs, "COMPLETE", ("en", "de"))
    assert catalog_problems(found("Row"), tmp_path) == ["de, django: “Row” isn't translated"]


ROWS = ("%(n)s row of <b>%(name)s</b>, 5 %%", "%(n)s rows of <b>%(name)s</b>, 5 %%")
GOOD = "%(n)s R <b>%(name)s</b> 5 %%"
SHORT = "R <b>%(name)s</b> 5 %%"


@pytest.mark.parametrize(
    ("language", "forms", "fault"),
    [
        ("de", [GOOD, GOOD], None),
        ("de", [SHORT, GOOD], None),
        ("ar", [SHORT, SHORT, SHORT, GOOD, GOOD, GOOD], None),
        ("ar", ["R 5 %%", SHORT, SHORT, GOOD, GOOD, GOOD], None),
        ("ar", ["R 5 %% <i>", GOOD, GOOD, GOOD, GOOD, GOOD], "has other tags than its translation"),
        ("ja", [GOOD], None),
        ("de", [GOOD, SHORT], "has %(n)s, its translation lacks it"),
        ("ar", [GOOD, GOOD, GOOD, SHORT, GOOD, GOOD], "has %(n)s, its translation lacks it"),
        ("ja", [SHORT], "has %(n)s, its translation lacks it"),
        ("de", ["R <b></b> 5 %%", GOOD], "has %(n)s, %(name)s, its translation lacks it"),
        ("de", [GOOD, GOOD.replace("%(n)s", "%(n)s %(m)s")], "has no %(m)s, its translation has"),
        ("de", [GOOD, GOOD.replace("5 %%", "5 %")], "has other percent signs than its translation"),
        ("de", [GOOD, GOOD.replace("</b>", "")], "has other tags than its translation"),
        ("de", [GOOD, GOOD.replace("<b>", '<b class="x">')], "has other tags than its translation"),
    ],
)
def test_translation_that_would_break_a_page_is_named(
    language: str, forms: list[str], fault: str | None, tmp_path: Path
) -> None:
    catalog_write(tmp_path, language, {})
    path = tmp_path / language / "LC_MESSAGES" / "django.po"
    catalog, texts = polib.pofile(str(path)), polib.POFile()
    said = dict(enumerate(forms))
    catalog.append(polib.POEntry(msgid=ROWS[0], msgid_plural=ROWS[1], msgstr_plural=said))
    catalog.save()
    texts.append(polib.POEntry(msgid=ROWS[0], msgid_plural=ROWS[1]))
    told = [] if fault is None else [f"{language}, django: “{ROWS[0]}” {fault}"]
    assert catalog_problems({"django": texts}, tmp_path) == told


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("Heißt jetzt %(name)s.", None),
        (
            "Heißt jetzt %(nom)s.",
            ["has no %(nom)s, its translation has", "has %(name)s, its translation lacks it"],
        ),
        ("Umbenannt.", ["has %(name)s, its translation lacks it"]),
        (
            "Heißt jetzt %(name).",
            ["has %(name)s, its translation lacks it", "has other percent signs than its translation"],
        ),
    ],
)
def test_text_without_a_number_needs_each_placeholder(
    said: str, fault: list[str] | None, tmp_path: Path
) -> None:
    catalog_write(tmp_path, "de", {"Renamed to %(name)s.": said})
    told = [f"de, django: “Renamed to %(name)s.” {one}" for one in fault or ()]
    assert catalog_problems(found("Renamed to %(name)s."), tmp_path) == told


def test_percent_sign_of_a_text_that_is_not_formatted_stays_single(tmp_path: Path) -> None:
    catalog_write(tmp_path, "ja", {"5 % of it": "5％", "6 % of it": "6 %% です"})
    assert catalog_problems(found("5 % of it"), tmp_path) == []
    assert catalog_problems(found("6 % of it"), tmp_path) == [
        "ja, django: “6 % of it” has other percent signs than its translation"
    ]


@pytest.mark.parametrize("language", PLURALS)
def test_every_text_with_a_placeholder_can_be_said(language: str) -> None:
    """The names are those of the English: one that a translation has made up, or a lone percent sign, raises."""
    catalog = polib.pofile(str(LOCALE / language / "LC_MESSAGES" / "django.po"))
    entries = [entry for entry in catalog if PLACEHOLDER.search(entry.msgid + entry.msgid_plural)]
    with override(language):
        for entry in entries:
            names = dict.fromkeys(PLACEHOLDER.findall(entry.msgid + entry.msgid_plural), "7")
            for number in (0, 1, 2, 3, 11, 100) if entry.msgid_plural else (0,):
                said = _said(entry, number)
                assert "%(" not in said % names
    assert len(entries) > 1000


def _said(entry: polib.POEntry, number: int) -> str:
    """Return a text as a page in the active language has it."""
    if entry.msgid_plural and entry.msgctxt:
        return npgettext(entry.msgctxt, entry.msgid, entry.msgid_plural, number)
    if entry.msgid_plural:
        return ngettext(entry.msgid, entry.msgid_plural, number)
    return pgettext(entry.msgctxt, entry.msgid) if entry.msgctxt else gettext_of(entry.msgid)


def test_every_format_that_pages_name_is_one_of_every_language() -> None:
    named = {
        match[2]
        for path in (ROOT / "templates").rglob("*")
        if path.suffix in {".html", ".txt"} and "admin" not in path.relative_to(ROOT / "templates").parts
        for match in NAMED.finditer(path.read_text(encoding="utf-8"))
    }
    english = {name for name in vars(import_module("web.formats.en.formats")) if name.isupper()}
    assert named - INTERNATIONAL <= english, "a pattern is English: name a format of web/formats"
    for code, _name in settings.LANGUAGES:
        there = vars(import_module(f"web.formats.{code}.formats"))
        assert english <= there.keys(), code


def test_formats_are_the_languages_own() -> None:
    moment = datetime.datetime(2026, 11, 27, 14, 5)
    said = {}
    for code, _name in settings.LANGUAGES:
        with override(code):
            said[code] = (
                formats.date_format(moment, "DAY_TIME"),
                formats.number_format(12345.5, 1, force_grouping=True),
            )
    assert said == {
        "en": ("27 Nov 2026, 14:05", "12,345.5"),
        "de": ("27. Nov. 2026, 14:05", "12.345,5"),
        "fr": ("27 nov. 2026, 14:05", "12\xa0345,5"),
        "es": ("27 nov 2026, 14:05", "12\xa0345,5"),
        "ja": ("2026年11月27日 14:05", "12,345.5"),
        "ar": ("27 نوفمبر 2026، 14:05", "12,345.5"),
    }


@pytest.mark.parametrize(
    ("said", "isolates"),
    [
        ("حُذف «%(query)s».", "حُذف «\u2068%(query)s\u2069»."),
        ("%(name)s: %(n)s من %(total)s", "\u2068%(name)s\u2069: %(n)s من %(total)s"),
        ('<a href="/%(name)s/">«%(name)s»</a>', '<a href="/%(name)s/">«\u2068%(name)s\u2069»</a>'),
        ("<code>run %(name)s</code> %(host)s:%(port)s", "<code>run %(name)s</code> %(host)s:%(port)s"),
    ],
)
def test_texts_of_people_are_isolated_in_sentences_that_run_from_right_to_left(
    said: str, isolates: str, tmp_path: Path
) -> None:
    assert isolated(said) == isolates
    for language, shown in (("ar", isolates), ("de", said)):
        catalog_write(tmp_path, language, {"One": said}, {"Two": said})
        catalogs_compile(tmp_path)
        there = tmp_path / language / "LC_MESSAGES"
        with (there / "django.mo").open("rb") as file:
            assert gettext.GNUTranslations(file).gettext("One") == shown
        words = (there / "djangojs.js").read_text()
        assert shown.replace('"', '\\"') in words
