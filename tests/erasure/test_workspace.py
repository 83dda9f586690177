"""An erased workspace is nowhere any more: no row, no file, no copy; and its neighbour is whole."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, connection, models, transaction

from apps.collections.models import Collection, Document
from basics.errors import Conflict, Denied, Invalid
from blobs.hold import removals_hold
from erasure.holds import hold_place, hold_release
from erasure.ledger import ledger_read
from erasure.models import Erasure
from erasure.rules import columns_of, text_columns
from erasure.services import (
    erasures_round,
    workspace_erase_request,
    workspace_erase_undo,
)
from erasure.workspaces import copies_look
from tenancy.database.direct import direct_connection
from tenancy.models import AuditEvent, Tenant
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.erasure.conftest import files_of, rows_of
from tests.erasure.planting import Planted, found_in_files, found_in_rows, plant
from tests.factories import actor_of, make_collection, make_tenant
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)
BOUND = {
    "conversations.AssistantVersion.output_schema",
    "runs.PendingDecision.approver",
    "runs.ToolCall.path",
    "tenancy.ProviderCredential.endpoint",
    "tools.ToolGrant.approver",
    "tools.ToolGrant.subject",
    "tools.ToolLimit.target",
}
"""Columns that a CHECK of the database keeps from holding just any text in the rows that are made here."""


def ask(side: Side) -> Erasure:
    actor = actor_of(side.people["owner"])
    return workspace_erase_request(tenant=side.tenant, actor=actor, confirm=side.tenant.slug)


def planted_in(side: Side) -> Planted:
    """Plant in every column of a row of every table of the workspace, and in the workspace itself but its slug."""
    planted = Planted()
    rows = rows_of(side)
    with platform_scope():
        fresh = [type(row)._base_manager.get(pk=row.pk) for row in rows]
    plant(planted, fresh)
    plant(planted, [side.tenant], columns=lambda model: [f for f in text_columns(model) if f.name == "name"])
    entry = LogEntry.objects.create(
        user=side.user("owner"),
        content_type=ContentType.objects.get_for_model(type(rows[0])),
        object_id=str(rows[0].pk),
        object_repr="x",
        action_flag=2,
    )
    plant(
        planted,
        [entry],
        columns=lambda model: [f for f in text_columns(model) if f.name != "object_id"],
    )
    return planted


def test_nothing_of_it_is_left_and_the_neighbour_is_whole(home: Path) -> None:
    side, other = Side(), Side()
    planted, kept = planted_in(side), planted_in(other)
    codes = {f"{m._meta.label}.{f.name}" for m in tenant_models() for f in columns_of(m, "codes")}
    assert {r for r in set(planted.refused) - codes if not _is_vector(r)} == BOUND
    assert len(planted.marks) > 300
    in_files, in_others_files = Planted(), Planted()
    files_of(side.tenant.pk, home, in_files.mark("file"))
    others = files_of(other.tenant.pk, home, in_others_files.mark("file"))
    assert len(found_in_rows(planted.marks)) == len(planted.marks)

    made = ask(side)
    assert erasures_round() == 1

    assert found_in_rows(planted.marks) == {}
    assert found_in_files([*planted.marks, *in_files.marks], home) == {}
    assert len(found_in_rows(kept.marks)) == len(kept.marks)
    assert all(path.exists() for path in others)
    made.refresh_from_db()
    assert made.state == Erasure.State.DONE
    removed = {line["where"]: line["count"] for line in made.report if line["what"] == "removed"}
    assert removed["tenancy.Tenant"] == 1
    assert removed["files"] == 2
    assert removed["copies and caches of this machine"] == 4
    assert {m._meta.label for m in tenant_models()} - set(removed) <= {"tenancy.WriteMark"}
    assert not any(mark in str(made.report) for mark in planted.marks)
    assert [line["where"] for line in made.report if line["what"] == "kept"] == [
        "backups",
        "blocks and log of the database's own files",
    ]
    with platform_scope():
        for model in tenant_models():
            assert not model._base_manager.filter(tenant_id=side.tenant.pk).exists(), model


def _is_vector(where: str) -> bool:
    label, _, name = where.rpartition(".")
    model = next(m for m in tenant_models() if m._meta.label == label)
    column = model._meta.get_field(name)
    return not isinstance(column, (models.CharField, models.TextField, models.JSONField, models.BinaryField))


def document_add(collection: Collection, name: str) -> None:
    Document.objects.create(
        tenant_id=collection.tenant_id,
        collection=collection,
        name=name,
        path=name,
        media_type="text/plain",
        size=1,
        sha256="0" * 64,
        file="x",
    )


def test_it_is_whole_while_others_write(home: Path) -> None:
    side = Side()
    with platform_scope():
        first = make_collection(side.tenant, "First")
    wrote = threading.Semaphore(0)
    problems: list[str] = []

    def write(name: str) -> None:
        try:
            for number in range(100_000):
                with tenant_scope(side.tenant.pk), transaction.atomic():
                    make_collection(side.tenant, f"{name} {number}")
                    document_add(first, f"{name} {number}")  # whose tenant is known by its collection alone
                    AuditEvent.objects.create(
                        tenant=side.tenant, actor_kind="user", action="a.b", data={"n": name}
                    )
                wrote.release()
        except DatabaseError as error:
            problems.append(type(error).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("Zwriter", "Zpoet")]
    ask(side)
    for thread in threads:
        thread.start()
    for _ in range(30):
        assert wrote.acquire(timeout=60)
    for _ in range(50):  # a deadlock with one who writes ends the try, and the next one goes on
        Erasure.objects.update(due_at=Erasure.objects.get().requested_at)
        if erasures_round():
            break
    for thread in threads:
        thread.join()
    assert first.pk
    assert len(problems) == 2
    assert Erasure.objects.get().state == Erasure.State.DONE
    assert found_in_rows(["Zwriter", "Zpoet", side.tenant.slug]) == {}
    with platform_scope():
        for model in tenant_models():
            assert not model._base_manager.filter(tenant_id=side.tenant.pk).exists(), model


def test_only_an_owner_who_typed_the_address_may_ask_and_can_undo(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    side, other = Side(), Side()
    for role in ("admin", "member", "viewer"):
        with pytest.raises(Denied):
            workspace_erase_request(
                tenant=side.tenant, actor=actor_of(side.people[role]), confirm=side.tenant.slug
            )
    owner = actor_of(side.people["owner"])
    with pytest.raises(Invalid):
        workspace_erase_request(tenant=side.tenant, actor=owner, confirm=side.tenant.name)
    with pytest.raises(Denied):
        workspace_erase_request(tenant=side.tenant, actor=owner, confirm=side.tenant.slug, now=True)
    made = ask(side)
    with pytest.raises(Conflict, match="already"):
        ask(side)
    assert (made.due_at - made.requested_at).days in {6, 7}
    assert erasures_round() == 0
    with pytest.raises(Conflict):
        workspace_erase_undo(tenant=other.tenant, actor=actor_of(other.people["owner"]))
    workspace_erase_undo(tenant=side.tenant, actor=owner)
    Erasure.objects.update(due_at=made.requested_at)
    assert erasures_round() == 0
    assert Tenant.objects.filter(pk=side.tenant.pk, is_active=True).exists()
    with tenant_scope(side.tenant.pk):
        actions = list(AuditEvent.objects.order_by("seq").values_list("action", flat=True))
    assert actions[-2:] == ["tenant.erase_request", "tenant.erase_undo"]


def test_a_legal_hold_stops_it_before_and_after_it_was_asked_for(home: Path) -> None:
    side = Side()
    owner = actor_of(side.people["owner"])
    with pytest.raises(Denied):
        hold_place(tenant=side.tenant, actor=actor_of(side.people["admin"]), reason="Case 12")
    hold_place(tenant=side.tenant, actor=owner, reason="Case 12")
    with pytest.raises(Conflict, match="already"):
        hold_place(tenant=side.tenant, actor=owner, reason="Case 13")
    with pytest.raises(Conflict, match="legal hold"):
        ask(side)
    hold_release(tenant=side.tenant, actor=owner)
    made = ask(side)
    hold_place(tenant=side.tenant, actor=owner, reason="Case 14")
    assert erasures_round() == 0
    made.refresh_from_db()
    assert (made.state, made.detail) == ("waiting", "The workspace is under a legal hold.")
    hold_release(tenant=side.tenant, actor=owner)
    Erasure.objects.update(due_at=made.requested_at)
    assert erasures_round() == 1
    assert not Tenant.objects.filter(pk=side.tenant.pk).exists()


def test_files_wait_for_a_backup_and_the_ledger_comes_first(home: Path) -> None:
    side = Side()
    files = files_of(side.tenant.pk, home, "words")
    made = ask(side)
    with direct_connection() as line:
        removals_hold(line)
        assert erasures_round() == 0
        made.refresh_from_db()
        assert "backup" in made.detail
        assert not Tenant.objects.filter(pk=side.tenant.pk).exists()
        assert all(path.exists() for path in files)
        assert [entry.subject for entry in ledger_read([])] == [side.tenant.pk]
    Erasure.objects.update(due_at=made.requested_at)
    assert erasures_round() == 1
    assert not any(path.exists() for path in files)
    made.refresh_from_db()
    assert {"tenancy.Tenant", "files"} <= {line["where"] for line in made.report}


def test_nothing_goes_while_the_ledger_cannot_be_written(home: Path, settings: Any) -> None:
    side = Side()
    made = ask(side)
    blocked = home.parent / "no-folder"
    blocked.write_text("a file where the folder of backups should be")
    settings.BACKUP_URL = str(blocked)
    assert erasures_round() == 0
    made.refresh_from_db()
    assert "Error" in made.detail
    with pytest.raises(Conflict, match="being erased"):
        hold_place(tenant=side.tenant, actor=actor_of(side.people["owner"]), reason="Too late")
    assert Tenant.objects.filter(pk=side.tenant.pk, is_active=True).exists()


def test_another_machine_forgets_its_copies_when_it_looks(home: Path) -> None:
    side, other = Side(), Side()
    ask(side)
    assert erasures_round() == 1
    elsewhere = files_of(side.tenant.pk, home, "words")[:4]
    kept = files_of(other.tenant.pk, home, "words")
    assert copies_look() == 4
    assert not any(path.exists() for path in elsewhere)
    assert all(path.exists() for path in kept)
    assert make_tenant().pk != side.tenant.pk
