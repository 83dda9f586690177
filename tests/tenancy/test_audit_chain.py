"""Whatever is done to the audit trail behind the application's back is found; what the application does is intact."""

from __future__ import annotations

import json
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tenancy.actors import system_actor
from tenancy.audit_chain import MAX_PROBLEMS, ChainReport, audit_chain_verify
from tenancy.database.base import as_login_role
from tenancy.models import AuditChain, AuditEvent, Tenant
from tenancy.origin import origin_scope
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)
NASTY: dict[str, Any] = {"ü": "„“\u2028", "n": 1e22, "f": [0.1, -0.0, 1e-7], "z": None, "a": {"b": []}}


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return make_tenant()


def record(tenant: Tenant, *actions: str) -> None:
    """Commit one event for each action."""
    for action in actions:
        with (
            tenant_scope(tenant.pk),
            origin_scope(ip="2001:db8::1", request_id="abc12345"),
            transaction.atomic(),
        ):
            audit_record(tenant=tenant, actor=system_actor(tenant.pk, 7), action=action, data=NASTY)


def as_owner(sql: str, *params: Any) -> None:
    """Do something to the tables as their owner, whom no right of the application limits."""
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(sql, params or None)


def kinds(tenant: Tenant, **options: Any) -> list[tuple[str, int | None]]:
    return [(p.kind, p.seq) for p in audit_chain_verify(tenant=tenant, **options).problems]


def test_each_tenant_has_a_chain_of_its_own(tenant: Tenant):
    other = make_tenant()
    record(tenant, "a.a", "b.b")
    record(other, "c.c")
    record(tenant, "d.d")
    with tenant_scope(tenant.pk):
        events = list(AuditEvent.objects.order_by("pk"))
        head = AuditChain.objects.get()
    assert [e.seq for e in events] == [1, 2, 3]
    assert [e.previous_hash for e in events] == ["", events[0].hash, events[1].hash]
    assert (head.seq, head.hash) == (3, events[2].hash)
    assert audit_chain_verify(tenant=tenant) == ChainReport(3, 3, head.hash)
    assert audit_chain_verify(tenant=other).head_seq == 1
    assert audit_chain_verify(tenant=make_tenant()) == ChainReport()


def test_events_of_one_transaction_are_chained_in_order_and_undone_ones_leave_no_gap(tenant: Tenant):
    def act(fail: bool) -> None:
        with tenant_scope(tenant.pk), transaction.atomic():
            for action in ("a.a", "b.b", "c.c"):
                audit_record(tenant=tenant, actor=system_actor(tenant.pk), action=action)
            if fail:
                raise KeyError

    act(fail=False)
    with pytest.raises(KeyError):
        act(fail=True)
    act(fail=False)
    with tenant_scope(tenant.pk):
        assert list(AuditEvent.objects.order_by("seq").values_list("seq", "action")) == list(
            zip(range(1, 7), ["a.a", "b.b", "c.c"] * 2, strict=True)
        )
    assert audit_chain_verify(tenant=tenant).is_intact


@pytest.mark.parametrize(
    "change",
    [
        "action = 'x.x'",
        "actor_name = 'somebody'",
        "user_id = 8",
        "at = at + interval '1 microsecond'",
        "ip = '2001:db8::2'",
        "request_id = ''",
        "data = data - 'z'",
        "object_name = 'x'",
        "hash = repeat('0', 64)",
    ],
)
def test_altered_row_is_found(tenant: Tenant, change: str):
    record(tenant, "a.a", "b.b", "c.c")
    as_owner(f"UPDATE tenancy_auditevent SET {change} WHERE tenant_id = %s AND seq = 2", tenant.pk)
    assert ("altered", 2) in kinds(tenant)


