"""The basics know no framework, and what they say and what rows keep still comes in the reader's language."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from basics import texts
from basics.errors import Missing
from basics.net_policy import AddressRefused, url_check
from basics.texts import (
    Told,
    english,
    gettext,
    kept,
    ngettext,
    number_told,
    pgettext,
    sentences,
    shortened,
    told,
)
from tenancy.translations import DjangoTranslations

GERMAN = {
    "The file %(name)s has %(size)s MB.": "%(size)s MB hat die Datei %(name)s.",
    "Not kept: %(why)s": "Nicht behalten: %(why)s",
    "It is damaged.": "Sie ist beschädigt.",
    "100%% of %(name)s": "%(name)s zu 100%%",
    "Files": "Dateien",
}
PLURAL = ("%(n)s page of %(name)s is empty.", "%(n)s pages of %(name)s are empty.")
PLURAL_GERMAN = ("Eine Seite von %(name)s ist leer.", "%(n)s Seiten von %(name)s sind leer.")


class German:
    """Speaks German while it is wanted."""

    is_active = True

    def language(self) -> str:
        return "de" if self.is_active else "en"

    def gettext(self, text: str) -> str:
        return GERMAN.get(text, text) if self.is_active else text

    def ngettext(self, one: str, other: str, number: int) -> str:
        forms = PLURAL_GERMAN if self.is_active and (one, other) == PLURAL else (one, other)
        return forms[number != 1]

    def pgettext(self, context: str, text: str) -> str:
        return f"{context}:{text}" if self.is_active else text

    def number(self, text: str) -> str:
        return text.translate(str.maketrans(",.", ".,")) if self.is_active else text

    def entries(self, language: str) -> Iterator[tuple[str, str, str]]:
        if language == "de":
            yield from (("", text, "") for text in GERMAN)
            yield ("", *PLURAL)
            yield "missing", "file", ""


@pytest.fixture
def german() -> Iterator[German]:
    speaker = German()
    texts.translations_lend(speaker)
    yield speaker
    texts.translations_lend(DjangoTranslations())


def told_plain(text: str) -> str:
    """Return what a reader sees, without the isolates that keep a value's direction apart."""
    return english(told(text))


def test_numbers_are_written_as_each_reader_writes_them(german: German) -> None:
    text = gettext("The file %(name)s has %(size)s MB.") % {
        "name": "1,234",
        "size": number_told(12345.678, 1),
    }
    assert text == "12.345,7 MB hat die Datei 1,234."
    assert told_plain(text.kept) == "12.345,7 MB hat die Datei 1,234."  # a name stays what it is
    german.is_active = False
    assert english(text.kept) == told_plain(text.kept) == "The file 1,234 has 12,345.7 MB."
    text = ngettext(*PLURAL, 1234) % {"n": number_told(1234), "name": "a"}
    german.is_active = True
    assert told_plain(text.kept) == "1.234 Seiten von a sind leer."
    assert (number_told(0), number_told(-1000), number_told(0.756, 2)) == ("0", "-1.000", "0,76")


def test_what_is_kept_is_told_in_the_readers_language(german: German) -> None:
    """Whoever causes a text and whoever reads it may speak different languages; programs always get the English."""
    text = gettext("The file %(name)s has %(size)s MB.") % {"name": "a.pdf", "size": 3}
    assert text == "3 MB hat die Datei a.pdf."
    row = kept(text)
    assert english(row) == "The file a.pdf has 3 MB." == Told.of(row)
    german.is_active = False
    assert told(row) == "The file a.pdf has 3 MB."
    german.is_active = True
    for same in (row, Told.of(row), pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):  # noqa: S301 - our own
        assert told_plain(same) == "3 MB hat die Datei a.pdf."


def test_texts_in_texts_and_plurals(german: German) -> None:
    why = gettext("Not kept: %(why)s") % {"why": gettext("It is damaged.")}
    assert told_plain(kept(why)) == "Nicht behalten: Sie ist beschädigt."
    twice = gettext("Not kept: %(why)s") % {"why": why}
    assert told_plain(kept(twice)) == "Nicht behalten: Nicht behalten: Sie ist beschädigt."
    for number, said in ((1, "Eine Seite von 2024 ist leer."), (1200, "1,200 Seiten von 2024 sind leer.")):
        text = ngettext(*PLURAL, number) % {"name": "2024", "n": f"{number:,}"}
        assert told_plain(kept(text)) == said
    assert told_plain(kept(gettext("100%% of %(name)s") % {"name": "it"})) == "it zu 100%"
    assert told_plain(kept(pgettext("missing", "file"))) == "missing:file"


