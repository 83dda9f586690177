"""Status, diff and log of a repository in a collection, and repositories that were made to do harm."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain

from apps.collections import services
from apps.collections.file_checks import git_diff, git_log, git_status
from apps.collections.file_store import trees_folder
from apps.collections.models import Collection
from basics.errors import Denied, DomainError
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.collections.source_tree.conftest import Write

pytestmark = [pytest.mark.django_db, pytest.mark.servers]


@pytest.fixture
def reading(cast: Cast, collection: Collection, scope: None) -> dict[str, Any]:
    return {"actor": cast.actor("member"), "collection": collection}


@pytest.fixture
def repository(cast: Cast, collection: Collection, scope: None, tmp_path: Path) -> Path:
    """A repository of two commits, imported; returns its .git folder in the collection's tree."""
    source = tmp_path / "source"
    source.mkdir()
    repo = porcelain.init(str(source))
    (source / "a.py").write_text("x = 1\n")
    (source / "b.txt").write_text("bee\n")
    for message, text in (("First\n\nAt length.", "x = 1\n"), ("Second", "x = 2\n")):
        (source / "a.py").write_text(text)
        porcelain.add(repo, paths=[str(source / "a.py"), str(source / "b.txt")])
        porcelain.commit(repo, message=message.encode(), author=b"Ann <ann@example.org>", committer=b"Ann <ann@example.org>")  # fmt: skip
    repo.close()
    entries = [
        (str(path.relative_to(source)), path.read_bytes())
        for path in sorted(source.rglob("*"))
        if path.is_file()
    ]
    services.files_import(
        tenant=cast.tenant, actor=cast.actor("member"), collection=collection, entries=entries
    )
    return Path(trees_folder(), f"t{cast.tenant.pk}", str(collection.pk), ".git")


def test_log_diff_and_status_tell_what_changed(
    repository: Path, reading: dict[str, Any], write: Write
) -> None:
    log = git_log(**reading)
    assert [row["subject"] for row in log] == ["Second", "First"]
    assert log[1]["message"].strip().endswith("At length.")
    assert log[0]["author"].startswith("Ann")
    assert [row["subject"] for row in git_log(**reading, path="b.txt")] == ["First"]
    assert [row["subject"] for row in git_log(**reading, skip=1, limit=1)] == ["First"]
    (change,) = git_diff(**reading, old=log[1]["id"], new=log[0]["id"][:8])
    assert (change.path, change.kind) == ("a.py", "modified")
    assert "-x = 1\n+x = 2" in change.text
    assert git_diff(**reading) == []
    status = git_status(**reading)
    assert (status["staged"], status["changed"], status["untracked"]) == ([], [], [])
    assert status["branch"] in ("master", "main")
    write("a.py", "x = 3\n")
    write("new.txt", "new\n")
    status = git_status(**reading)
    assert status["changed"] == [{"path": "a.py", "kind": "modified"}]
    assert status["untracked"] == ["new.txt"]
    (change,) = git_diff(**reading)
    assert "-x = 2\n+x = 3" in change.text
    for bad in ("nothing", "../../etc/passwd", "refs/../../x", "--help", "0" * 40):
        with pytest.raises(DomainError):
            git_log(**reading, ref=bad)


def test_packed_repository_is_read(
    repository: Path, reading: dict[str, Any], cast: Cast, tmp_path: Path
) -> None:
    bare = tmp_path / "packed"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        subprocess.run(
            ["git", "clone", "-q", str(tmp_path / "source"), str(bare)], check=True, env=env
        )
        subprocess.run(["git", "-C", str(bare), "repack", "-adq"], check=True, env=env)
        subprocess.run(["git", "-C", str(bare), "pack-refs", "--all"], check=True, env=env)
    except FileNotFoundError:
        pytest.skip("no git program here to pack a repository with")
    for path in sorted(repository.rglob("*"), reverse=True):
        path.unlink() if not path.is_dir() else path.rmdir()
    entries = [
        (str(path.relative_to(bare)), path.read_bytes()) for path in bare.rglob("*") if path.is_file()
    ]  # fmt: skip
    services.files_import(
        tenant=cast.tenant, actor=cast.actor("member"), collection=reading["collection"], entries=entries
    )  # fmt: skip
    assert list((repository / "objects" / "pack").glob("*.pack"))
    assert [row["subject"] for row in git_log(**reading)] == ["Second", "First"]
    assert git_status(**reading)["changed"] == []


def test_collection_without_repository_says_so(reading: dict[str, Any], write: Write) -> None:
    write("a.txt", "x\n")
    with pytest.raises(DomainError, match="no repository"):
        git_log(**reading)


