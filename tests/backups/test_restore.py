"""A backup comes back whole on a server that knows nothing of us, and nowhere else."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from apps.collections.models import Embedding, SearchIndex, SearchIndexStatus
from backups import scratch
from backups.errors import BackupDamaged, BackupRefused
from backups.kept_keys import keys_used
from backups.loading import empty_refuse, fresh_line, schema_make, schema_refuse
from backups.manifest import Manifest, manifest_write
from backups.models import BackupResult
from backups.places import Place
from backups.restoring import backup_restore, rows_restore
from backups.results import is_verified, last_result
from backups.services import backup_keys
from backups.tables import table_sum
from backups.verifying import backup_verify
from blobs.leases import blob_read
from blobs.stores import store
from config.doctor import check_row_security, check_vector
from tenancy.actors import system_actor
from tenancy.audit_chain import audit_chain_verify
from tenancy.models import AuditEvent, Tenant
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tests.backups.conftest import SEAL, Elsewhere, Installation

pytestmark = pytest.mark.django_db(transaction=True)


def same_rows(manifest: Manifest) -> None:
    """Check counts and checksums of every table of the database that is worked on."""
    with fresh_line() as line:
        for table in manifest.tables:
            found = table_sum(line, table.name, table.columns)
            assert (found.rows, found.checksum) == (table.rows, table.checksum), table.name


def large_index(installation: Installation) -> SearchIndex:
    """Note an index of its own for the collection, as large ones have it."""
    with tenant_scope(installation.cast.tenant.pk):
        embedding = Embedding.objects.select_related("space").first()
        assert embedding is not None
        return SearchIndex.objects.create(
            tenant_id=installation.cast.tenant.pk,
            collection=installation.collection,
            space=embedding.space,
            kind=SearchIndex.Kind.GRAPH,
            status=SearchIndexStatus.READY,
            last_chunk=embedding.chunk_id,
            chunk_count=1,
        )


def all_is_there(installation: Installation, files: dict[str, bytes], index: SearchIndex) -> None:
    """Check files, walls, keys and the large index, which was built again, where a backup came back."""
    assert {kept.key for kept in store().below("")} == set(files)
    for key, content in files.items():
        assert hashlib.sha256(blob_read(key)).hexdigest() == key.rpartition("/")[2]
        assert blob_read(key) == content
    assert check_row_security().ok
    assert check_vector().ok
    with platform_scope():
        tenants = list(Tenant.objects.all())
    assert {t.pk for t in tenants} == {installation.cast.tenant.pk, installation.cast.other_tenant.pk}
    for tenant in tenants:
        assert audit_chain_verify(tenant=tenant).is_intact
        with tenant_scope(tenant.pk):
            for model in tenant_models():
                assert not model._default_manager.exclude(tenant_id=tenant.pk).exists(), model
    used = keys_used()
    assert used.secrets == 2
    assert used.unreadable == []
    with fresh_line() as line:
        found = line.execute(
            "SELECT count(*) FROM pg_indexes WHERE schemaname = 'vector_graphs' AND indexdef LIKE '%%hnsw%%' "
            "AND tablename = 'c' || %s::text || '_i' || %s::text",
            [index.collection_id, index.pk],
        ).fetchone()
    assert found == (1,)


def nothing_was_changed(elsewhere: Elsewhere) -> None:
    """Check that a refused restore has left no rows and no files."""
    with elsewhere.entered(), fresh_line() as line:
        empty_refuse(line)
        assert list(store().below("")) == []


def test_it_comes_back_once_and_after_refusals(
    installation: Installation, elsewhere: Elsewhere, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server without our roles: one restore, refused again and again, for reasons none of which leaves anything."""
    settings.BACKUP_KEYS = [SEAL]
    index = large_index(installation)
    made, of_the_source = installation.backup(), shape()
    assert made.rows > 100
    files = {kept.key: blob_read(kept.key) for kept in store().below("")}
    assert len(files) == 3
    url = str(installation.place)

    settings.BACKUP_KEYS = []
    with elsewhere.entered(), pytest.raises(BackupRefused, match="no backup key"):
        backup_restore(url)
    settings.BACKUP_KEYS = [SEAL]
    with elsewhere.entered(), pytest.raises(BackupRefused, match="no backup 20200101T000000000000Z-000000"):
        backup_restore(url, name="20200101T000000000000Z-000000")

    newer = replace(made, migrations=[*made.migrations, ("tenancy", "9999_from_the_future")])
    with elsewhere.entered(), pytest.raises(BackupRefused, match=r"tenancy\.9999_from_the_future"):
        schema_refuse(newer)

    # Another secret key, chosen by the operator: the keys of the backup are handed out, nothing is overwritten.
    monkeypatch.setenv("GROUNDWORK_SECRET_KEY", "another-secret-key-another-secret-key-another-secret")
    kept = settings.SECRET_KEY
    settings.SECRET_KEY = "another-secret-key-another-secret-key-another-secret"
    with elsewhere.entered(), pytest.raises(BackupRefused, match=r"restored_keys\.env"):
        backup_restore(url)
    written = elsewhere.home / "restored_keys.env"
    assert written.read_text() == f"GROUNDWORK_SECRET_KEY={kept}\n"
    assert written.stat().st_mode & 0o077 == 0
    nothing_was_changed(elsewhere)

    # Files of somebody else where they would go.
    (elsewhere.home / "files").mkdir()
    (elsewhere.home / "files" / "theirs").write_bytes(b"of another installation")
    settings.SECRET_KEY = kept
    with elsewhere.entered(), pytest.raises(BackupRefused, match="theirs"):
        backup_restore(url)
    (elsewhere.home / "files" / "theirs").unlink()
    nothing_was_changed(elsewhere)

    # A row that differs, hidden behind hashes that fit: found before anything is visible.
    lying = replace(
        made,
        tables=[
            replace(table, checksum="0" * 64) if table.name == "tenancy_tenant" else table
            for table in made.tables
        ],
    )
    with elsewhere.entered():
        is_older = schema_make(lying)
        with pytest.raises(BackupDamaged, match="rows aren't those"):
            rows_restore(Place(url), lying, backup_keys(), is_older=is_older, say=print)
    nothing_was_changed(elsewhere)

    # No key is set: the data directory's own file is replaced, and what an interrupted restore left is gone on with.
    monkeypatch.delenv("GROUNDWORK_SECRET_KEY")
    settings.SECRET_KEY = "made-at-the-first-command-of-the-new-server-12345678"
    with elsewhere.entered():
        done = backup_restore(url)
        assert done.brought == 3
        assert "secret_key" in done.keys
        assert (elsewhere.home / "secret_key").read_text() == kept
        same_rows(made)
        with pytest.raises(BackupRefused, match="isn't empty"):
            backup_restore(url)
        sequences_go_on()
        assert shape() == of_the_source
    settings.SECRET_KEY = kept
    with elsewhere.entered():
        all_is_there(installation, files, index)


