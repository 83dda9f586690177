"""A repository in a collection: what it tells and to whom, and repositories that were made to do harm."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.repo import Repo

from apps.collections.collection import services as collection_services
from apps.collections.documents import access
from apps.collections.documents import services as documents_services
from apps.collections.files import services as files_services
from apps.collections.models import Collection, Document, Import, Repository, RepositoryPack
from apps.collections.repositories import services as repositories_services
from apps.collections.repositories.selectors import git_blame, git_diff, git_log, git_status
from basics.errors import Conflict, Denied, DomainError, Invalid
from blobs.stores import store
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.collections.files.conftest import Write
from tests.collections.imports.support import paths, reasons, run, start

pytestmark = [pytest.mark.django_db, pytest.mark.servers]
ANN = b"Ann <ann@example.org>"
Bring = Callable[..., Import]


def told(row: Import) -> bool:
    """Tell whether an import says that a history, or a part of it, was not kept."""
    return "history" in {problem["reason"] for problem in row.problems}


@pytest.fixture
def reading(cast: Cast, collection: Collection, scope: None) -> dict[str, Any]:
    return {"actor": cast.actor("member"), "collection": collection}


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> Path:
    """A repository of two commits with its working tree."""
    root = tmp_path / "repos" / "source"
    root.mkdir(parents=True)
    settings.IMPORT_PATHS = [str(root.parent)]
    porcelain.init(str(root)).close()
    (root / "b.txt").write_text("bee\n")
    for message, text in (("First\n\nAt length.", "x = 1\n"), ("Second", "x = 2\n")):
        (root / "a.py").write_text(text)
        porcelain.add(str(root), paths=[str(root / "a.py"), str(root / "b.txt")])
        porcelain.commit(str(root), message=message.encode(), author=ANN, committer=ANN)
    return root


def _newest(source: Path) -> Commit:
    with Repo(str(source)) as repo:
        found = repo[repo.head()]
    assert isinstance(found, Commit)
    return found


@pytest.fixture
def bring(cast: Cast, collection: Collection, scope: None, source: Path) -> Bring:
    """Import the repository's folder to the top of the collection; returns the import."""

    def work(kind: str = "folder", into: str = "", path: str = "", **options: Any) -> Import:
        return run(start(cast, collection, kind, path=path or str(source), into=into, **options))

    return work


@pytest.fixture
def repository(bring: Bring, collection: Collection) -> Repository:
    """The repository, imported."""
    assert reasons(bring()) == {".git/": "ignored"}
    return Repository.objects.get(collection=collection)