@pytest.mark.parametrize(
    "name",
    [
        "Files",  # a text of ours by chance: what people wrote is never translated
        "It is damaged.",
        "\u2068x\u2069",
        "\u2066Files\u2069",
        "\u2069\u2069\u2068",
        "%(size)s %s %%",
        "<script>alert(1)</script>",
        "\x00\ud800",
        "",
    ],
)
def test_a_value_stays_what_it_is(german: German, name: str) -> None:
    row = kept(gettext("The file %(name)s has %(size)s MB.") % {"name": name, "size": 3})
    row.encode()
    clean = "".join(char for char in name if char not in "\x00\ud800\u2066\u2068\u2069")
    assert english(row) == f"The file {clean} has 3 MB."
    assert told_plain(row) == f"3 MB hat die Datei {clean}."


@pytest.mark.parametrize(
    "row",
    [
        "",
        "The file a.pdf has 3 MB.",  # kept before texts had marks
        "The folder \u2068a\u2069 is gone.",  # of another release
        "The file \u2068a.pdf",  # cut off
        "Provider said: \u2069\u2068\u2068",
        "%(name)s %s",
    ],
)
def test_what_is_unknown_stays_english(german: German, row: str) -> None:
    assert told(row) == english(row)


def test_sentences_are_told_one_by_one(german: German) -> None:
    filled = gettext("The file %(name)s has %(size)s MB.") % {"name": "Files", "size": 3}
    text = sentences(filled, "", gettext("It is damaged."))
    assert text == "3 MB hat die Datei Files. Sie ist beschädigt."
    row = kept(text)
    assert english(row) == "The file Files has 3 MB. It is damaged."
    assert told_plain(row) == text
    assert told_plain(kept(gettext("%(name)s") % {"name": "Files"})) == "Files"


def test_values_have_names() -> None:
    with pytest.raises(TypeError, match="named placeholders"):
        _ = gettext("%s rows") % 3
    with pytest.raises(KeyError):
        _ = gettext("%(n)s rows") % {"count": 3}


def test_what_is_lent_translates_refusals(german: German, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(german, "gettext", lambda text: f"<{text}>")
    assert Missing("file").message.startswith("<This missing:file does not exist")
    with pytest.raises(AddressRefused, match=r"^<Only addresses that begin with"):
        url_check("ftp://example.com/")


def test_without_a_framework_texts_are_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_lent", None)
    assert Missing("file").message == "This file does not exist, or you don't have access to it."
    assert told(kept(Missing("file").message)) == Missing("file").message


def test_django_lends_its_translations_at_start(settings: Any) -> None:
    assert isinstance(texts._lent, DjangoTranslations)
    assert texts._lent.gettext("") == ""


def test_a_text_that_is_too_long_loses_the_ends_of_its_values(german: German) -> None:
    """A column has an end: the words of ours stay, so that the text can still be told; a number is never cut."""
    text = gettext("The file %(name)s has %(size)s MB.") % {"name": "n" * 500, "size": "1,234,567"}
    nested = sentences(gettext("It is damaged."), gettext("Not kept: %(why)s") % {"why": text})
    for whole, most, said in (
        (text, 100, "1,234,567 MB hat die Datei "),
        (nested, 120, "Sie ist beschädigt. Nicht behalten: 1,234,567 MB hat die Datei "),
    ):
        row = shortened(whole, most).kept
        assert len(row) == most
        assert told_plain(row).startswith(f"{said}nnn")
        assert told_plain(row).endswith("n….")
        assert shortened(whole, 2_000) is whole
    for hopeless in (
        text,
        Told("The file " + "n" * 500),
        "The file " + "n" * 500,
    ):  # words of others, or no room
        row = shortened(hopeless, 30).kept
        assert len(row) <= 30
        assert row == english(row)
        assert row.startswith("The file n")
        assert row.endswith("…")