def test_row_altered_with_its_own_hash_made_right_breaks_the_link(tenant: Tenant):
    record(tenant, "a.a", "b.b", "c.c")
    as_owner("UPDATE tenancy_auditevent SET action = 'x.x', seq = NULL, hash = '' WHERE seq = 2")
    as_owner(
        "UPDATE tenancy_auditchain SET seq = 1, hash = (SELECT hash FROM tenancy_auditevent WHERE seq = 1)"
    )
    as_owner("SELECT audit_seal(id, tenant_id) FROM tenancy_auditevent WHERE seq IS NULL")
    assert kinds(tenant) == [("unlinked", 3), ("head", 2)]


@pytest.mark.parametrize(
    ("gone", "found"), [(1, [("missing", 2)]), (2, [("missing", 3)]), (3, [("head", 3)])]
)
def test_deleted_row_is_found(tenant: Tenant, gone: int, found: list[tuple[str, int]]):
    record(tenant, "a.a", "b.b", "c.c")
    as_owner("DELETE FROM tenancy_auditevent WHERE seq = %s", gone)
    assert kinds(tenant) == found


def test_emptied_trail_is_found(tenant: Tenant):
    record(tenant, "a.a", "b.b")
    as_owner("DELETE FROM tenancy_auditevent")
    assert kinds(tenant) == [("head", 2)]


def test_inserted_row_is_found(tenant: Tenant):
    record(tenant, "a.a", "b.b")
    columns = "tenant_id, actor_kind, actor_name, action, object_type, object_id, object_name, data, request_id, previous_hash, hash"
    values = "%s, 'user', 'x', 'x.x', '', '', '', '{}', '', '', repeat('1', 64)"
    as_owner("ALTER TABLE tenancy_auditevent DISABLE TRIGGER USER")
    try:
        as_owner(f"INSERT INTO tenancy_auditevent ({columns}) VALUES ({values})", tenant.pk)
        as_owner(f"INSERT INTO tenancy_auditevent ({columns}, seq) VALUES ({values}, 3)", tenant.pk)
    finally:
        as_owner("ALTER TABLE tenancy_auditevent ENABLE TRIGGER USER")
    assert kinds(tenant) == [("unsealed", None), ("unlinked", 3), ("altered", 3), ("head", 2)]


def test_reordered_rows_are_found(tenant: Tenant):
    record(tenant, "a.a", "b.b", "c.c", "d.d")
    for before, after in ((2, 99), (3, 2), (99, 3)):
        as_owner("UPDATE tenancy_auditevent SET seq = %s WHERE seq = %s", after, before)
    found = kinds(tenant)
    assert {("altered", 2), ("altered", 3), ("unlinked", 2), ("unlinked", 3)} <= set(found)


def test_chain_written_anew_is_found_by_an_anchor_only(tenant: Tenant):
    record(tenant, "a.a", "b.b", "c.c")
    anchor = audit_chain_verify(tenant=tenant)
    as_owner("UPDATE tenancy_auditevent SET action = 'x.x' WHERE seq = 1")
    as_owner("UPDATE tenancy_auditevent SET seq = NULL, hash = ''")
    as_owner("DELETE FROM tenancy_auditchain")
    as_owner("SELECT audit_seal(id, tenant_id) FROM tenancy_auditevent ORDER BY id")
    assert kinds(tenant) == []
    assert kinds(tenant, anchors={3: anchor.head_hash}) == [("anchor", 3)]
    as_owner("DELETE FROM tenancy_auditevent WHERE seq = 3")
    assert kinds(tenant, anchors={3: anchor.head_hash})[-1] == ("anchor", 3)


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE tenancy_auditchain SET hash = ''",
        "DELETE FROM tenancy_auditchain",
        "INSERT INTO tenancy_auditchain (tenant_id, seq, hash) VALUES (1, 1, '')",
        "SELECT audit_seal(1, 1)",
        "ALTER TABLE tenancy_auditevent DISABLE TRIGGER audit_seal_new",
    ],
)
def test_application_cannot_touch_the_chain(tenant: Tenant, attempt: str):
    record(tenant, "a.a")
    with (
        tenant_scope(tenant.pk),
        pytest.raises(ProgrammingError, match=r"permission denied|must be owner"),
        connection.cursor() as cursor,
    ):
        cursor.execute(attempt)


