"""Backups while others work: killed anywhere, beside deletions, twice at once, again and again, into a bucket."""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.collections.documents.services import document_delete
from backups import places, retention
from backups.errors import BackupBusy, BackupRefused
from backups.manifest import Manifest
from backups.places import Place
from backups.retention import backup_prune
from backups.services import backup_create, backup_list
from backups.snapshot import alone
from blobs.models import PendingBlob
from blobs.services import pending_sweep
from blobs.stores import FolderStore, store
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.row_security import row_security_apply
from tenancy.scope import platform_scope, tenant_scope
from tests.backups.conftest import SEAL, Installation
from tests.backups.test_damage import problems
from tests.bucket import Bucket, serving
from tests.collections.conftest import ingest
from tests.nightly import NIGHTLY
from tests.servers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

KILLED_EVERY = 1 if NIGHTLY else 5
"""By day a backup is killed at every fifth of its steps and at the last two, at night at each."""


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


def locks_are_gone() -> bool:
    """Tell whether the sessions of killed backups have ended on the server."""
    with direct_connection() as line:
        row: Any = line.execute(
            """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
        ).fetchone()
    return bool(row[0] == 0)


def killed_at(number: int, backup: Callable[[], object]) -> int | None:
    """Write a backup in a child that kills itself at a step; returns how many steps it took, None if it was killed.

    Args:
        number: of the step: a file is being begun, is about to get its name, or has it.
    """
    connection.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1
            if steps > number:
                os.kill(os.getpid(), signal.SIGKILL)

        real_put, real_replace = FolderStore.put, Path.replace

        def put(self: FolderStore, key: str, source: Path) -> None:
            step()
            real_put(self, key, source)
            step()

        def replace(self: Path, target: Any) -> Path:
            step()
            return real_replace(self, target)

        FolderStore.put = put  # type: ignore[method-assign]
        Path.replace = replace  # type: ignore[method-assign,assignment]
        try:
            backup()
            os.write(writer, str(steps).encode())
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a child of a test must never return into it
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as said:
        steps_taken = said.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    assert os.WIFSIGNALED(status) == (steps_taken == b"")
    wait_for(locks_are_gone, "the sessions of a killed backup")
    return int(steps_taken) if steps_taken else None


def test_a_killed_backup_is_never_accepted_and_the_next_one_works(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(installation.place)
    place = Place(url)

    def nothing_is_wrong() -> None:
        for name in place.names():
            assert problems(place, name) == []

    number, killed = 0, 0
    while (steps := killed_at(number, installation.backup)) is None:
        nothing_is_wrong()
        killed += 1
        number += KILLED_EVERY
    # The last step is after the manifest has its name, and that backup is whole; at the one before it has none yet. Where
    # they were passed over, they come now, as if there had been no whole backup. It takes fewer steps: all was sent.
    if len(place.names()) == 1:
        fewer = killed_at(steps, installation.backup)
        assert fewer is not None
        for name in place.names():
            shutil.rmtree(installation.place / "backups" / name)
        for last in (fewer - 2, fewer - 1):
            assert killed_at(last, installation.backup) is None
            nothing_is_wrong()
            killed += 1
        assert killed_at(fewer, installation.backup) is not None
    assert killed > 50 // KILLED_EVERY
    finished = place.names()
    assert len(finished) == 2, "one killed just after its manifest was placed, one that nobody killed"
    made = installation.backup()
    assert problems(place, made.name) == []
    monkeypatch.setattr(retention, "UNFINISHED_KEPT", retention.UNFINISHED_KEPT * 0)
    pruned = backup_prune(url, keep=1)
    assert pruned.backups == finished
    assert pruned.unfinished > 50 // KILLED_EVERY
    left = {path.name for path in (installation.place / "backups").iterdir() if any(path.rglob("*.gw*"))}
    assert left == {made.name}
    assert problems(place, made.name) == []
    left_here = list((installation.home / "cache").glob("backup-*"))
    assert left_here
    for folder in left_here:
        os.utime(folder, (0, 0))
    with places.workroom():
        assert len(list((installation.home / "cache").glob("backup-*"))) == 1


def test_what_is_there_is_not_sent_again(installation: Installation) -> None:
    first = installation.backup()
    assert (first.originals.count, first.originals.sent) == (3, 3)
    second = installation.backup()
    assert (second.originals.count, second.originals.sent) == (3, 0)
    with tenant_scope(installation.cast.tenant.pk):
        ingest(installation.cast, installation.collection, "new.md", b"# New\n\nSomething else.")
    third = installation.backup()
    assert (third.originals.count, third.originals.sent) == (4, 1)
    assert [one.manifest for one in backup_list(str(installation.place))] == [first, second, third]


def test_damage_in_the_place_is_replaced_when_asked(installation: Installation) -> None:
    first = installation.backup()
    place = Place(str(installation.place))
    cut, damaged, _ = sorted(installation.place.glob("originals/*/*"))
    cut.write_bytes(cut.read_bytes()[:-1])
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert installation.backup().originals.sent == 1, "another size is seen at once"
    assert problems(place, first.name) != []
    assert installation.backup(is_checked=True).originals.sent == 1
    assert problems(place, first.name) == []


def test_a_file_that_is_deleted_meanwhile_is_in_the_backup(installation: Installation) -> None:
    key = installation.document.file

    done: list[str] = []

    def delete(words: str) -> None:
        if "rows" in words and not done:
            done.append(words)
            with tenant_scope(installation.cast.tenant.pk):
                document_delete(
                    tenant=installation.cast.tenant,
                    actor=installation.cast.actor("owner"),
                    document=installation.document,
                    with_history=True,
                )
            pending_sweep()

    made = installation.backup(say=delete)
    assert (made.originals.count, made.originals.missing_count) == (3, 0)
    assert problems(Place(str(installation.place)), made.name) == []
    assert store().size(key) is not None, "its removal waited"
    with platform_scope():
        assert PendingBlob.objects.filter(key=key, removed_at=None).count() == 1
        PendingBlob.objects.update(due_at="2000-01-01T00:00Z")
    pending_sweep()
    assert store().size(key) is None, "and went on afterwards"
    assert installation.backup().originals.count == 2


def test_rows_and_files_are_of_one_moment(installation: Installation) -> None:
    """What comes after the snapshot is in neither."""
    before = installation.backup()

    def add(words: str) -> None:
        if words.startswith("Writing"):
            with tenant_scope(installation.cast.tenant.pk):
                ingest(installation.cast, installation.collection, "late.md", b"# Late\n\nToo late.")

    made = installation.backup(say=add)
    assert made.originals.count == before.originals.count
    assert {t.name: t.checksum for t in made.tables} == {t.name: t.checksum for t in before.tables}


def test_an_original_that_is_lost_is_told_and_the_rest_is_kept(installation: Installation) -> None:
    store().remove(installation.document.file)
    made = installation.backup()
    assert made.originals.count == 2
    # A file whose row names it, and which the store never lists, can't be among the keys: so it is only absent.
    path = store().here(
        next(kept.key for kept in store().below("") if kept.key != installation.document.file)
    )
    assert path is not None
    path.write_bytes(b"other bytes")
    there = installation.place.parent / "second"
    made = backup_create(str(there))
    assert (made.originals.count, made.originals.missing_count) == (1, 1)


def test_two_at_once(installation: Installation) -> None:
    with alone():
        with pytest.raises(BackupBusy):
            installation.backup()
        with pytest.raises(BackupBusy):
            backup_prune(str(installation.place), keep=1)
    assert installation.backup().rows > 0


def test_a_lost_session_gives_the_backup_up(installation: Installation) -> None:
    def end(words: str) -> None:
        if "originals" in words:
            with direct_connection() as line:
                line.execute(
                    """SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
                )

    with pytest.raises(BackupRefused, match="connection to the database was lost"):
        installation.backup(say=end)
    assert Place(str(installation.place)).names() == []