def test_log_diff_status_and_blame_tell_what_changed(
    repository: Repository, reading: dict[str, Any], write: Write
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
    assert git_diff(**reading, old="HEAD~1", new="HEAD") == [change]
    assert [one.kind for one in git_diff(**reading, old="HEAD~2", new="HEAD^")] == ["added"] * 2
    assert git_diff(**reading) == []
    status = git_status(**reading)
    assert (status["changed"], status["untracked"]) == ([], [])
    assert status["branch"] in ("master", "main")
    write("a.py", "x = 3\n")
    write("new.txt", "new\n")
    status = git_status(**reading)
    assert status["changed"] == [{"path": "a.py", "kind": "modified"}]
    assert status["untracked"] == ["new.txt"]
    (change,) = git_diff(**reading)
    assert "-x = 2\n+x = 3" in change.text
    assert [run["subject"] for run in git_blame(**reading, path="a.py")["runs"]] == ["Second"]
    for bad in ("nothing", "../../etc/passwd", "refs/../../x", "--help", "0" * 40, "HEAD~9"):
        with pytest.raises(DomainError):
            git_log(**reading, ref=bad)
    with pytest.raises(DomainError, match="no file"):
        git_blame(**reading, path="none.py")


def test_collection_without_repository_says_so(reading: dict[str, Any], write: Write) -> None:
    write("a.txt", "x\n")
    with pytest.raises(DomainError, match="no repository"):
        git_log(**reading)
    with pytest.raises(DomainError, match="no repository"):
        git_blame(**reading, path="a.txt")


def test_nothing_but_objects_and_refs_is_kept_and_nothing_is_run(
    bring: Bring, source: Path, reading: dict[str, Any], tmp_path: Path
) -> None:
    proof, control = tmp_path / "ran", source / ".git"
    newest = (control / "refs" / "heads" / "master").read_text().strip()
    first = _newest(source).parents[0]
    for name in (
        "post-checkout",
        "pre-commit",
        "post-index-change",
        "fsmonitor-watchman",
        "reference-transaction",
    ):
        hook = control / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
        hook.chmod(0o755)
    (control / "config").write_text(
        f'[core]\n\tfsmonitor = "touch {proof}"\n\tsshCommand = touch {proof}\n\tpager = touch {proof}\n'
        f'\tworktree = /etc\n[filter "x"]\n\tclean = touch {proof}\n\tsmudge = touch {proof}\n\tprocess = touch {proof}\n'
        f'[diff]\n\texternal = touch {proof}\n[diff "x"]\n\ttextconv = touch {proof}\n[include]\n\tpath = /etc/passwd\n'
        f"[alias]\n\tlog = !touch {proof}\n[remote]\n\tpushDefault = ext::sh -c touch% {proof}\n"
    )
    (control / "info").mkdir(exist_ok=True)
    (control / "info" / "attributes").write_text("* filter=x diff=x\n")
    (control / "info" / "grafts").write_text(f"{'1' * 40} {'2' * 40}\n")
    (control / "refs" / "replace").mkdir()
    (control / "refs" / "replace" / newest).write_bytes(first + b"\n")
    for kind in ("folder", "git"):
        assert bring(kind).status == "completed"
        assert [row["subject"] for row in git_log(**reading)] == ["Second", "First"]
        assert git_status(**reading)["changed"] == []
        assert git_diff(**reading, old="HEAD", new="HEAD") == []
    row = Repository.objects.get()
    assert list(row.refs) == ["refs/heads/master"]
    assert RepositoryPack.objects.filter(repository=row).count() == 1
    assert not proof.exists()


@pytest.mark.parametrize(
    "trick",
    [
        "alternates",
        "commondir",
        "git-link",
        "git-file",
        "head-link",
        "objects-link",
        "ref-up",
        "ref-loop",
        "pack-fifo",
        "object-link",
    ],
)
def test_repository_that_points_elsewhere_brings_no_history(
    bring: Bring, source: Path, reading: dict[str, Any], tmp_path: Path, trick: str
) -> None:
    control = source / ".git"
    outside = tmp_path / "outside"  # a real repository: what leads there would answer
    porcelain.init(str(outside)).close()
    (outside / "secret.txt").write_text("secret\n")
    porcelain.add(str(outside), paths=[str(outside / "secret.txt")])
    porcelain.commit(str(outside), message=b"Secret", author=ANN, committer=ANN)
    head = control / "HEAD"
    if trick == "alternates":
        (control / "objects/info").mkdir(exist_ok=True)
        (control / "objects/info/alternates").write_text(f"{outside}/.git/objects\n")
    elif trick == "commondir":
        (control / "commondir").write_text(f"{outside}/.git\n")
    elif trick == "head-link":
        head.unlink()
        head.symlink_to(outside / ".git/HEAD")
    elif trick == "git-link":
        control.rename(tmp_path / "away")
        control.symlink_to(outside / ".git")
    elif trick == "git-file":
        control.rename(tmp_path / "away")
        control.write_text(f"gitdir: {outside}/.git\n")
    elif trick == "objects-link":
        (control / "objects").rename(tmp_path / "away")
        (control / "objects").symlink_to(outside / ".git/objects")
    elif trick == "object-link":
        (control / "objects/aa").mkdir(exist_ok=True)
        (control / "objects/aa" / ("b" * 38)).symlink_to("/etc/passwd")
    elif trick == "ref-up":
        head.write_text("ref: refs/../../../outside/.git/refs/heads/master\n")
    elif trick == "ref-loop":
        (control / "refs/heads/master").write_text("ref: refs/heads/master\n")
    else:
        (control / "objects/pack").mkdir(exist_ok=True)
        os.mkfifo(control / "objects/pack/pack-1.pack")
    row = bring()
    assert row.status == "completed"  # the files come in all the same
    assert told(row)
    if trick == "ref-loop":
        with pytest.raises(DomainError):
            git_diff(**reading, old="master")
    else:
        with pytest.raises(DomainError, match="no repository"):
            git_log(**reading)


def _pack(*objects: bytes, count: int | None = None) -> bytes:
    body = b"PACK" + struct.pack(">LL", 2, len(objects) if count is None else count)
    body += b"".join(objects)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _number(size: int) -> bytes:
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size])


