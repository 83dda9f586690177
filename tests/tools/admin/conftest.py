"""Browsers of the admin: signed in as the owner, as somebody of another workspace, and as the operator."""

from __future__ import annotations

import pytest
from django.test import Client

from tenancy.models import User
from tests.cast import Cast


@pytest.fixture
def owner(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def outsider(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("outsider"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    root = User.objects.create_superuser("root@example.org", "secret-password")
    client.force_login(root, "django.contrib.auth.backends.ModelBackend")
    return client
