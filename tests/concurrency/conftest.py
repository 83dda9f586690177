"""One running product for the whole folder: starting it costs more than most of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.concurrency import holds, programs
from tests.concurrency.bad_files import READER_MB
from tests.fake_provider import FakeProvider, running
from tests.servers import Stack

WORKERS = 10  # so that every point of the ingestion can be held at once, and one process stays free
MAX_UPLOAD_MB = 64
STREAMING = "fake-search1-words80-gap50"
SENDING = "fake-search1-use_send_notice"
LOOKING_UP = "fake-search1-use_look_up"
SUMMARISING = "fake-points"
STEPS = "fake-steps"
MODELS = (STREAMING, SENDING, LOOKING_UP, SUMMARISING, STEPS, programs.MODEL)


@dataclass(frozen=True)
class Site:
    """The running product, what can hold its worker, and the model server behind it."""

    stack: Stack
    holds: holds.Holds
    model_server: FakeProvider


@pytest.fixture(scope="package")
def site(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Web server and worker with a lease of 5 s, on the test database."""
    folder = tmp_path_factory.mktemp("holds")
    with running() as (model_url, model_server), django_db_blocker.unblock():
        stack = Stack(
            tmp_path_factory.mktemp("servers"),
            DJANGO_SETTINGS_MODULE="tests.concurrency.settings",
            GROUNDWORK_JOB_LEASE_S="5",
            GROUNDWORK_WORKERS=str(WORKERS),
            GROUNDWORK_MAX_UPLOAD_MB=str(MAX_UPLOAD_MB),
            GROUNDWORK_INGEST_MEMORY_MB=str(READER_MB),
            GROUNDWORK_COMPATIBLE_BASE_URL=model_url,
            GROUNDWORK_COMPATIBLE_MODELS=",".join(MODELS),
            **{holds.FOLDER: str(folder)},
        )
        try:
            stack.start()
            yield Site(stack, holds.Holds(folder), model_server)
        finally:
            stack.stop()
            for log in stack.logs.iterdir():
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")  # noqa: T201


@pytest.fixture
def cast(site: Site, transactional_db: None) -> Cast:
    """A fresh tenant whose rows the running product sees; the tests' own tools may be called there."""
    site.holds.clear()
    cast = make_cast()
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.all().delete()
        grant_create(
            tenant=cast.tenant, actor=cast.actor("owner"), effect="allow", target_kind="pattern", target="*"
        )
    return cast
