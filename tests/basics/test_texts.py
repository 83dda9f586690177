"""The basics know no framework, and their refusals still come in the reader's language."""

from __future__ import annotations

import pytest
from django.utils import translation

from basics import texts
from basics.errors import Missing
from basics.net_guard import AddressRefused, url_check


def test_what_is_lent_translates_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_gettext", lambda text: f"<{text}>")
    monkeypatch.setattr(texts, "_pgettext", lambda context, text: f"{context}:{text}")
    assert Missing("file").message.startswith("<This missing:file does not exist")
    with pytest.raises(AddressRefused, match=r"^<Only addresses that begin with"):
        url_check("ftp://example.com/")


def test_without_a_framework_texts_are_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_gettext", None)
    monkeypatch.setattr(texts, "_pgettext", None)
    assert Missing("file").message == "This file does not exist, or you don't have access to it."


def test_django_lends_its_translations_at_start() -> None:
    assert (texts._gettext, texts._pgettext) == (translation.gettext, translation.pgettext)
