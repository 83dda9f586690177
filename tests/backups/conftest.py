"""An installation with some of everything, and servers that know nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.collections.documents import services
from apps.collections.models import Collection, Document
from backups.manifest import Manifest
from backups.scratch import pointed_at
from backups.services import backup_create
from config import env
from config.embedded import EmbeddedPostgres
from tenancy.database.base import APP_ROLE, PLATFORM_ROLE
from tenancy.scope import tenant_scope
from tenancy.services import credential_set
from tests.cast import Cast, make_cast
from tests.collections.conftest import LAMPS, WordEmbedder, embedder, ingest, read_at_once
from tests.databases import database_drop
from tests.factories import make_collection

__all__ = ["embedder"]
ODD = "# Odd\n\nA tab\there, a backslash \\\\n, \\N, a dot:\n\n\\.\n\nüñîçødé \U0001f980 and the end.\n" * 3
SEAL = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass
class Installation:
    """What is in it.

    Attributes:
        home: its data directory.
        place: a folder for backups.
    """

    cast: Cast
    collection: Collection
    document: Document
    home: Path
    place: Path

    def backup(self, **options: Any) -> Manifest:
        """Write a backup."""
        return backup_create(str(self.place), **options)


@pytest.fixture
def installation(
    transactional_db: None,
    settings: Any,
    tmp_path_factory: pytest.TempPathFactory,
    embedder: WordEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> Installation:
    """Two workspaces with people, documents, credentials and an audit trail, committed."""
    read_at_once(monkeypatch)
    home = tmp_path_factory.mktemp("home")
    settings.DATA_DIR, settings.MEDIA_ROOT = home, home / "files"
    settings.SECRET_KEY_FALLBACKS = []
    cast = make_cast()
    collection = make_collection(cast.tenant, "Trade", chunk_size=400, chunk_overlap=50)
    other = make_collection(cast.other_tenant, "Other")
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
        ingest(cast, collection, "odd.md", ODD.encode())
        credential_set(
            tenant=cast.tenant, actor=cast.actor("owner"), provider="openai", secret="sk-of-the-tenant-1234"
        )
    with tenant_scope(cast.other_tenant.pk):
        services.document_upload(
            tenant=cast.other_tenant,
            actor=cast.actor("outsider"),
            collection=other,
            name="o.md",
            chunks=[b"# Other"],
        )
        credential_set(
            tenant=cast.other_tenant,
            actor=cast.actor("outsider"),
            provider="anthropic",
            secret="sk-of-the-other-56789",
        )
    return Installation(cast, collection, document, home, tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="session")
def bare_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A server of its own; ``elsewhere`` sees to it that it has none of our roles."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("bare") / "data", durable=False) as server:
        yield server


@dataclass
class Elsewhere:
    """An empty installation.

    Attributes:
        url: of its database.
        home: its data directory.
    """

    url: str
    home: Path
    settings: Any

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Work there."""
        before = self.settings.DATA_DIR, self.settings.MEDIA_ROOT
        self.settings.DATA_DIR, self.settings.MEDIA_ROOT = self.home, self.home / "files"
        try:
            with pointed_at(env.database_settings(self.url, pool=False)):
                yield
        finally:
            self.settings.DATA_DIR, self.settings.MEDIA_ROOT = before


@pytest.fixture
def elsewhere(
    bare_server: EmbeddedPostgres, settings: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Elsewhere]:
    """An empty database on a server that has none of our roles, and an empty data directory."""
    with psycopg.connect(bare_server.url, autocommit=True) as line:
        database_drop(line, "target")
        for role in (APP_ROLE, PLATFORM_ROLE):
            line.execute(f"DROP ROLE IF EXISTS {role}")
        line.execute("CREATE DATABASE target")
        roles = line.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'groundwork\\_%'").fetchone()
        assert roles == (0,)
    url = bare_server.url.rpartition("/")[0] + "/target"
    yield Elsewhere(url, tmp_path_factory.mktemp("elsewhere"), settings)
    with psycopg.connect(bare_server.url, autocommit=True) as line:
        database_drop(line, "target")
