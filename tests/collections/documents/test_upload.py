from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from django.db import connection

from apps.collections.documents import services
from apps.collections.models import Collection, Document
from basics.errors import Denied, Invalid, Missing
from jobs.models import Job
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import job_of, upload
from tests.factories import make_collection
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db


def kept(storage: Path) -> list[Path]:
    return sorted(p for p in storage.rglob("*") if p.is_file())


def test_file_lies_under_its_hash_with_a_job_and_an_audit_row(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        document = upload(cast, collection, "a.txt", b"hello")
        sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
        assert document.sha256 == sha256
        assert document.file == f"t{cast.tenant.pk}/{collection.pk}/2c/{sha256}"
        assert (storage / document.file).read_bytes() == b"hello"
        assert job_of(document).payload == {"document": document.pk}
        event = AuditEvent.objects.get(action="document.upload")
        assert (event.object_id, event.user_id) == (str(document.pk), cast.user("member").pk)
    assert len(kept(storage)) == 1, "nothing stays behind in the incoming folder"


def test_same_bytes_are_one_document_when_uploaded_again(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        first = upload(cast, collection, "a.txt", b"hello")
        again = services.document_upload(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            collection=collection,
            name="a.txt",
            chunks=[b"hel", b"lo"],
        )
        assert (again.document.pk, again.created) == (first.pk, False)
        assert Job.objects.count() == 1
    assert len(kept(storage)) == 1


def test_another_name_is_another_document_when_the_bytes_are_the_same(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        first, second = (upload(cast, collection, name, b"hello") for name in ("a.txt", "b.txt"))
        assert (first.pk != second.pk, first.version, second.version) == (True, 1, 1)
    assert len(kept(storage)) == 1  # the original is kept once


def test_lost_original_comes_back_when_its_bytes_are_uploaded_again(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        document = upload(cast, collection, "a.txt", b"hello")
        (storage / document.file).unlink()
        upload(cast, collection, "a.txt", b"hello")
    assert (storage / document.file).read_bytes() == b"hello"


@pytest.mark.django_db(transaction=True)
def test_one_document_when_the_same_file_arrives_many_times_at_once(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    barrier, results, errors = threading.Barrier(6), [], []

    def send() -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                barrier.wait(PATIENCE_S)
                results.append(
                    services.document_upload(
                        tenant=cast.tenant,
                        actor=cast.actor("member"),
                        collection=collection,
                        name="same.txt",
                        chunks=[b"the same bytes"],
                    )
                )
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert errors == []
    assert len({r.document.pk for r in results}) == 1
    assert sorted(r.created for r in results) == [False] * 5 + [True]
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.count() == 1
        assert Job.objects.count() == 1
    assert len(kept(storage)) == 1


def test_nothing_is_kept_when_a_file_is_too_large(
    cast: Cast, collection: Collection, storage: Path, settings
) -> None:
    settings.MAX_UPLOAD_BYTES = 10
    sent = []

    def endless():
        while True:
            sent.append(1)
            yield b"12345"

    with tenant_scope(cast.tenant.pk), pytest.raises(Invalid) as refused:
        services.document_upload(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, name="a", chunks=endless()
        )
    assert (refused.value.code, refused.value.status) == ("too_large", 413)
    assert len(sent) == 3, "reading stops as soon as the limit is passed"
    assert kept(storage) == []


def test_remains_of_killed_uploads_are_swept_away(cast: Cast, collection: Collection, storage: Path) -> None:
    incoming = storage / "incoming"
    incoming.mkdir(parents=True)
    for name, age in (("upload-old", 90_000), ("upload-running", 60)):
        (incoming / name).touch()
        os.utime(incoming / name, (time.time() - age,) * 2)
    with tenant_scope(cast.tenant.pk):
        upload(cast, collection, "a.txt", b"x")
    assert [p.name for p in incoming.iterdir()] == ["upload-running"]


def test_viewer_may_not_upload(cast: Cast, collection: Collection, storage: Path) -> None:
    with tenant_scope(cast.tenant.pk), pytest.raises(Denied):
        upload(cast, collection, "a.txt", b"x", role="viewer")
    assert kept(storage) == []


def test_foreign_collection_does_not_exist(cast: Cast, collection: Collection, storage: Path) -> None:
    theirs = make_collection(cast.other_tenant)
    with tenant_scope(cast.tenant.pk):
        with pytest.raises(Missing):
            upload(cast, theirs, "a.txt", b"x")
        assert Document.objects.count() == 0
    assert kept(storage) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\plan.pdf", "plan.pdf"),
        ("a\x00b\n.txt", "ab.txt"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_name_is_bare_and_short(given: str, expected: str) -> None:
    assert services.document_name(given) == expected


@pytest.mark.parametrize("given", ["", "/", "\x00", "  "])
def test_name_is_refused_when_nothing_is_left_of_it(given: str) -> None:
    with pytest.raises(Invalid, match="no name"):
        services.document_name(given)