def _entry(kind: int, size: int, rest: bytes) -> bytes:
    head = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + rest


def _delta_bomb() -> bytes:
    """Return a pack of some hundred bytes whose second object says, truly, that it has 640 MB."""
    base, copies = bytes(0x10000), 10_000
    delta = _number(len(base)) + _number(len(base) * copies) + b"\x80" * copies
    first = _entry(3, len(base), zlib.compress(base, 9))
    return _pack(first, _entry(6, len(delta), _offset(len(first)) + zlib.compress(delta, 9)))


def _offset(back: int) -> bytes:
    out = [back & 127]
    while back := back >> 7:
        back -= 1
        out.insert(0, back & 127 | 128)
    return bytes(out)


HOSTILE_PACKS = {
    "claims billions": lambda: b"PACK" + struct.pack(">LL", 2, 2**31) + bytes(100),
    "cut off": lambda: _pack(_entry(3, 5, zlib.compress(b"hello")), count=2),
    "wrong checksum": lambda: _pack(_entry(3, 5, zlib.compress(b"hello")))[:-1] + b"\0",
    "says less than it holds": lambda: _pack(_entry(3, 5, zlib.compress(bytes(50_000_000), 9))),
    "delta of nothing": lambda: _pack(_entry(7, 4, b"\1" * 20 + zlib.compress(b"\0\0\0\0"))),
    "delta of itself": lambda: _pack(_entry(6, 4, b"\0" + zlib.compress(b"\0\0\0\0"))),
    "delta bomb": _delta_bomb,
    "no pack": lambda: b"\xff" * 64,
}


@pytest.mark.parametrize("kind", list(HOSTILE_PACKS))
def test_pack_that_was_made_to_do_harm_brings_no_history(
    bring: Bring, source: Path, reading: dict[str, Any], kind: str
) -> None:
    folder = source / ".git/objects/pack"
    folder.mkdir(exist_ok=True)
    (folder / "pack-x.pack").write_bytes(HOSTILE_PACKS[kind]())
    (folder / "pack-x.idx").write_bytes(b"\377tOc" + struct.pack(">L", 2) + b"\xff" * 1100)
    row = bring()
    assert row.status == "completed"
    assert told(row)
    assert "a.py" in paths(reading["collection"])
    assert not RepositoryPack.objects.exists()


def test_loose_object_that_unpacks_to_too_much_brings_no_history(bring: Bring, source: Path) -> None:
    packer = zlib.compressobj(9)
    packed = packer.compress(b"blob 200000000\0")
    for _ in range(20):
        packed += packer.compress(bytes(10_000_000))
    target = source / ".git/objects/ab" / ("cd" * 19)
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(packed + packer.flush())
    assert told(bring())
    assert not Repository.objects.exists()


def test_object_has_the_name_of_its_bytes_whatever_its_file_is_called(
    bring: Bring, source: Path, reading: dict[str, Any]
) -> None:
    """A loose object under the name of the newest commit, with another commit in it, is that other one."""
    control = source / ".git"
    newest = (control / "refs/heads/master").read_text().strip()
    forged = Commit()
    forged.tree = _newest(source).tree
    forged.author = forged.committer = b"Eve <eve@example.org>"
    forged.author_time = forged.commit_time = 1
    forged.author_timezone = forged.commit_timezone = 0
    forged.message = b"Forged"
    target = control / "objects" / newest[:2] / newest[2:]
    target.chmod(0o600)
    target.write_bytes(b"".join(forged.as_legacy_object_chunks()))
    assert told(bring())
    with pytest.raises(DomainError):
        git_log(**reading)


def _tree(repo: Repo, *entries: tuple[bytes, int, bytes]) -> ObjectID:
    tree = Tree()
    for name, mode, sha in entries:
        tree.add(name, mode, ObjectID(sha))
    repo.object_store.add_object(tree)
    return tree.id


def _committed(source: Path, tree: ObjectID) -> None:
    repo = Repo(str(source))
    made = Commit()
    made.tree = tree
    made.author = made.committer = b"Eve <eve@example.org>"
    made.author_time = made.commit_time = 1_900_000_000
    made.author_timezone = made.commit_timezone = 0
    made.message = b"Hostile"
    made.parents = [repo.head()]
    repo.object_store.add_object(made)
    (source / ".git/refs/heads/master").write_bytes(made.id + b"\n")
    repo.close()


