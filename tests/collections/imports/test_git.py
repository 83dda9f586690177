"""Git repositories become documents of one revision; what is no file of it is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain

from apps.collections.models import Collection
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.imports.support import paths, reasons, run, start

pytestmark = [pytest.mark.django_db, pytest.mark.servers]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repos" / "app"
    root.mkdir(parents=True)
    porcelain.init(str(root))
    (root / "guide.md").write_text("# Guide\n\nHow lamps are declared.")
    (root / "logo.png").write_bytes(b"x")
    (root / "link.md").symlink_to("/etc/passwd")
    porcelain.add(str(root), paths=[str(root / name) for name in ("guide.md", "logo.png", "link.md")])
    porcelain.commit(str(root), message=b"One", author=b"A <a@example.org>", committer=b"A <a@example.org>")
    return root


def test_repository_is_read_at_its_head_and_only_where_the_operator_allows(
    cast: Cast, collection: Collection, repository: Path, settings: Any
) -> None:
    with tenant_scope(cast.tenant.pk):
        row = run(start(cast, collection, "git", path=str(repository)))
        assert (row.status, row.error_code) == ("failed", "path_not_allowed")
        settings.IMPORT_PATHS = [str(repository.parent)]
        row = run(start(cast, collection, "git", path=str(repository)))
        assert (row.status, row.error_message) == ("completed", "")
        assert paths(collection) == ["app/guide.md"]
        assert reasons(row) == {"logo.png": "binary", "link.md": "link"}
        assert len(row.entries["commit"]) == 40
        row = run(start(cast, collection, "git", path=str(repository), ref="nowhere"))
        assert (row.status, row.error_code) == ("failed", "ref_missing")
        (repository / ".git" / "objects" / "info").mkdir(exist_ok=True)
        (repository / ".git" / "objects" / "info" / "alternates").write_text("/srv/other/objects")
        row = run(start(cast, collection, "git", path=str(repository)))
        assert (row.status, row.error_code) == ("failed", "repository_borrows")
