"""Django's cache is one for all processes: what allauth counts, locks and remembers in it holds everywhere."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.totp.internal import auth
from django.core.cache import cache
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenancy.models import User
from web.models import SharedValue
from web.shared_cache import SharedCache, values_expire

PASSWORD = "a right password 4711"


@pytest.mark.django_db
def test_values_are_kept_until_their_time_is_over() -> None:
    here, there = SharedCache("", {}), SharedCache("", {})
    assert there.get("a", "none") == "none"
    here.set("a", [1.5, "two"], 60)
    assert there.get("a") == [1.5, "two"]
    assert not there.add("a", 2, 60)
    here.set("a", None, 60)
    assert there.get("a", "none") is None
    SharedValue.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert there.get("a", "none") == "none"
    assert not there.delete("a")
    here.set("b", 1, 0)
    assert there.get("b") is None
    assert values_expire() == 1
    here.set("a", 1, None)
    assert there.add("c", 1)
    assert there.delete("c")
    here.clear()
    assert there.get("a") is None


@pytest.mark.django_db(transaction=True)
def test_of_several_that_lock_at_once_one_does() -> None:
    start, got = threading.Barrier(8), list[bool]()

    def lock() -> None:
        try:
            start.wait(60)
            got.append(SharedCache("", {}).add("lock", True, 60))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=lock) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]
    SharedValue.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert cache.add("lock", True, 60), "one that was not given back is free again"


@pytest.mark.django_db
def test_code_that_was_used_works_at_no_other_process(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MFA_TOTP_PERIOD = 3600
    monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    person, secret = User.objects.create_user("owner@example.org", PASSWORD), auth.generate_totp_secret()
    auth.TOTP.activate(person, secret)
    code = auth.format_hotp_value(auth.hotp_value(secret, next(auth.yield_hotp_counters_from_time())))
    seen = []
    for _ in range(2):
        browser = Client()
        browser.post(reverse("account_login"), {"login": person.email, "password": PASSWORD})
        seen.append(browser.post(reverse("mfa_authenticate"), {"code": code}).status_code)
        assert SharedValue.objects.exists(), "remembered in the table, not in this process"
    assert seen == [302, 200]


@pytest.mark.django_db
def test_mails_that_allauth_counts_are_counted_in_the_table() -> None:
    User.objects.create_user("owner@example.org", PASSWORD)
    Client().post(reverse("account_reset_password"), {"email": "owner@example.org"})
    assert SharedValue.objects.exists()
    assert "owner" not in str(list(SharedValue.objects.values_list("key", "value")))