def test_names_of_a_tree_that_lead_elsewhere_become_nothing(
    bring: Bring, source: Path, reading: dict[str, Any]
) -> None:
    repo, blob = Repo(str(source)), Blob.from_string(b"evil = 1\n")
    repo.object_store.add_object(blob)
    bad = [b".g\xe2\x80\x8cit", b"a\\..\\b.py", b"\xff.py", b"C:x.py", b".git "]
    entries: list[tuple[bytes, int, bytes]] = [(name, 0o100644, blob.id) for name in bad]
    link, module = Blob.from_string(b"/etc/passwd"), b"1" * 40
    repo.object_store.add_object(link)
    entries += [(b"link.py", 0o120000, link.id), (b"sub", 0o160000, module), (b"good.py", 0o100644, blob.id)]
    pointer = Blob.from_string(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n")
    repo.object_store.add_object(pointer)
    entries += [(b"large.txt", 0o100644, pointer.id)]
    _committed(source, _tree(repo, *sorted(entries)))
    row = bring("git")
    assert paths(reading["collection"]) == ["good.py"]
    found = reasons(row)
    assert (found["link.py"], found["sub"], found["large.txt"]) == ("link", "submodule", "lfs_pointer")
    assert git_log(**reading)[0]["subject"] == "Hostile"
    assert git_status(**reading)["changed"] == []
    _committed(source, _tree(repo, *((name, 0o100644, blob.id) for name in (b"..", b".GIT"))))
    assert "damaged" in reasons(bring("git", into="worse")).values()
    assert paths(reading["collection"]) == ["good.py"]


def test_tree_bomb_is_stopped(bring: Bring, source: Path, reading: dict[str, Any], settings: Any) -> None:
    settings.IMPORT_MAX_FILES = 300
    repo, blob = Repo(str(source)), Blob.from_string(b"x")
    repo.object_store.add_object(blob)
    inner = _tree(repo, *((b"f%d.bin" % n, 0o100644, blob.id) for n in range(10)))
    for _ in range(12):
        inner = _tree(repo, *((b"d%d" % n, 0o40000, inner) for n in range(10)))
    _committed(source, inner)
    row = bring("git", path=str(source))
    assert (row.status, row.error_code) == ("failed", "too_many_entries")
    assert told(bring("folder"))
    for ask in (git_status, git_diff):
        with pytest.raises(DomainError, match=r"more than|differ"):
            ask(**reading)
    assert len(git_log(**reading)) == 3


def test_refs_with_hostile_names_are_left_out_and_said(
    bring: Bring, source: Path, reading: dict[str, Any]
) -> None:
    newest = (source / ".git/refs/heads/master").read_text().strip()
    names = [
        "refs/heads/../../x",
        "refs/heads/a..b",
        "refs/heads/-x\x1b[2J",
        "refs/heads/x.lock",
        "refs/heads/.x",
        "refs/tags/ok",
    ]
    (source / ".git/packed-refs").write_text("".join(f"{newest} {name}\n" for name in names))
    row = bring()
    assert told(row)
    assert sorted(Repository.objects.get().refs) == ["refs/heads/master", "refs/tags/ok"]
    assert len(git_log(**reading, ref="ok")) == 2


def test_history_is_closed_to_who_may_not_see_all_documents_and_stays_so(
    repository: Repository, reading: dict[str, Any], cast: Cast, write: Write
) -> None:
    document = upload(cast, reading["collection"], "pay.txt", b"secret\n")
    owner = {"actor": cast.actor("owner"), "collection": reading["collection"]}
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=document, is_restricted=True, roles=["owner"]
    )
    repositories_services.git_commit(tenant=cast.tenant, **owner, message="With pay")
    for ask in (git_log, git_status, git_diff):
        with pytest.raises(Denied):
            ask(**reading)
    with pytest.raises(Denied):
        git_blame(**reading, path="a.py")
    write("a.py", "x = 5\n")
    with pytest.raises(Denied):
        repositories_services.git_commit(tenant=cast.tenant, **reading, message="Mine")
    assert len(git_log(**owner)) == 3
    document.refresh_from_db()
    documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("owner"), document=document)
    with pytest.raises(Denied):  # its bytes are in a commit for good
        git_log(**reading)
    assert len(git_log(**owner)) == 3


