"""The guide for users: its pages and their names of buttons, /help/, and the "?" of every page of the portal."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import polib
import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from config.catalogs import LOCALE
from tests.catalogs import catalog_write, languages_in
from tests.factories import make_user
from tests.permissions.rows import PERSONAL, PORTAL
from tests.permissions.test_matrix import signed_in
from tests.permissions.urls import all_urls
from tests.permissions.world import Side
from tests.web.page_help import WITHOUT_HELP
from web.guide.pages import INDEX, _guide_page, guide_names, guide_page, picture_names
from web.guide.topics import TOPICS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)]+)\)")


@cache
def texts() -> frozenset[str]:
    """Every text that the portal shows, without markup and up to its first value."""
    found: set[str] = set()
    for entry in polib.pofile(str(LOCALE / "de" / "LC_MESSAGES" / "django.po")):
        plain = " ".join(re.sub(r"<[^>]+>", "", entry.msgid).split())
        found |= {plain, plain.partition(" %(")[0]}
    return frozenset(found)


def bold_of(text: str) -> list[str]:
    return [" ".join(name.split()).rstrip(".") for name in BOLD.findall(text)]


# --- the pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_the_guide_sets_in_bold_is_on_the_pages(path: Path) -> None:
    assert [name for name in bold_of(path.read_text(encoding="utf-8")) if name not in texts()] == []


def test_a_button_that_is_not_there_is_found() -> None:
    assert "New collection" in texts()
    assert bold_of("Click **Make\n  a coffee** and **New collection**.") == [
        "Make a coffee",
        "New collection",
    ]
    assert "Make a coffee" not in texts()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_link_and_picture_of_the_guide_is_there(path: Path) -> None:
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [target for _, _, target in links if not (GUIDE / target).is_file()] == []
    for is_picture, said, target in links:
        assert said.strip()
        if is_picture:
            assert {Path(target).name, Path(target).with_suffix(".webp").name} <= picture_names().keys()
        else:
            assert Path(target).stem in guide_names()


def test_every_page_is_in_the_index_once() -> None:
    index = (GUIDE / f"{INDEX}.md").read_text(encoding="utf-8")
    listed = [Path(target).stem for is_picture, _, target in LINK.findall(index) if not is_picture]
    assert sorted(listed) == sorted(set(guide_names()) - {INDEX})


def test_pages_of_the_guide_are_short_and_begin_with_what_they_are_for() -> None:
    assert 10 <= len(PAGES) <= 24
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert len(text.split()) < 700, f"{path.name}: split it"
        assert text.split("\n\n")[1][0].isalpha()


# --- /help/ ---------------------------------------------------------------------------------------------


@pytest.fixture
def reader(db: None) -> Client:
    client = Client()
    client.force_login(make_user("reader@example.com"))
    return client


def test_every_page_is_served_with_links_and_pictures_that_work(reader: Client) -> None:
    addresses = {reverse("web:help")}
    asked: set[str] = set()
    while new := addresses - asked:
        asked |= new
        for address in new:
            page = reader.get(address)
            assert page.status_code == 200, address
            if page["Content-Type"].startswith("text/html"):
                article = page.content.decode().partition("<article")[2].partition("</article>")[0]
                addresses |= set(re.findall(r'(?:href|src)="(/help/[^"]*)"', article))
    assert {reverse("web:help-page", args=[name]) for name in guide_names() if name != INDEX} < asked
    pictures = [address for address in asked if "/pictures/" in address]
    assert pictures
    for address in pictures:
        picture = reader.get(address)
        assert picture.content.startswith(b"\x89PNG")
        assert "immutable" in picture["Cache-Control"]
        assert "no-cache" in reader.get(address.partition("?")[0])["Cache-Control"]


@pytest.mark.parametrize(
    "address",
    [
        "/help/nothing/",
        "/help/../README.md",
        "/help/pictures/take.py",
        "/help/pictures/..%2f..%2fREADME.md",
        "/help/pictures/../../manage.py",
        "/help/pictures/%2fetc%2fpasswd",
    ],
)
def test_nothing_else_is_served(reader: Client, address: str) -> None:
    assert reader.get(address).status_code == 404


def test_strangers_sign_in_first(client: Client) -> None:
    for name, arguments in (("help", []), ("help-page", ["ask"]), ("help-picture", ["chat.png"])):
        answer = client.get(reverse(f"web:{name}", args=arguments))
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_login"))


def test_reader_of_another_language_is_told_that_the_guide_is_english(reader: Client, tmp_path: Path) -> None:
    said = "The guide is available in English only."
    page = reader.get(reverse("web:help"))
    assert said not in page.content.decode()
    assert '<article class="md guide" lang="en" dir="ltr">' in page.content.decode()
    catalog_write(tmp_path, "de", {said: "Nur auf Englisch."})
    with languages_in(tmp_path):
        page = reader.get(reverse("web:help"), headers={"Accept-Language": "de"})
    assert "Nur auf Englisch." in page.content.decode()


def test_html_of_the_guide_is_clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "hostile.md"
    path.write_text(
        "# A <b onclick='x()'>title</b>\n\n<script>alert(1)</script>\n\n[a](javascript:x()) [b](../secret.md)"
    )
    monkeypatch.setattr("web.guide.pages.guide_names", lambda: {"hostile": path})
    html = _guide_page.__wrapped__("hostile", "en").html
    assert "<script" not in html
    assert "<b" not in html
    assert 'href="javascript' not in html


def test_buttons_of_a_page_speak_the_language_of_each_reader(tmp_path: Path) -> None:
    catalog_write(tmp_path, "de", {"Copy this table": "Tabelle kopieren"})
    _guide_page.cache_clear()
    with languages_in(tmp_path):
        for language, said in (
            ("de", "Tabelle kopieren"),
            ("en", "Copy this table"),
            ("de", "Tabelle kopieren"),
        ):
            with override(language):
                assert f'aria-label="{said}"' in guide_page("tools").html
    _guide_page.cache_clear()


# --- the "?" of pages -----------------------------------------------------------------------------------


def test_every_topic_leads_to_a_page_and_says_two_sentences() -> None:
    seen: list[str] = []
    for topic in TOPICS:
        assert topic.page in guide_names()
        with override("en"):
            assert len(re.findall(r"[.!?](?=\s|$)", str(topic.text))) == 2, topic.text
        seen += topic.urls
    assert len(seen) == len(set(seen)), "a page has one topic"
    assert set(seen) <= {name for name, _ in all_urls()}
    assert {topic.page for topic in TOPICS} >= set(guide_names()) - {
        INDEX,
        "first-steps",
        "unsupported",
        "charts",
        "two-models",
    }


def test_pages_without_help_are_pages_that_the_matrix_asks_for() -> None:
    """There ``tests.web.page_help`` is held to each of them."""
    assert set(WITHOUT_HELP) <= {row.url for row in PORTAL if row.method == "GET"} | set(PERSONAL)
    assert not set(WITHOUT_HELP) & {url for topic in TOPICS for url in topic.urls}


def test_help_says_what_the_page_is_for_and_weighs_less_than_a_kilobyte(db: None) -> None:
    side = Side()
    page = signed_in(side, "owner").get(reverse("collections:list", args=[side.tenant.slug])).content.decode()
    start = page.index('popovertarget="page-help"')
    help_ = page[page.rindex("<button", 0, start) : page.index("</div>", start)]
    assert len(help_.encode()) < 1024
    assert "A collection holds documents that belong together." in help_
    assert reverse("web:help-page", args=["documents"]) in help_
    assert 'id="page-help" class="page-help" popover' in help_
