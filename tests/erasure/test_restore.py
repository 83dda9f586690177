"""A backup that was written before an erasure doesn't bring back what was erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.models import Document, Page
from apps.conversations.models import Conversation
from backups.errors import BackupDamaged
from backups.loading import empty_refuse, fresh_line
from backups.places import Place
from backups.restoring import backup_restore
from backups.results import recorded
from blobs.stores import store
from config.embedded import EmbeddedPostgres
from erasure.ledger import FOLDER, ledger_read, subject_of
from erasure.models import Erasure
from erasure.scrubbing import disk_scrub
from erasure.services import (
    content_erase_request,
    erasures_round,
    ledger_round,
    person_erase_request,
    workspace_erase_request,
)
from tenancy.audit_chain import audit_chain_verify
from tenancy.models import Membership, Tenant, User
from tenancy.scope import platform_scope, tenant_scope
from tests.backups.conftest import Elsewhere, Installation, bare_server, elsewhere, embedder, installation
from tests.erasure.planting import found_in_files, found_in_rows

__all__ = ["bare_server", "elsewhere", "embedder", "installation"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_an_older_backup_is_erased_again_before_it_opens(
    installation: Installation, elsewhere: Elsewhere, bare_server: EmbeddedPostgres, settings: Any
) -> None:
    settings.ERASURE_GRACE_DAYS = 0
    cast = installation.cast
    url = str(installation.place)
    settings.BACKUP_URL = url
    person = cast.user("member")
    User.objects.filter(pk=person.pk).update(first_name="Zqelda", last_name="Zqanders")
    person.refresh_from_db()
    with tenant_scope(cast.tenant.pk):
        document = Document.objects.filter(tenant=cast.tenant, live_to=None).order_by("pk")[0]
        text = document.pages.order_by("number")[0].text
        talk = Conversation.objects.create(
            tenant=cast.tenant, user=cast.user("owner"), title="Zqtalk", model="extractive"
        )
    installation.backup()
    with tenant_scope(cast.tenant.pk):  # a newer version, which the backup doesn't know
        values = {f.attname: getattr(document, f.attname) for f in Document._meta.concrete_fields}
        Document.objects.filter(pk=document.pk).update(live_from=timezone.now(), live_to=timezone.now())
        newer = Document.objects.create(**values | {"id": None, "version": 99, "sha256": "c" * 64})
    for subject in (newer, talk):
        content_erase_request(tenant=cast.tenant, actor=cast.actor("owner"), subject=subject, confirm="erase")
    workspace_erase_request(
        tenant=cast.other_tenant, actor=cast.actor("outsider"), confirm=cast.other_tenant.slug
    )
    person_erase_request(person=person, by=person, confirm=person.email)
    assert erasures_round() == 4
    assert not Tenant.objects.filter(pk=cast.other_tenant.pk).exists()
    with platform_scope():
        here = [subject_of(entry) for entry in ledger_read([url])]
    assert here == [None] * 5  # one for each version of the document
    said: list[str] = []
    with elsewhere.entered():
        backup_restore(url, say=said.append)
        assert not Tenant.objects.filter(pk=cast.other_tenant.pk).exists()
        assert not User.objects.filter(pk=person.pk).exists()
        with platform_scope():
            assert not Document.objects.filter(pk=document.pk).exists()
            assert not Conversation.objects.filter(pk=talk.pk).exists()
            assert not Page.objects.filter(text=text).exists()
        assert found_in_rows([cast.other_tenant.slug, person.email, "Zqelda", "# Other", "Zqtalk"]) == {}
        assert found_in_files(["# Other", person.email], Path(elsewhere.home) / "files") == {}
        assert list(store().below(f"t{cast.other_tenant.pk}/")) == []
        assert list(store().below(f"t{cast.tenant.pk}/"))
        assert Erasure.objects.filter(state="done").count() == 4
        tenant = Tenant.objects.get(pk=cast.tenant.pk)
        assert audit_chain_verify(tenant=tenant).is_intact
        with tenant_scope(tenant.pk):
            assert Membership.objects.filter(tenant=tenant).count() == 3
        assert ledger_round() == 0
        # Byte by byte: what Postgres leaves in its own files until they are rewritten.
        marks = [cast.other_tenant.slug, person.email, "Zqelda"]
        assert set(found_in_files(marks, bare_server.pgdata)) == set(marks)
        assert disk_scrub(f"{bare_server.superuser_url.rpartition('/')[0]}/target") > 100
        assert found_in_files(marks, bare_server.pgdata) == {}
    assert any("Erased again" in words and "4" in words for words in said)


def test_a_ledger_that_cannot_be_read_stops_the_restore_before_anything_is_there(
    installation: Installation, elsewhere: Elsewhere
) -> None:
    installation.backup()
    bad = installation.place / FOLDER / "20261126T210000000000Z-0123456789ab.json"
    bad.parent.mkdir()
    bad.write_text('{"format": 1, "kind": "workspace", "subject": "1 or 2", "fingerprint": "", "at": ""}')
    with elsewhere.entered():
        with pytest.raises(BackupDamaged, match="ledger of erasures"):
            backup_restore(str(installation.place))
        with fresh_line() as line:
            empty_refuse(line)


def test_it_is_written_beside_backups_that_were_made_by_hand_and_hits_no_later_row(
    installation: Installation, settings: Any
) -> None:
    settings.ERASURE_GRACE_DAYS, settings.BACKUP_URL = 0, ""
    url = str(installation.place)
    recorded("create", url, installation.backup, lambda made: (made, ""))
    gone = installation.home.parent / "unplugged"
    gone.write_text("no folder")
    recorded("create", str(gone), installation.backup, lambda made: (made, ""))
    cast = installation.cast
    made = workspace_erase_request(
        tenant=cast.other_tenant, actor=cast.actor("outsider"), confirm=cast.other_tenant.slug
    )
    assert erasures_round() == 1
    made.refresh_from_db()
    missed = [line for line in made.report if line["where"] == "ledger beside older backups"]
    assert [str(gone) in line["why"] for line in missed] == [True]
    assert [kept.key.startswith(FOLDER) for kept in Place(url).store.below(f"{FOLDER}/")] == [True]
    # Another workspace that gets the same number, as after an older backup was restored.
    later = Tenant.objects.create(pk=cast.other_tenant.pk, slug="later", name="Later")
    assert ledger_round() == 0
    assert Tenant.objects.filter(pk=later.pk).exists()
    Tenant.objects.filter(pk=later.pk).update(created_at=cast.other_tenant.created_at)
    assert ledger_round() == 1
    assert not Tenant.objects.filter(pk=later.pk).exists()