def test_seal_given_by_the_application_is_replaced(tenant: Tenant):
    with tenant_scope(tenant.pk):
        AuditEvent.objects.create(
            tenant=tenant, actor_kind="user", action="x.y", seq=40, previous_hash="p", hash="h"
        )
        assert AuditEvent.objects.get().seq == 1
    assert audit_chain_verify(tenant=tenant).is_intact


def test_concurrent_writers_make_one_chain(tenant: Tenant):
    """Also with locks taken in opposite order around the event: the head is locked last, at the commit."""
    errors: list[BaseException] = []
    others = [make_tenant(), make_tenant()]

    def write(number: int) -> None:
        try:
            for turn in range(15):
                with tenant_scope(tenant.pk), transaction.atomic():
                    audit_record(tenant=tenant, actor=system_actor(tenant.pk), action="a.a")
                    row = Tenant.objects.select_for_update().get(pk=others[(number + turn) % 2].pk)
                    audit_record(tenant=tenant, actor=system_actor(tenant.pk), action=f"b.{row.pk}")
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    report = audit_chain_verify(tenant=tenant)
    assert (report.events, report.head_seq, report.problems) == (180, 180, [])


def test_many_events_are_verified_with_the_statements_of_few(tenant: Tenant):
    taken = []
    for more, whole in ((10, 10), (2_990, 3_000)):
        with tenant_scope(tenant.pk), transaction.atomic():
            AuditEvent.objects.bulk_create(
                AuditEvent(tenant=tenant, actor_kind="user", action="a.b", data=NASTY) for _ in range(more)
            )
        with CaptureQueriesContext(connection) as queries:
            report = audit_chain_verify(tenant=tenant)
        assert (report.events, report.head_seq, report.problem_count) == (whole, whole, 0)
        taken.append(len(queries))
    assert taken[1] <= taken[0] + 10, taken  # they are read by the thousand, never one by one


def test_event_forged_before_is_not_sealed_with_the_next_one(tenant: Tenant):
    record(tenant, "a.a")
    as_owner("UPDATE tenancy_auditevent SET seq = NULL, hash = ''")
    record(tenant, "b.b")
    assert kinds(tenant) == [("unsealed", None), ("missing", 2)]


def test_report_keeps_the_first_problems_and_counts_all(tenant: Tenant):
    record(tenant, *["a.a"] * (MAX_PROBLEMS + 5))
    as_owner("UPDATE tenancy_auditevent SET action = 'x.x'")
    report = audit_chain_verify(tenant=tenant)
    assert (len(report.problems), report.problem_count) == (MAX_PROBLEMS, MAX_PROBLEMS + 5)


def test_command_tells_and_exports_anchors(tenant: Tenant, tmp_path: Path):
    file, out = tmp_path / "anchors.jsonl", StringIO()
    record(tenant, "a.a", "b.b")
    for _ in range(2):  # a head that is known is not written again
        call_command("audit_verify", "--anchors", str(file), stdout=out)
    record(tenant, "c.c")
    call_command("audit_verify", "--anchors", str(file), "--tenant", tenant.slug, stdout=out)
    assert [json.loads(line)["seq"] for line in file.read_text().splitlines()] == [2, 3]
    assert "2 events, intact" in out.getvalue()
    as_owner("UPDATE tenancy_auditevent SET action = 'x.x' WHERE seq = 1")
    out = StringIO()
    with pytest.raises(CommandError, match="1 workspace"):
        call_command("audit_verify", "--json", stdout=out)
    assert json.loads(out.getvalue())["problems"][0]["kind"] == "altered"
    with pytest.raises(CommandError, match="no workspace"):
        call_command("audit_verify", "--tenant", "absent")
    file.write_text('{"seq": 1}\n')
    with pytest.raises(CommandError, match="line 1 isn't an anchor"):
        call_command("audit_verify", "--anchors", str(file))