def test_nothing_is_run_and_nothing_outside_is_read_when_repository_is_hostile(
    repository: Path, reading: dict[str, Any], tmp_path: Path
) -> None:
    proof = tmp_path / "ran"
    for name in ("post-checkout", "pre-commit", "post-index-change", "fsmonitor-watchman"):
        hook = repository / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
        hook.chmod(0o755)
    (repository / "config").write_text(
        f'[core]\n\tfsmonitor = "touch {proof}"\n\tsshCommand = touch {proof}\n\tpager = touch {proof}\n'
        f'\tworktree = /etc\n[filter "x"]\n\tclean = touch {proof}\n\tsmudge = touch {proof}\n\tprocess = touch {proof}\n'
        f"[diff]\n\texternal = touch {proof}\n[include]\n\tpath = /etc/passwd\n[alias]\n\tlog = !touch {proof}\n"
    )
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text("* filter=x diff=x\n")
    (repository / "objects" / "info").mkdir(exist_ok=True)
    (repository / "objects" / "info" / "alternates").write_text("/etc\n../../../../outside\n")
    (repository / "commondir").write_text("/etc\n")
    assert len(git_log(**reading)) == 2
    assert git_status(**reading)["changed"] == []
    assert len(git_diff(**reading, old="HEAD", new="HEAD")) == 0
    assert not proof.exists()


@pytest.mark.parametrize("trick", ["head-link", "git-link", "git-file", "objects-link", "ref-up", "ref-loop", "pack-fifo"])  # fmt: skip
def test_repository_that_points_elsewhere_is_refused(
    repository: Path, reading: dict[str, Any], tmp_path: Path, trick: str
) -> None:
    outside = tmp_path / "source" / ".git"  # a real repository: what leads there would answer
    head = repository / "HEAD"
    if trick == "head-link":
        head.unlink()
        head.symlink_to(outside / "HEAD")
    elif trick == "git-link":
        repository.rename(tmp_path / "away")
        repository.symlink_to(outside)
    elif trick == "git-file":
        repository.rename(tmp_path / "away")
        repository.write_text(f"gitdir: {outside}\n")
    elif trick == "objects-link":
        (repository / "objects").rename(tmp_path / "away")
        (repository / "objects").symlink_to(outside / "objects")
    elif trick == "ref-up":
        head.write_text("ref: refs/../../../../source/.git/HEAD\n")
    elif trick == "ref-loop":
        (repository / "refs" / "heads" / "loop").write_text("ref: refs/heads/loop\n")
        head.write_text("ref: refs/heads/loop\n")
    else:
        folder = repository / "objects" / "pack"
        folder.mkdir(exist_ok=True)
        os.mkfifo(folder / "pack-1.idx")
        os.mkfifo(folder / "pack-1.pack")
    began = time.monotonic()
    with pytest.raises(DomainError):
        git_log(**reading)
    assert time.monotonic() - began < 20


def test_bomb_in_a_loose_object_is_stopped(repository: Path, reading: dict[str, Any]) -> None:
    packer = zlib.compressobj(9)
    size = 2_000_000_000
    stream = io.BytesIO(packer.compress(f"commit {size}\0".encode()))
    stream.seek(0, os.SEEK_END)
    block = bytes(10_000_000)
    for _ in range(20):
        stream.write(packer.compress(block))
    stream.write(packer.flush())
    sha = "ab" * 20
    target = repository / "objects" / sha[:2] / sha[2:]
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(stream.getvalue())
    with pytest.raises(DomainError):
        git_log(**reading, ref=sha)


def test_bomb_in_a_pack_is_stopped(repository: Path, reading: dict[str, Any]) -> None:
    folder = repository / "objects" / "pack"
    folder.mkdir(exist_ok=True)
    (folder / "pack-x.pack").write_bytes(b"PACK" + struct.pack(">LL", 2, 2**31) + bytes(100))
    (folder / "pack-x.idx").write_bytes(b"\377tOc" + struct.pack(">L", 2) + b"\xff" * 1100)
    with pytest.raises(DomainError):
        git_log(**reading)


def test_history_is_closed_to_who_may_not_see_all_documents(
    repository: Path, reading: dict[str, Any], cast: Cast
) -> None:
    document = upload(cast, reading["collection"], "pay.txt", b"secret\n")
    services.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=document, is_restricted=True, roles=["owner"]
    )  # fmt: skip
    for ask in (git_log, git_status, git_diff):
        with pytest.raises(Denied):
            ask(**reading)
    assert len(git_log(actor=cast.actor("owner"), collection=reading["collection"])) == 2
