"""A backup comes back whole on a server that knows nothing of us, and nowhere else."""

from __future__ import annotations

import hashlib

import pytest

from backups.kept_keys import keys_used
from backups.loading import fresh_line
from backups.manifest import Manifest
from backups.restoring import backup_restore
from backups.tables import table_sum
from blobs.leases import blob_read
from blobs.stores import store
from config.doctor import check_row_security, check_vector
from tenancy.audit_chain import audit_chain_verify
from tenancy.models import Tenant
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.backups.conftest import Elsewhere, Installation

pytestmark = pytest.mark.django_db(transaction=True)


def same_rows(manifest: Manifest) -> None:
    """Check counts and checksums of every table of the database that is worked on."""
    with fresh_line() as line:
        for table in manifest.tables:
            found = table_sum(line, table.name, table.columns)
            assert (found.rows, found.checksum) == (table.rows, table.checksum), table.name


def test_it_comes_back_on_a_server_without_our_roles(
    installation: Installation, elsewhere: Elsewhere
) -> None:
    made = installation.backup()
    assert made.rows > 100
    files = {kept.key: blob_read(kept.key) for kept in store().below("")}
    assert len(files) == 3
    with elsewhere.entered():
        done = backup_restore(str(installation.place))
        assert done.brought == 3
        same_rows(made)
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