def sequences_go_on() -> None:
    """Check that a new row gets an id that none has, and is sealed behind the audit events that were restored."""
    with platform_scope():
        tenant = Tenant.objects.order_by("pk").first()
        highest = AuditEvent.objects.order_by("-pk").values_list("pk", flat=True).first()
    assert tenant is not None
    assert highest is not None
    with tenant_scope(tenant.pk), transaction.atomic():
        audit_record(tenant=tenant, actor=system_actor(tenant.pk), action="credential.rotate")
    with platform_scope():
        assert AuditEvent.objects.filter(pk__gt=highest).count() == 1
    assert audit_chain_verify(tenant=tenant).is_intact


def shape() -> Any:
    """Return how many foreign keys, indexes and triggers are in force in the database that is worked on."""
    with fresh_line() as line:
        return line.execute(
            """SELECT (SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated),
                      (SELECT count(*) FROM pg_indexes WHERE schemaname = 'public'),
                      (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O')"""
        ).fetchone()


def test_an_older_schema_is_restored_and_migrated(installation: Installation, elsewhere: Elsewhere) -> None:
    """A backup from before backups were recorded: its table isn't there, and comes with the migration."""
    made = installation.backup()
    place = Place(str(installation.place))
    older = replace(
        made,
        migrations=[one for one in made.migrations if one[0] != "backups"],
        tables=[table for table in made.tables if table.name != "backups_backupresult"],
        sequences=[state for state in made.sequences if state.table != "backups_backupresult"],
    )
    assert len(asdict(older)["migrations"]) == len(made.migrations) - 1
    manifest_write(place, older, None)
    with elsewhere.entered():
        backup_restore(str(installation.place))
        same_rows(older)
        assert check_row_security().ok
        assert BackupResult.objects.count() == 0


def test_verify_finds_a_backup_right_and_a_damaged_one_wrong(
    installation: Installation, settings: Any
) -> None:
    settings.BACKUP_KEYS = [SEAL]
    out = StringIO()
    place = str(installation.place)
    call_command("backup", "create", place, stdout=out)
    with fresh_line() as line:
        name: Any = line.execute("SELECT current_database()").fetchone()
        for one in ("of_a_killed_one", "of_an_operator"):
            line.execute(f'CREATE DATABASE "{name[0][:40]}_scratch_{one}"')
        line.execute(f"COMMENT ON DATABASE \"{name[0][:40]}_scratch_of_a_killed_one\" IS '{scratch._MARK}'")
    assert len(databases()) == 2
    call_command("backup", "verify", place, stdout=out)
    told = out.getvalue()
    for words in (
        "3 originals read",
        "tables compared",
        "walls of 2 workspaces hold",
        "audit events in their chains",
        "2 of 2 credentials decrypted",
        "a search finds passages",
        "can be restored",
    ):
        assert words in told
    last = last_result(BackupResult.Kind.VERIFY)
    assert last is not None
    assert last.is_ok
    assert is_verified(last.name)
    rows = sorted((installation.place / "backups" / last.name / "rows").iterdir())
    content = bytearray(rows[3].read_bytes())
    content[-1] ^= 1
    rows[3].write_bytes(content)
    original = next(installation.place.glob("originals/*/*"))
    original.write_bytes(original.read_bytes()[:-1])
    errors = StringIO()
    with pytest.raises(CommandError, match="can't be relied on"):
        call_command("backup", "verify", place, stdout=out, stderr=errors)
    assert errors.getvalue().count("WRONG") == 2
    assert not is_verified(last.name)
    assert databases() == {f"{name[0][:40]}_scratch_of_an_operator"}
    with fresh_line() as line:
        line.execute(f'DROP DATABASE "{name[0][:40]}_scratch_of_an_operator"')


def test_verify_needs_no_right_to_create_databases(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it an embedded server of its own serves, which also knows none of our roles."""
    installation.backup()
    monkeypatch.setattr(scratch, "_created", lambda line: None)
    found = backup_verify(str(installation.place))
    assert found.where == "an embedded server of its own"
    assert found.problems == []


def databases() -> set[str]:
    """Return the scratch databases of the server."""
    with fresh_line() as line:
        found = line.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, left(current_database(), 40) || '_scratch_')"
        )
        return {row[0] for row in found}