def test_rows_that_may_be_hidden_refuse_a_backup(installation: Installation) -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("DROP POLICY platform_access ON budgets_budget")
    try:
        with pytest.raises(BackupRefused, match="may hide rows of budgets_budget"):
            installation.backup()
    finally:
        row_security_apply(connection)
    assert installation.backup().rows > 0


def test_pruning_keeps_what_backups_need(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(installation.place)
    names = [installation.backup().name for _ in range(3)]
    with tenant_scope(installation.cast.tenant.pk):
        document_delete(
            tenant=installation.cast.tenant,
            actor=installation.cast.actor("owner"),
            document=installation.document,
            with_history=True,
        )
    last = installation.backup().name
    assert backup_prune(url, keep=2).backups == names[:2]
    monkeypatch.setattr(retention, "UNFINISHED_KEPT", retention.UNFINISHED_KEPT * 0)
    done = backup_prune(url, keep=1)
    assert (done.backups, done.originals) == ([names[2]], 1)
    assert Place(url).names() == [last]
    assert problems(Place(url), last) == []


def test_a_place_among_the_files_is_refused(installation: Installation, settings: Any) -> None:
    for wrong in (settings.MEDIA_ROOT, settings.MEDIA_ROOT / "below", installation.home, ""):
        with pytest.raises(BackupRefused):
            backup_create(str(wrong))
    settings.FILES_URL = "s3://bucket/files?region=eu-1"
    for address in ("s3://bucket/files/backups", "s3://bucket/files", "s3://bucket"):
        with pytest.raises(BackupRefused, match="among the files"):
            places.place_url(address)
    for address in ("ftp://host/folder", "s3://user:word@bucket/folder", "file://host/folder", "s3://"):
        with pytest.raises(BackupRefused, match="can't be used"):
            Place(address)
    assert places.place_url("s3://bucket/backups") == "s3://bucket/backups"


def test_a_bucket(installation: Installation, settings: Any, s3: str) -> None:
    settings.BACKUP_KEYS = [SEAL]
    bucket = Bucket(s3)
    made: Manifest = backup_create(bucket.url)
    assert problems(Place(bucket.url), made.name) == []
    assert backup_create(bucket.url).originals.sent == 0
    bucket.damage(f"backups/{made.name}/originals.gwp")
    assert problems(Place(bucket.url), made.name) != []
    assert len(backup_prune(bucket.url, keep=1).backups) == 1
    assert len(Place(bucket.url).names()) == 1
