"""The session that a request reads is what Django's own store reads, and nothing where that finds nothing."""

from __future__ import annotations

import pytest
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from web.sessions import SessionStore


@pytest.mark.django_db
def test_sessions_are_read_as_django_reads_them() -> None:
    ours, theirs = SessionStore(), db.SessionStore()
    for store in (ours, theirs):  # either reads what the other has written: an upgrade signs nobody out
        store["said"] = {"é": [1, None]}
        store.save()
    for key in (ours.session_key, theirs.session_key):
        assert (
            dict(SessionStore(key).items())
            == dict(db.SessionStore(key).items())
            == {"said": {"é": [1, None]}}
        )
    Session.objects.filter(session_key=ours.session_key).update(expire_date=timezone.now())
    for key in (ours.session_key, "x" * 32, "' OR true --"):
        for kind in (SessionStore, db.SessionStore):
            found = kind(key)
            assert (dict(found.items()), found.session_key) == ({}, None)
