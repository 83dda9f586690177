"""Limits before anybody is known hold over all web processes: one count in the database, taken whole or not at all."""

from __future__ import annotations

import http.cookiejar
import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tenancy.models import User
from tests.cast import make_cast
from tests.servers import Stack, database_url
from web import attempts, windows
from web.models import AttemptWindow
from web.oauth.views import PER_MINUTE
from web.sweeps import old_rows_sweep
from web.windows import FullWindow, Window, windows_take, windows_undo

EMAIL, PASSWORD = "owner@example.org", "a right password 4711"


@pytest.fixture
def two_webs(transactional_db: None, tmp_path: Path) -> Iterator[list[Stack]]:
    """Two web processes on one database, as behind a balancer."""
    stacks = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        stacks.append(Stack(tmp_path / name))
    try:
        for stack in stacks:
            stack.start_web()
        yield stacks
    finally:
        for stack in stacks:
            stack.stop()


def sign_in(url: str, password: str) -> int:
    """Return the status of one attempt by a browser that was never here."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    page = browser.open(f"{url}/accounts/login/", timeout=60).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    form = {"login": EMAIL, "password": password, "csrfmiddlewaretoken": token[1]}
    return status(browser, f"{url}/accounts/login/", urllib.parse.urlencode(form).encode())


def status(browser: urllib.request.OpenerDirector, url: str, body: bytes, kind: str = "") -> int:
    headers = {"Content-Type": kind} if kind else {}
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    try:
        with browser.open(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.servers
def test_wrong_passwords_split_over_two_processes_meet_one_limit(two_webs: list[Stack]) -> None:
    User.objects.create_user(EMAIL, PASSWORD)
    seen = [sign_in(two_webs[n % 2].url, "wrong") for n in range(attempts.PER_ACCOUNT + 3)]
    assert seen == [200] * attempts.PER_ACCOUNT + [429] * 3
    assert [sign_in(stack.url, PASSWORD) for stack in two_webs] == [429, 429], (
        "the right one could be guessed on"
    )


@pytest.mark.servers
def test_registrations_of_applications_split_over_two_processes_meet_one_limit(two_webs: list[Stack]) -> None:
    slug = make_cast().tenant.slug
    key = Window("oauth:register:127.0.0.1", PER_MINUTE["register"], 60)
    for _ in range(PER_MINUTE["register"] - 2):
        assert windows_take(key) is None

    def register(stack: Stack) -> int:
        said = json.dumps({"redirect_uris": ["http://127.0.0.1/"]}).encode()
        url = f"{stack.url}/t/{slug}/oauth/register"
        return status(urllib.request.build_opener(), url, said, "application/json")

    assert [register(stack) for stack in (*two_webs, *two_webs)] == [201, 201, 429, 429]


@pytest.mark.django_db(transaction=True)
def test_attempts_at_the_same_moment_are_counted_one_by_one() -> None:
    start, results = threading.Barrier(8), list[FullWindow | None]()

    def attempt(number: int) -> None:
        try:
            start.wait(60)
            # In either order: locks taken as they are named would wait for each other for ever.
            names = ["a", "b"] if number % 2 else ["b", "a"]
            results.extend(windows_take(*(Window(name, 10, 300) for name in names)) for _ in range(5))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=attempt, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40
    assert sum(one is None for one in results) == 10


@pytest.mark.django_db
def test_all_windows_count_or_none_and_an_undo_makes_room() -> None:
    small, large = Window("small", 1, 60), Window("large", 5, 300)
    assert windows_take(small, large) is None
    full = windows_take(large, small)
    assert full is not None
    assert (full.window, 0 < full.wait_s <= 60) == (small, True)
    assert sorted(len(one.taken) for one in AttemptWindow.objects.all()) == [1, 1]
    windows_undo(small, large)
    assert windows_take(small, large) is None
    windows_undo(small)
    windows_undo(small)  # more than there are: nothing happens
    assert windows_take(small) is None


@pytest.mark.django_db
def test_window_slides_and_what_is_too_old_is_swept() -> None:
    old, new = Window("old", 1, 60), Window("new", 1, 60)
    assert windows_take(old) is None
    ago = timezone.now() - timedelta(seconds=61)
    AttemptWindow.objects.update(taken=[ago], forget_at=ago + timedelta(seconds=60))
    assert windows_take(new) is None
    assert old_rows_sweep() == 1
    assert [len(one.taken) for one in AttemptWindow.objects.all()] == [1]
    assert windows_take(new) is not None
    AttemptWindow.objects.update(taken=[ago])
    assert windows_take(new) is None


@pytest.mark.django_db
def test_table_holds_no_address_and_is_kept_out_of_the_log_of_changes() -> None:
    windows_take(Window("address:198.51.100.7", 30, 60))
    (row,) = AttemptWindow.objects.values_list("key", flat=True)
    assert re.fullmatch(r"[0-9a-f]{64}", row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'web_attemptwindow'")
        assert cursor.fetchone()[0] == "u"
    assert windows._hashed("address:198.51.100.7") == row


@pytest.mark.django_db(transaction=True)
def test_sweep_waits_for_no_attempt_that_is_being_counted() -> None:
    ago = timezone.now() - timedelta(seconds=5)
    AttemptWindow.objects.create(key="k", taken=[], forget_at=ago)
    with psycopg.connect(database_url()) as other:
        other.execute("SELECT 1 FROM web_attemptwindow FOR UPDATE")
        assert windows.windows_expire() == 0
    assert windows.windows_expire() == 1


@pytest.mark.django_db
def test_who_is_refused_leaves_no_rows_for_the_keys_that_they_make_up() -> None:
    full = Window("full", 1, 60)
    assert windows_take(full) is None
    for number in range(3):
        refused = windows_take(Window(f"made up {number}", 5, 300), full)
        assert refused is not None
        assert refused.window == full
    assert [len(one.taken) for one in AttemptWindow.objects.all()] == [1]


@pytest.mark.django_db
def test_sweep_goes_on_in_batches_until_nothing_old_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_BATCH", 2)
    ago = timezone.now() - timedelta(seconds=5)
    AttemptWindow.objects.bulk_create(AttemptWindow(key=f"{n}", taken=[], forget_at=ago) for n in range(5))
    assert windows_take(Window("new", 1, 60)) is None
    with CaptureQueriesContext(connection) as said:
        assert windows.windows_expire() == 5
    assert len(said) == 3
    assert AttemptWindow.objects.count() == 1
