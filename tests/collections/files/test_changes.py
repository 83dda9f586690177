"""Writes, edits, moves and deletes of files: rows, documents, disk and history agree, and stale or hidden ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.collections.collection import services as collection_services
from apps.collections.documents import access
from apps.collections.documents import services as documents_services
from apps.collections.files import changes, imports, undo
from apps.collections.files import services as files_services
from apps.collections.files.changes import FileChange
from apps.collections.files.edits import TextEdit
from apps.collections.files.services import FileEdit
from apps.collections.models import Collection, Document, DocumentSource, FileBatch, FileBlob
from apps.collections.tree.store import file_bytes, files_stored, trees_folder
from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from tenancy.actors import Actor
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, upload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def commits(django_capture_on_commit_callbacks: Any) -> Any:
    """Run what waits for the commit at the end of the block."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def put(cast: Cast, collection: Collection, path: str, content: bytes | str, **more: Any) -> Any:
    return files_services.file_write(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        collection=collection,
        path=path,
        content=content,
        **more,
    )


def text_of(cast: Cast, collection: Collection, path: str, actor: Actor | None = None) -> bytes:
    stored = files_stored(actor or cast.actor("member"), collection.pk, path=path)[path]
    return file_bytes(collection.pk, cast.tenant.pk, stored)


def root(cast: Cast, collection: Collection) -> Path:
    return trees_folder() / f"t{cast.tenant.pk}" / str(collection.pk)


def test_file_is_written_as_document_revision_and_on_disk(
    cast: Cast, collection: Collection, commits: Any
) -> None:
    with commits():
        batch = put(cast, collection, "src/main.py", "print('one')\n", note="first")
    revision = batch.revisions.get()
    assert (revision.path, revision.before, bytes(revision.after.content)) == (
        "src/main.py",
        None,
        b"print('one')\n",
    )
    document = Document.objects.get(path="src/main.py")
    assert (document.source, document.job_id is not None) == (DocumentSource.TOOL, True)
    assert (root(cast, collection) / "src/main.py").read_bytes() == b"print('one')\n"
    assert batch.user_id == cast.user("member").pk
    assert AuditEvent.objects.filter(action="file.write").count() == 1
    assert put(cast, collection, "src/main.py", "print('one')\n") is None
    put(cast, collection, "src/main.py", "print('two')\n")
    assert list(
        Document.objects.filter(path="src/main.py").values_list("version", flat=True).order_by("version")
    ) == [1, 2]


def test_uploaded_document_is_a_file_of_the_tree(cast: Cast, collection: Collection) -> None:
    upload(cast, collection, "notes.txt", b"first")
    assert text_of(cast, collection, "notes.txt") == b"first"
    assert (root(cast, collection) / "notes.txt").read_bytes() == b"first"
    upload(cast, collection, "notes.txt", b"second")
    assert text_of(cast, collection, "notes.txt") == b"second"
    assert (root(cast, collection) / "notes.txt").read_bytes() == b"second"


def test_deleted_document_leaves_the_disk(cast: Cast, collection: Collection, commits: Any) -> None:
    document = upload(cast, collection, "notes.txt", b"first")
    text_of(cast, collection, "notes.txt")
    with commits():
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert files_stored(cast.actor("member"), collection.pk) == {}
    assert not (root(cast, collection) / "notes.txt").exists()


def test_tampered_copy_is_put_right_at_the_next_read(
    cast: Cast, collection: Collection, tmp_path: Path, commits: Any
) -> None:
    with commits():
        put(cast, collection, "a/b.txt", "mine\n")
    copy = root(cast, collection) / "a/b.txt"
    copy.write_bytes(b"them\n")
    assert text_of(cast, collection, "a/b.txt") == b"mine\n"
    assert copy.read_bytes() == b"mine\n"
    secret = tmp_path / "secret"
    secret.write_bytes(b"out!\n")
    copy.unlink()
    copy.symlink_to(secret)
    assert text_of(cast, collection, "a/b.txt") == b"mine\n"
    assert not copy.is_symlink()
    assert secret.read_bytes() == b"out!\n"
    copy.parent.rename(tmp_path / "away")
    copy.parent.symlink_to(tmp_path / "away")
    assert text_of(cast, collection, "a/b.txt") == b"mine\n"


