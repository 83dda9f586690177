"""A workspace with a row of everything, and a data directory of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from blobs.stores import store
from erasure.models import LegalHold
from tenancy.models import AuditChain, TenantModel
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope
from tests.permissions.world import Side


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    """A data directory that nobody else uses; erasures are due at once."""
    settings.DATA_DIR, settings.MEDIA_ROOT = tmp_path / "data", tmp_path / "data" / "files"
    settings.MEDIA_ROOT.mkdir(parents=True)
    settings.FILES_URL, settings.BACKUP_URL = "", ""
    settings.ERASURE_GRACE_DAYS = 0
    return Path(settings.DATA_DIR)


@pytest.fixture
def at_once(settings: Any) -> None:
    """Rules begin when they are set."""
    settings.ERASURE_GRACE_DAYS = 0
    settings.READ_AUDIT_DAYS, settings.RETENTION_DAYS, settings.CONVERSATION_DAYS = 0, 0, 0


@pytest.fixture
def side() -> Side:
    """A workspace."""
    return Side()


def rows_of(side: Side, role: str = "owner") -> list[TenantModel]:
    """Return a row of every table that a workspace can have, made for the person of a role."""
    made: list[TenantModel] = []
    for model in tenant_models():
        if model is AuditChain:  # which the database has written with the first event
            with platform_scope():
                made += AuditChain.objects.filter(tenant=side.tenant)
        else:
            made.append(side.row(model._meta.label, role))
    with platform_scope():
        LegalHold.objects.filter(tenant=side.tenant).update(released_at=timezone.now())
    return made


def files_of(tenant_id: int, home: Path, content: str) -> list[Path]:
    """Write files where a workspace's originals, exports, copies and caches are."""
    made = [
        home / "cache" / "blobs" / f"t{tenant_id}" / "7" / "aa" / "copy",
        home / "cache" / "pages" / f"t{tenant_id}" / "aa" / "page.webp",
        home / "cache" / "imports" / f"t{tenant_id}-1-abc" / "part",
        home / "trees" / f"t{tenant_id}" / "7" / "file.md",
        home / "files" / f"t{tenant_id}" / "7" / "aa" / "original",
        home / "files" / f"t{tenant_id}" / "datasets" / "1" / "export.jsonl",
    ]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert store().is_local
    return made


__all__ = ["files_of", "home", "rows_of"]
