"""Which language a page speaks, and that no page speaks another reader's."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from tenancy.models import Role, User
from tenancy.services import invite_create
from tests.catalogs import catalog_write, languages_in
from tests.factories import actor_of, make_member, make_tenant, make_user
from tests.transactions import around_requests
from web.bundles import bundle_url
from web.reader_language import language_chosen, request_language
from web.reader_zone import reader_zone

LOGIN = "/accounts/login/"
ENGLISH, GERMAN, FRENCH = "Ask your documents. Check every answer.", "Frag deine Dokumente.", "Interrogez."


@pytest.fixture(autouse=True)
def languages(tmp_path: Path) -> Iterator[None]:
    for language, said in (("de", GERMAN), ("fr", FRENCH)):
        pages = {
            ENGLISH: said,
            "Language and time": f"{language}: Sprache",
            "Join %(workspace)s on Groundwork": f"{language}: %(workspace)s",
            "Nothing matches “%(query)s”.": f"{language}: nichts zu %(query)s",
        }
        catalog_write(tmp_path, language, pages, {"Dismiss": f"{language}: weg"})
    with languages_in(tmp_path):
        yield


def asked(accept: str = "", cookie: str = "", user: User | None = None, path: str = "/") -> HttpRequest:
    request = RequestFactory().get(path, headers={"Accept-Language": accept})
    if cookie:
        request.COOKIES["gw.language"] = cookie
    if user:
        request.user = user
    return request


def test_own_choice_is_before_the_cookie_before_the_browser_before_english() -> None:
    person, nobody = User(language="de"), User()
    assert request_language(asked("ja,fr;q=0.8,de;q=0.5", "fr", person)) == "de"
    assert request_language(asked("de", "fr", nobody)) == "fr"
    assert request_language(asked("ja, de-AT;q=0.9, fr;q=0.8", "", nobody)) == "de"
    assert request_language(asked("ja", "", nobody)) == "en"
    assert request_language(asked()) == "en"


def test_language_without_a_compiled_catalog_is_not_offered() -> None:
    assert request_language(asked("ar", "ja", User(language="es"))) == "en"
    page = Client().get(LOGIN).content.decode()
    assert "Deutsch" in page
    assert "日本語" not in page


@pytest.mark.parametrize(
    "path",
    ["/api/v1/me", "/admin/", "/scim/v2/Users", "/healthz", "/t/one/mcp", "/t/one/oauth/token", "/metrics"],
)
def test_programs_and_the_admin_site_are_answered_in_english(path: str) -> None:
    assert request_language(asked("de", "de", User(language="de"), path)) == "en"


def test_status_page_asks_nobody_who_reads_it() -> None:
    assert request_language(asked("", "fr", User(language="de"), "/status")) == "fr"


@pytest.mark.django_db
def test_api_answers_in_english_whatever_is_asked_for() -> None:
    member = make_member(make_tenant(), Role.MEMBER)
    User.objects.filter(pk=member.user_id).update(language="de")
    client = Client(headers={"Accept-Language": "de"})
    client.force_login(member.user)
    client.cookies["gw.language"] = "de"
    with around_requests():
        answers = [
            client.get(f"/api/v1/t/{member.tenant.slug}{path}") for path in ("/none/", "/documents/0/")
        ]
        answers.append(Client(headers={"Accept-Language": "de"}).get("/api/v1/collections/"))
    for got in answers:
        assert got.status_code in {401, 403, 404}
        assert got["Content-Type"] == "application/json"
        assert got.json()["message"].isascii()
        assert "Content-Language" not in got


def test_page_says_what_it_is_in() -> None:
    german = Client(headers={"Accept-Language": "de"}).get(LOGIN)
    assert GERMAN in german.content.decode()
    assert '<html lang="de" dir="ltr">' in german.content.decode()
    assert german["Content-Language"] == "de"
    assert {"Accept-Language", "Cookie"} <= {name.strip() for name in german["Vary"].split(",")}
    english = Client().get(LOGIN)
    assert '<html lang="en" dir="ltr">' in english.content.decode()
    assert english["Content-Language"] == "en"


def test_no_language_is_left_for_the_next_request() -> None:
    client = Client()
    for _number in range(3):
        for asks, said in (("de", GERMAN), ("", ENGLISH), ("fr", FRENCH), ("ja", ENGLISH)):
            page = client.get(LOGIN, headers={"Accept-Language": asks}).content.decode()
            assert [text for text in (ENGLISH, GERMAN, FRENCH) if text in page] == [said]
            assert get_language() == "en"


async def test_requests_at_once_speak_their_own_languages() -> None:
    asks = [("de", GERMAN), ("fr", FRENCH), ("ja", ENGLISH)] * 4
    pages = await asyncio.gather(
        *(AsyncClient().get(LOGIN, headers={"Accept-Language": a}) for a, _said in asks)
    )
    for (_asks, said), got in zip(asks, pages, strict=True):
        assert [text for text in (ENGLISH, GERMAN, FRENCH) if text in got.content.decode()] == [said]
    assert get_language() == "en"


async def test_streams_side_by_side_speak_their_own_languages_in_every_part() -> None:
    async def parts() -> AsyncIterator[str]:
        for _number in range(3):
            await asyncio.sleep(0)
            yield f"{_(ENGLISH)} {timezone.get_current_timezone_name()}"

    def view(request: HttpRequest) -> StreamingHttpResponse:
        return StreamingHttpResponse(parts(), content_type="text/event-stream")

    def opened(language: str, zone: str) -> AsyncIterator[bytes]:
        user = User(language=language, time_zone=zone)
        response: Any = language_chosen(view)(asked(user=user, path="/t/one/chat/1/"))
        assert response["Content-Language"] == language
        return aiter(response)

    german, french = opened("de", "Europe/Berlin"), opened("fr", "Asia/Tokyo")
    for _number in range(3):
        assert (await anext(german)).decode() == f"{GERMAN} Europe/Berlin"
        assert (get_language(), timezone.get_current_timezone_name()) == ("en", "UTC")
        assert (await anext(french)).decode() == f"{FRENCH} Asia/Tokyo"
    assert [part async for part in german] == []
    assert get_language() == "en"


@pytest.mark.django_db
def test_fragment_is_in_the_readers_language() -> None:
    member = make_member(make_tenant(), Role.VIEWER)
    User.objects.filter(pk=member.user_id).update(language="de")
    client = Client(headers={"HX-Request": "true"})
    client.force_login(member.user)
    with around_requests():
        got = client.get(reverse("web:palette", args=[member.tenant.slug]), {"q": "zzqx"})
    assert "de: nichts zu zzqx" in got.content.decode()
    assert "<html" not in got.content.decode()


@pytest.mark.django_db
def test_choice_in_the_account_is_kept_and_the_page_follows() -> None:
    user = make_user()
    client = Client()
    client.force_login(user)
    profile = reverse("web:profile")
    assert "Language and time" in client.get(profile).content.decode()
    chosen = {"language": "de", "time_zone": "Asia/Tokyo", "next": profile}
    page = client.post(reverse("web:language"), chosen, follow=True)
    assert page.redirect_chain == [(profile, 302)]
    assert "de: Sprache" in page.content.decode()
    user.refresh_from_db()
    assert (user.language, user.time_zone) == ("de", "Asia/Tokyo")
    client.post("/accounts/logout/")
    assert GERMAN in client.get(LOGIN).content.decode()  # the cookie speaks before the next sign-in
    client.force_login(user)
    client.post(reverse("web:language"), {"language": "", "time_zone": ""})
    user.refresh_from_db()
    assert (user.language, user.time_zone) == ("", "")
    assert "Language and time" in client.get(profile).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sent",
    [
        {"language": "xx"},
        {"language": "ja"},
        {"language": "de", "time_zone": "Mars/Base"},
        {"time_zone": "x"},
    ],
)
def test_what_is_not_offered_changes_nothing(sent: dict[str, str]) -> None:
    user = make_user(language="fr", time_zone="Asia/Tokyo")
    client = Client()
    client.force_login(user)
    assert client.post(reverse("web:language"), sent).status_code == 302
    user.refresh_from_db()
    assert (user.language, user.time_zone) == ("fr", "Asia/Tokyo")
    assert "gw.language" not in client.cookies


def test_switch_before_a_sign_in_leads_back_and_to_no_other_site() -> None:
    client, switch = Client(), reverse("web:language")
    back = f"{LOGIN}?next=/profile/"
    assert client.post(switch, {"language": "de", "next": back})["Location"] == back
    assert GERMAN in client.get(LOGIN).content.decode()
    assert 'aria-current="true"' in client.get(LOGIN).content.decode()
    assert client.post(switch, {"language": "fr", "next": "https://evil.example/"})["Location"] == "/"
    assert FRENCH in client.get(LOGIN).content.decode()


def test_own_time_zone_is_before_the_browsers() -> None:
    request = asked(user=User(time_zone="Asia/Tokyo"))
    request.COOKIES["gw.zone"] = "Europe/Berlin"
    assert str(reader_zone(request)) == "Asia/Tokyo"
    request.user = User()
    assert str(reader_zone(request)) == "Europe/Berlin"
    request.COOKIES["gw.zone"] = "Mars/Base"
    assert str(reader_zone(request)) == "UTC"


def test_pages_tell_times_in_the_readers_zone() -> None:
    noon = datetime.datetime(2026, 11, 27, 12, tzinfo=datetime.UTC)

    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(timezone.localtime(noon).strftime("%H:%M"))

    told = language_chosen(view)(asked(user=User(time_zone="Asia/Tokyo")))
    assert told.content == b"21:00"
    assert (
        language_chosen(view)(asked(user=User(time_zone="Asia/Tokyo"), path="/api/v1/x")).content == b"12:00"
    )


@pytest.mark.django_db
def test_mail_is_in_its_readers_language_whoever_sends_it(django_capture_on_commit_callbacks: Any) -> None:
    tenant = make_tenant()
    owner = actor_of(make_member(tenant, Role.OWNER))
    make_user("anna@example.org", language="de")
    for email in ("anna@example.org", "ben@example.org"):
        with django_capture_on_commit_callbacks(execute=True):
            invite_create(tenant=tenant, actor=owner, email=email, role=Role.MEMBER, link_for=str)
    sent = {message.to[0]: message.subject for message in mail.outbox}
    assert sent == {
        "anna@example.org": f"de: {tenant.name}",
        "ben@example.org": f"Join {tenant.name} on Groundwork",
    }


@pytest.mark.django_db
def test_mail_of_an_account_is_in_the_persons_language() -> None:
    make_user("anna@example.org", language="de")
    Client(headers={"Accept-Language": "fr"}).post("/accounts/password/reset/", {"email": "anna@example.org"})
    assert len(mail.outbox) == 1
    assert "Passwort" in mail.outbox[0].subject  # allauth's own German


def test_scripts_have_the_languages_words_in_their_bundle() -> None:
    page = Client(headers={"Accept-Language": "de"}).get(LOGIN).content.decode()
    address = page.split("/static/bundles/passkeys-de.")[1].split('"')[0]
    script = Client().get(f"/static/bundles/passkeys-de.{address}")
    assert "immutable" in script["Cache-Control"]
    assert '"Dismiss":"de: weg"' in script.content.decode()
    assert "gwWords={" not in Client().get(bundle_url("passkeys.js")).content.decode()
    for name in ("passkeys-ja.0.js", "passkeys-xx.0.js", "page-de.0.css", "chat-de.0.js"):
        assert Client().get(f"/static/bundles/{name}").status_code == 404
