"""Health checks tell the truth, and every refusal has the form its caller can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest
from django.test import Client, RequestFactory

from jobs.models import Worker
from tenancy import health as checks
from tenancy.database.base import as_login_role
from tests.cast import Cast
from web import health
from web.errors import server_error
from web.views import health as views_health


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was looked at yet, as in a process that has just started."""
    monkeypatch.setattr(checks, "_matched", False)
    monkeypatch.setattr(health, "_stored_at", -health.STORAGE_TRUSTED_S)


def readyz() -> tuple[int, dict[str, Any]]:
    response = Client().get("/readyz")
    return response.status_code, response.json()["checks"]


def test_healthz_looks_at_nothing(django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert Client().get("/healthz").json() == {"status": "ok"}


def test_readyz_is_ready_without_a_worker(db: None):
    assert not Worker.objects.exists()
    status, found = readyz()
    assert status == 200, found
    assert set(found) == {"database", "listen", "migrations", "storage"}


def test_a_process_that_is_ready_has_imported_no_migration(db: None, monkeypatch: pytest.MonkeyPatch):
    def imported(*_: Any) -> None:
        raise AssertionError("the migrations were imported")

    assert checks._migration_files() == checks._migrations_of_code()  # nothing is squashed now
    monkeypatch.setattr(checks, "_migrations_of_code", imported)
    monkeypatch.setattr(checks, "MigrationExecutor", imported)
    status, found = readyz()
    assert status == 200, found
    assert found["migrations"]["detail"] == "all applied"


def test_probe_that_is_not_ready_alarms_nobody(
    db: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    looks: list[str] = []

    def found() -> str:
        looks.append("one")
        return "DATABASE_URL (db.internal:6432) leads through a transaction pooler"

    monkeypatch.setattr(checks, "pooler_found", found)
    monkeypatch.setattr(checks, "_listens", False)
    monkeypatch.setattr(checks, "_pooler", None)
    for _ in range(3):  # whoever asks learns no address, and has no connections opened
        status, said = readyz()
        assert status == 503
        assert said["listen"]["detail"] == "leads through a transaction pooler"
        assert "db.internal" not in str(said)
    assert looks == ["one"]
    # One line for the operator, and none of "Service Unavailable".
    (line,) = [record.getMessage() for record in caplog.records]
    assert "db.internal:6432" in line
    # A fault in the probe itself is told of, and so are other requests that fail.
    with monkeypatch.context() as broken:
        broken.setattr(views_health, "readiness", lambda: 1 / 0)
        Client(raise_request_exception=False).get("/readyz")
    assert "Internal Server Error: /readyz" in caplog.text
    Client().get("/nothing-here")
    assert "Not Found: /nothing-here" in caplog.text


def test_readyz_fails_when_a_migration_is_missing(db: None):
    with as_login_role():
        MigrationRecorder.Migration.objects.filter(app="webhooks").order_by("-pk")[0].delete()
    status, found = readyz()
    assert status == 503
    assert "webhooks.0003_redundant_indexes" in found["migrations"]["detail"]


@pytest.mark.parametrize("app", ["runs", "an_app_of_tomorrow"])
def test_code_that_starts_on_a_newer_schema_says_so_by_name(db: None, app: str):
    with as_login_role():
        MigrationRecorder.Migration.objects.create(app=app, name="0099_tomorrow")
    status, found = readyz()
    assert status == 503
    assert f"newer than this code, which does not know: {app}.0099_tomorrow" in found["migrations"]["detail"]
    assert "release" in found["migrations"]["fix"]


def test_process_that_was_ready_serves_on_when_a_newer_schema_comes_and_names_it(db: None):
    """Else every process of the old release would leave at once, before the first of the new one can start."""
    assert readyz()[0] == 200
    with as_login_role():
        MigrationRecorder.Migration.objects.create(app="runs", name="0099_tomorrow")
    status, found = readyz()
    assert status == 200
    assert "runs.0099_tomorrow" in found["migrations"]["detail"]
    assert "Replace this process" in found["migrations"]["fix"]


def test_readyz_fails_where_nothing_can_be_stored(
    db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "files").write_text("a file where the folder should be")
    settings.MEDIA_ROOT = tmp_path / "files"
    status, found = readyz()
    assert status == 503
    assert not found["storage"]["ok"]
    assert str(tmp_path) not in str(found)
    (tmp_path / "files").unlink()
    assert readyz()[0] == 200
    assert list((tmp_path / "files" / "incoming").iterdir()) == [], "what the probe wrote is gone again"


def test_readyz_keeps_a_failures_text_to_the_log(db: None, monkeypatch):
    def broken() -> checks.Check:
        raise OperationalError("connection to 10.1.2.3 with password hunter2 failed")

    monkeypatch.setattr(checks, "check_database", broken)
    response = Client().get("/readyz")
    assert response.status_code == 503
    body = response.json()
    assert list(body["checks"]) == ["database", "storage"]
    assert "hunter2" not in response.content.decode()
    assert "10.1.2.3" not in response.content.decode()


def test_a_wrong_host_is_one_line_that_names_it(db: None, caplog: pytest.LogCaptureFixture, settings: Any):
    settings.ALLOWED_HOSTS = ["kb.example.org"]
    browser = Client(raise_request_exception=False)
    assert browser.head("/", headers={"host": "kb.example.org"}).status_code == 302
    caplog.clear()
    assert browser.get("/", headers={"host": "scan.example.net"}).status_code == 400
    (line,) = caplog.records
    assert "scan.example.net" in line.getMessage()
    assert line.exc_info is None
    browser.get("/nothing-here", headers={"host": "kb.example.org"})
    assert "Not Found: /nothing-here" in caplog.text


def test_a_refusal_is_one_line_and_a_fault_has_its_traceback(
    cast: Cast, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(request: Any) -> None:
        raise ValueError("a fault of ours")

    browser = Client(raise_request_exception=False)
    browser.force_login(cast.user("viewer"), "django.contrib.auth.backends.ModelBackend")
    assert browser.get("/admin/", follow=True).status_code == 403
    (line,) = [one for one in caplog.records if one.name == "django.request"]
    assert "Forbidden (Permission denied): /admin/login/" in line.getMessage()
    assert line.exc_info is None
    caplog.clear()
    monkeypatch.setattr(admin.site, "has_permission", broken)
    assert browser.get("/admin/").status_code == 500
    assert "a fault of ours" in caplog.text


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/nothing"])
def test_unknown_api_address_answers_in_the_one_shape(path: str, db):
    response = Client().get(path)
    assert response.status_code == 404
    assert set(response.json()) == {"code", "message", "details", "request_id"}


def test_method_that_is_not_there_is_405(cast: Cast):
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    response = client.delete("/api/v1/me", headers={"X-Tenant": cast.tenant.slug})
    assert response.status_code == 405
    assert response.json()["code"] == "method_not_allowed"
    head = client.head("/api/v1/me", headers={"X-Tenant": cast.tenant.slug})
    assert head.status_code == 200


def test_session_must_name_its_workspace(cast: Cast):
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    assert client.get("/api/v1/me").status_code == 400
    me = client.get("/api/v1/me", headers={"X-Tenant": cast.tenant.slug}).json()
    assert me["role"] == "owner"
    assert me["tenant"] == {"slug": cast.tenant.slug, "name": cast.tenant.name}


def test_session_cannot_write_without_a_csrf_token(cast: Cast):
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    response = client.post(
        "/api/v1/collections",
        {"name": "x"},
        content_type="application/json",
        headers={"X-Tenant": cast.tenant.slug},
    )
    assert response.status_code == 403
    assert set(response.json()) == {"code", "message", "details", "request_id"}


def test_htmx_gets_a_fragment_and_people_a_page(cast: Cast):
    client = Client()
    client.force_login(cast.user("viewer"), "django.contrib.auth.backends.ModelBackend")
    url = f"/t/{cast.tenant.slug}/settings/keys/"
    page, fragment = client.get(url), client.get(url, headers={"HX-Request": "true"})
    assert page.status_code == fragment.status_code == 403
    assert "<!doctype html>" in page.content.decode().lower()
    assert "<!doctype html>" not in fragment.content.decode().lower()
    assert "data-error" in fragment.content.decode()


def test_server_error_tells_its_number_and_nothing_else():
    request: HttpRequest = RequestFactory().get("/x")
    request.request_id = "abc12345"  # type: ignore[attr-defined]
    assert "abc12345" in server_error(request).content.decode()


@pytest.mark.parametrize("sent", ["short", "has space here", "a" * 37, "<script>alert</script>"])
def test_odd_request_id_is_replaced(sent: str, db):
    got = Client().get("/healthz", headers={"X-Request-ID": sent})["X-Request-ID"]
    assert got != sent
    assert len(got) == 32


def test_every_page_has_the_strict_policy(db):
    for path in ("/accounts/login/", "/api/docs/", "/nothing", "/healthz"):
        policy = Client().get(path)["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("slug", ["ACME", "a" * 60])
def test_workspace_that_cannot_be_is_asked_for_like_any_other(cast: Cast, slug: str):
    path = f"/t/{slug}/collections/"
    assert Client().get(path).status_code == 302
    client = Client()
    client.force_login(cast.user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("page", "back"),
    [
        ("https://any.example/t/acme/chat/7/?x=1#end", "/t/acme/chat/7/%3Fx%3D1"),
        ("https://any.example/accounts/", "/"),
        ("http://[", "/"),
    ],
    ids=["page", "no-workspace", "no-url"],
)
def test_expired_session_leads_back_to_the_page_that_was_open(page: str, back: str, db):
    asked = {"HX-Request": "true", "HX-Current-URL": page}
    refused = Client().post("/t/acme/chat/7/turns/", headers=asked)
    assert refused.status_code == 401
    assert refused["HX-Redirect"] == f"/accounts/login/?next={back}"
