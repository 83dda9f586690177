"""Behind a real PgBouncer that hands a server's connection to whoever comes next, every answer is still the asker's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from psycopg.conninfo import conninfo_to_dict

from tenancy.database.direct import is_shared, pooler_found
from tests.many_tenants import visit, workspaces_make
from tests.pgbouncer import SERVER_CONNECTIONS, pooled
from tests.servers import Stack, database_url

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def pooler(tmp_path: Path) -> Iterator[str]:
    with pooled(tmp_path / "pooler") as url:
        yield url


def test_every_answer_is_the_askers_own(pooler: str, tmp_path: Path) -> None:
    stack = Stack(tmp_path, DATABASE_URL=pooler, GROUNDWORK_LISTEN_URL=database_url())
    workspaces = workspaces_make(2 * SERVER_CONNECTIONS)
    try:
        stack.start()
        found = visit(lambda: stack.port, workspaces, requests=len(workspaces) * 20, at_once=8)
    finally:
        stack.stop()
    assert found.wrong == []
    assert found.right == len(workspaces) * 20


def test_a_pooler_is_known_by_its_transactions(pooler: str, tmp_path: Path) -> None:
    assert is_shared(dict(conninfo_to_dict(pooler)))
    assert not is_shared(dict(conninfo_to_dict(database_url())))
    with pooled(tmp_path / "sessions", mode="session") as sessions:
        assert not is_shared(dict(conninfo_to_dict(sessions)))


@pytest.mark.parametrize("command", ["worker", "prepare"])
def test_a_line_that_never_hears_is_refused_by_name(command: str, pooler: str, settings: Any) -> None:
    from config.env import database_settings

    settings.LISTEN_DATABASE = database_settings(pooler, pool=False)
    assert "GROUNDWORK_LISTEN_URL (127.0.0.1:" in pooler_found()
    with pytest.raises(CommandError, match=r"GROUNDWORK_LISTEN_URL .* transaction pooler"):
        call_command(command)


def test_readiness_names_it(pooler: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from config.env import database_settings
    from tenancy import health

    monkeypatch.setattr(health, "_listens", False)
    monkeypatch.setattr(health, "_pooler", None)
    settings.LISTEN_DATABASE = database_settings(pooler, pool=False)
    found = {check.name: check for check in health.database_checks()}["listen"]
    assert not found.ok
    assert "GROUNDWORK_LISTEN_URL" in found.error
    assert "127.0.0.1" not in found.detail + found.fix  # /readyz is public