def test_edits_of_several_files_are_all_made_or_none(cast: Cast, collection: Collection) -> None:
    put(cast, collection, "a.txt", "one\ntwo\nthree\n")
    put(cast, collection, "b.txt", b"eins\r\nzwei\r\n")
    stored = files_stored(cast.actor("member"), collection.pk)
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    edits = [
        FileEdit(
            "a.txt",
            [
                TextEdit("insert", "zero", line=1),
                TextEdit("replace_lines", "2\n2b", line=2),
                TextEdit("delete_lines", line=3),
                TextEdit("insert", "four\n", line=4),
            ],
            stored["a.txt"].sha256,
        ),
        FileEdit("b.txt", [TextEdit("replace_text", "ZWEI\ndrei", old="zwei")], stored["b.txt"].sha256),
    ]
    batch = files_services.files_edit(**common, edits=edits, note="both")
    assert text_of(cast, collection, "a.txt") == b"zero\none\n2\n2b\nfour\n"
    assert text_of(cast, collection, "b.txt") == b"eins\r\nZWEI\r\ndrei\r\n"
    assert batch is not None
    assert batch.revisions.count() == 2
    batches = FileBatch.objects.count()
    with pytest.raises(Conflict) as stale:
        files_services.files_edit(**common, edits=edits)
    assert stale.value.code == "file_stale"
    for bad in (
        TextEdit("replace_text", "x", old="not there"),
        TextEdit("replace_lines", "x", line=9),
        TextEdit("insert", "x", line=0),
    ):
        with pytest.raises(DomainError):
            files_services.files_edit(
                **common,
                edits=[FileEdit("a.txt", [TextEdit("insert", "y", line=1)]), FileEdit("b.txt", [bad])],
            )
    assert FileBatch.objects.count() == batches
    assert text_of(cast, collection, "a.txt") == b"zero\none\n2\n2b\nfour\n"


def test_undo_redo_and_restore_go_back_and_forth(cast: Cast, collection: Collection, commits: Any) -> None:
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    first = put(cast, collection, "a.txt", "one\n")
    put(cast, collection, "a.txt", "two\n")
    undo.batch_undo(**common)
    assert text_of(cast, collection, "a.txt") == b"one\n"
    with commits():
        undo.batch_undo(**common)
    assert files_stored(cast.actor("member"), collection.pk) == {}
    assert not (root(cast, collection) / "a.txt").exists()
    with pytest.raises(Conflict, match="no change to undo"):
        undo.batch_undo(**common)
    undo.batch_redo(**common)
    assert text_of(cast, collection, "a.txt") == b"one\n"
    undo.batch_redo(**common)
    assert text_of(cast, collection, "a.txt") == b"two\n"
    with pytest.raises(Conflict):
        undo.batch_redo(**common)
    undo.revision_restore(**common, revision=first.revisions.get())
    assert text_of(cast, collection, "a.txt") == b"one\n"
    assert [b.action for b in FileBatch.objects.order_by("pk")] == [
        "write",
        "write",
        "undo",
        "undo",
        "redo",
        "redo",
        "restore",
    ]


def test_newest_version_stays_live_when_an_older_one_is_ready_later(
    cast: Cast, collection: Collection
) -> None:
    texts = [f"The lamp number {number} costs {number} euros.\n" for number in (1, 2)]
    for text in texts:
        put(cast, collection, "a.txt", text)
    older, newer = Document.objects.order_by("version")
    assert attempt(newer).status == "ready"
    assert attempt(older).status == "ready"
    newer.refresh_from_db()
    assert newer.live_to is None
    assert older.live_to is not None
    assert text_of(cast, collection, "a.txt") == texts[1].encode()


