"""Sign-in and its kin wear the product's look, and every template compiles in the real configuration."""

from __future__ import annotations

import re
from pathlib import Path

import allauth
import polib
import pytest
from django.template.loader import get_template
from django.test import Client
from django.urls import reverse

from config.catalogs import LOCALE
from tests.cast import Cast
from tests.walked import each
from web import account_texts

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
NAMES = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html"))


@each("name", NAMES)
def test_template_compiles(name: str):
    get_template(name)


def assert_ours(html: str) -> None:
    """Assert our frame, a label for every visible field, and nothing the policy would refuse."""
    assert 'class="entrance"' in html
    assert "bundles/page." in html
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=", html)
    for tag in re.findall(r"<(?:input|textarea|select)[^>]*>", html):
        if 'type="hidden"' in tag or 'type="submit"' in tag:
            continue
        found = re.search(r'\bid="([^"]+)"', tag)
        assert found, tag
        assert f'for="{found.group(1)}"' in html, f"no label: {tag}"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["account_login", "account_signup", "account_reset_password"])
def test_page_before_sign_in_wears_our_look(client: Client, name: str):
    response = client.get(reverse(name))
    assert response.status_code == 200
    assert_ours(response.content.decode())


@pytest.mark.parametrize("name", ["account_email", "mfa_index", "account_logout"])
def test_page_of_the_own_account_wears_our_look(client: Client, cast: Cast, name: str):
    client.force_login(cast.owner.user)
    response = client.get(reverse(name))
    assert response.status_code == 200
    assert_ours(response.content.decode())


@pytest.mark.django_db
def test_refused_sign_in_says_why_at_the_form(client: Client):
    body = {"login": "nobody@example.org", "password": "wrong-wrong"}
    response = client.post(reverse("account_login"), body)
    html = response.content.decode()
    assert_ours(html)
    assert 'role="alert"' in html
    assert "nobody@example.org" in html
    assert "Remember me" in html


CAPITALS = {"JavaScript", "Browser", "Date"}  # a name, and what lines of a list begin with


def test_what_allauth_says_is_in_our_words():
    """English in sentence case with one spelling of email; all other languages have the texts in catalogs of ours."""
    said = {entry.msgid: entry for entry in polib.pofile(str(LOCALE / "en" / "LC_MESSAGES" / "django.po"))}
    theirs = polib.pofile(str(Path(allauth.__file__).parent / "locale" / "de" / "LC_MESSAGES" / "django.po"))
    assert {*account_texts.TEXTS} <= {entry.msgid for entry in theirs}
    for entry in theirs:
        if not any(re.search(r"^(templates/)?(account|mfa)/", place) for place, _ in entry.occurrences):
            continue
        ours = (
            said[entry.msgid].msgstr or said[entry.msgid].msgstr_plural[0]
            if entry.msgid in said
            else entry.msgid
        )
        assert "e-mail" not in ours.lower()
        for sentence in re.split(r"[.?!:(]|\n\n|<[^>]*>", re.sub(r"%\(\w+\)s|\{\w+\}", "x", ours)):
            capitals = re.findall(r"(?<=[\s-])[A-Z][a-z]+\w*", sentence.strip(" \n-"))
            assert {*capitals} <= CAPITALS, ours
