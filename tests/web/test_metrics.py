"""``/metrics`` of a web process: for whoever has the token, and with nothing in it that people wrote."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.exceptions import DisallowedHost
from django.http import HttpResponse
from django.test import AsyncRequestFactory, Client, RequestFactory, override_settings
from django.urls import path

from basics import metrics
from tests.cast import make_cast
from tests.exposition import parsed, said_here
from web.handler import Handler

TOKEN = "0123456789abcdef-secret"


@pytest.fixture
def token(settings) -> str:
    settings.METRICS_TOKEN = TOKEN
    return TOKEN


def ask(authorization: str | None, host: str = "testserver") -> Any:
    headers = {} if authorization is None else {"Authorization": authorization}
    return Client(headers=headers).get("/metrics", headers={"Host": host})


@pytest.mark.django_db
@pytest.mark.parametrize("authorization", [None, "Bearer ", f"Bearer {TOKEN}", "Bearer"])
def test_without_a_token_there_is_no_such_address(settings, authorization: str | None) -> None:
    settings.METRICS_TOKEN = ""
    answer = ask(authorization)
    assert answer.status_code == 404
    assert b"groundwork_" not in answer.content


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer  {TOKEN}",
        "Bearer \u00e4\u00f6\u00fc",
        "Bearer " + "x" * 5000,
    ],
)
def test_with_a_wrong_token_nothing_is_told(token: str, authorization: str | None) -> None:
    answer = ask(authorization)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"groundwork_" not in answer.content
    assert TOKEN.encode() not in answer.content


@pytest.mark.django_db(transaction=True)
def test_with_the_token_it_is_told_whatever_the_host_is_called(token: str, settings) -> None:
    settings.ALLOWED_HOSTS = ["kb.example.org"]
    with pytest.raises(DisallowedHost):
        RequestFactory().get("/", HTTP_HOST="10.1.2.3:8000").get_host()
    answer = ask(f"Bearer {token}", host="10.1.2.3:8000")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer["Cache-Control"] == "no-store"
    assert parsed(answer.content.decode()).value("groundwork_database_up") == 1
    assert Client(headers={"Authorization": f"Bearer {token}"}).post("/metrics").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_a_session_opens_nothing(token: str) -> None:
    cast = make_cast()
    browser = Client()
    browser.force_login(cast.user("owner"))
    assert browser.get("/metrics").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_requests_are_counted_by_route_and_never_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metrics.HTTP_SECONDS, "_children", {}
    )  # tests before may have asked for each route there is
    cast = make_cast()
    before = said_here()
    browser = Client()
    browser.force_login(cast.user("member"))
    address = f"/t/{cast.tenant.slug}/collections/"
    assert browser.get(address).status_code == 200
    assert browser.get("/no/such/address-of-mine").status_code == 404
    after = said_here()

    def grown(**labels: str) -> float:
        name = "groundwork_http_request_seconds_count"
        return after.value(name, **labels) - before.value(name, **labels)

    assert grown(route="collections:list", status="2xx") == 1, sorted(after.label_values())
    assert grown(route="unmatched", status="4xx") == 1
    assert grown() == 2
    told = " ".join(after.label_values())
    assert cast.tenant.slug not in told
    assert "address-of-mine" not in told


def test_a_view_that_is_served_by_the_loop_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.HTTP_SECONDS, "_children", {})

    async def answer(request) -> HttpResponse:
        return HttpResponse(status=503)

    async def ask() -> None:
        handler = Handler()
        handler.load_middleware(is_async=True)
        assert (await handler.get_response_async(AsyncRequestFactory().get("/slow"))).status_code == 503

    before = said_without_database()
    with override_settings(
        ROOT_URLCONF=(path("slow", answer, name="slow"),), MIDDLEWARE=["web.metrics.requests_measured"]
    ):
        asyncio.run(ask())
    assert said_without_database() - before == 1


def said_without_database() -> float:
    from prometheus_client import generate_latest

    said = parsed(generate_latest(metrics.registry_fresh()).decode())
    return said.value("groundwork_http_request_seconds_count", status="5xx", route="slow")


def test_labels_stay_few_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", 3)
    counter = metrics.Counter("test_few", "Of a test.", ("name", "outcome"), kept=("outcome",))
    try:
        for number in range(50):
            counter.add(f"name-{number}", "ok" if number % 5 else "failed")
        found = {
            (s.labels["name"], s.labels["outcome"]): s.value
            for f in counter.family().collect()
            for s in f.samples
            if s.name.endswith("_total")
        }
    finally:
        metrics._all.remove(counter)
    assert found == {
        ("name-0", "failed"): 1,
        ("name-1", "ok"): 1,
        ("name-2", "ok"): 1,
        ("other", "ok"): 38,
        ("other", "failed"): 9,
    }


@pytest.mark.django_db(transaction=True)
def test_two_scrapes_at_once_read_the_database_once(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenancy.readings import readings

    looks: list[int] = []
    look = readings._look

    def counted() -> None:
        looks.append(1)
        look()

    monkeypatch.setattr(readings, "_look", counted)
    readings.forget()
    for _ in range(3):
        assert ask(f"Bearer {token}").status_code == 200
    assert len(looks) == 1