def test_rules_of_files_hide_in_the_history_too(
    repository: Repository, reading: dict[str, Any], cast: Cast
) -> None:
    files_services.file_rules_update(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        collection=reading["collection"],
        rules={"deny": ["a.py"]},
    )
    reading["collection"].refresh_from_db()
    assert git_diff(**reading, old="HEAD~1", new="HEAD") == []
    assert git_status(**reading)["changed"] == []
    for ask in (git_log, git_blame):
        with pytest.raises(Denied):
            ask(**reading, path="a.py")


def test_other_tenant_sees_no_repository(repository: Repository, reading: dict[str, Any], cast: Cast) -> None:
    outside = {"actor": cast.actor("outsider"), "collection": reading["collection"]}
    with pytest.raises(DomainError, match="no repository"):
        git_log(**outside)


def test_detached_and_unborn_heads_commit_with_care(
    bring: Bring, source: Path, reading: dict[str, Any], cast: Cast, write: Write, tmp_path: Path
) -> None:
    first = _newest(source).parents[0]
    assert bring("git", ref=first.decode()).status == "completed"
    assert git_status(**reading)["branch"] == ""
    write("a.py", "x = 4\n")
    commit = {"tenant": cast.tenant, **reading, "message": "On a branch"}
    with pytest.raises(Conflict, match="Name a new branch"):
        repositories_services.git_commit(**commit)
    for bad in ("../x", "a b", "x..y", "master", "a.lock"):
        with pytest.raises(Invalid):
            repositories_services.git_commit(**commit, branch=bad)
    made = repositories_services.git_commit(**commit, branch="topic")
    assert (made.branch, git_status(**reading)["branch"]) == ("topic", "topic")
    assert git_log(**reading)[0]["parents"] == [first.decode()]
    empty = source.parent / "empty"
    porcelain.init(str(empty)).close()
    assert bring("git", path=str(empty), into="empty").status == "completed"
    assert git_log(**reading, repository="empty") == []
    write("empty/one.txt", "1\n")
    made = repositories_services.git_commit(**commit, repository="empty")
    assert git_log(**reading, repository="empty")[0]["parents"] == []
    assert made.paths == ["empty/one.txt"]


def test_import_again_never_loses_commits_made_here(
    bring: Bring, source: Path, reading: dict[str, Any], cast: Cast, write: Write, commits: Any
) -> None:
    bring("git")
    packs = set(RepositoryPack.objects.values_list("file", flat=True))
    write("a.py", "x = 7\n")
    mine = repositories_services.git_commit(tenant=cast.tenant, **reading, message="Mine")
    (source / "b.txt").write_text("bees\n")
    porcelain.add(str(source), paths=[str(source / "b.txt")])
    porcelain.commit(str(source), message=b"Third", author=ANN, committer=ANN)
    row = bring("git")
    assert told(row)
    assert [one["id"] for one in git_log(**reading, limit=1)] == [mine.commit]
    assert git_log(**reading, ref="origin/master", limit=1)[0]["subject"] == "Third"
    assert packs < set(RepositoryPack.objects.values_list("file", flat=True))


def test_repository_counts_in_the_quota_and_goes_with_its_collection(
    bring: Bring, reading: dict[str, Any], cast: Cast, commits: Any
) -> None:
    collection = reading["collection"]
    files_services.file_rules_update(
        tenant=cast.tenant, actor=cast.actor("owner"), collection=collection, rules={"max_total_bytes": 100}
    )
    assert told(bring())
    assert not RepositoryPack.objects.exists()
    files_services.file_rules_update(
        tenant=cast.tenant, actor=cast.actor("owner"), collection=collection, rules={}
    )
    bring()
    keys = [key for pair in RepositoryPack.objects.values_list("file", "index") for key in pair]
    assert len(keys) == 2
    assert all(store().size(key) for key in keys)
    with commits():
        collection_services.collection_delete(
            tenant=cast.tenant, actor=cast.actor("admin"), collection=collection
        )
    assert not Repository.objects.exists()
    assert not any(store().size(key) for key in keys)


def test_many_small_packs_become_one(
    repository: Repository, reading: dict[str, Any], cast: Cast, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.collections.repositories import services as repositories

    monkeypatch.setattr(repositories, "_MERGED", 3)
    for number in range(5):
        write("a.py", f"x = {number + 10}\n")
        repositories_services.git_commit(tenant=cast.tenant, **reading, message=f"Commit {number}")
    assert len(git_log(**reading)) == 7
    assert RepositoryPack.objects.filter(is_made_here=True).count() == 2
    assert Document.objects.filter(path="a.py").exists()
