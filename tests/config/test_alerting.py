"""Alerts that are told without Prometheus: once when they begin, each day, and when they are over, to whoever takes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command

from config import env
from config.operate import alerting
from config.operate.alerting import Watch
from config.operate.alerts import RULES, Alert
from tenancy.readings import Figure, readings

FAILED = next(Alert(rule, "") for rule in RULES if rule.name == "GroundworkBackupFailed")
AWAY = next(Alert(rule, "") for rule in RULES if rule.name == "GroundworkDatabaseAway")


class Chat:
    """A receiver of calls on a real socket, which refuses while it is told to."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.status = 200
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if chat.status == 200:
                    chat.said.append(said)
                self.send_response(chat.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/s3cret"


@pytest.fixture
def chat() -> Iterator[Chat]:
    found = Chat()
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[Alert]:
    """What fires now; a test changes it."""
    found: list[Alert] = []
    monkeypatch.setattr(alerting, "alerts_now", lambda figures: list(found))
    monkeypatch.setattr(readings, "figures", lambda: [Figure("backup_failed", "", 1)])
    return found


def statuses(chat: Chat) -> list[str]:
    return [alert["status"] for said in chat.said for alert in said["alerts"]]


@pytest.mark.django_db
def test_an_alert_is_told_once_by_all_processes_together_again_after_a_day_and_when_it_is_over(
    chat: Chat, now: list[Alert], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "_AGAIN_S", 350.0)  # a day
    settings.ALERTS_TO = (chat.url, "op@example.org")
    at = [1_000_000.0]
    web, worker = (Watch(tells_away=is_web, clock=lambda: at[0]) for is_web in (True, False))
    now.append(FAILED)
    mail.outbox.clear()
    assert (web.look(), worker.look()) == (0, 0)  # seen once: it may be over in a moment
    chat.status = 500
    assert (web.look(), worker.look()) == (1, 0)  # the mail alone
    (letter,) = mail.outbox
    assert letter.to == ["op@example.org"]
    assert "FIRING, warning: GroundworkBackupFailed" in letter.body
    chat.status = 200
    at[0] += 70
    assert (worker.look(), web.look()) == (1, 0)
    (said,) = chat.said
    assert "The last backup failed." in said["text"]
    assert (said["alerts"][0]["name"], said["alerts"][0]["status"]) == ("GroundworkBackupFailed", "firing")
    assert len(mail.outbox) == 1, "who has taken it is told nothing twice"
    for _ in range(5):
        at[0] += 80
        web.look()
    assert statuses(chat) == ["firing", "firing"]
    now.clear()
    assert web.look() == 0  # another process may still see it
    at[0] += 100
    assert (web.look(), worker.look()) == (2, 0)
    assert statuses(chat) == ["firing", "firing", "resolved"]
    assert "Over: The last backup failed." in chat.said[-1]["text"]
    assert len(mail.outbox) == 3


@pytest.mark.django_db
def test_an_alert_goes_on_while_nothing_looks_or_its_figure_cannot_be_read(
    chat: Chat, now: list[Alert], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALERTS_TO = (chat.url,)
    at = [1_000_000.0]

    def watch() -> Watch:
        return Watch(tells_away=False, clock=lambda: at[0])

    first = watch()
    now.append(FAILED)
    assert (first.look(), first.look()) == (0, 1)
    now[:] = [AWAY]  # for longer than an alert is believed that nobody sees
    first.look()
    at[0] += 200
    now[:] = [FAILED]
    assert (first.look(), first.look()) == (0, 0)
    at[0] += 200  # all processes were ended, and begin again
    second = watch()
    assert (second.look(), second.look()) == (0, 0)
    now.clear()
    monkeypatch.setattr(readings, "figures", list)
    for _ in range(4):
        at[0] += 60
        assert second.look() == 0
    at[0] += 3600
    assert second.look() == 1
    assert statuses(chat) == ["firing", "resolved"]


@pytest.mark.django_db
def test_a_database_that_is_away_is_told_by_web_servers_alone_without_asking_it(
    chat: Chat, now: list[Alert], settings: Any, django_assert_num_queries: Any
) -> None:
    settings.ALERTS_TO = (chat.url,)
    web, worker = Watch(tells_away=True), Watch(tells_away=False)
    now.append(AWAY)
    with django_assert_num_queries(0):
        assert [one.look() for one in (web, web, web, worker, worker)] == [0, 1, 0, 0, 0]
    now.clear()
    assert web.look() == 1
    assert statuses(chat) == ["firing", "resolved"]


def test_a_test_alert_says_who_did_not_take_it_and_no_secret(chat: Chat, settings: Any) -> None:
    settings.ALERTS_TO = (chat.url,)
    out = StringIO()
    call_command("alert_test", stdout=out)
    assert out.getvalue() == "receiver 1 took the test alert\n"
    assert "This is a test" in chat.said[0]["text"]
    chat.status = 404
    with pytest.raises(CommandError, match=r"^127\.0\.0\.1: it answered 404$"):
        call_command("alert_test")
    settings.ALERTS_TO = ()
    with pytest.raises(CommandError, match="set GROUNDWORK_ALERTS_TO"):
        call_command("alert_test")
    for wrong in ("http://chat.example", "https://[chat", "https://chat.example:99999", "ftp://chat.example"):
        with pytest.raises(env.SettingsError) as refused:
            env.get("GROUNDWORK_ALERTS_TO", {"GROUNDWORK_ALERTS_TO": f"op@example.org,{wrong}/hook/s3cret"})
        assert "s3cret" not in str(refused.value)