def test_bytes_that_come_back_while_they_wait_are_the_newest_version(
    cast: Cast, collection: Collection
) -> None:
    texts = [f"The lamp number {number} costs {number} euros.\n" for number in (1, 2)]
    for text in (*texts, texts[0]):
        put(cast, collection, "a.txt", text)
    assert text_of(cast, collection, "a.txt") == texts[0].encode()
    second, first = Document.objects.order_by("version")
    assert (second.version, first.version) == (2, 3)
    for document in (first, second):
        assert attempt(document).status == "ready"
    assert Document.objects.get(live_from__isnull=False, live_to__isnull=True).pk == first.pk


def test_undo_is_refused_over_a_later_change(cast: Cast, collection: Collection) -> None:
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    first = put(cast, collection, "a.txt", "one\n")
    upload(cast, collection, "a.txt", b"from elsewhere\n")
    with pytest.raises(Conflict) as stale:
        undo.batch_undo(**common, batch=first)
    assert stale.value.code == "file_stale"
    first.refresh_from_db()
    assert not first.is_undone


def test_move_keeps_document_and_goes_back(cast: Cast, collection: Collection, commits: Any) -> None:
    document = upload(cast, collection, "a.txt", b"one\n")
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    with commits():
        files_services.file_move(**common, path="a.txt", to="folder/b.txt")
    document.refresh_from_db()
    assert document.path == "folder/b.txt"
    assert not (root(cast, collection) / "a.txt").exists()
    assert text_of(cast, collection, "folder/b.txt") == b"one\n"
    undo.batch_undo(**common)
    document.refresh_from_db()
    assert document.path == "a.txt"
    undo.batch_redo(**common)
    document.refresh_from_db()
    assert document.path == "folder/b.txt"


@pytest.mark.parametrize(
    ("rules", "path", "code"),
    [
        ({"read_only": True}, "a.txt", "files_read_only"),
        ({"deny": ["*.key", "/private/"]}, "x/id.key", "path_denied"),
        ({"deny": ["/private/"]}, "private/a.txt", "path_denied"),
        ({"allow": ["src/"]}, "a.txt", "path_denied"),
        ({}, ".env", "path_denied"),
        ({}, "a/.ssh/id", "path_denied"),
        ({"show_hidden": True}, ".git/hooks/pre-commit", "path_denied"),
        ({"show_hidden": True}, "sub/.GIT/config", "path_denied"),
        ({"max_file_bytes": 3}, "a.txt", "file_too_large"),
        ({"max_total_bytes": 3}, "a.txt", "quota_exceeded"),
        ({"max_files": 1}, "b.txt", "quota_exceeded"),
        ({}, "../a.txt", "path_invalid"),
        ({}, "/a.txt", "path_invalid"),
        ({}, "there.txt/a", "path_taken"),
    ],
)
def test_write_is_refused_when_a_rule_forbids_it(
    cast: Cast, collection: Collection, rules: dict[str, Any], path: str, code: str
) -> None:
    upload(cast, collection, "there.txt", b"")
    files_services.file_rules_update(
        tenant=cast.tenant, actor=cast.actor("member"), collection=collection, rules=rules
    )
    with pytest.raises(DomainError) as refused:
        put(cast, collection, path, "four")
    assert refused.value.code == code
    assert not FileBatch.objects.exists()


@pytest.mark.parametrize(
    "rules", [{"nonsense": 1}, {"allow": "x"}, {"max_files": 0}, {"max_files": True}, {"read_only": 1}]
)
def test_rules_are_refused_when_they_cannot_be_read(
    cast: Cast, collection: Collection, rules: dict[str, Any]
) -> None:
    with pytest.raises(Invalid):
        files_services.file_rules_update(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, rules=rules
        )


def test_viewer_and_outsider_may_not_write(cast: Cast, collection: Collection) -> None:
    for role in ("viewer", "outsider"):
        actor = cast.actor(role)
        with pytest.raises((Denied, Missing)):
            changes.files_change(
                tenant=cast.tenant if role == "viewer" else cast.other_tenant,
                actor=actor,
                collection=collection,
                changes=[FileChange("a.txt", b"x")],
                action=FileBatch.Action.WRITE,
            )
    assert not FileBatch.objects.exists()


