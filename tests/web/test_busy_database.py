"""Every connection to the database is in use: callers are told to come back, in the form each of them reads."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx2
import psycopg
import pytest
from django.conf import settings

from tests.servers import Stack, database_url, wait_for, waiting_on

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]
KEY = {"Authorization": f"Bearer gw_abcdefghij_{'x' * 43}"}


def test_full_pool_is_503_with_retry_after_for_everybody(tmp_path: Path) -> None:
    stack = Stack(tmp_path, DJANGO_SETTINGS_MODULE="tests.web.small_pool")
    first: list[int] = []

    def send(path: str, **headers: str) -> httpx2.Response:
        cookies = f"{settings.SESSION_COOKIE_NAME}={'s' * 32}"
        if "Authorization" not in headers:
            headers["Cookie"] = cookies
        method = "POST" if path.endswith("/mcp") else "GET"
        return httpx2.request(method, stack.url + path, headers=headers, timeout=60)

    def refused(path: str, **headers: str) -> httpx2.Response:
        response = send(path, **headers)
        assert response.status_code == 503, response.text
        assert int(response.headers["Retry-After"]) > 0
        return response

    try:
        stack.start_web()
        with (
            psycopg.connect(database_url()) as holder,
            psycopg.connect(database_url(), autocommit=True) as other,
        ):
            holder.execute("LOCK TABLE tenancy_apikey, django_session IN ACCESS EXCLUSIVE MODE")
            one = threading.Thread(
                target=lambda: first.append(send("/api/v1/collections", **KEY).status_code)
            )
            one.start()
            wait_for(
                lambda: waiting_on(other, "tenancy_apikey"),
                "the first request to hold the only connection",
            )
            rest = refused("/api/v1/collections", **KEY).json()
            assert (rest["code"], rest["details"]) == ("database_busy", {"retry_after": 5})
            mcp = json.loads(refused("/t/acme/mcp", **KEY).content)
            assert mcp["error"]["data"]["code"] == "database_busy"
            assert "Try again" in mcp["error"]["message"]
            page = refused("/t/acme/collections/")
            assert "<h1>Too busy right now</h1>" in page.text
            fragment = refused("/t/acme/collections/", **{"HX-Request": "true"})
            assert 'role="alert"' in fragment.text
            assert "<html" not in fragment.text
            holder.rollback()
            one.join(30)
        assert first == [401]  # it waited, and then got its answer
        assert send("/api/v1/collections", **KEY).status_code == 401
    finally:
        stack.stop()
        print((tmp_path / "web.log").read_text(errors="replace")[-3000:])  # noqa: T201
