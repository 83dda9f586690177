"""A repository comes into a collection whole: from the server, as an archive, as a folder; and what becomes of it then."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain

from apps.collections.files import services as files_services
from apps.collections.models import Collection, Import
from apps.collections.repositories import selectors as repositories
from apps.collections.repositories import services as repositories_services
from basics.errors import Conflict, Invalid
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.imports.support import paths, reasons, run, start

pytestmark = [pytest.mark.django_db, pytest.mark.servers]
ANN = b"Ann <ann@example.org>"


def commit(root: Path, message: str, files: dict[str, bytes | None]) -> None:
    """Write files (None deletes one) and commit them."""
    for name, content in files.items():
        path = root / name
        if content is None:
            porcelain.remove(str(root), paths=[str(path)])
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        porcelain.add(str(root), paths=[str(path)])
    porcelain.commit(str(root), message=message.encode(), author=ANN, committer=ANN)


@pytest.fixture
def repository(tmp_path: Path, settings: Any) -> Path:
    """A repository of three commits with what real ones have: ignored files, a picture, a rename."""
    root = tmp_path / "repos" / "app"
    root.mkdir(parents=True)
    settings.IMPORT_PATHS = [str(root.parent)]
    porcelain.init(str(root))
    lines = "".join(f"line {n}\n" for n in range(12))
    commit(root, "One", {"src/a.py": b"x = 1\n", "guide.md": lines.encode(), "logo.png": b"\x89PNG"})
    commit(root, "Two", {"src/a.py": b"x = 2\n", ".gitignore": b"*.log\nbuild/\n"})
    commit(root, "Three", {"docs/guide.md": (lines + "more\n").encode(), "guide.md": None})
    return root


def archived(root: Path, kind: str) -> bytes:
    """Return a folder as an archive, with its own name at the top."""
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for path in sorted(root.rglob("*")):
                archive.write(path, f"{root.name}/{path.relative_to(root)}")
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as packed:
            packed.add(root, arcname=root.name)
    return out.getvalue()


def asked(cast: Cast, collection: Collection, role: str = "member") -> dict[str, Any]:
    return {"actor": cast.actor(role), "collection": collection}


def subjects(cast: Cast, collection: Collection, **options: Any) -> list[str]:
    return [c["subject"] for c in repositories.git_log(**asked(cast, collection), **options)]


@pytest.fixture
def imported(cast: Cast, collection: Collection, repository: Path) -> Any:
    with tenant_scope(cast.tenant.pk):
        row = run(start(cast, collection, "git", path=str(repository)))
        assert (row.status, row.error_message) == ("completed", "")
        yield row


def test_repository_of_the_server_comes_whole(cast: Cast, collection: Collection, imported: Import) -> None:
    assert paths(collection) == ["app/docs/guide.md", "app/src/a.py"]
    assert reasons(imported) == {".gitignore": "hidden", "logo.png": "binary"}
    assert imported.entries["branch"] in ("master", "main")
    assert subjects(cast, collection) == ["Three", "Two", "One"]
    assert subjects(cast, collection, path="app/src/a.py") == ["Two", "One"]
    status = repositories.git_status(**asked(cast, collection))
    assert (status["repository"], status["changed"], status["untracked"]) == ("app", [], [])
    assert status["left_out"] == 2
    blame = repositories.git_blame(**asked(cast, collection), path="app/docs/guide.md")
    assert [(run["subject"], run["lines"], run["was"]) for run in blame["runs"]] == [
        ("One", 12, "app/guide.md"),
        ("Three", 1, ""),
    ]
    assert blame["text"][-1] == "more"


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archive_brings_files_as_they_are_and_the_history(
    cast: Cast, collection: Collection, repository: Path, kind: str
) -> None:
    (repository / "src/a.py").write_bytes(b"x = 3\n")
    (repository / "new.py").write_bytes(b"y = 1\n")
    (repository / "noise.log").write_bytes(b"noise\n")
    (repository / "build").mkdir()
    (repository / "build/out.txt").write_bytes(b"out\n")
    (repository / "docs/guide.md").unlink()
    with tenant_scope(cast.tenant.pk):
        data = archived(repository, kind)
        row = run(start(cast, collection, "archive", data=data, name=f"up.{kind}"))
        assert row.status == "completed"
        assert paths(collection) == ["up/app/new.py", "up/app/src/a.py"]
        assert reasons(row)["app/noise.log"] == reasons(row)["app/build/out.txt"] == "ignored"
        status = repositories.git_status(**asked(cast, collection))
        assert status["repository"] == "up/app"
        assert status["changed"] == [
            {"path": "up/app/docs/guide.md", "kind": "deleted"},
            {"path": "up/app/src/a.py", "kind": "modified"},
        ]
        assert status["untracked"] == ["up/app/new.py"]
        assert subjects(cast, collection) == ["Three", "Two", "One"]


def test_folder_brings_files_as_they_are_and_the_history(
    cast: Cast, collection: Collection, repository: Path
) -> None:
    (repository / "src/a.py").write_bytes(b"x = 3\n")
    (repository / "noise.log").write_bytes(b"noise\n")
    with tenant_scope(cast.tenant.pk):
        row = run(start(cast, collection, "folder", path=str(repository)))
        assert reasons(row)["noise.log"] == "ignored"
        (change,) = repositories.git_diff(**asked(cast, collection))
        assert "-x = 2\n+x = 3" in change.text


def test_what_no_commit_has_is_said(cast: Cast, collection: Collection, repository: Path) -> None:
    (repository / "src/a.py").write_bytes(b"x = 3\n")
    (repository / "new.py").write_bytes(b"y = 1\n")
    (repository / "noise.log").write_bytes(b"noise\n")
    (repository / "docs/guide.md").write_bytes(
        (repository / "docs/guide.md").read_bytes().replace(b"\n", b"\r\n")
    )
    with tenant_scope(cast.tenant.pk):
        row = run(start(cast, collection, "git", path=str(repository)))
        found = reasons(row)
        assert (found["src/a.py"], found["new.py"]) == ("uncommitted", "uncommitted")
        assert found["noise.log"] == "ignored"
        assert "docs/guide.md" not in found  # line ends that a filter of git would make equal
        assert row.entries["problems"] == 2


def test_commit_has_author_message_parent_and_tree(
    cast: Cast, collection: Collection, imported: Import, tmp_path: Path
) -> None:
    everything = asked(cast, collection)
    base = repositories.git_log(**everything, limit=1)[0]["id"]
    for path, content in (("app/src/a.py", "x = 9\n"), ("app/lib/new.py", "z = 1\n")):
        files_services.file_write(
            tenant=cast.tenant, **everything, path=path, content=content, may_overwrite=True
        )
    files_services.file_delete(tenant=cast.tenant, **everything, path="app/docs/guide.md")
    made = repositories_services.git_commit(
        tenant=cast.tenant, **everything, message="Change a\n\nBecause.", paths=["app/src"]
    )
    assert made.paths == ["app/src/a.py"]
    status = repositories.git_status(**everything)
    assert status["changed"] == [{"path": "app/docs/guide.md", "kind": "deleted"}]
    assert status["untracked"] == ["app/lib/new.py"]
    second = repositories_services.git_commit(tenant=cast.tenant, **everything, message="The rest")
    status = repositories.git_status(**everything)
    assert (status["changed"], status["untracked"], status["commit"]) == ([], [], second.commit)
    log = repositories.git_log(**everything, limit=2)
    assert [(one["id"], one["parents"]) for one in log] == [
        (second.commit, [made.commit]),
        (made.commit, [base]),
    ]
    user = cast.actor("member")
    assert log[1]["message"] == "Change a\n\nBecause.\n"
    assert f"<{cast.user('member').email}>" in log[1]["author"], user
    (change,) = repositories.git_diff(**everything, old=base, new=made.commit)
    assert "-x = 2\n+x = 9" in change.text
    with pytest.raises(Conflict, match="nothing to commit"):
        repositories_services.git_commit(tenant=cast.tenant, **everything, message="Nothing")
    with pytest.raises(Invalid):
        repositories_services.git_commit(tenant=cast.tenant, **everything, message="  ")