def test_restricted_document_is_neither_read_nor_overwritten_nor_undone_into_the_open(
    cast: Cast, collection: Collection
) -> None:
    member, owner = cast.actor("member"), cast.actor("owner")
    document = upload(cast, collection, "pay.txt", b"secret pay\n")
    access.document_access_set(
        tenant=cast.tenant, actor=owner, document=document, is_restricted=True, roles=["owner"]
    )
    assert files_stored(member, collection.pk) == {}
    common: dict[str, Any] = {"tenant": cast.tenant, "collection": collection}
    with pytest.raises(Conflict) as taken:
        put(cast, collection, "pay.txt", "mine")
    assert taken.value.code == "path_taken"
    with pytest.raises(Missing):
        files_services.file_delete(**common, actor=member, path="pay.txt")
    with pytest.raises(Missing):
        files_services.file_move(**common, actor=member, path="pay.txt", to="open.txt")
    with pytest.raises(Missing):
        files_services.files_edit(
            **common, actor=member, edits=[FileEdit("pay.txt", [TextEdit("insert", "x", line=1)])]
        )
    edited = files_services.file_write(**common, actor=owner, path="pay.txt", content="more pay\n")
    assert edited is not None
    assert files_stored(member, collection.pk) == {}
    with pytest.raises(Missing):
        undo.batch_undo(**common, actor=member, batch=edited)
    with pytest.raises(Missing):
        undo.revision_restore(**common, actor=member, revision=edited.revisions.get())
    files_services.file_move(**common, actor=owner, path="pay.txt", to="pay2.txt")
    assert files_stored(member, collection.pk) == {}
    undo.batch_undo(**common, actor=owner)
    assert files_stored(member, collection.pk) == {}
    gone = files_services.file_delete(**common, actor=owner, path="pay.txt")
    for actor in (owner, member):
        with pytest.raises(Conflict) as refused:
            undo.batch_undo(**common, actor=actor, batch=gone)
        assert refused.value.code == "file_was_restricted"


def test_import_keeps_what_it_can_and_names_what_it_left_out(cast: Cast, collection: Collection) -> None:
    entries = [
        ("src/a.py", b"x = 1\n"),
        ("src/__init__.py", b""),
        ("logo.ico", b"\x00\x00\x01\x00" + bytes(50)),
        ("../evil", b"x"),
        (".git/config", b"[core]\n"),
        (".git/hooks/post-checkout", b"#!/bin/sh\n"),
        (".git/HEAD", b"ref: refs/heads/main\n"),
        (".git/objects/info/alternates", b"/etc\n"),
        (".env", b"KEY=1"),
        ("src/a.py/below", b"x"),
    ]
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    result = imports.files_import(**common, entries=entries, note="Archive")
    assert set(files_stored(cast.actor("member"), collection.pk)) == {
        "src/a.py",
        "src/__init__.py",
        "logo.ico",
    }
    assert list(Document.objects.values_list("path", flat=True)) == ["src/a.py"]
    assert {path for path, _ in result.skipped} == {
        "../evil",
        ".git/config",
        ".git/HEAD",
        ".git/hooks/post-checkout",
        ".git/objects/info/alternates",
        ".env",
        "src/a.py/below",
    }
    assert not (root(cast, collection) / ".git").exists()
    again = imports.files_import(**common, entries=entries)
    assert again.batches == []


def test_deleted_collection_takes_tree_history_and_bytes_along(
    cast: Cast, collection: Collection, commits: Any
) -> None:
    with commits():
        put(cast, collection, "a.txt", "one\n")
    assert root(cast, collection).is_dir()
    with commits():
        collection_services.collection_delete(
            tenant=cast.tenant, actor=cast.actor("admin"), collection=collection
        )
    assert not root(cast, collection).exists()
    assert not FileBlob.objects.exists()
